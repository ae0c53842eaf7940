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

// This file has the columns of a table and their roles, which the header and the options decide.

type role int

const (
	number      role = iota // a feature that is a number
	categorical             // a feature to be made one-hot
	ignored
	unnamed // an index, or empty
	aside   // CSVOptions.Group, Order, Weight, Exposure or Event
)

// column is a column of the table as it is read.
type column struct {
	name   string
	role   role
	target bool
	option string // the one that gave it its role, such as Group
	open   bool   // whether it is of numbers or of categories is for its texts to decide
	found  bool   // its texts decided for categories, or it is an index that is not empty
	// cell is a row's text, and whether there is one.
	cell    func(row int) (text string, present bool)
	numbers []float64 // of all rows, of a column of numbers in memory; nil of texts
	// values has, of each row kept, the number or the index into levels; NaN where missing.
	values []float64
	texts  []string // of each row kept, of a column aside
	// levels of a categorical column or a label, in the order found until sorted, unless they are fixed beforehand.
	levels   []string
	index    map[string]int // of a level's text, and of the same whole number without a point
	fixed    bool
	notation notation // of its numbers; empty before the first
	trained  notation // of the column in Like: percentage, or another; empty if that is not known
	rowNames bool     // the header has no name for it, and it is not empty
	code     string   // one of its numbers that has leading zeros
	fault    error    // the first of reading its values
	faults   int      // how many rows have one
	odd      []odd    // the texts that are no numbers, of a column of numbers
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
	opts      CSVOptions
	columns   []*column
	targets   []*column
	missing   map[string]bool // lower case
	everyText bool            // columns of text are categorical
	count     int             // rows of data in the file
	rows      []int           // the number in the file of each row that is read
	lines     []int           // and its line; nil of columns in memory
	kept      []int           // the rows that have all values they need, as indices into rows
	faults    []error         // of the header and the options
	units     error           // row 0 is of units
	short     error           // the first row with another number of fields
	shorts    int             // and how many there are
	notes     []string        // see Dataset.Notes
}

// newTable sets the columns' names and roles from the first record.
func newTable(first []string, opts CSVOptions) (*table, error) {
	t := &table{opts: opts, missing: map[string]bool{}}
	for _, token := range opts.MissingTokens {
		token = strings.ToLower(strings.TrimSpace(token))
		t.missing[token], t.missing[whole(token)] = true, true
	}
	if err := t.nameColumns(first); err != nil {
		return nil, err
	}
	ofHeader := len(t.faults)
	if opts.Like != nil {
		t.wrongOption(t.assignLike())
	} else {
		t.findTargets()
		listed := slices.Clone(opts.Categorical)
		if i := slices.Index(listed, EveryText); i >= 0 && t.named(EveryText) == nil {
			t.everyText, listed = true, slices.Delete(listed, i, i+1)
		}
		t.assign("Categorical", categorical, listed...)
		t.assign("Ignore", ignored, opts.Ignore...)
	}
	for _, c := range [][2]string{{"Group", opts.Group}, {"Order", opts.Order}, {"Weight", opts.Weight},
		{"Exposure", opts.Exposure}, {"Event", opts.Event}} {
		if c[1] != "" {
			t.assign(c[0], aside, c[1])
		}
	}
	if len(t.faults) > ofHeader { // then it is not known what the columns are
		return nil, joined(t.faults)
	}
	for _, c := range t.columns {
		c.open = opts.Like == nil && c.role == number &&
			(c.target && opts.Task == TaskByTarget || !c.target && t.everyText)
	}
	if !slices.ContainsFunc(t.columns, (*column).isFeature) {
		return nil, fmt.Errorf("there is no feature: the columns are %q, the target is %q and the rest is ignored; set "+
			"CSVOptions.Delimiter if the delimiter is not %q", t.names(), namesOf(t.targets), opts.Delimiter)
	}
	return t, nil
}

// wrongOption keeps a fault of the header or the options.
func (t *table) wrongOption(err error) {
	if err != nil {
		t.faults = append(t.faults, err)
	}
}

