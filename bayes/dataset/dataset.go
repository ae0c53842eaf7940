package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"
)

// Task is what a model predicts.
type Task int

const (
	Regression           Task = iota // a real number
	BinaryClassification             // one of two classes
	Classification                   // one of C classes
)

// TaskByTarget as CSVOptions.Task finds the task by the target's column: a classification if its values are texts, true
// and false, or two numbers; else a regression.
const TaskByTarget Task = -1

// String names the task.
func (t Task) String() string {
	switch t {
	case Regression:
		return "regression"
	case BinaryClassification:
		return "binary classification"
	case Classification:
		return "classification"
	}
	return fmt.Sprintf("Task(%d)", int(t))
}

// Dataset is a table of features with one target, or, for a regression, one or several. Its fields may be read and set;
// [Dataset.Validate] says whether they fit together.
type Dataset struct {
	// Name is the short name, as [Load] takes it; Title the full one.
	Name, Title string
	// Source says where the rows come from, Licence under which terms. Empty for a user's own data.
	Source, Licence string
	Task            Task
	// Features are the names of the columns of X, [d].
	Features []string
	// Target is the name of the target column.
	Target string
	// Targets are the names of the target columns where a regression has several, [K]; Target is then ignored. nil:
	// one.
	Targets []string
	// Classes are the names of the labels, [C]; Y holds indices into it. nil for regression.
	Classes []string
	// X are the features in raw units, [N, d]: a *mat.Dense, or *Pixels of pictures. Any other mat.Matrix does too.
	X mat.Matrix
	// Y are the targets in raw units, [N, K] row-major, or the indices of the classes, [N]. It is empty where the
	// target is not known, as in new rows that are to be predicted (CSVOptions.Like).
	Y []float64
	// Group says to which group each row belongs, [N], such as a patient with several visits; nil: each row is its own.
	// Split and Folds keep a group together, so that a score is that of new groups.
	Group []string
	// Order is each row's place in time, [N], in any unit; nil: time does not matter. Split takes the later rows to
	// test, so that a score is that of the future. It is not used together with Group.
	Order []float64
	// Weights multiply each row's log-likelihood, [N], as that of a row that stands for several, or by its class; nil: 1
	// each. They weigh training and validation, not scores. A posterior of weighted rows has no evidence.
	Weights []float64
	// Exposure is what each row's count was counted over, [N], such as years or kilometres; nil: 1 each. It is for
	// likelihoods of counts, whose mean it multiplies.
	Exposure []float64
	// Censored says of which rows the target is only known to be above Y, [N], such as the lifetime of what is still
	// alive; nil: of none. Their likelihood is P(target > Y).
	Censored []bool
	// Percentages are the features and targets whose numbers were written as percentages, of which "10%" is 10; nil: it is
	// not known which. New rows must be written alike.
	Percentages []string
	// Notes report how a file was read, such as which columns were left out.
	Notes []string
	// rows are the original row numbers, in the whole table, [N]; nil: 0 to N-1.
	rows []int
}

// maxMagnitude bounds features and targets. Standardising squares deviations from the mean, at most 2e150 each: of up
// to 4e7 rows the sum stays below the largest float64, 1.8e308. Beyond it a standard deviation could be infinite, and
// the column silently become 0.
const maxMagnitude = 1e150

// checkNumber is an error for a number that cannot be computed with; its text continues a phrase that names the place.
func checkNumber(v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("is %v: it must be finite; fill it in or drop the row", v)
	case math.Abs(v) > maxMagnitude:
		return fmt.Errorf("is %v: it must lie between -%g and %g, or its square overflows; mend it, drop the row, or give "+
			"the column in another unit", v, maxMagnitude, maxMagnitude)
	}
	return nil
}

// OriginalRow is the number of row i in the whole table, counted from 0, before Split, Subset and the rows that the
// reader of a CSV file dropped. Errors name rows by it, so that they can be found in the user's own file.
func (d *Dataset) OriginalRow(i int) int {
	if len(d.rows) != d.Rows() || i < 0 || i >= len(d.rows) { // X and Y were replaced
		return i
	}
	return d.rows[i]
}

// RowSet is a set of rows of a table, by which they are found in another reading of the same file.
type RowSet struct {
	Numbers []byte `json:"numbers"` // of the original rows: bit i%8 of byte i/8 is row i's
	Targets string `json:"targets"` // SHA-256, in hex, over their targets in the order of their numbers
}

