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
	"unicode"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"
)

// This file makes a Dataset of the texts of a table: which rows are kept, which columns are of numbers, their values,
// what is wrong with them, and the features.

// add counts a record. It is false of one that is not to be kept: with another number of fields, which is a fault, or
// empty.
func (t *table) add(record []string, line int) bool {
	row := t.count
	t.count++
	if len(record) != len(t.columns) {
		if t.shorts++; t.short == nil {
			t.short = fmt.Errorf("row %d (line %d) has %d fields (%.80q), but %d are needed, one for each column: mend it, or "+
				"take it out of the file if it is no row of data", row, line, len(record), record, len(t.columns))
		}
		return false
	}
	full := func(text string) bool { return text != "" }
	filled := t.opts.Like != nil && t.opts.Missing == MissingMean
	if len(record) > 1 && t.missing[""] && !filled && !slices.ContainsFunc(record, full) {
		return false
	}
	t.rows, t.lines = append(t.rows, row), append(t.lines, line)
	return true
}

// place names a row.
func (t *table) place(row int) string {
	if t.lines == nil {
		return fmt.Sprintf("row %d", t.rows[row])
	}
	return fmt.Sprintf("row %d (line %d)", t.rows[row], t.lines[row])
}

// note adds to Dataset.Notes.
func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// wrong keeps the first error of a column, and counts the others.
func (t *table) wrong(c *column, row int, err error) {
	if err == nil {
		return
	}
	if c.faults++; c.fault == nil {
		c.fault = fmt.Errorf("%s, column %q: %w", t.place(row), c.name, err)
	}
}