// nameColumns makes the columns. Two of one name, and names that are not UTF-8, are faults among others.
func (t *table) nameColumns(first []string) error {
	at := map[string]int{}
	numbers := 0
	for i, name := range first {
		if t.opts.NoHeader {
			name = fmt.Sprintf("x%d", i)
		}
		c := &column{name: name, index: map[string]int{}}
		t.columns = append(t.columns, c)
		if name == "" {
			c.role = unnamed
			continue
		}
		if j, twice := at[name]; twice {
			t.wrongOption(fmt.Errorf("the columns %d and %d of the header are both called %q: rename one (or set "+
				"CSVOptions.NoHeader if the first line is data)", j, i, name))
		}
		at[name] = i
		if err := checkText(name); err != nil {
			t.wrongOption(fmt.Errorf("column %d of the header: %w", i, err))
		}
		if isNumber(name) {
			numbers++
		}
	}
	if len(at) == 0 {
		return fmt.Errorf("the header has no name at all: set CSVOptions.NoHeader if the first line is data")
	}
	if numbers == len(at) && !t.opts.inMemory {
		return fmt.Errorf("the header is all numbers (%.80q): set CSVOptions.NoHeader if the first line is data; take it "+
			"out if it counts the rows; or put a letter before each", strings.Join(t.names(), string(t.opts.Delimiter)))
	}
	return nil
}

