package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gobnn/bayes/limits"
)

type role int

const (
	number      role = iota // a feature that is a number
	categorical             // a feature to be made one-hot
	ignored
	unnamed // an index, or empty
	aside   // CSVOptions.Group, Order, Weight, Exposure or Event
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
	found  bool     // by its texts, not listed
	texts  []string // one a row kept, of a column aside
	option string   // which gave it its role, such as Group
	// open says that all values are to decide whether the column is of numbers or of texts: until then they are levels.
	open   bool
	firsts []odd // where each level was found
	odd    []odd // the texts that are no numbers, of a column of numbers
	// fault is the first error of reading its values, and faults the number of all.
	fault  error
	faults int
	// read gives the values of a feature that is not yet in memory, in the slice if that has room; nil if it is.
	read     func(into []float64) ([]float64, error)
	notation notation            // of its numbers; empty before the first
	trained  notation            // of the column in Like: percentage, or another; empty if that is not known
	from     int                 // of an index: the first, where the rows are counted
	rowNames bool                // that the header does not name: they count the rows, or are no numbers
	seen     map[string]struct{} // and its values so far, once they are not the rows' numbers
	// spelled holds the texts of a column's codes, by their number, see code; "" for a number that is no code. It is
	// nil before the first code.
	spelled map[float64]string
	// at lists a feature's columns of X: one, or one for each level. fill has the number that replaces a missing value
	// in each of them; nil takes the means.
	at   []int
	fill []float64
}

// isFeature says whether a column is read, and is no target.
func (c *column) isFeature() bool { return !c.target && (c.role == number || c.role == categorical) }

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
	everyText      bool            // columns of text are categorical
	row            int             // rows of data read so far
	at, line       int             // the row that is read, and its line, 0 if there are none
	kept           []int           // the rows kept, by their number among those read
	firstLine      int             // the line of row 0
	units          error           // if row 0 is of units
	short          error           // of the first row with another number of fields
	shorts         int             // and how many there are
	unknown        []unknownAt     // of a row of a file, or of all rows in memory
	notes          []string        // see Dataset.Notes
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
		c := &column{name: name, index: map[string]int{}}
		if name == "" {
			c.role = unnamed
		}
		t.columns = append(t.columns, c)
	}
	if opts.Like != nil {
		if err := t.assignLike(); err != nil {
			return nil, err
		}
		return t, t.putAside()
	}
	if err := t.findTargets(); err != nil {
		return nil, err
	}
	listed := slices.Clone(opts.Categorical)
	if i := slices.Index(listed, EveryText); i >= 0 && t.named(EveryText) == nil {
		t.everyText, listed = true, slices.Delete(listed, i, i+1)
	}
	if err := t.assign(listed, "Categorical", categorical); err != nil {
		return nil, err
	}
	if err := t.assign(opts.Ignore, "Ignore", ignored); err != nil {
		return nil, err
	}
	if err := t.putAside(); err != nil {
		return nil, err
	}
	for _, c := range t.columns {
		c.open = c.role == number && (c.target && t.opts.Task == TaskByTarget || !c.target && t.everyText)
	}
	if !slices.ContainsFunc(t.columns, (*column).isFeature) {
		return nil, fmt.Errorf("there is no feature: the columns are %q, the target is %s and the rest is ignored; is the "+
			"delimiter %q right?", names, t.targetNames(), opts.Delimiter)
	}
	return t, nil
}

// putAside marks the columns that are no features.
func (t *table) putAside() error {
	o := &t.opts
	for _, c := range []struct{ option, key string }{{"Group", o.Group}, {"Order", o.Order}, {"Weight", o.Weight},
		{"Exposure", o.Exposure}, {"Event", o.Event}} {
		if c.key == "" {
			continue
		}
		if err := t.assign([]string{c.key}, c.option, aside); err != nil {
			return err
		}
	}
	return nil
}

