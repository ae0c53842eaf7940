package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Source gives the rows of a data set that does not fit in memory, block by block: from a file, a database or a
// generator. Simulated is a Source, and RowsOf makes one from a Dataset. The rows should be in random order, since a
// mini-batch consists of rows that are near each other.
type Source interface {
	// Rows is the number of rows N, Dims the number of features d, and Targets the number K of values of y in a row.
	Rows() int
	Dims() int
	Targets() int
	// Read fills all of x, [n, d], and y, [n, K], both row-major, with the n rows that begin at row `from`; a row must be
	// the same at each call. Several goroutines may call it at once.
	Read(ctx context.Context, from int, x, y []float64) error
}

// Named is a Source whose columns have names, those of x and those of y.
type Named interface {
	Names() (features, targets []string)
}

var (
	_ Named  = datasetRows{}
	_ Source = Simulated{}
)

// informative is the number of features that the target of Simulated depends on, if there are as many.
const informative = 10

// Simulated is a linear regression with many features, as scikit-learn's make_regression draws it. x ~ N(0, I), and y
// is sum_i w_i x_i plus Gaussian noise. The sum is over the first ten features, with w_i ~ U(0, 100). y is divided by
// its standard deviation, so that x and y are standardised. Rows are drawn when they are read.
type Simulated struct {
	N, Features int
	Noise       float64 // in units of y's standard deviation without it; default 0
	Seed        uint64
}

// Rows implements Source.
func (s Simulated) Rows() int { return s.N }

// Dims implements Source.
func (s Simulated) Dims() int { return s.Features }

// Targets implements Source: 1.
func (s Simulated) Targets() int { return 1 }

// weights are the w of the informative features, in units of y's standard deviation.
func (s Simulated) weights() []float64 {
	w, squares := make([]float64, min(informative, s.Features)), 0.0
	rng := newRand("simulated", s.Seed, math.MaxUint64)
	for i := range w {
		w[i] = rng.Float64()
		squares += w[i] * w[i]
	}
	for i := range w {
		w[i] /= math.Sqrt(squares * (1 + s.Noise*s.Noise))
	}
	return w
}

// simulatedRows is the number of rows that one generator draws; those before the first requested row are drawn and
// discarded.
const simulatedRows = 64

// Read implements Source.
func (s Simulated) Read(ctx context.Context, from int, x, y []float64) error {
	if s.N < 1 || s.Features < 1 || !(s.Noise >= 0) || math.IsInf(s.Noise, 0) {
		return fmt.Errorf("dataset: Simulated has %d rows of %d features, and Noise %v: there must be at least 1 row and 1 "+
			"feature, and Noise be finite and not negative", s.N, s.Features, s.Noise)
	}
	if err := checkRead(s, from, x, y); err != nil {
		return err
	}
	weights := s.weights()
	noise := s.Noise / math.Sqrt(1+s.Noise*s.Noise)
	row := make([]float64, s.Features)
	for group := from / simulatedRows; group*simulatedRows < from+len(y); group++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rng := newRand("simulated", s.Seed, uint64(group))
		for i := range simulatedRows {
			at := group*simulatedRows + i - from
			if at >= len(y) {
				break
			}
			to := row
			if at >= 0 {
				to = x[at*s.Features : (at+1)*s.Features]
			}
			for k := range to {
				to[k] = rng.NormFloat64()
			}
			sum := noise * rng.NormFloat64()
			for k, w := range weights {
				sum += w * to[k]
			}
			if at >= 0 {
				y[at] = sum
			}
		}
	}
	return nil
}

// checkRead returns an error if the requested rows do not exist, or if x and y have different numbers of rows.
func checkRead(s Source, from int, x, y []float64) error {
	n := len(y) / max(1, s.Targets())
	if from < 0 || n < 1 || from+n > s.Rows() || len(x) != n*s.Dims() || len(y) != n*s.Targets() {
		return fmt.Errorf("dataset: %d numbers of x and %d of y from row %d on, of %d rows of %d and %d", len(x), len(y),
			from, s.Rows(), s.Dims(), s.Targets())
	}
	return nil
}