// dataset makes features and target from the columns.
func (t *table) dataset() (*Dataset, error) {
	if t.count == 0 {
		return nil, joined(append(t.faults, errors.New("the file has a header but no rows of data")))
	}
	for row := range t.rows {
		if t.opts.Missing != MissingDropRow || !t.lacks(row) {
			t.kept = append(t.kept, row)
		}
	}
	t.read()
	if err := t.faulty(); err != nil {
		return nil, err
	}
	if len(t.kept) == 0 {
		return nil, fmt.Errorf("each of the %d rows has a missing value and was dropped; set CSVOptions.Missing to "+
			"MissingMean, or list the column that is mostly missing in CSVOptions.Ignore", t.count)
	}
	for _, c := range t.columns {
		if err := t.finish(c); err != nil {
			return nil, err
		}
	}
	if err := t.identifiers(); err != nil {
		return nil, err
	}
	if t.opts.Task == TaskByTarget {
		t.opts.Task = t.targets[0].task()
	}
	d := &Dataset{Task: t.opts.Task, rows: chosen(t.rows, t.kept),
		Percentages: []string{}}
	for _, c := range t.columns {
		if c.role == number && c.notation == percentage {
			d.Percentages = append(d.Percentages, c.name)
		}
		t.noteDoubts(c)
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
	for i := range t.kept { // nil without a target
		for _, c := range t.targets {
			d.Y = append(d.Y, c.values[i])
		}
	}
	t.encode(d)
	if err := d.validateTask(); err != nil {
		return nil, err
	}
	return d, d.validateNames()
}

// lacks says whether a value is missing in a row, of a feature or target.
func (t *table) lacks(row int) bool {
	return slices.ContainsFunc(t.columns, func(c *column) bool {
		if c.role != number && c.role != categorical {
			return false
		}
		if c.numbers != nil {
			return math.IsNaN(c.numbers[row])
		}
		text, present := c.cell(row)
		return !present || t.isMissing(c, text)
	})
}

// isMissing says whether a field stands for a missing value: the token "-999" stands for "-999.0" too. What is a
// category or class of Like was no missing value there.
func (t *table) isMissing(c *column, text string) bool {
	if _, known := c.indexOf(text); known && t.opts.Like != nil {
		return false
	}
	return t.missing[strings.ToLower(text)] || t.missing[whole(text)]
}

// ifMissing returns NaN for a missing value, or an error if the column must be complete.
func (t *table) ifMissing(c *column, text string) (float64, error) {
	what := "value"
	cure := "set CSVOptions.Missing to MissingDropRow or CSVOptions.Missing to MissingMean, or mend the file"
	switch {
	case t.opts.Missing == MissingDropRow, t.opts.Missing == MissingMean && !c.target:
		return math.NaN(), nil
	case c.target && t.opts.Like != nil:
		what, cure = "target", "drop the row, or list the target in CSVOptions.Ignore to read all rows without it"
	case c.target:
		what, cure = "target", "set CSVOptions.Missing to MissingDropRow, or leave the row out"
	case c.role == categorical && text != "":
		cure += "; if it is a category, list the other tokens alone in CSVOptions.MissingTokens"
	}
	return 0, fmt.Errorf("the %s is missing (%q); "+cure, what, text)
}

// read gives the columns their values in the rows that are kept. An open one is decided by all its texts.
func (t *table) read() {
	found := map[*column][]distinct{}
	for i, c := range t.columns {
		switch {
		case c.role == unnamed:
			t.checkIndex(c, i)
		case c.role == aside:
			for _, row := range t.kept {
				text, present := c.cell(row)
				if !present || t.missing[strings.ToLower(text)] {
					t.wrong(c, row, fmt.Errorf("the value is missing (%q), and every row needs one: fill it in, or leave the row "+
						"out", text))
				}
				c.texts = append(c.texts, text)
			}
		case c.role != ignored && c.open:
			found[c] = t.survey(c)
		case c.role != ignored:
			t.values(c)
		}
	}
	t.findUnits(found)
	for _, c := range t.columns {
		if texts, open := found[c]; open {
			if c.open = false; !t.isNumeric(c, texts) {
				c.role, c.found = categorical, true
			}
			t.values(c)
		}
	}
}

// values reads a column's values in the rows that are kept.
func (t *table) values(c *column) {
	if c.numbers != nil {
		c.values = chosen(c.numbers, t.kept)
		for i, v := range c.values {
			t.wrong(c, t.kept[i], t.checkedNumber(c, v))
		}
		return
	}
	c.values = make([]float64, len(t.kept))
	codes := false
	for i, row := range t.kept {
		text, present := c.cell(row)
		v, err := t.value(c, text, present, row)
		t.wrong(c, row, err)
		c.values[i] = v
		codes = codes || c.role == number && !math.IsNaN(v) && isCode(text, v)
	}
	if codes {
		t.checkCodes(c)
	}
	c.cell = nil
}

// value reads one field: a number, the index of a level, or NaN if it is missing or has a fault.
func (t *table) value(c *column, text string, present bool, row int) (v float64, err error) {
	switch {
	case !present || t.isMissing(c, text):
		v, err = t.ifMissing(c, text)
	case !utf8.ValidString(text):
		err = checkText(text)
	case c.role == categorical:
		v, err = t.level(c, text)
	default:
		v, err = t.numberIn(c, text, row)
	}
	if err != nil {
		v = math.NaN()
	}
	return v, err
}

// numberIn reads a field of a column of numbers. A text that is none is kept in column.odd.
func (t *table) numberIn(c *column, text string, row int) (float64, error) {
	v, as, err := read(text, t.opts.Decimal)
	finite := err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
	switch {
	case finite && checkNumber(v) != nil:
		return 0, fmt.Errorf("the value %w", checkNumber(v))
	case finite && (as != boolean || !c.target):
		return v, c.write(as, text)
	case err == nil && !finite || errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%.40q is not a finite number; mend it, or "+t.noValueCure(), text)
	}
	i := slices.IndexFunc(c.odd, func(o odd) bool { return o.text == text })
	switch {
	case i >= 0:
		c.odd[i].count++
	case len(c.odd) == mostFaults: // the last counts for the others, too
		c.odd[mostFaults-1].count++
	default:
		c.odd = append(c.odd, odd{text, row, 1})
	}
	return math.NaN(), nil
}

// write is an error if the column's numbers were written in another way in a row before.
func (c *column) write(as notation, text string) error {
	if c.trained != "" && (as == percentage) != (c.trained == percentage) {
		return fmt.Errorf("%.40q is %s, and in training the column had %s in each row (where 10%% is 10): write it as there",
			text, as, c.trained)
	}
	if c.notation != "" && c.notation != as {
		return fmt.Errorf("%.40q is %s, and in a row before there is %s: write all of the column alike, or list it in "+
			"CSVOptions.Categorical", text, as, c.notation)
	}
	c.notation = as
	return nil
}

// checkCodes looks for numbers that are written in two ways, one of which is a code: two codes would become one.
func (t *table) checkCodes(c *column) {
	codes := map[float64]string{} // "" of a number that is no code
	for i, row := range t.kept {
		v := c.values[i]
		if math.IsNaN(v) {
			continue
		}
		text, _ := c.cell(row)
		code := ""
		if isCode(text, v) {
			code = text
		}
		if isPadded(code) && (c.code == "" || code < c.code) {
			c.code = code
		}
		before, seen := codes[v]
		if !seen || before == code {
			codes[v] = code
			continue
		}
		why, cure := "", "list the column in CSVOptions.Categorical or CSVOptions.Ignore"
		if math.Abs(v) >= exact {
			why = ", since whole numbers beyond 2^53 are rounded"
		}
		if c.target {
			cure = "set CSVOptions.Task to Classification"
		}
		t.wrong(c, row, fmt.Errorf("%.40q and, in a row before, %.40q are one number%s: if they are codes, "+cure+"; if "+
			"they are numbers, write both alike", text, cmp.Or(before, strconv.FormatFloat(v, 'f', -1, 64)), why))
	}
}

// level is the index of a category or class, which is a new one unless they were fixed beforehand.
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
	if c.fixed {
		return 0, t.unknownLevel(c, text)
	}
	if (!c.target || c.found) && isDate(text) {
		return 0, errDate(text)
	}
	if len(c.levels) == maxCategories {
		cure := "list the column in CSVOptions.Ignore if it is an identifier"
		if c.target {
			cure = "set CSVOptions.Task to Regression if the target is a number"
		}
		return 0, fmt.Errorf("%.40q would be text %d of the column, and at most %d are taken as categories or classes; "+cure,
			text, maxCategories+1, maxCategories)
	}
	c.addLevel(strings.Clone(text)) // a copy, so that the level does not keep all texts in memory
	return float64(len(c.levels) - 1), nil
}

