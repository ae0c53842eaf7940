package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

type role int

const (
	number      role = iota // a feature that is a number
	categorical             // a feature to be made one-hot
	ignored
)

// column of the file as it is read.
type column struct {
	name   string
	role   role
	target bool
	// values, one a row kept: the number, or the index into levels; NaN where missing.
	values []float64
	// levels of a categorical column or a label, in the order found until sorted, unless they are fixed beforehand.
	levels []string
	index  map[string]int // of a level's text, and of the same whole number without a point
	fixed  bool
	// spelled holds the texts of a column's codes, by their number, see code; "" for a number that is no code. It is
	// nil before the first code.
	spelled map[float64]string
	// at lists a feature's columns of X: one, or one for each level. fill has the number that replaces a missing value
	// in each of them; nil takes the means.
	at   []int
	fill []float64
}

// fix sets the levels beforehand.
func (c *column) fix(levels ...string) {
	c.fixed = true
	for _, level := range levels {
		c.addLevel(level)
	}
}

func (c *column) addLevel(level string) {
	for _, text := range []string{whole(level), level} { // "1" is looked up for "1.0", and "1.0" for itself
		if _, known := c.index[text]; !known || text == level {
			c.index[text] = len(c.levels)
		}
	}
	c.levels = append(c.levels, level)
}

// indexOf is the index of the level of that text or, failing that, of the same whole number: "1" for "1.0".
func (c *column) indexOf(text string) (at int, known bool) {
	if at, known = c.index[text]; !known {
		at, known = c.index[whole(text)]
	}
	return at, known
}

// table collects the rows of a file.
type table struct {
	opts           CSVOptions
	columns        []*column
	targets        []*column
	missing        map[string]bool // lower case
	missingNumbers []float64       // the tokens that are numbers
	row            int             // rows of data read so far
	kept           []int           // the rows kept, by their number among those read
}

// newTable sets the columns' names and roles from the first record.
func newTable(first []string, opts CSVOptions) (*table, error) {
	t := &table{opts: opts, missing: map[string]bool{}}
	for _, token := range opts.MissingTokens {
		token = strings.ToLower(strings.TrimSpace(token))
		t.missing[token], t.missing[whole(token)] = true, true
		if v, err := parseNumber(token); err == nil && !math.IsNaN(v) {
			t.missingNumbers = append(t.missingNumbers, v)
		}
	}
	names, err := columnNames(first, opts)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t.columns = append(t.columns, &column{name: name, index: map[string]int{}})
	}
	if opts.Like != nil {
		return t, t.assignLike()
	}
	if err := t.findTargets(); err != nil {
		return nil, err
	}
	if err := t.assign(opts.Categorical, "Categorical", categorical); err != nil {
		return nil, err
	}
	if err := t.assign(opts.Ignore, "Ignore", ignored); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(t.columns, func(c *column) bool { return !c.target && c.role != ignored }) {
		return nil, fmt.Errorf("there is no feature: the columns are %q, the target is %s and the rest is ignored; is the "+
			"delimiter %q right?", names, t.targetNames(), opts.Delimiter)
	}
	return t, nil
}

// findTargets marks the target columns. The target of a classification holds labels.
func (t *table) findTargets() error {
	option := "Target"
	if t.opts.Target == "" {
		option = "Targets"
	}
	for _, key := range t.opts.Targets {
		c, err := t.column(key, option)
		if err != nil {
			return err
		}
		if c.target {
			return fmt.Errorf("%s lists the column %q twice", option, c.name)
		}
		c.target = true
		t.targets = append(t.targets, c)
		if t.opts.Task != Regression {
			c.role = categorical
			if len(t.opts.Classes) > 0 {
				c.fix(t.opts.Classes...)
			}
		}
	}
	return nil
}

// targetNames returns the names of the target columns, quoted.
func (t *table) targetNames() string {
	names := make([]string, len(t.targets))
	for i, c := range t.targets {
		names[i] = strconv.Quote(c.name)
	}
	return strings.Join(names, ", ")
}

func columnNames(first []string, opts CSVOptions) ([]string, error) {
	names := make([]string, len(first))
	if opts.NoHeader {
		for i := range names {
			names[i] = fmt.Sprintf("x%d", i)
		}
		return names, nil
	}
	copy(names, first)
	at := map[string]int{}
	numbers := 0
	for i, name := range names {
		if name == "" {
			return nil, fmt.Errorf("column %d of the header has no name: name it (or set NoHeader if the first line is data)", i)
		}
		if j, twice := at[name]; twice {
			return nil, fmt.Errorf("the columns %d and %d of the header are both called %q: rename one (or set NoHeader if "+
				"the first line is data)", j, i, name)
		}
		at[name] = i
		if err := checkText(name); err != nil {
			return nil, fmt.Errorf("column %d of the header: %w", i, err)
		}
		if isNumber(name) {
			numbers++
		}
	}
	if numbers == len(names) {
		return nil, fmt.Errorf("the header is all numbers (%.80q): set NoHeader if the first line is data",
			strings.Join(names, string(opts.Delimiter)))
	}
	return names, nil
}

func (t *table) assign(keys []string, option string, r role) error {
	for _, key := range keys {
		c, err := t.column(key, option)
		if err != nil {
			return err
		}
		if c.target {
			return fmt.Errorf("%s lists the target %q: it cannot be a feature as well nor be left out", option, c.name)
		}
		if c.role != number {
			return fmt.Errorf("%s lists the column %q, which Categorical or Ignore lists already", option, c.name)
		}
		c.role = r
	}
	return nil
}

