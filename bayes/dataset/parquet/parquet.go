// Package parquet reads tables from Parquet files, as pandas, R's arrow, Spark and DuckDB write them. It is a package
// of its own, so that programs which read none do not link it.
//
//	data, err := parquet.Open("houses.parquet", dataset.CSVOptions{Target: "price"})
//
// The decoding is github.com/parquet-go/parquet-go's (Apache-2.0), which links packages under MIT and BSD licences.
package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gobnn/bayes/dataset"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Is says whether a file is one of Parquet, by its first bytes.
func Is(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 4)
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == "PAR1"
}

// Open reads a table from a file. The options are those of a CSV file, without those that say how numbers and texts are
// written. Numbers, decimals and booleans are features; so are times of day and pandas' durations, in seconds. Texts
// need Categorical, and dates and times may be Order. A null is a missing value, as is NaN. An index of pandas is left
// out, unless the options name it. A column of lists or of records is an error, unless Ignore lists it.
func Open(path string, opts dataset.CSVOptions) (*dataset.Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	defer f.Close()
	rows, columns, notes, err := read(f, opts)
	if err != nil {
		return nil, fmt.Errorf("parquet: %s: %w", path, err)
	}
	d, err := dataset.FromColumns(rows, columns, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	d.Notes = append(notes, d.Notes...)
	return d, nil
}

// read reads all columns. One that cannot be read is a Fault of its column.
func read(f *os.File, opts dataset.CSVOptions) (rows int, columns []dataset.Column, notes []string, err error) {
	defer recovered(&err)
	file, err := open(f)
	if err != nil {
		return 0, nil, nil, err
	}
	named := slices.Concat(opts.Targets, opts.Categorical, opts.Ignore,
		[]string{opts.Target, opts.Group, opts.Order, opts.Weight, opts.Exposure, opts.Event})
	rows = int(file.NumRows())
	if all := float64(rows) * 8 * float64(len(file.Root().Columns())); all > max(mostDecoded, 1000*float64(file.size)) {
		return 0, nil, nil, fmt.Errorf("it is damaged: it says that it has %d rows, which would be %.0f bytes of memory, a "+
			"thousand times its own", rows, all)
	}
	for _, node := range file.Root().Columns() {
		name := node.Name()
		if isIndex(name) {
			continue
		}
		if file.index[name] && opts.Like == nil && !slices.Contains(named, name) {
			notes = append(notes, fmt.Sprintf("the column %q, an index of pandas, is left out", name))
			continue
		}
		r := &reader{index: map[string]int32{}}
		column := dataset.Column{Name: name, Fault: r.typed(node, file)}
		if r.seconds {
			notes = append(notes, fmt.Sprintf("the column %q is of durations or times of day, in seconds", name))
		}
		if column.Fault == nil {
			if err := r.all(file, node); err != nil {
				return 0, nil, nil, fmt.Errorf("column %q: %w", name, err)
			}
			column.Numbers, column.Codes, column.Levels, column.Fault = r.numbers, r.codes, r.levels, r.rounded
		}
		columns = append(columns, column)
	}
	return rows, columns, notes, nil
}

// recovered makes an error of a panic, with which the library answers some damaged files. It is deferred.
func recovered(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("the file is damaged: %v", fault)
	}
}

// isIndex says whether a column is an index of pandas.
func isIndex(name string) bool { return strings.HasPrefix(name, "__index_level_") }

// reader collects the values of a column.
type reader struct {
	numbers []float64
	codes   []int32 // of texts, indices into levels, -1 where one is missing
	levels  []string
	index   map[string]int32 // of the texts so far
	kind    pq.Kind
	isText  bool
	scale   float64 // that numbers are divided by: of decimals, and of times to be seconds
	days    bool
	half    bool // numbers of 16 bits
	seconds bool // durations and times of day
	times   bool // dates and points in time, which become texts
	whole   bool
	wrap    float64 // what is added to a negative number, of a type without a sign
	rounded error   // of a whole number that float64 does not hold
}

// all appends all values of a column.
func (r *reader) all(file *file, node *pq.Column) (err error) {
	defer recovered(&err)
	for i, group := range file.RowGroups() {
		file.checkPages(i, node)
		if err := r.rows(group.ColumnChunks()[node.Index()], 0, int(group.NumRows())); err != nil {
			return err
		}
	}
	return nil
}