// unknownLevel is the error of a text that is none of the levels fixed beforehand.
func (t *table) unknownLevel(c *column, text string) error {
	alike := ""
	v, err := parseNumber(text)
	for _, level := range c.levels {
		number, fault := parseNumber(level)
		switch {
		case err == nil && fault == nil && v == number:
			alike = fmt.Sprintf(", but the same number as %q (write both alike if they are one)", level)
		case strings.EqualFold(level, text):
			alike = fmt.Sprintf(", but %q in other letters (write both alike if they are one)", level)
		}
	}
	switch {
	case c.target && t.opts.Like != nil:
		return fmt.Errorf("%w: %.40q is none of Like's classes %q%s: leave out its rows, train with some, or list the "+
			"target in CSVOptions.Ignore to read without it", ErrMissingClass, text, c.levels, alike)
	case c.target:
		return fmt.Errorf("%.40q is none of the CSVOptions.Classes %q%s: list it at its place among them, mend it, or leave "+
			"out its rows", text, c.levels, alike)
	}
	return fmt.Errorf("%w: %.40q is none of Like's categories %q%s: leave out its rows, train with some, or list "+
		"it in CSVOptions.MissingTokens and set CSVOptions.Missing to MissingMean", errMissingCategory, text, c.levels, alike)
}

// checkIndex finds a fault if column number i, which has no name, is neither empty nor the first and different in all
// rows. It takes one that counts the rows for granted.
func (t *table) checkIndex(c *column, i int) {
	first, seen := -1, map[string]bool{}
	for row, number := range t.rows {
		text, _ := c.cell(row)
		if text == "" {
			continue
		}
		if i > 0 {
			t.wrong(c, row, fmt.Errorf("column %d of the header has no name, and holds %.40q: name it, or list \"%d\" in "+
				"CSVOptions.Ignore (or set CSVOptions.NoHeader if the first line is data)", i, text, i))
			return
		}
		if first < 0 {
			if first = 0; text == "1" && row == 0 {
				first = 1
			}
		}
		c.found = true
		counts := text == strconv.Itoa(first+number)
		if c.rowNames && !counts && isNumber(text) {
			t.wrong(c, row, fmt.Errorf("the rows have a field more than the header, whose first, %.40q, is no name of a row: "+
				"name all columns in the header", text))
			return
		}
		if seen[text] {
			t.wrong(c, row, fmt.Errorf("column 0 of the header has no name, and is no index, since it holds %.40q twice: name "+
				"it, or list \"0\" in CSVOptions.Ignore (or set CSVOptions.NoHeader if the first line is data)", text))
			return
		}
		seen[text] = true
	}
}

// odd is a text among numbers: the row where it is first found, and in how many rows.
type odd struct {
	text       string
	row, count int
}

// distinct is a text of a column of which it is open whether it is of numbers.
type distinct struct {
	odd
	numeral bool
}

// survey lists the texts of an open column, one more at most than can be categories.
func (t *table) survey(c *column) (texts []distinct) {
	at := map[string]int{}
	for _, row := range t.kept {
		text, present := c.cell(row)
		i, known := at[text]
		switch {
		case known && present:
			texts[i].count++
		case !present || t.isMissing(c, text):
		case len(texts) > maxCategories:
			return texts
		default:
			at[text] = len(texts)
			texts = append(texts, distinct{odd{text, row, 1}, isNumeral(text, t.opts.Decimal)})
		}
	}
	return texts
}

