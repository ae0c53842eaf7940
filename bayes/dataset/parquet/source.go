package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"

	"gobnn/bayes/dataset"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// Source gives the rows of a file that does not fit in memory, for methods that train on mini-batches. The rows should
// be in random order in the file, since a mini-batch consists of rows that are near each other. Blocks of 65 536 rows
// are read fastest (density.SourceSettings.BlockRows): so many are decoded at a time.
//
// Only the parts of the file that hold the rows asked for are read, so that it may lie on a volume that a bucket of S3
// or Google Cloud Storage is mounted as. On a cluster (package cluster) each node reads its own mount: the program
// names the path, nothing passes through the machine that it was started on, and Parts.TrainHash refuses a file that is
// not the same there. docker/kuberay.yaml shows such a volume.
type Source struct {
	features, targets []string // the names of the columns of x and y

	file    *file
	path    string
	close   func() error
	rows    int
	columns []*pq.Column // of the features, and then the targets

	mu      sync.Mutex
	held    []segment       // that were read last, the latest at the end
	checked map[[2]int]bool // whether the pages of a chunk were looked at, by group and column
}

var (
	_ dataset.Source = (*Source)(nil)
	_ dataset.Named  = (*Source)(nil)
)

// segmentRows is the number of rows that are decoded at a time, and heldSegments how many of these are kept: 26 MB each
// for 50 columns.
const (
	segmentRows  = 1 << 16
	heldSegments = 3
)

// segment is some rows of all columns, [rows, columns].
type segment struct {
	number int
	values []float64
}

// OpenSource opens a file whose columns are all numbers, or booleans: the targets by name, or the last column, and the
// others as features. Close it when it is no longer read.
func OpenSource(path string, targets ...string) (*Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	s, err := openSource(f, targets)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("parquet: %s: %w", path, err)
	}
	return s, nil
}

func openSource(f *os.File, targets []string) (s *Source, err error) {
	defer recovered(&err)
	file, err := open(f)
	if err != nil {
		return nil, err
	}
	s = &Source{file: file, path: f.Name(), close: f.Close, rows: int(file.NumRows()),
		checked: map[[2]int]bool{}}
	all := file.Root().Columns()
	byName := map[string]*pq.Column{}
	var names []string
	for _, c := range all {
		if isIndex(c.Name()) || file.index[c.Name()] && !slices.Contains(targets, c.Name()) {
			continue
		}
		kind := pq.ByteArray
		if c.Leaf() && !c.Repeated() {
			kind = c.Type().Kind()
		}
		if !slices.Contains([]pq.Kind{pq.Boolean, pq.Int32, pq.Int64, pq.Float, pq.Double}, kind) {
			return nil, fmt.Errorf("the column %q is not of numbers: a Source has numbers alone; write its categories as "+
				"columns of 0 and 1, or leave it out of the file", c.Name())
		}
		byName[c.Name()], names = c, append(names, c.Name())
	}
	if len(names) < 2 {
		return nil, fmt.Errorf("it has the columns %q: there must be a feature and a target", names)
	}
	if len(targets) == 0 {
		targets = names[len(names)-1:]
	}
	for _, name := range targets {
		if byName[name] == nil {
			return nil, fmt.Errorf("there is no column %q to be a target; the columns are %q", name, names)
		}
	}
	s.targets = slices.Clone(targets)
	for _, name := range names {
		if !slices.Contains(targets, name) {
			s.features = append(s.features, name)
		}
	}
	for _, name := range slices.Concat(s.features, s.targets) {
		s.columns = append(s.columns, byName[name])
	}
	return s, nil
}

// Names implements dataset.Named.
func (s *Source) Names() (features, targets []string) { return s.features, s.targets }

// Close closes the file.
func (s *Source) Close() error { return s.close() }

// Rows implements dataset.Source.
func (s *Source) Rows() int { return s.rows }

// Dims implements dataset.Source.
func (s *Source) Dims() int { return len(s.features) }

// Targets implements dataset.Source.
func (s *Source) Targets() int { return len(s.targets) }