// typed takes what the column's type says of its values.
func (r *reader) typed(column *pq.Column, in *file) error {
	if !column.Leaf() || column.Repeated() {
		return fmt.Errorf("has lists or records, which are no features: list it in CSVOptions.Ignore, or write what " +
			"matters of it into columns of numbers")
	}
	t := column.Type()
	r.kind, r.scale = t.Kind(), 1
	switch r.kind {
	case pq.Boolean, pq.ByteArray, pq.FixedLenByteArray:
		r.isText = true
	case pq.Int32, pq.Int64:
		r.whole = true
	case pq.Float, pq.Double:
	default:
		return fmt.Errorf("is of the type %v, which is not read: list it in CSVOptions.Ignore, or convert it to numbers, "+
			"texts or times", t.String())
	}
	var logical any
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	unit := func(of format.TimeUnit) float64 {
		switch of.Value.(type) {
		case *format.MicroSeconds:
			return 1e6
		case *format.NanoSeconds:
			return 1e9
		}
		return 1e3
	}
	switch l := logical.(type) {
	case *format.DecimalType:
		r.isText = false // of bytes, see add
		r.whole, r.scale = l.Scale == 0, math.Pow10(int(l.Scale))
	case *format.IntType:
		if !l.IsSigned {
			r.wrap = math.Exp2(float64(t.Length()))
		}
	case *format.DateType:
		r.isText, r.times, r.whole, r.days = true, true, false, true
	case *format.TimestampType:
		r.isText, r.times, r.whole, r.scale = true, true, false, unit(l.Unit)
	case *format.TimeType:
		r.whole, r.scale, r.seconds = false, unit(l.Unit), true
	default:
		if in.halves[column.Name()] && r.kind == pq.FixedLenByteArray && t.Length() == 2 {
			r.isText, r.half = false, true
			return nil
		}
		if r.kind == pq.FixedLenByteArray {
			return fmt.Errorf("has %d raw bytes in each row: list it in CSVOptions.Ignore, or convert it to numbers or texts",
				t.Length())
		}
	}
	if parts, is := in.durations[column.Name()]; is && r.kind == pq.Int64 && !r.seconds {
		r.whole, r.scale, r.seconds = false, parts, true
	}
	return nil
}

// add appends a value.
func (r *reader) add(v pq.Value) {
	number := math.NaN()
	switch {
	case r.isText && v.IsNull():
		r.codes = append(r.codes, -1)
		return
	case r.isText && r.times:
		seconds, part := math.Modf(r.number(v))
		at := time.Unix(int64(seconds), int64(part*1e9)).UTC()
		r.codes = append(r.codes, r.code([]byte(at.Format(time.RFC3339Nano))))
		return
	case r.isText && r.kind == pq.Boolean:
		r.codes = append(r.codes, r.code(strconv.AppendBool(nil, v.Boolean())))
		return
	case r.isText:
		r.codes = append(r.codes, r.code(v.ByteArray()))
		return
	case !v.IsNull():
		number = r.number(v)
	}
	r.numbers = append(r.numbers, number)
}

// number is a number in its unit: of decimals 1, of times seconds.
func (r *reader) number(v pq.Value) (number float64) {
	switch r.kind {
	case pq.Boolean:
		if v.Boolean() {
			number = 1
		}
	case pq.Int32:
		number = float64(v.Int32())
	case pq.Int64:
		number = float64(v.Int64())
	case pq.Float:
		number = float64(v.Float())
	case pq.Double:
		number = v.Double()
	default:
		if number = whole(v.ByteArray()); r.half {
			number = half(v.ByteArray())
		}
	}
	if number < 0 {
		number += r.wrap
	}
	if r.whole && math.Abs(number) >= 1<<53 && r.rounded == nil {
		r.rounded = fmt.Errorf("has the whole number %.0f, which is beyond 2^53 and may have been rounded: if it is a code, "+
			"list the column in CSVOptions.Ignore", number)
	}
	if number /= r.scale; r.days {
		number *= 24 * 60 * 60
	}
	return number
}

// whole is the number that bytes are in two's complement, the highest first.
func whole(bytes []byte) float64 {
	number := 0.
	for i, b := range bytes {
		digit := float64(b)
		if i == 0 {
			digit = float64(int8(b))
		}
		number = 256*number + digit
	}
	return number
}

// half is the number that 16 bits are, the highest last.
func half(bytes []byte) float64 {
	bits := binary.LittleEndian.Uint16(bytes)
	size := uint32(bits&0x7fff) << 13                       // the same digits in 32 bits
	number := float64(math.Float32frombits(size)) * 0x1p112 // where exponents begin 112 lower
	if bits&0x7c00 == 0x7c00 {                              // infinite, or NaN
		number = float64(math.Float32frombits(size | 0x7f800000))
	}
	if bits>>15 == 1 {
		return -number
	}
	return number
}

// code is the index of a text.
func (r *reader) code(text []byte) int32 {
	at, known := r.index[string(text)]
	if !known {
		at = int32(len(r.levels))
		r.index[string(text)] = at
		r.levels = append(r.levels, string(text))
	}
	return at
}