// RowsOf is a Dataset's rows as a Source.
func RowsOf(d *Dataset) Source { return datasetRows{d} }

type datasetRows struct{ *Dataset }

func (r datasetRows) Targets() int { return len(r.TargetNames()) }

// Names implements Named.
func (r datasetRows) Names() (features, targets []string) { return r.Features, r.TargetNames() }

func (r datasetRows) Read(_ context.Context, from int, x, y []float64) error {
	if err := r.needTarget(); err != nil {
		return fmt.Errorf("dataset %s: %w", r.Name, err)
	}
	if r.Extras() != (Extras{}) {
		return fmt.Errorf("dataset %s: a Source has features and targets only, and Weights, Exposure or Censored is set: "+
			"set it to nil, or give the rows as Parts.Train", r.Name)
	}
	if err := checkRead(r, from, x, y); err != nil {
		return err
	}
	for i := range len(y) / r.Targets() {
		mat.Row(x[i*r.Dims():(i+1)*r.Dims()], from+i, r.X)
	}
	copy(y, r.Y[from*r.Targets():])
	return nil
}

// Examined is what Examine finds out about a Source.
type Examined struct {
	Features, Targets Scaler // their means and standard deviations, as Scaler has them
	Hash              string // SHA-256, in hex, over the shape and all numbers, bit by bit

	sums []uint64 // of rows
}

// errChanged: a row of a Source differs from the one that was examined before.
var errChanged = errors.New("dataset: the source has changed")

// mostSums is the number of rows, at most, whose checksums are kept, by which a later reading finds those that have
// changed: 32 MiB.
const mostSums = 1 << 22

// rowSum is the checksum of a row. Each step is invertible, so that a change of a single number always shows, and it
// begins with the row's number, so that rows that change places do too.
func rowSum(row int, x, y []float64) uint64 {
	sum := uint64(row)
	for _, values := range [2][]float64{x, y} {
		for _, v := range values {
			sum = bits.RotateLeft64(sum^math.Float64bits(v), 29) * 0x9E3779B97F4A7C15
		}
	}
	return sum
}

// examinedRows is the number of rows that are read at once by default.
const examinedRows = 4096

// Examine reads a source once, a given number of rows at a time (0: 4096). A number that is not finite or too large is
// an error, as for [Dataset.Validate]. visit, if not nil, is called with each block: the number of its first row, x and
// y; it must not keep them. The means and squared deviations of blocks are merged by the formula of Chan, Golub and
// LeVeque (1983). A number that Read does not fill in counts as NaN.
func Examine(
	ctx context.Context, s Source, rows int, visit func(from int, x, y []float64) error,
) (*Examined, error) {
	if rows == 0 {
		rows = examinedRows
	}
	d, k := s.Dims(), s.Targets()
	if s.Rows() < 1 || d < 1 || k < 1 || rows < 1 {
		return nil, fmt.Errorf("dataset: a source of %d rows of %d features and %d targets, read by %d rows: there must be "+
			"at least 1 of each", s.Rows(), d, k, rows)
	}
	byColumn := [2]moments{newMoments(d), newMoments(k)}
	digest := sha256.New()
	fmt.Fprintln(digest, s.Rows(), d, k)
	sums := make([]uint64, min(s.Rows(), mostSums))
	var text []byte
	block := min(rows, s.Rows())
	x, y := make([]float64, block*d), make([]float64, block*k)
	for from := 0; from < s.Rows(); from += rows {
		n := min(rows, s.Rows()-from)
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("dataset: reading row %d of %d of the source: %w", from, s.Rows(), err)
		}
		for _, values := range [][]float64{x, y} { // a row that is not filled in must not pass for one of the last block's
			for i := range values {
				values[i] = math.NaN()
			}
		}
		if err := s.Read(ctx, from, x[:n*d], y[:n*k]); err != nil {
			return nil, fmt.Errorf("dataset: rows %d to %d of the source: %w", from, from+n-1, err)
		}
		for i, values := range [][]float64{x[:n*d], y[:n*k]} {
			if err := byColumn[i].add(values, from); err != nil {
				return nil, err
			}
		}
		for i := range n { // row by row, so that the hash does not depend on how many are read at once
			text = appendFloats(appendFloats(text[:0], x[i*d:(i+1)*d]), y[i*k:(i+1)*k])
			digest.Write(text)
			if from+i < len(sums) {
				sums[from+i] = rowSum(from+i, x[i*d:(i+1)*d], y[i*k:(i+1)*k])
			}
		}
		if visit != nil {
			if err := visit(from, x[:n*d], y[:n*k]); err != nil {
				return nil, err
			}
		}
	}
	return &Examined{byColumn[0].scaler(), byColumn[1].scaler(), hex.EncodeToString(digest.Sum(nil)), sums}, nil
}