// Read implements dataset.Source.
func (s *Source) Read(ctx context.Context, from int, x, y []float64) error {
	features, targets := s.Dims(), s.Targets()
	n := len(y) / targets
	if n < 1 || len(y) != n*targets || len(x) != n*features || from < 0 || from+n > s.rows {
		return fmt.Errorf("parquet: %s: rows %d to %d are asked for, into %d numbers of x and %d of y: there are %d rows of "+
			"%d features and %d targets", s.path, from, from+n-1, len(x), len(y), s.rows, features, targets)
	}
	width := features + targets
	for i := 0; i < n; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		values, err := s.segment((from + i) / segmentRows)
		if err != nil {
			return fmt.Errorf("parquet: %s: %w", s.path, err)
		}
		for at := (from + i) % segmentRows; at < len(values)/width && i < n; at++ {
			row := values[at*width : (at+1)*width]
			copy(x[i*features:], row[:features])
			copy(y[i*targets:], row[features:])
			i++
		}
	}
	return nil
}

// segment is one of those that are held, or is read.
func (s *Source) segment(number int) ([]float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.IndexFunc(s.held, func(g segment) bool { return g.number == number }); at >= 0 {
		found := s.held[at]
		s.held = append(slices.Delete(s.held, at, at+1), found)
		return found.values, nil
	}
	values, err := s.decode(number*segmentRows, min((number+1)*segmentRows, s.rows))
	if err != nil {
		return nil, err
	}
	if s.held = append(s.held, segment{number, values}); len(s.held) > heldSegments {
		s.held = slices.Delete(s.held, 0, 1)
	}
	return values, nil
}

// decode reads rows from one to before another, [rows, columns].
func (s *Source) decode(from, to int) (values []float64, err error) {
	defer recovered(&err)
	width := len(s.columns)
	values = make([]float64, (to-from)*width)
	for k, column := range s.columns {
		r := reader{}
		if err := r.typed(column, s.file); err != nil {
			return nil, fmt.Errorf("the column %q %w", column.Name(), err)
		}
		r.isText = false // booleans are numbers here
		first := 0
		for i, group := range s.file.RowGroups() {
			end := first + int(group.NumRows())
			if first < to && end > from {
				begin := max(from, first) - first
				at := [2]int{i, column.Index()}
				if !s.checked[at] {
					s.file.checkPages(i, column)
					chunk := s.file.Metadata().RowGroups[i].Columns[column.Index()]
					if at := chunk.OffsetIndexOffset; at != 0 { // the list of pages, by which a row is found
						list := s.file.bytes(at, int64(chunk.OffsetIndexLength))
						must(thrift.Unmarshal(protocol, list, new(passed)) == nil, "its list of pages cannot be read")
						_, err := group.ColumnChunks()[column.Index()].OffsetIndex()
						must(err == nil, "%v", err)
					}
					s.checked[at] = true
				}
				if err := r.rows(group.ColumnChunks()[column.Index()], begin, min(to, end)-first-begin); err != nil {
					return nil, fmt.Errorf("column %q: %w", column.Name(), err)
				}
			}
			first = end
		}
		if len(r.numbers) != to-from {
			return nil, fmt.Errorf("column %q has %d values in rows %d to %d: the file is damaged", column.Name(),
				len(r.numbers), from, to-1)
		}
		for i, v := range r.numbers {
			if math.IsNaN(v) {
				return nil, fmt.Errorf("row %d, column %q: the value is missing: drop such rows when the file is written", from+i,
					column.Name())
			}
			values[i*width+k] = v
		}
	}
	return values, nil
}

// rows appends so many rows of a chunk, from one on.
func (r *reader) rows(chunk pq.ColumnChunk, from, count int) error {
	pages := chunk.Pages()
	defer pages.Close()
	if err := pages.SeekToRow(int64(from)); err != nil {
		return err
	}
	var some [1024]pq.Value
	for count > 0 {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the file is damaged: %w", err)
		}
		if page.NumRows() > int64(count) {
			page = page.Slice(0, int64(count))
		}
		count -= int(page.NumRows())
		values := page.Values()
		for err == nil {
			var n int
			n, err = values.ReadValues(some[:])
			for _, v := range some[:n] {
				r.add(v)
			}
		}
		pq.Release(page)
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("the file is damaged: %w", err)
		}
	}
	return nil
}