// findUnits looks whether the first row has texts in all columns that have numbers in the others.
func (t *table) findUnits(found map[*column][]distinct) {
	var units []string
	words := 0
	for _, c := range t.columns {
		odds, inFirst := slices.Clone(c.odd), false
		for _, d := range found[c] {
			if inFirst = inFirst || d.row == t.kept[0]; !d.numeral {
				odds = append(odds, d.odd)
			}
		}
		if !c.open {
			inFirst = len(c.values) == 0 || !math.IsNaN(c.values[0])
		}
		switch {
		case c.role != number || len(odds) > 1 && c.open: // perhaps of texts
			continue
		case len(odds) == 0 && inFirst, len(odds) > 1:
			return // it begins with a number
		case len(odds) == 1 && (t.rows[odds[0].row] > 0 || odds[0].count > 1 || len(t.kept) < 3):
			return
		case len(odds) == 1:
			units = append(units, odds[0].text)
			if !isNoValue(odds[0].text) {
				words++
			}
		}
	}
	if len(units) > 1 && words > 0 {
		t.units = fmt.Errorf("%s has the texts %.80q where all others have numbers: it looks like a row of units, or a "+
			"second header: take it out of the file", t.place(0), units)
	}
}

// isNumeric decides an open column. It is of numbers if all but a few of its texts are: if the others stand for no
// value, are at most 5 % of the values or of the distinct ones, or are a single one among ten numbers. Codes such as
// "12" and "12A" are texts. Of more texts than can be categories half must be numbers.
func (t *table) isNumeric(c *column, texts []distinct) bool {
	words, values, numerals, all, codes, truths := 0, 0, 0, 0, false, c.target
	for _, d := range texts[:min(len(texts), maxCategories)] {
		all += d.count
		truths = truths && (boolOf(d.text) == "true" || boolOf(d.text) == "false")
		switch {
		case d.numeral:
			numerals++
		case len(texts) > maxCategories || !isNoValue(d.text) && !(t.units != nil && t.rows[d.row] == 0):
			is := func(of func(rune) bool) bool { return strings.ContainsFunc(d.text, of) }
			words, values = words+1, values+d.count
			codes = codes || is(unicode.IsDigit) && is(unicode.IsLetter) && !strings.ContainsAny(d.text, ". ")
		}
	}
	if len(texts) > maxCategories {
		return 2*words <= maxCategories
	}
	few := 20*values <= all
	if !codes {
		few = few || 20*words <= numerals || words == 1 && (numerals >= 10 || values == 1 && all >= 5)
	}
	return numerals > 0 && few && !truths || all == 0
}

// faulty is an error that lists what is wrong with the table.
func (t *table) faulty() error {
	all := t.faults
	add := func(err error, count int) {
		if count > 1 {
			err = fmt.Errorf("%w (so in %d more rows)", err, count-1)
		}
		if err != nil {
			all = append(all, err)
		}
	}
	if t.columns[0].rowNames && t.count == 1 {
		add(fmt.Errorf("%s has %d fields, but %d are needed, one for each name in the header", t.place(0), len(t.columns),
			len(t.columns)-1), 1)
	}
	add(t.units, 1)
	add(t.short, t.shorts)
	for _, c := range t.columns {
		add(c.fault, c.faults)
		if len(c.odd) == 0 || t.units != nil && t.rows[c.odd[0].row] == 0 {
			continue
		}
		err, count := fmt.Errorf("%s, column %q: %w", t.place(c.odd[0].row), c.name, t.noNumber(c, c.odd[0])), 0
		var others []string
		for i, o := range c.odd {
			if count += o.count; i > 0 {
				others = append(others, o.text)
			}
		}
		if len(others) > 0 {
			err = fmt.Errorf("%w; nor can %.200q", err, others)
		}
		add(err, count)
	}
	return joined(all)
}

// noValueCure is how a text is made a missing value, as part of a format.
func (t *table) noValueCure() string {
	if t.opts.inMemory {
		return "write a null for the text"
	}
	return "list the text in CSVOptions.MissingTokens"
}

