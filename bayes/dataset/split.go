package dataset

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Parts are the parts of a split. A part is nil if its fraction is 0.
type Parts struct {
	Train      *Dataset // what the model is fitted on, and the only part a scaler may see
	Validation *Dataset // what settings, early stopping and the best step are chosen on
	Test       *Dataset // what results are reported on, used once
	// Source, if set, gives the training rows in place of Train, where they do not fit in memory.
	Source Source
	// TrainHash, if set, is the hash that the training rows must have, as Dataset.Hash, or Examine for a Source, gives it:
	// a fit of others is refused before it begins, as on another machine whose file is not the same.
	TrainHash string
}

// ErrMissingClass says that a class has no row in the training part, so that nothing about it can be learnt.
var ErrMissingClass = errors.New("a class is absent from the training part")

// Validate returns an error if the parts cannot be trained on. There must be a training part, and [Dataset.Validate]
// must accept it and the validation part. All parts must have the features and outputs of the training part, in the
// same order. The training part must have a row of each class (else ErrMissingClass). In the test part
// only the order is checked: its target may be unknown.
func (p Parts) Validate() error {
	if p.Source != nil {
		return errors.New("the training rows are in Parts.Source, for methods that read it in blocks: this takes Parts.Train")
	}
	if p.Train == nil {
		return errors.New("there is no training part: Parts.Train, which holds the data, is nil")
	}
	for _, part := range []*Dataset{p.Train, p.Validation} {
		if part == nil {
			continue
		}
		if err := part.Validate(); err != nil {
			return err
		}
		if err := part.validateWeights(); err != nil {
			return err
		}
		if part.Dims() != p.Train.Dims() || part.Outputs() != p.Train.Outputs() {
			return fmt.Errorf("the training part has shape [%d, %d] and %d outputs, the validation part [%d, %d] and %d",
				p.Train.Rows(), p.Train.Dims(), p.Train.Outputs(), part.Rows(), part.Dims(), part.Outputs())
		}
	}
	for _, part := range []*Dataset{p.Validation, p.Test} {
		if part == nil {
			continue
		}
		if err := part.SameOrder(p.Train.Features, p.Train.TargetNames(), p.Train.Classes); err != nil {
			return err
		}
	}
	return p.Train.checkClasses()
}

// checkClasses is an error if a class has no row.
func (d *Dataset) checkClasses() error {
	if len(d.Classes) == 0 {
		return nil
	}
	counts := make([]int, len(d.Classes))
	for _, y := range d.Y {
		counts[int(y)]++
	}
	if c := slices.Index(counts, 0); c >= 0 {
		return fmt.Errorf("%w: %q, of the %d of %q, has none of the %d rows: split with another seed or a larger training "+
			"part, take other rows, or leave the class out", ErrMissingClass, d.Classes[c], len(counts), d.Name, d.Rows())
	}
	return nil
}

// Fractions say how much of the rows each part gets. Each is at least 0; they sum to 1 (within 1e-9).
type Fractions struct{ Train, Validation, Test float64 }

// Split shuffles the rows by the seed and cuts them by the fractions. The cuts are at round(N Train) and round(N (Train
// + Validation)), so no part is off its share by more than one row. Of a table with a Group whole groups are shuffled,
// and the cuts are where one ends; with an Order the first rows train and the last test, whatever the seed, and rows of
// one time stay together. The same seed gives the same split on every machine. It is an error if a part whose fraction
// is above 0 would come out empty.
func (d *Dataset) Split(f Fractions, seed uint64) (Parts, error) { return d.split(f, seed, false) }

// SplitDistinct is Split for a score that is honest about new rows. Exact copies of a row, equal in all features and
// targets, are in one part. The rows of each class are cut by themselves, so that a part is off its share of a class by
// about one row at most, and the training part has a row of each class. The split of a regression without copies, and
// of data with a Group or an Order, is the one of Split. Where most rows are copies because few different ones are
// possible, as with three columns of yes and no, copies are rows like others.
func (d *Dataset) SplitDistinct(f Fractions, seed uint64) (Parts, error) {
	return d.split(f, seed, true)
}