// Scaled is the source that was examined, with its features and targets standardised by the scalers. A row that differs
// from the one that was examined is an error, of the first 2^22 rows.
func (e *Examined) Scaled(s Source, features, targets Scaler) Source {
	return standardised{s, features, targets, e.sums}
}

// moments are the means and the sums of squared deviations of columns.
type moments struct {
	count         float64
	mean, squares []float64
	low, high     []float64 // the least and the largest value
}

func newMoments(columns int) moments {
	return moments{
		mean: make([]float64, columns), squares: make([]float64, columns),
		low: slices.Repeat([]float64{math.Inf(1)}, columns), high: slices.Repeat([]float64{math.Inf(-1)}, columns),
	}
}

// add merges the values of some rows, flat; row is the number of the first.
func (m *moments) add(values []float64, row int) error {
	columns := len(m.mean)
	n := float64(len(values) / columns)
	mean, squares := make([]float64, columns), make([]float64, columns)
	i := 0
	for of := range slices.Chunk(values, columns) {
		for c, v := range of {
			if err := checkNumber(v); err != nil {
				if math.IsNaN(v) {
					err = fmt.Errorf("%w (a number that Read does not fill in is NaN too)", err)
				}
				return fmt.Errorf("dataset: the source's row %d, column %d, %w", row+i, c, err)
			}
			mean[c] += v / n
			m.low[c], m.high[c] = min(m.low[c], v), max(m.high[c], v)
		}
		i++
	}
	for of := range slices.Chunk(values, columns) {
		for c, v := range of {
			squares[c] += (v - mean[c]) * (v - mean[c])
		}
	}
	total := m.count + n
	for c := range mean {
		apart := mean[c] - m.mean[c]
		m.mean[c] += apart * n / total
		m.squares[c] += squares[c] + apart*apart*m.count*n/total
	}
	m.count = total
	return nil
}

func (m *moments) scaler() Scaler {
	s := Scaler{Mean: m.mean, StdDev: make([]float64, len(m.mean))}
	for c := range s.StdDev {
		s.StdDev[c] = math.Sqrt(m.squares[c] / m.count)
		if constant(m.low[c], m.high[c]) || s.StdDev[c] == 0 {
			s.Mean[c], s.StdDev[c] = m.low[c], 1
			s.markConstant(c)
		}
	}
	return s
}

// standardised is a source with its scalers.
type standardised struct {
	Source
	features, targets Scaler
	sums              []uint64
}

func (s standardised) Read(ctx context.Context, from int, x, y []float64) error {
	if err := checkRead(s, from, x, y); err != nil {
		return err
	}
	if err := s.Source.Read(ctx, from, x, y); err != nil {
		return err
	}
	d, k := s.Dims(), s.Targets()
	for i := range len(y) / k {
		if row := from + i; row < len(s.sums) && s.sums[row] != rowSum(row, x[i*d:(i+1)*d], y[i*k:(i+1)*k]) {
			return fmt.Errorf("%w: row %d is not as it was at the first reading: Read must fill in all rows, and give the same "+
				"row at each call, also where several goroutines call it at once; draw what is random by the row's number, and "+
				"leave files as they are during a run", errChanged, row)
		}
	}
	s.features.applyTo(x)
	s.targets.applyTo(y)
	return nil
}