// RowSet is the set of all rows.
func (d *Dataset) RowSet() RowSet { return d.rowSet(inOrder(d.Rows())) }

func (d *Dataset) rowSet(rows []int) (s RowSet) {
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(d.OriginalRow(a), d.OriginalRow(b)) })
	h := sha256.New()
	for _, i := range rows {
		number := d.OriginalRow(i)
		if more := number/8 + 1 - len(s.Numbers); more > 0 {
			s.Numbers = append(s.Numbers, make([]byte, more)...)
		}
		s.Numbers[number/8] |= 1 << (number % 8)
		k := len(d.Y) / d.Rows()
		_, _ = h.Write(appendFloats(nil, d.Y[i*k:(i+1)*k])) // a hash never fails to write
	}
	s.Targets = hex.EncodeToString(h.Sum(nil))
	return s
}

// Without splits the rows: in are the rows of s, out the others, nil if there are none. If a row of s is missing or has
// another target, in is nil and out is everything.
func (d *Dataset) Without(s RowSet) (out, in *Dataset, err error) {
	var inside, outside []int
	for i := range d.Rows() {
		if n := d.OriginalRow(i); n/8 < len(s.Numbers) && s.Numbers[n/8]>>(n%8)&1 == 1 {
			inside = append(inside, i)
		} else {
			outside = append(outside, i)
		}
	}
	if found := d.rowSet(slices.Clone(inside)); len(inside) == 0 || found.Targets != s.Targets {
		return d, nil, nil
	}
	if in, err = d.Subset(inside); err != nil || len(outside) == 0 {
		return nil, in, err
	}
	out, err = d.Subset(outside)
	return out, in, err
}

// rowName names row i by its original number.
func (d *Dataset) rowName(i int) string {
	if row := d.OriginalRow(i); row != i {
		return fmt.Sprintf("row %d (row %d of this part)", row, i)
	}
	return fmt.Sprintf("row %d", i)
}

// Rows is the number of rows N.
func (d *Dataset) Rows() int {
	if len(d.Y) == 0 { // the target is not known
		rows, _ := d.dims()
		return rows
	}
	return len(d.Y) / len(d.TargetNames())
}

// TargetNames returns the names of the target columns, [K].
func (d *Dataset) TargetNames() []string {
	if len(d.Targets) > 0 {
		return d.Targets
	}
	return []string{d.Target}
}

// TargetColumn copies one target, counted from 0: [N]; empty if Y is.
func (d *Dataset) TargetColumn(k int) []float64 {
	targets := len(d.TargetNames())
	column := make([]float64, len(d.Y)/targets)
	for i := range column {
		column[i] = d.Y[i*targets+k]
	}
	return column
}

// Dims is the number of features d.
func (d *Dataset) Dims() int {
	_, c := d.dims()
	return c
}

// dims returns the shape of X; 0 and 0 if X is nil.
func (d *Dataset) dims() (rows, columns int) {
	if d.noFeatures() {
		return 0, 0
	}
	return d.X.Dims()
}

func (d *Dataset) noFeatures() bool { return d.X == nil || d.X == mat.Matrix((*mat.Dense)(nil)) }

// Outputs is the number of targets K of a regression, the number of classes C of a classification, 1 for a binary
// classification: the size that a likelihood depends on.
func (d *Dataset) Outputs() int {
	if d.Task == Classification {
		return len(d.Classes)
	}
	return len(d.TargetNames())
}