// column finds a column by its name or, failing that, its index.
func (t *table) column(key, option string) (*column, error) {
	if c := t.named(key); c != nil {
		return c, nil
	}
	n := len(t.columns)
	if i, err := strconv.Atoi(key); err == nil {
		if i < -n || i >= n {
			return nil, fmt.Errorf("%s: there is no column %d; there are %d, from 0 to %d or -%d to -1", option, i, n, n-1, n)
		}
		return t.columns[(i+n)%n], nil
	}
	return nil, fmt.Errorf("%s: there is no column %q; the columns are %q", option, key, t.names())
}

// named is the column of that name, nil if there is none.
func (t *table) named(name string) *column {
	for _, c := range t.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (t *table) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// add appends a record.
func (t *table) add(record []string, line int) error {
	row := t.row
	t.row++
	if len(record) != len(t.columns) {
		return fmt.Errorf("row %d (line %d) has %d fields, but %d are needed, one for each column", row, line, len(record),
			len(t.columns))
	}
	drop := false
	var unknown error // a category or class that Like does not have, which does no harm in a row that is dropped
	for i, c := range t.columns {
		if c.role == ignored {
			continue
		}
		v, err := t.cell(c, record[i])
		if err == nil {
			err = checkText(record[i])
		}
		if err != nil {
			err = fmt.Errorf("row %d (line %d), column %q: %w", row, line, c.name, err)
			if !errors.Is(err, errMissingCategory) && !errors.Is(err, ErrMissingClass) {
				return err
			}
			unknown = cmp.Or(unknown, err)
		}
		drop = drop || math.IsNaN(v) && t.opts.Missing == MissingDropRow
		c.values = append(c.values, v)
	}
	if unknown != nil && !drop {
		return unknown
	}
	if !drop {
		t.kept = append(t.kept, row)
	}
	for _, c := range t.columns {
		c.values = c.values[:min(len(c.values), len(t.kept))] // a dropped row is removed again
	}
	return nil
}

// cell reads one field: a number, the index of a level, or NaN if it is missing and the options allow that.
func (t *table) cell(c *column, text string) (float64, error) {
	if t.isMissing(c, text) {
		switch {
		case t.opts.Like != nil && c.target && t.opts.Missing != MissingDropRow:
			return 0, fmt.Errorf("the target is missing (%q); drop the row, or list the target in Ignore to read all rows "+
				"without it", text)
		case t.opts.Missing == MissingError:
			return 0, fmt.Errorf("the value is missing (%q); set Missing to MissingDropRow or MissingMean, or mend the file",
				text)
		case t.opts.Missing == MissingMean && c.target:
			return 0, fmt.Errorf("the target is missing (%q) and cannot be filled in; drop the row", text)
		}
		return math.NaN(), nil
	}
	if c.role == categorical {
		return t.level(c, text)
	}
	v, err := parseNumber(text)
	finite := err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
	switch {
	case finite && checkNumber(v) != nil:
		return 0, fmt.Errorf("the value %w", checkNumber(v))
	case finite:
		return v, c.spell(v, text)
	case err == nil || errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%.40q is not a finite number; mend it, or list it in MissingTokens", text)
	case c.target:
		return 0, fmt.Errorf("cannot read %.40q as a number; if the target is a label, set Task to BinaryClassification or "+
			"Classification", text)
	}
	return 0, fmt.Errorf("cannot read %.40q as a number; list the column in Categorical or Ignore, or the text in "+
		"MissingTokens", text)
}

// isMissing says whether a field stands for a missing value: by its text or, in a column of numbers, by its number, so
// that the token "-999" stands for "-999.0" too. What is a category or class of Like was no missing value there.
func (t *table) isMissing(c *column, text string) bool {
	if _, known := c.indexOf(text); known && t.opts.Like != nil {
		return false
	}
	if t.missing[strings.ToLower(text)] || t.missing[whole(text)] {
		return true
	}
	if c.role == categorical || len(t.missingNumbers) == 0 {
		return false
	}
	v, err := parseNumber(text)
	return err == nil && slices.Contains(t.missingNumbers, v)
}

func (t *table) level(c *column, text string) (float64, error) {
	if i, known := c.indexOf(text); known {
		return float64(i), nil
	}
	alike := ""
	for _, level := range c.levels {
		if c.fixed && exactly(level) == exactly(text) {
			alike = fmt.Sprintf(", but the same number as %q (write both alike if they are one)", level)
		}
	}
	switch {
	case c.fixed && c.target && t.opts.Like != nil:
		return 0, fmt.Errorf("%w: %.40q is none of Like's classes %q%s: leave out its rows, train with some, or list the "+
			"target in Ignore to read without it", ErrMissingClass, text, c.levels, alike)
	case c.fixed && c.target:
		return 0, fmt.Errorf("%.40q is none of the classes %q%s", text, c.levels, alike)
	case c.fixed:
		return 0, fmt.Errorf("%w: %.40q is none of Like's categories %q%s: leave out its rows, train with some, or list "+
			"it in MissingTokens and fill it in by MissingMean", errMissingCategory, text, c.levels, alike)
	}
	if len(c.levels) == maxCategories {
		if c.target {
			return 0, fmt.Errorf("%.40q would be class %d, and at most %d are taken; set Task to Regression if the target is "+
				"a number", text, maxCategories+1, maxCategories)
		}
		return 0, fmt.Errorf("%.40q would be category %d, and at most %d are taken; list the column in Ignore if it is an "+
			"identifier", text, maxCategories+1, maxCategories)
	}
	c.addLevel(strings.Clone(text)) // a copy, so that the level does not keep its record in memory
	return float64(len(c.levels) - 1), nil
}