func (d *Dataset) split(f Fractions, seed uint64, distinct bool) (Parts, error) {
	if err := f.validate(); err != nil {
		return Parts{}, fmt.Errorf("dataset %s: %w", d.Name, err)
	}
	if err := d.validateSplit(); err != nil {
		return Parts{}, err
	}
	order := newRand("split", seed, 0).Perm(d.Rows())
	blocks := d.blocks(order)
	strata := [][][]int{blocks} // lists of blocks, each of which is cut by itself
	if distinct && d.Group == nil && d.Order == nil {
		const fewest = 10 // different rows: fewer can hardly be parted
		if some, _ := d.distinct(order); len(some) >= fewest {
			blocks, strata = some, [][][]int{some}
		}
		if d.Task != Regression {
			strata = together(blocks, func(block []int) float64 { return d.Y[block[0]] })
			// The rarest class first, which rounding must not miss.
			slices.SortStableFunc(strata, func(a, b [][]int) int { return cmp.Compare(len(a), len(b)) })
		}
	}
	var pieces [3][]int
	n := 0
	for _, blocks := range strata {
		for _, block := range blocks {
			n += len(block)
		}
		// cut is the number of blocks with which a part ends nearest to a fraction of the rows up to here.
		cut := func(fraction float64, taken int) (count int) {
			want, rows := math.Round(fraction*float64(n)), taken
			for _, block := range blocks {
				if float64(rows)+float64(len(block))/2 > want {
					break
				}
				rows += len(block)
				count++
			}
			return count
		}
		first := cut(f.Train, len(pieces[0]))
		if len(strata) > 1 && f.Train > 0 {
			first = max(first, 1)
		}
		second := max(first, cut(f.Train+f.Validation, len(pieces[0])+len(pieces[1])))
		for i, some := range [][][]int{blocks[:first], blocks[first:second], blocks[second:]} {
			pieces[i] = append(pieces[i], slices.Concat(some...)...)
		}
	}
	for i, fraction := range f.list() {
		if len(pieces[i]) == 0 && fraction > 0 {
			return Parts{}, fmt.Errorf("dataset %s: the %s part comes out empty: a fraction %v of %d rows%s; take a larger "+
				"fraction or 0", d.Name, partNames[i], fraction, n, d.inBlocks(len(blocks)))
		}
	}
	return d.parts(pieces)
}

// blocks groups the rows that a split must not separate, in the given order: those of equal Group, or of equal places
// in Order, sorted by these, or each row by itself.
func (d *Dataset) blocks(order []int) (blocks [][]int) {
	switch {
	case d.Group != nil:
		return together(order, func(row int) string { return d.Group[row] })
	case d.Order != nil:
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(d.Order[a], d.Order[b]) })
		for i, row := range order {
			if i == 0 || d.Order[row] != d.Order[order[i-1]] {
				blocks = append(blocks, nil)
			}
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], row)
		}
	default:
		for i := range order {
			blocks = append(blocks, order[i:i+1:i+1])
		}
	}
	return blocks
}

// together cuts a list into those that have the same key, in the order of the first of each.
func together[E any, K comparable](list []E, key func(E) K) (same [][]E) {
	of := map[K]int{}
	for i, e := range list {
		k := key(e)
		at, known := of[k]
		if !known {
			of[k] = len(same)
			same = append(same, list[i:i+1:i+1])
			continue
		}
		same[at] = append(same[at], e)
	}
	return same
}

// distinct are the rows in the given order, of which exact copies are in a block; but where most are copies that chance
// makes, each by itself.
func (d *Dataset) distinct(order []int) (blocks [][]int, chance bool) {
	blocks = together(order, d.key())
	if 2*len(blocks) < len(order) && d.equalByChance(blocks) {
		return d.blocks(order), true
	}
	return blocks, false
}