// findTargets marks the target columns. The target of a classification holds labels.
func (t *table) findTargets() error {
	option := "Target"
	if t.opts.Target == "" {
		option = "Targets"
	}
	keys := t.opts.Targets
	if len(keys) == 0 { // the last that has a name
		last := len(t.columns) - 1
		for last > 0 && t.columns[last].role == unnamed {
			last--
		}
		keys = []string{strconv.Itoa(last - len(t.columns))}
	}
	for _, key := range keys {
		c, err := t.column(key, option)
		if err != nil {
			return err
		}
		if c.target {
			return fmt.Errorf("%s lists the column %q twice", option, c.name)
		}
		c.target = true
		t.targets = append(t.targets, c)
		if t.opts.Task != Regression && t.opts.Task != TaskByTarget {
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
			continue // see unnamed
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
	if len(at) == 0 {
		return nil, errors.New("the header has no name at all: set NoHeader if the first line is data")
	}
	if numbers == len(at) && !opts.inMemory {
		return nil, fmt.Errorf("the header is all numbers (%.80q): set NoHeader if the first line is data; take it out if "+
			"it counts the rows; or put a letter before each", strings.Join(names, string(opts.Delimiter)))
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
		free := c.role == number || c.role == unnamed && r == ignored
		if t.opts.Like != nil { // the others have been given what Like has
			free = c.role == ignored
		}
		if !free {
			if c.role == unnamed {
				return fmt.Errorf("%s lists a column without a name, %q: name it", option, key)
			}
			return fmt.Errorf("%s lists the column %q, which has another part already, as a feature of Like, in Categorical, "+
				"in Ignore or beside the features", option, c.name)
		}
		c.role, c.option = r, option
	}
	return nil
}

// NoColumnError is the error for a column that a table does not have.
type NoColumnError struct {
	Name string // as an option names it
	text string
}

func (e *NoColumnError) Error() string { return e.text }

// column finds a column by its name or, failing that, its index.
func (t *table) column(key, option string) (*column, error) {
	if c := t.named(key); c != nil {
		return c, nil
	}
	n := len(t.columns)
	if i, err := strconv.Atoi(key); err == nil {
		if i < -n || i >= n {
			return nil, &NoColumnError{key, fmt.Sprintf("%s: there is no column %d; there are %d, from 0 to %d or -%d to -1",
				option, i, n, n-1, n)}
		}
		return t.columns[(i+n)%n], nil
	}
	message := fmt.Sprintf("%s: there is no column %q%s; the columns are %q", option, key, t.meant(key), t.names())
	return nil, &NoColumnError{key, message}
}

// meant asks for the names that are nearest to one that is not there, if some are nearer than others.
func (t *table) meant(key string) string {
	if near := limits.Nearest(key, t.names()); len(near) < len(t.columns) {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
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

// add appends a record. What is wrong with it is kept for table.faulty.
func (t *table) add(record []string, line int) {
	row := t.row
	t.at, t.line = row, line
	if t.row++; row == 0 {
		t.firstLine = line
	}
	if len(record) != len(t.columns) {
		if t.shorts++; t.short == nil {
			t.short = fmt.Errorf("%s has %d fields (%.80q), but %d are needed, one for each column: mend it, or take it out of "+
				"the file if it is no row of data", t.place(row), len(record), record, len(t.columns))
		}
		return
	}
	full := func(text string) bool { return text != "" }
	filled := t.opts.Like != nil && t.opts.Missing == MissingMean
	if len(record) > 1 && t.missing[""] && !filled && !slices.ContainsFunc(record, full) {
		return // an empty row
	}
	drop := false
	for i, c := range t.columns {
		switch c.role {
		case ignored:
			continue
		case unnamed:
			t.wrong(c, row, c.isIndex(i, row, record[i]))
			continue
		case aside:
			if t.missing[strings.ToLower(record[i])] {
				t.wrong(c, row, fmt.Errorf("the value is missing (%q), and every row needs one: fill it in, or leave the row out",
					record[i]))
			}
			c.texts = append(c.texts, strings.Clone(record[i]))
			continue
		}
		v, err := t.cell(c, record[i])
		if err == nil {
			err = checkText(record[i])
		}
		drop = t.put(c, v, err) || drop
	}
	if !drop {
		t.kept = append(t.kept, row)
		for _, u := range t.unknown {
			t.wrong(u.column, row, u.err)
		}
	}
	t.unknown = t.unknown[:0]
	for _, c := range t.columns {
		c.values = c.values[:min(len(c.values), len(t.kept))] // a dropped row is removed again
		c.texts = c.texts[:min(len(c.texts), len(t.kept))]
	}
}

// unknownAt is a category or class of a row that Like does not have, which does no harm if the row is dropped.
type unknownAt struct {
	column *column
	row    int
	err    error
}

// put appends a column's value of row t.at, keeps what is wrong with it, and says whether the row is to be left out.
func (t *table) put(c *column, v float64, err error) (drop bool) {
	c.values = append(c.values, v)
	if errors.Is(err, errMissingCategory) || errors.Is(err, ErrMissingClass) {
		t.unknown = append(t.unknown, unknownAt{c, t.at, err})
		return false
	}
	t.wrong(c, t.at, err)
	return err == nil && math.IsNaN(v) && t.opts.Missing == MissingDropRow
}

// isIndex is an error if a column without a name, number i, is neither empty nor the first and different in all rows.
func (c *column) isIndex(i, row int, text string) error {
	switch {
	case text == "":
		return nil
	case i == 0 && !c.found:
		c.found = true
		return c.isIndex(i, row, text)
	case i > 0:
		return fmt.Errorf("column %d of the header has no name, and holds %.40q: name it, or list \"%d\" in Ignore (or set "+
			"NoHeader if the first line is data)", i, text, i)
	case row == 0 && text == "1":
		c.from = 1
		return nil
	case c.seen == nil && text == strconv.Itoa(c.from+row):
		return nil
	case c.rowNames && isNumber(text):
		return fmt.Errorf("the rows have a field more than the header, whose first, %.40q, is no name of a row: name all "+
			"columns in the header", text)
	case c.seen == nil:
		c.seen = map[string]struct{}{}
		for before := range row {
			c.seen[strconv.Itoa(c.from+before)] = struct{}{}
		}
	}
	if _, twice := c.seen[text]; twice {
		return fmt.Errorf("column 0 of the header has no name, and is no index, since it holds %.40q twice: name it, or "+
			"list \"0\" in Ignore (or set NoHeader if the first line is data)", text)
	}
	c.seen[strings.Clone(text)] = struct{}{}
	return nil
}

// cell reads one field: a number, the index of a level, or NaN if it is missing and the options allow that, or if it is
// no number, which is kept in column.odd.
func (t *table) cell(c *column, text string) (float64, error) {
	if c.open {
		if i, known := c.index[text]; known {
			return float64(i), nil
		}
	}
	if t.isMissing(c, text) {
		return t.absent(c, text)
	}
	if c.open && len(c.levels) == maxCategories { // more cannot be categories
		odds := slices.DeleteFunc(t.oddLevels(c), func(is bool) bool { return !is })
		t.settle(c, 2*len(odds) <= maxCategories)
	}
	if c.open || c.role == categorical {
		return t.level(c, text)
	}
	return t.numberIn(c, text)
}

// numberIn reads a field of a column of numbers.
func (t *table) numberIn(c *column, text string) (float64, error) {
	v, as, err := read(text, t.opts.Decimal)
	finite := err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
	switch {
	case finite && checkNumber(v) != nil:
		return 0, fmt.Errorf("the value %w", checkNumber(v))
	case finite && (as != boolean || !c.target):
		return v, errors.Join(c.write(as, text), c.spell(v, text))
	case err == nil && !finite || errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%.40q is not a finite number; mend it, or %s", text, t.noValueCure())
	}
	c.addOdd(odd{text, t.at, t.line, 1})
	return 0, nil
}

// absent is what a missing value becomes, NaN, or the error that it is.
func (t *table) absent(c *column, text string) (float64, error) {
	switch {
	case t.opts.Like != nil && c.target && t.opts.Missing != MissingDropRow:
		return 0, fmt.Errorf("the target is missing (%q); drop the row, or list the target in Ignore to read all rows "+
			"without it", text)
	case t.opts.Missing == MissingError:
		cure := "set Missing to MissingDropRow or MissingMean, or mend the file"
		if c.target {
			cure = "set Missing to MissingDropRow, or mend the file"
		}
		if c.role == categorical && text != "" {
			cure += "; if it is a category, list the other tokens alone in MissingTokens"
		}
		return 0, fmt.Errorf("the value is missing (%q); %s", text, cure)
	case t.opts.Missing == MissingMean && c.target:
		return 0, fmt.Errorf("the target is missing (%q) and cannot be filled in: set Missing to MissingDropRow, or leave "+
			"the row out", text)
	}
	return math.NaN(), nil
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
	if c.target && t.opts.Like != nil && !isPadded(text) { // of a class that was a number, "+1" or "1.50" is 1 or 1.5
		if v, _, err := read(text, t.opts.Decimal); err == nil {
			if i, known := c.indexOf(plainText(v)); known {
				return float64(i), nil
			}
		}
	}
	alike := ""
	for _, level := range c.levels {
		switch {
		case c.fixed && exactly(level) == exactly(text):
			alike = fmt.Sprintf(", but the same number as %q (write both alike if they are one)", level)
		case c.fixed && strings.EqualFold(level, text):
			alike = fmt.Sprintf(", but %q in other letters (write both alike if they are one)", level)
		}
	}
	switch {
	case c.fixed && c.target && t.opts.Like != nil:
		return 0, fmt.Errorf("%w: %.40q is none of Like's classes %q%s: leave out its rows, train with some, or list the "+
			"target in Ignore to read without it", ErrMissingClass, text, c.levels, alike)
	case c.fixed && c.target:
		return 0, fmt.Errorf("%.40q is none of the Classes %q%s: list it at its place among them, mend it, or leave out its "+
			"rows", text, c.levels, alike)
	case c.fixed:
		return 0, fmt.Errorf("%w: %.40q is none of Like's categories %q%s: leave out its rows, train with some, or list "+
			"it in MissingTokens and fill it in by MissingMean", errMissingCategory, text, c.levels, alike)
	}
	if !c.target && !c.open && isDate(text) {
		return 0, errDate(text)
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
	c.firsts = append(c.firsts, odd{text: text, row: t.at, line: t.line})
	return float64(len(c.levels) - 1), nil
}