// findTargets marks the target columns. The target of a classification holds labels.
func (t *table) findTargets() {
	option, keys := "Target", t.opts.Targets
	if t.opts.Target == "" {
		option = "Targets"
	}
	if len(keys) == 0 { // the last that has a name
		last := len(t.columns) - 1
		for last > 0 && t.columns[last].role == unnamed {
			last--
		}
		keys = []string{strconv.Itoa(last - len(t.columns))}
	}
	for _, key := range keys {
		c := t.find(key, option)
		if c == nil {
			continue
		}
		if c.target || c.role == unnamed {
			t.wrongOption(fmt.Errorf("CSVOptions."+option+" lists the column %q (%q) twice, or it has no name: "+
				"name it", key, c.name))
			continue
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
}

// assign gives the columns that an option lists their role.
func (t *table) assign(option string, r role, keys ...string) {
	for _, key := range keys {
		c := t.find(key, option)
		if c == nil {
			continue
		}
		free := c.role == number || c.role == unnamed && r == ignored
		if t.opts.Like != nil { // the others have been given what Like has
			free = c.role == ignored
		}
		switch {
		case c.target:
			t.wrongOption(fmt.Errorf("CSVOptions."+option+" lists the target %q: it cannot be a feature as well nor be "+
				"left out", c.name))
		case !free && c.role == unnamed:
			t.wrongOption(fmt.Errorf("CSVOptions."+option+" lists a column without a name, %q: name it", key))
		case !free:
			t.wrongOption(fmt.Errorf("CSVOptions."+option+" lists the column %q, which has another part already, as a feature "+
				"of Like, in CSVOptions.Categorical, in CSVOptions.Ignore or beside the features", c.name))
		default:
			c.role, c.option = r, option
		}
	}
}

// find finds a column by its name or, failing that, its index. If there is none it keeps the fault and returns nil.
func (t *table) find(key, option string) *column {
	if c := t.named(key); c != nil {
		return c
	}
	n := len(t.columns)
	fault := fmt.Errorf("CSVOptions."+option+": there is no column %q%s; the columns are %q", key, t.meant(key), t.names())
	if i, err := strconv.Atoi(key); err == nil {
		if i >= -n && i < n {
			return t.columns[(i+n)%n]
		}
		fault = fmt.Errorf("CSVOptions."+option+": there is no column %d; there are %d, from 0 to %d or "+
			"-%d to -1", i, n, n-1, n)
	}
	t.wrongOption(&NoColumnError{key, fault})
	return nil
}

// meant asks for the names that are nearest to one that is not there, if some are nearer than others.
func (t *table) meant(key string) string {
	if near := limits.Nearest(key, t.names()); len(near) < len(t.columns) {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
}

// named returns the column of that name, nil if there is none.
func (t *table) named(name string) *column {
	i := slices.IndexFunc(t.columns, func(c *column) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return t.columns[i]
}

func (t *table) names() []string { return namesOf(t.columns) }

func namesOf(columns []*column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// assignLike finds the columns that Like's features and targets come from; all others are ignored.
func (t *table) assignLike() error {
	like := t.opts.Like
	var means []float64
	if t.opts.Missing == MissingMean {
		means = FitScaler(like.X).Mean
	}
	left := map[*column]bool{}
	for _, key := range t.opts.Ignore {
		left[t.find(key, "Ignore")] = true
	}
	for _, c := range t.columns {
		c.role = ignored
	}
	for at, name := range like.Features {
		c, err := t.sourceOf(name)
		if err != nil {
			return err
		}
		if left[c] {
			return fmt.Errorf("the column %q is in CSVOptions.Ignore, but Like's feature %q comes from it: it cannot be "+
				"left out", c.name, name)
		}
		c.role = number
		t.holdTo(c)
		if c.name != name {
			c.role = categorical
			c.fix(strings.TrimPrefix(name, c.name+"="))
		}
		c.at = append(c.at, at)
		if means != nil {
			if err := checkNumber(means[at]); err != nil {
				return fmt.Errorf("the mean of Like's feature %q %w", name, err)
			}
			c.fill = append(c.fill, means[at])
		}
	}
	return t.targetsLike(left)
}

// holdTo makes a column of numbers be written as Like's was.
func (t *table) holdTo(c *column) {
	if written := t.opts.Like.Percentages; slices.Contains(written, c.name) {
		c.trained = percentage
	} else if written != nil {
		c.trained = plainNumber
	}
}

// sourceOf finds the column that a feature of Like comes from: the column of the same name or, for "column=value", the
// one named before an equals sign.
func (t *table) sourceOf(feature string) (*column, error) {
	if c := t.named(feature); c != nil {
		return c, nil
	}
	like := t.opts.Like
	var found *column
	for i, r := range feature {
		if r != '=' {
			continue
		}
		c := t.named(feature[:i])
		if c == nil || slices.Contains(like.Features, c.name) || slices.Contains(like.TargetNames(), c.name) {
			continue // of a name that is a feature or target itself, and so no categories
		}
		if found != nil {
			return nil, fmt.Errorf("feature %q of Like may be of the column %q or of %q: rename one, in the first file as well",
				feature, found.name, c.name)
		}
		found = c
	}
	if found != nil {
		return found, nil
	}
	names := fmt.Sprintf("%q", feature)
	if column, _, isOneHot := strings.Cut(feature, "="); isOneHot {
		names = fmt.Sprintf("%q, with categories, or %s", column, names)
	}
	cure := "add it, or rename it as in the first file"
	if t.opts.NoHeader {
		cure = "CSVOptions.NoHeader names columns by position, so all must be there as in the first file; or give both " +
			"files a header"
	}
	return nil, fmt.Errorf("feature %q of Like needs a column %s%s; the columns are %q (set CSVOptions.Delimiter if the "+
		"delimiter is not %q): "+cure, feature, names, t.meant(feature), t.names(), t.opts.Delimiter)
}

// targetsLike finds the targets of Like: all or none of them must be there.
func (t *table) targetsLike(left map[*column]bool) error {
	var absent []string
	if t.opts.Like.Target == "" && len(t.opts.Like.Targets) == 0 {
		return nil // it names none
	}
	for _, name := range t.opts.Like.TargetNames() {
		c := t.named(name)
		if c == nil || left[c] {
			absent = append(absent, name)
			continue
		}
		c.target, c.role = true, number
		t.holdTo(c)
		if t.opts.Task != Regression {
			c.role = categorical
			c.fix(t.opts.Classes...)
		}
		t.targets = append(t.targets, c)
	}
	if len(absent) > 0 && len(t.targets) > 0 {
		return fmt.Errorf("of Like's targets, %q are columns of the file, but %q are not: add them, or list the others in "+
			"CSVOptions.Ignore to read without targets", namesOf(t.targets), absent)
	}
	return nil
}

// Column is a column of a table in memory, as other formats than CSV have it: of numbers, or of texts.
type Column struct {
	Name    string
	Numbers []float64 // of all rows, NaN where one is missing; nil: the column is of texts
	// Codes are, of texts, each row's index into Levels; -1: missing. Dates and times are texts such as
	// "2006-01-31T12:30:00Z".
	Codes  []int32
	Levels []string
	Fault  error // why it cannot be read, if it cannot: an error of FromColumns if the column is used
}

// FromColumns makes a Dataset of columns as [ReadCSV] does of a file's, with the options that do not say how numbers
// and texts are written: package parquet reads files by it. Rows are counted from 0.
func FromColumns(rows int, columns []Column, opts CSVOptions) (*Dataset, error) {
	d, err := fromColumns(rows, columns, opts)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	d.Name = "table"
	return d, nil
}

func fromColumns(rows int, columns []Column, opts CSVOptions) (*Dataset, error) {
	for _, o := range []struct {
		option string
		set    bool
	}{{"Delimiter", opts.Delimiter != 0}, {"Decimal", opts.Decimal != 0}, {"NoHeader", opts.NoHeader},
		{"MissingTokens", opts.MissingTokens != nil}, {"Encoding", opts.Encoding != nil},
	} {
		if o.set {
			return nil, fmt.Errorf("CSVOptions.%s is set, which is for CSV files: the columns have their types; leave it "+
				"empty", o.option)
		}
	}
	if len(columns) == 0 || rows < 1 {
		return nil, errors.New("there are no rows")
	}
	opts.inMemory = true
	opts.MissingTokens = []string{} // missing values are known, and "NA" is a text
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		if names[i] = c.Name; strings.TrimSpace(c.Name) == "" {
			return nil, fmt.Errorf("column %d has no name: name it", i)
		}
	}
	t, err := newTable(names, opts)
	if err != nil {
		return nil, err
	}
	t.count, t.rows = rows, inOrder(rows)
	for i, c := range t.columns {
		if c.role == ignored {
			continue
		}
		if err := t.take(c, columns[i]); err != nil {
			return nil, err
		}
	}
	return t.dataset()
}

// take gives a column its texts or numbers.
func (t *table) take(c *column, from Column) error {
	if from.Fault != nil {
		return fmt.Errorf("the column %q %w", c.name, from.Fault)
	}
	if n := max(len(from.Numbers), len(from.Codes)); n != t.count {
		return fmt.Errorf("column %q has %d values, and the table %d rows", c.name, n, t.count)
	}
	if from.Numbers == nil {
		levels := slices.Clone(from.Levels)
		for i, level := range levels {
			levels[i] = strings.TrimSpace(level) // as in CSV files
		}
		if padded := slices.IndexFunc(levels, isPadded); padded >= 0 && c.role == number && t.opts.Like == nil {
			if !c.open {
				return fmt.Errorf("column %q has texts such as %q, which are codes: list it in CSVOptions.Categorical or "+
					"CSVOptions.Ignore", c.name, levels[padded])
			}
			c.open, c.role, c.found = false, categorical, true
		}
		c.cell = func(row int) (string, bool) {
			if from.Codes[row] < 0 {
				return "", false
			}
			return levels[from.Codes[row]], true
		}
		return nil
	}
	c.open = false
	if c.role != number {
		c.cell = func(row int) (string, bool) { return plainText(from.Numbers[row]), !math.IsNaN(from.Numbers[row]) }
		return nil
	}
	c.numbers = from.Numbers
	if err := c.write(plainNumber, "a column of numbers"); err != nil {
		return fmt.Errorf("column %q: %w", c.name, err)
	}
	return nil
}

// checkedNumber is an error if a number may not stand in the column.
func (t *table) checkedNumber(c *column, v float64) error {
	if math.IsNaN(v) {
		_, err := t.ifMissing(c, "")
		return err
	}
	if err := checkNumber(v); err != nil {
		return fmt.Errorf("the value %w", err)
	}
	return nil
}