// key hashes the features and targets of a row: equal rows have equal keys.
func (d *Dataset) key() func(row int) [sha256.Size]byte {
	targets := len(d.TargetNames())
	values := make([]float64, d.Dims()+targets)
	var bytes []byte
	return func(row int) [sha256.Size]byte {
		features := values[targets:]
		copy(values, d.Y[row*targets:(row+1)*targets])
		if pixels, ok := d.X.(*Pixels); ok {
			features, bytes = nil, append(bytes[:0], pixels.Bytes(row)...)
		} else {
			mat.Row(features, row, d.X)
			bytes = bytes[:0]
		}
		for i := range values {
			values[i] += 0 // -0 is 0
		}
		return sha256.Sum256(appendFloats(bytes, values[:targets+len(features)]))
	}
}

// equalByChance says whether so few different rows are possible that some of n drawn anew would be equal even if no
// column depended on another, where n is the number of blocks, each of equal rows. One of n (n-1) / 2 pairs is then
// equal with probability prod_c sum_v p_cv^2, where p_cv is the share of the blocks that have value v in column c.
func (d *Dataset) equalByChance(blocks [][]int) bool {
	n, dims, targets := float64(len(blocks)), d.Dims(), len(d.TargetNames())
	pairs := n * (n - 1) / 2
	for c := range dims + targets {
		share := map[float64]float64{}
		for _, block := range blocks {
			if c < dims {
				share[d.X.At(block[0], c)] += 1 / n
			} else {
				share[d.Y[block[0]*targets+c-dims]] += 1 / n
			}
		}
		equal := 0.
		for _, p := range share {
			equal += p * p
		}
		if pairs *= equal; pairs < 1 {
			return false
		}
	}
	return true
}

// Blocks is the number of groups, or of times, or else of rows: of what Split and Folds keep together.
func (d *Dataset) Blocks() int { return len(d.blocks(inOrder(d.Rows()))) }

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// inBlocks says what stays together.
func (d *Dataset) inBlocks(count int) string {
	switch {
	case d.Group != nil:
		return fmt.Sprintf(" in %d groups", count)
	case d.Order != nil:
		return fmt.Sprintf(" at %d times", count)
	}
	return ""
}

// Folds are k parts for cross-validation on the rows of Train and Validation together: each row is in the validation
// part of exactly one, and in the training part of the others. The rows are shuffled by the seed; exact copies of a row
// are left out of the same fold, as SplitDistinct keeps them together; of a classification the rows of each class are
// spread over the folds, and the only row of a class is in every training part. A Group is in one fold; with an Order a
// fold is a span of time. Test is that of p. It is an error if there are fewer than 2 folds, or fewer rows, groups or
// times than folds.
func (p Parts) Folds(k int, seed uint64) ([]Parts, error) {
	all, err := p.Joined()
	if err != nil {
		return nil, err
	}
	n, whole := all.Rows(), all.Group != nil || all.Order != nil
	order := newRand("folds", seed, 0).Perm(n)
	if !whole && all.Task != Regression {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all.Y[a], all.Y[b]) })
	}
	blocks := all.blocks(order)
	if k < 2 || k > len(blocks) {
		return nil, fmt.Errorf("dataset %s: %d folds of %d rows%s: take at least 2, and at most as many as there are",
			all.Name, k, n, all.inBlocks(len(blocks)))
	}
	classes := [][][]int{blocks}
	if !whole {
		if distinct, _ := all.distinct(order); len(distinct) >= k {
			classes[0] = distinct
		}
		if all.Task != Regression {
			classes = together(classes[0], func(block []int) float64 { return all.Y[block[0]] })
		}
	}
	foldOf, validation, done := make([]int, n), make([][]int, k), 0 // foldOf is the fold that leaves a row out
	for _, blocks := range classes {
		ofClass := make([]int, k)
		for i, block := range blocks {
			f := 0
			for other := range validation {
				if cmp.Or(cmp.Compare(ofClass[other], ofClass[f]),
					cmp.Compare(len(validation[other]), len(validation[f]))) < 0 {
					f = other
				}
			}
			if all.Order != nil { // by the rows before; each fold has at least one block
				f = min(max(done*k/n, k-len(blocks)+i), i)
			}
			done += len(block)
			ofClass[f], validation[f] = ofClass[f]+len(block), append(validation[f], block...)
			if len(classes) > 1 && len(blocks) == 1 {
				f = -1 // it trains all
			}
			for _, row := range block {
				foldOf[row] = f
			}
		}
	}
	if whole {
		order = slices.Concat(validation...)
	}
	folds := make([]Parts, k)
	for f := range folds {
		var rows [3][]int
		for _, row := range order {
			part := 0
			if foldOf[row] == f {
				part = 1
			}
			rows[part] = append(rows[part], row)
		}
		if folds[f], err = all.parts(rows); err != nil {
			return nil, err
		}
		folds[f].Test = p.Test
	}
	return folds, nil
}

