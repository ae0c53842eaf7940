package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// dataset makes features and target from the columns.
func (t *table) dataset() (*Dataset, error) {
	if t.row == 0 {
		return nil, errors.New("the file has a header but no rows of data")
	}
	t.decide()
	if err := t.faulty(); err != nil {
		return nil, err
	}
	if len(t.kept) == 0 {
		return nil, fmt.Errorf("each of the %d rows has a missing value and was dropped; take MissingMean, or Ignore the "+
			"column that is mostly missing", t.row)
	}
	for _, c := range t.columns {
		if err := t.finish(c); err != nil {
			return nil, err
		}
	}
	if names := t.names(); !t.opts.NoHeader && !t.opts.inMemory && len(names) > 2 && names[0] == strconv.Itoa(t.row) &&
		names[1] == strconv.Itoa(len(names)-1) { // as in scikit-learn's own files
		return nil, fmt.Errorf("the first line, %.80q, begins with the numbers of rows and of features, and names no "+
			"columns: remove it, and set NoHeader", strings.Join(names, string(t.opts.Delimiter)))
	}
	if err := t.identifiers(); err != nil {
		return nil, err
	}
	if t.opts.Task == TaskByTarget {
		t.opts.Task = t.targets[0].task()
	}
	d := &Dataset{Name: t.opts.Name, Title: t.opts.Name, Task: t.opts.Task, rows: t.kept, Percentages: []string{}}
	for _, c := range t.columns {
		if c.role == number && c.notation == percentage {
			d.Percentages = append(d.Percentages, c.name)
		}
		t.tell(c)
	}
	d.Notes = t.notes
	if like := t.opts.Like; like != nil {
		d.Features, d.Classes = slices.Clone(like.Features), slices.Clone(like.Classes)
		d.Target, d.Targets = like.Target, slices.Clone(like.Targets)
	} else {
		t.name(d)
	}
	if err := t.setAside(d); err != nil {
		return nil, err
	}
	d.Y = slices.Grow(d.Y, len(t.kept)*len(t.targets)) // nil without a target
	for row := range len(t.kept) {
		for _, c := range t.targets {
			d.Y = append(d.Y, c.values[row])
		}
	}
	x := mat.NewDense(len(t.kept), len(d.Features), nil)
	d.X = x
	var room []float64
	for _, c := range t.columns {
		if !c.isFeature() {
			continue
		}
		if c.read == nil {
			c.encode(x)
			continue
		}
		var err error
		if c.values, err = c.read(room); err != nil {
			return nil, err
		}
		if err := t.anyPresent(c); err != nil {
			return nil, err
		}
		c.encode(x)
		room, c.values = c.values[:0], nil
	}
	if err := d.validateLabels(); err != nil {
		return nil, err
	}
	return d, d.validateNames()
}

// fewTexts is a number of texts that a column may have in whatever few rows.
const fewTexts = 10

// identifiers is an error if columns that were found to be of text have another one in most rows: names, numbers of
// cases or sentences, which say nothing about rows to come.
func (t *table) identifiers() error {
	var names []string
	texts := 0
	for _, c := range t.columns {
		if !c.found || len(c.levels) <= fewTexts || 2*len(c.levels) <= len(t.kept) {
			continue
		}
		if c.target {
			return fmt.Errorf("the target %q has %d texts in %d rows, which are too many for classes: name another column as "+
				"Target, or set Task to Classification if they are classes", c.name, len(c.levels), len(t.kept))
		}
		names, texts = append(names, c.name), max(texts, len(c.levels))
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the columns %q have up to %d texts in %d rows, as names or sentences do, which say nothing about "+
		"new rows: list them in Ignore, or by name in Categorical if their rows repeat", names, texts, len(t.kept))
}

// task is what the values of a target ask for. Two numbers become labels.
func (c *column) task() Task {
	if c.role == categorical {
		return taskOf(len(c.levels))
	}
	values := map[float64]int{}
	for _, v := range c.values {
		if values[v] = 0; len(values) > 2 {
			return Regression
		}
	}
	if len(values) < 2 {
		return Regression
	}
	c.role = categorical
	for i, v := range slices.Sorted(maps.Keys(values)) {
		values[v] = i
		c.addLevel(plainText(v))
	}
	for row, v := range c.values {
		c.values[row] = float64(values[v])
	}
	return BinaryClassification
}