// Subset copies the given rows, in the given order, into a new Dataset; of Pixels the bytes are shared. A row may occur
// more than once. It is an error to ask for no row, or for one that does not exist.
func (d *Dataset) Subset(rows []int) (*Dataset, error) {
	if err := d.validateShapes(); err != nil {
		return nil, fmt.Errorf("dataset %s: %w", d.Name, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("dataset %s: a subset needs at least one row, got none", d.Name)
	}
	n, targets := d.Rows(), len(d.TargetNames())
	y := make([]float64, 0, len(rows)*targets)
	original := make([]int, len(rows))
	for i, r := range rows {
		if r < 0 || r >= n {
			return nil, fmt.Errorf("dataset %s: there is no row %d; the rows are 0 to %d", d.Name, r, n-1)
		}
		original[i] = d.OriginalRow(r)
		if len(d.Y) > 0 {
			y = append(y, d.Y[r*targets:(r+1)*targets]...)
		}
	}
	s := *d
	s.X, s.Y, s.rows = rowsFrom(d.X, rows), y, original
	s.Group, s.Order = chosen(d.Group, rows), chosen(d.Order, rows)
	s.Weights, s.Exposure, s.Censored = chosen(d.Weights, rows), chosen(d.Exposure, rows), chosen(d.Censored, rows)
	s.Features, s.Targets, s.Classes = slices.Clone(d.Features), slices.Clone(d.Targets), slices.Clone(d.Classes)
	return &s, nil
}

// chosen are the values of the given rows; nil of none.
func chosen[T any](values []T, rows []int) (some []T) {
	if len(values) == 0 {
		return nil
	}
	for _, r := range rows {
		some = append(some, values[r])
	}
	return some
}

// rowsFrom are rows of x, in the given order: pixels that share its bytes, or a copy.
func rowsFrom(x mat.Matrix, rows []int) mat.Matrix {
	if pixels, ok := x.(*Pixels); ok {
		return pixels.subset(rows)
	}
	_, dims := x.Dims()
	some := mat.NewDense(len(rows), dims, nil)
	for i, r := range rows {
		mat.Row(some.RawRowView(i), r, x)
	}
	return some
}

// Validate returns an error if the data cannot be trained on or scored, with the first fault it finds. Shapes must fit;
// the error prints both. The target must be known, so Y must not be empty. Features and targets must be finite and at
// most 1e150; the error names row and column. Classes must fit the task and differ, and targets must be indices of
// them. Names must be UTF-8. Row numbers count from 0 in the whole table, see [Dataset.OriginalRow].
func (d *Dataset) Validate() error {
	if err := d.validateSplit(); err != nil {
		return err
	}
	if err := d.validateNames(); err != nil {
		return fmt.Errorf("dataset %s: %w", d.Name, err)
	}
	var row []float64
	if _, bytes := d.X.(*Pixels); !bytes {
		row = make([]float64, d.Dims())
	}
	for i := range d.Rows() {
		if row != nil {
			mat.Row(row, i, d.X)
		}
		for j, v := range row {
			if err := checkNumber(v); err != nil {
				return fmt.Errorf("dataset %s: %s, feature %q %w", d.Name, d.rowName(i), d.Features[j], err)
			}
		}
		if err := d.validateTarget(i); err != nil {
			return fmt.Errorf("dataset %s: %w", d.Name, err)
		}
	}
	return nil
}

// validateSplit checks what splitting the rows needs: shapes that fit together, and a target.
func (d *Dataset) validateSplit() error {
	err := d.validateShapes()
	if err == nil {
		err = d.needTarget()
	}
	if err != nil {
		return fmt.Errorf("dataset %s: %w", d.Name, err)
	}
	return nil
}

// validateNames checks the names that a posterior stores: JSON would change names that are not UTF-8, and classes of
// the same name could not be distinguished.
func (d *Dataset) validateNames() error {
	for _, list := range []struct {
		what  string
		names []string
	}{{"name", []string{d.Name}}, {"feature", d.Features}, {"target", d.TargetNames()}, {"class", d.Classes}} {
		for i, name := range list.names {
			if err := checkText(name); err != nil {
				return fmt.Errorf("%s %d: %w", list.what, i, err)
			}
		}
	}
	seen := make(map[string]int, len(d.Classes))
	for i, c := range d.Classes {
		if j, twice := seen[c]; twice {
			return fmt.Errorf("the classes %d and %d are both called %q: rename one, or join them", j, i, c)
		}
		seen[c] = i
	}
	return nil
}

// checkText is an error if a text is not UTF-8.
func checkText(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return fmt.Errorf("%.40q is not UTF-8: set CSVOptions.Encoding to the file's, or convert it, for example by iconv -f "+
		"latin1 -t utf8", text)
}

// needTarget is an error if the target is not known. Whatever needs Y calls it: no number may stand for an unknown one.
func (d *Dataset) needTarget() error {
	if len(d.Y) > 0 {
		return nil
	}
	return fmt.Errorf("the target %q is not known, since Y is empty: its %d rows can be predicted, but not trained on, "+
		"split or scored; for that set Y, or give the target's column in the file", d.TargetNames(), d.Rows())
}

// validateShapes checks what fits together. Y may be empty.
func (d *Dataset) validateShapes() error {
	n, dims := d.dims()
	switch {
	case d.noFeatures():
		return errors.New("the features X are nil: they must be the feature matrix [N, d]")
	case n == 0 || dims == 0:
		return fmt.Errorf("the features X are [%d, %d]: there must be at least one row and one feature", n, dims)
	case len(d.Y) > 0 && len(d.Y) != n*len(d.TargetNames()):
		return fmt.Errorf("the features X are [%d, %d] but Y is [%d]: there must be one for each of the %d targets in a row",
			n, dims, len(d.Y), len(d.TargetNames()))
	case len(d.Features) != dims:
		return fmt.Errorf("the features X are [%d, %d] but there are %d feature names: there must be one a column",
			n, dims, len(d.Features))
	case d.Group != nil && len(d.Group) != n || d.Order != nil && len(d.Order) != n:
		return fmt.Errorf("there are %d rows, but Group has %d values and Order %d: each has one for each row, or is nil", n,
			len(d.Group), len(d.Order))
	case d.Group != nil && d.Order != nil:
		return errors.New("both Group and Order are set, and rows are split by one: leave out CSVOptions.Group or " +
			"CSVOptions.Order")
	case slices.ContainsFunc(d.Order, math.IsNaN):
		return fmt.Errorf("the place of row %d in Order is NaN: every row needs one", slices.IndexFunc(d.Order, math.IsNaN))
	}
	if err := d.validateTask(); err != nil {
		return err
	}
	return d.validateExtras()
}

// validateTask checks that targets and classes fit the task.
func (d *Dataset) validateTask() error {
	if len(d.Targets) > 1 && d.Task != Regression {
		return fmt.Errorf("the task is %v but there are %d targets %q: several are for a regression",
			d.Task, len(d.Targets), d.Targets)
	}
	switch c := len(d.Classes); {
	case d.Task < Regression || d.Task > Classification:
		return fmt.Errorf("unknown task %v: take Regression, BinaryClassification or Classification", d.Task)
	case d.Task == Regression && c != 0:
		return fmt.Errorf("the task is regression but there are %d classes: set Task, or Classes to nil", c)
	case d.Task != Regression && c < 2:
		return fmt.Errorf("%v needs at least 2 classes, and target %q has %q: there is nothing to classify", d.Task,
			d.Target, d.Classes)
	case d.Task == BinaryClassification && c != 2:
		return fmt.Errorf("binary classification needs 2 classes, and target %q has %d (%.200q): set "+
			"CSVOptions.Task to Classification", d.Target, c, fmt.Sprint(d.Classes))
	}
	return nil
}

func (d *Dataset) validateTarget(row int) error {
	names := d.TargetNames()
	for k, v := range d.Y[row*len(names) : (row+1)*len(names)] {
		if err := checkNumber(v); err != nil {
			return fmt.Errorf("%s, target %q %w", d.rowName(row), names[k], err)
		}
	}
	if d.Task == Regression {
		return nil
	}
	v := d.Y[row]
	if v != math.Trunc(v) || v < 0 || v >= float64(len(d.Classes)) {
		return fmt.Errorf("%s, target %q is %v: with %d classes it must be a whole number from 0 to %d",
			d.rowName(row), d.Target, v, len(d.Classes), len(d.Classes)-1)
	}
	return nil
}

// Hash identifies the data: SHA-256, in hex, over the shape, X and Y bit by bit (Pixels byte by byte), the class names,
// and Weights, Exposure and Censored if they are set. A posterior keeps the hash of its training data. Names, source
// and licence do not enter.
func (d *Dataset) Hash() string {
	n, dims := d.Rows(), d.Dims()
	h := sha256.New()
	put := func(b []byte) { _, _ = h.Write(b) } // a hash never fails to write
	buf := make([]byte, 0, 8*max(dims, 3))
	for _, v := range []int{n, dims, len(d.Classes)} {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(v))
	}
	put(buf)
	rows, _ := d.dims()
	pixels, isPixels := d.X.(*Pixels)
	row := make([]float64, dims)
	for i := range rows {
		if isPixels {
			put(pixels.Bytes(i))
			continue
		}
		buf = appendFloats(buf[:0], mat.Row(row, i, d.X))
		put(buf)
	}
	put(appendFloats(nil, d.Y))
	for _, c := range d.Classes {
		put(binary.LittleEndian.AppendUint64(nil, uint64(len(c)))) // the length keeps {"ab"} and {"a", "b"} apart
		put([]byte(c))
	}
	e := d.Extras()
	for _, column := range d.Extra(e) {
		put(appendFloats(nil, column))
	}
	if e != (Extras{}) {
		put(fmt.Appendf(nil, "%v", e))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func appendFloats(b []byte, values []float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}