// noNumber is the error of a text that is no number, with what may mend it.
func (t *table) noNumber(c *column, o odd) error {
	text := o.text
	digits := strings.Trim(text, "+-0123456789.,"+groupMarks) == ""
	switch {
	case isDate(text):
		return errDate(text)
	case t.opts.Decimal == 0 && digits && strings.ContainsAny(text, ","+groupMarks):
		return fmt.Errorf("cannot read %.40q as a number: set CSVOptions.Decimal to ',' if a comma is its decimal mark, or "+
			"to '.' if a point is, and what else stands between the digits groups them", text)
	}
	cure := "list the column in CSVOptions.Categorical or CSVOptions.Ignore"
	if c.target {
		cure = "set CSVOptions.Task to BinaryClassification or Classification if the target is a label"
	}
	if o.row > 0 && t.rows[o.row] == t.count-1 {
		cure += ", or leave the row out if it is a footer"
	}
	return fmt.Errorf("cannot read %.40q as a number; "+t.noValueCure()+" if it stands for no value, or "+cure, text)
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
				"CSVOptions.Target, or set CSVOptions.Task to Classification if they are classes",
				c.name, len(c.levels), len(t.kept))
		}
		names, texts = append(names, c.name), max(texts, len(c.levels))
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("the columns %q have up to %d texts in %d rows, as names or sentences do, which say nothing about "+
		"new rows: list them in CSVOptions.Ignore, or by name in CSVOptions.Categorical if their rows repeat",
		names, texts, len(t.kept))
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
					return fmt.Errorf("row %d, column %q: CSVOptions.Event is %v: it must be 1 or true where the target was seen, 0 "+
						"or false where it is at least so much", t.rows[t.kept[i]], c.name, v)
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
		return nil, fmt.Errorf("row %d, column %q, which CSVOptions."+c.option+" names: %q is no number",
			t.rows[t.kept[at]], c.name, c.texts[at])
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
// are no values, or if the column's name is one of its values and other names are numbers: then the first line is data,
// and would be lost.
func (t *table) finish(c *column) error {
	if c.role != number && c.role != categorical {
		return nil
	}
	numbered := func(c *column) bool { return isNumber(c.name) }
	_, value := c.index[c.name]
	if value && !t.opts.NoHeader && !t.opts.inMemory && slices.ContainsFunc(t.columns, numbered) {
		return fmt.Errorf("the header calls a column %q, which is one of its values as well, and others by numbers: set "+
			"CSVOptions.NoHeader if the first line is data, or rename that column", c.name)
	}
	if c.role == categorical && !c.fixed {
		c.sortLevels()
		if a, b, same := c.sameNumber(); same {
			return fmt.Errorf("column %q has the values %q and %q, which are one number and would be two categories or "+
				"classes: write them alike or, if they are codes, with a letter before them", c.name, a, b)
		}
	}
	present := func(v float64) bool { return !math.IsNaN(v) }
	if t.opts.Missing == MissingMean && c.fill == nil && !slices.ContainsFunc(c.values, present) {
		return fmt.Errorf("column %q has no value at all, so no mean to fill in; list it in CSVOptions.Ignore", c.name)
	}
	return nil
}

// noteDoubts notes what may have been meant otherwise than it was read.
func (t *table) noteDoubts(c *column) {
	switch {
	case c.role == unnamed && c.found:
		t.note("the first column, which has no name, is left out: it numbers the rows, or names them")
	case c.role == number && c.code != "":
		t.note("column %q is of numbers, such as %q: if they are codes, list it in Categorical", c.name, c.code)
	}
}

// sortLevels sorts the levels, as numbers if all are ("2" before "10"), and renumbers the values.
func (c *column) sortLevels() {
	sorted := slices.Clone(c.levels)
	if allNumbers(sorted) {
		slices.SortFunc(sorted, func(a, b string) int {
			x, _ := parseNumber(a) // all are numbers
			y, _ := parseNumber(b)
			return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
		})
	} else {
		slices.Sort(sorted)
	}
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
// are none, or if not all levels are numbers. Codes, such as "01", are none of these.
func (c *column) sameNumber() (a, b string, same bool) {
	if !allNumbers(c.levels) {
		return "", "", false
	}
	seen := make(map[float64]string, len(c.levels))
	for _, level := range c.levels {
		number, _ := parseNumber(level) // all are numbers
		if isCode(level, number) {
			continue
		}
		if before, twice := seen[number]; twice {
			return before, level, true
		}
		seen[number] = level
	}
	return "", "", false
}

// encode writes the features into X, with means for missing values.
func (t *table) encode(d *Dataset) {
	x := mat.NewDense(len(t.kept), len(d.Features), nil)
	d.X = x
	for _, c := range t.columns {
		if !c.isFeature() {
			continue
		}
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
		c.values = nil
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