// taskOf is the classification of so many classes.
func taskOf(classes int) Task {
	if classes == 2 {
		return BinaryClassification
	}
	return Classification
}

// setAside makes Group, Order, Weights, Exposure and Censored of their columns.
func (t *table) setAside(d *Dataset) (err error) {
	for _, c := range t.columns {
		switch c.option {
		case "Group":
			d.Group = c.texts
		case "Order":
			if d.Order, err = places(c.texts, t.opts.Decimal); err != nil {
				err = fmt.Errorf("column %q: %w", c.name, err)
			}
		case "Weight":
			d.Weights, err = t.numbersAside(c)
		case "Exposure":
			d.Exposure, err = t.numbersAside(c)
		case "Event":
			var seen []float64
			seen, err = t.numbersAside(c)
			for i, v := range seen {
				if v != 0 && v != 1 {
					return fmt.Errorf("row %d, column %q: Event is %v: it must be 1 or true where the target was seen, 0 or "+
						"false where it is at least so much", t.kept[i], c.name, v)
				}
				d.Censored = append(d.Censored, v == 0)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// numbersAside reads the numbers of a column that is no feature.
func (t *table) numbersAside(c *column) ([]float64, error) {
	numbers, at := numbersOf(c.texts, t.opts.Decimal)
	if at >= 0 {
		return nil, fmt.Errorf("row %d, column %q, which %s names: %q is no number", t.kept[at], c.name, c.option,
			c.texts[at])
	}
	return numbers, nil
}

// name sets the names of features, targets and classes from the columns, and the features' places in X.
func (t *table) name(d *Dataset) {
	for _, c := range t.columns {
		if !c.isFeature() {
			continue
		}
		names := []string{c.name}
		if c.role == categorical {
			names = nil
			for _, level := range c.levels {
				names = append(names, c.name+"="+level)
			}
		}
		for _, name := range names {
			c.at = append(c.at, len(d.Features))
			d.Features = append(d.Features, name)
		}
	}
	if d.Task != Regression {
		d.Classes = t.targets[0].levels
	}
	if len(t.targets) == 1 {
		d.Target = t.targets[0].name
		return
	}
	for _, c := range t.targets {
		d.Targets = append(d.Targets, c.name)
	}
}

// finish sorts the levels of a column. It returns an error if missing values are to be filled in by a mean and there
// are no values, or if the column's name is one of its values and other names are numbers: then the
// first line is data, and would be lost.
func (t *table) finish(c *column) error {
	if c.role != number && c.role != categorical {
		return nil
	}
	numbered := func(c *column) bool { return isNumber(c.name) }
	_, value := c.index[c.name]
	if value && !t.opts.NoHeader && !t.opts.inMemory && slices.ContainsFunc(t.columns, numbered) {
		return fmt.Errorf("the header calls a column %q, which is one of its values as well, and others by numbers: set "+
			"NoHeader if the first line is data, or rename that column", c.name)
	}
	if c.role == categorical && !c.fixed {
		c.sortLevels()
		if a, b, same := c.sameNumber(); same {
			return fmt.Errorf("column %q has the values %q and %q, which are one number and would be two categories or "+
				"classes: write them alike or, if they are codes, with a letter before them", c.name, a, b)
		}
	}
	if c.read != nil {
		return nil
	}
	return t.anyPresent(c)
}

// tell notes what may have been meant otherwise than it was read.
func (t *table) tell(c *column) {
	switch {
	case c.role == unnamed && c.found:
		t.note("the first column, which has no name, is left out: it numbers the rows, or names them")
	case c.role == number && len(c.spelled) > 0:
		codes := slices.DeleteFunc(slices.Sorted(maps.Values(c.spelled)), func(text string) bool { return !isPadded(text) })
		if len(codes) > 0 {
			t.note("column %q is of numbers, such as %q: if they are codes, list it in Categorical", c.name, codes[0])
		}
	case c.role == categorical && !c.fixed:
		same := map[string][]string{}
		for _, level := range c.levels {
			lower := strings.ToLower(level)
			same[lower] = append(same[lower], level)
		}
		for _, lower := range slices.Sorted(maps.Keys(same)) {
			if len(same[lower]) > 1 {
				t.note("column %q has %q, which differ in capital letters alone: write them alike if they are one", c.name,
					same[lower])
			}
		}
	}
}

// anyPresent is an error if missing values are to be filled in by a mean and there are no values.
func (t *table) anyPresent(c *column) error {
	present := func(v float64) bool { return !math.IsNaN(v) }
	if t.opts.Missing == MissingMean && c.fill == nil && !slices.ContainsFunc(c.values, present) {
		return fmt.Errorf("column %q has no value at all, so no mean to fill in; list it in Ignore", c.name)
	}
	return nil
}

// sortLevels sorts the levels that occur in the rows kept (as numbers if all are), drops the others, and renumbers the
// values.
func (c *column) sortLevels() {
	used := make([]bool, len(c.levels))
	for _, v := range c.values {
		if !math.IsNaN(v) {
			used[int(v)] = true
		}
	}
	var sorted []string
	for i, level := range c.levels {
		if used[i] {
			sorted = append(sorted, level)
		}
	}
	slices.SortFunc(sorted, levelOrder(sorted))
	to := make(map[string]int, len(sorted))
	for i, level := range sorted {
		to[level] = i
	}
	for i, v := range c.values {
		if !math.IsNaN(v) {
			c.values[i] = float64(to[c.levels[int(v)]])
		}
	}
	c.levels = sorted
}

// sameNumber finds two levels of the column that spell the same number, such as "1.5" and "1.50". It is false if there
// are none, or if not all levels are numbers. Leading zeros make another code.
func (c *column) sameNumber() (a, b string, same bool) {
	if !allNumbers(c.levels) {
		return "", "", false
	}
	seen := make(map[string]string, len(c.levels))
	for _, level := range c.levels {
		number := exactly(level)
		if before, twice := seen[number]; twice {
			return before, level, true
		}
		seen[number] = level
	}
	return "", "", false
}

func allNumbers(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !isNumber(text) })
}

// levelOrder compares as numbers where all levels are numbers ("2" before "10"), else as text.
func levelOrder(levels []string) func(a, b string) int {
	value := make(map[string]float64, len(levels))
	for _, level := range levels {
		v, err := parseNumber(level)
		if err != nil {
			return cmp.Compare[string]
		}
		value[level] = v
	}
	return func(a, b string) int {
		return cmp.Or(cmp.Compare(value[a], value[b]), cmp.Compare(a, b))
	}
}

// encode writes the column into its columns of x, with means for missing values.
func (c *column) encode(x *mat.Dense) {
	for i, v := range c.values {
		switch {
		case math.IsNaN(v):
			if c.fill == nil {
				c.fill = c.mean(len(c.at))
			}
			for k, at := range c.at {
				x.Set(i, at, c.fill[k])
			}
		case c.role == categorical:
			x.Set(i, c.at[int(v)], 1)
		default:
			x.Set(i, c.at[0], v)
		}
	}
}

// mean is the mean of the values that are not missing, one number for each column of the encoding: for categories their
// frequencies.
func (c *column) mean(width int) []float64 {
	mean := make([]float64, width)
	count := 0.0
	for _, v := range c.values {
		if math.IsNaN(v) {
			continue
		}
		count++
		if c.role == categorical {
			mean[int(v)]++
		} else {
			mean[0] += v/count - mean[0]/count // running: it stays between the least and the largest
		}
	}
	if c.role == categorical {
		for k := range mean {
			mean[k] /= count
		}
	}
	return mean
}

// validateLabels checks that the labels found fit the task.
func (d *Dataset) validateLabels() error {
	if d.Task == Regression {
		return nil
	}
	if len(d.Classes) == 1 {
		return fmt.Errorf("the target %q has a single value, %q, in all %d rows: there is nothing to classify",
			d.Target, d.Classes[0], d.Rows())
	}
	if d.Task == BinaryClassification && len(d.Classes) > 2 {
		return fmt.Errorf("the target %q has %d classes (%.200q): set Task to Classification", d.Target, len(d.Classes),
			fmt.Sprint(d.Classes))
	}
	return nil
}