// Joined has the rows of Train, then those of Validation, if there are any.
func (p Parts) Joined() (*Dataset, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if p.Validation == nil {
		return p.Train, nil
	}
	all := *p.Train
	all.Y = slices.Concat(p.Train.Y, p.Validation.Y)
	all.Group = slices.Concat(p.Train.Group, p.Validation.Group)
	all.Order = slices.Concat(p.Train.Order, p.Validation.Order)
	first, second := p.Train.Rows(), p.Validation.Rows()
	all.Weights = joinedOr(p.Train.Weights, p.Validation.Weights, first, second, 1)
	all.Exposure = joinedOr(p.Train.Exposure, p.Validation.Exposure, first, second, 1)
	all.Censored = joinedOr(p.Train.Censored, p.Validation.Censored, first, second, false)
	all.rows = nil
	for _, part := range []*Dataset{p.Train, p.Validation} {
		for i := range part.Rows() {
			all.rows = append(all.rows, part.OriginalRow(i))
		}
	}
	a, pictures := p.Train.X.(*Pixels)
	b, too := p.Validation.X.(*Pixels)
	if pictures && too {
		var bytes []byte
		for i := range first {
			bytes = append(bytes, a.Bytes(i)...)
		}
		for i := range second {
			bytes = append(bytes, b.Bytes(i)...)
		}
		all.X = NewPixels(bytes, a.width)
		return &all, nil
	}
	x := new(mat.Dense)
	x.Stack(p.Train.X, p.Validation.X)
	all.X = x
	return &all, nil
}

// parts makes the parts of train, validation and test rows; no rows, no part.
func (d *Dataset) parts(rows [3][]int) (Parts, error) {
	var p Parts
	for i, to := range []**Dataset{&p.Train, &p.Validation, &p.Test} {
		if len(rows[i]) == 0 {
			continue
		}
		part, err := d.Subset(rows[i])
		if err != nil {
			return Parts{}, err
		}
		*to = part
	}
	return p, nil
}

var partNames = [3]string{"train", "validation", "test"}

func (f Fractions) list() [3]float64 { return [3]float64{f.Train, f.Validation, f.Test} }

func (f Fractions) validate() error {
	for i, fraction := range f.list() {
		if !(fraction >= 0) { // also NaN
			return fmt.Errorf("the %s fraction is %v: it must be at least 0", partNames[i], fraction)
		}
	}
	if sum := f.Train + f.Validation + f.Test; !(math.Abs(sum-1) <= 1e-9) {
		return fmt.Errorf("the fractions %v, %v, %v sum to %v: they must sum to 1", f.Train, f.Validation, f.Test, sum)
	}
	return nil
}
