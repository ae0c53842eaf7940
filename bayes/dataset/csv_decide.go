package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// This file decides by all values of a column whether it is of numbers or of texts, and gathers what is wrong with a
// table, so that it is told at once.

// odd is a text among numbers: the row and line where it is first found, and in how many rows.
type odd struct {
	text             string
	row, line, count int
}

// noValue are words for a missing value, beside those that MissingTokens has by default.
var noValue = strings.Fields("null (null) none nil nan na n/a n.a. #n/a <na> nat - -- --- – — . .. ... ? * unknown " +
	"missing undefined #div/0! #value! #ref! #num! #name? \\n")

// isNoValue says whether a text is a word for a missing value, or a bound such as "<0.5", which is no number either.
func isNoValue(text string) bool {
	bound := strings.TrimLeft(text, "<>=≤≥~ ")
	return slices.Contains(noValue, strings.ToLower(text)) || bound != text && isNumeral(bound, 0)
}

// isNumeral says whether a text is a number, if perhaps one that cannot be read as it is written: "1,5", "€ 5", "inf".
func isNumeral(text string, mark rune) bool {
	text = strings.TrimSpace(strings.TrimFunc(text, func(r rune) bool { return unicode.Is(unicode.Sc, r) }))
	for _, m := range []rune{mark, '.', ','} {
		if v, _, err := read(text, m); err == nil || v != 0 { // infinite, of a number beyond float64
			return true
		}
	}
	return false
}

// isCode says whether a text is of letters and digits, such as "12A".
func isCode(text string) bool {
	is := func(of func(rune) bool) bool { return strings.ContainsFunc(text, of) }
	return is(unicode.IsDigit) && is(unicode.IsLetter) && !strings.ContainsAny(text, ". ")
}

// decide settles the columns that are open. A column is of numbers if all but a few of its texts are: if the others
// stand for no value, are at most 5 % of the values or of the distinct ones, or are a single one among ten numbers.
// Codes such as "12" and "12A" are texts.
func (t *table) decide() {
	t.findUnits()
	for _, c := range t.columns {
		if !c.open {
			continue
		}
		counts, isOdd := c.counts(), t.oddLevels(c)
		words, values, numerals, all, codes := 0, 0, 0, 0, false
		for i, count := range counts {
			all += count
			switch {
			case count == 0:
			case !isOdd[i]:
				numerals++
			case !isNoValue(c.levels[i]) && !(t.units != nil && c.firsts[i].row == 0):
				words, values, codes = words+1, values+count, codes || isCode(c.levels[i])
			}
		}
		few := 20*values <= all
		if !codes {
			few = few || 20*words <= numerals || words == 1 && (numerals >= 10 || values == 1 && all >= 5)
		}
		truths := c.target && !slices.ContainsFunc(c.levels, func(s string) bool { return !isTruth(s) })
		t.settle(c, numerals > 0 && few && !truths || all == 0)
	}
}

// oddLevels says which levels are no numerals.
func (t *table) oddLevels(c *column) []bool {
	is := make([]bool, len(c.levels))
	for i, level := range c.levels {
		is[i] = !isNumeral(level, t.opts.Decimal)
	}
	return is
}

// counts are the rows of each level.
func (c *column) counts() []int {
	counts := make([]int, len(c.levels))
	for _, v := range c.values {
		if !math.IsNaN(v) {
			counts[int(v)]++
		}
	}
	return counts
}

// settle makes an open column one of numbers, or of categories.
func (t *table) settle(c *column, numbers bool) {
	c.open = false
	if !numbers {
		c.role, c.found = categorical, true
		for i, level := range c.levels {
			if isDate(level) {
				t.at, t.line = c.firsts[i].row, c.firsts[i].line
				t.wrong(c, t.at, errDate(level))
			}
		}
		return
	}
	values, counts, levels, at, line := c.values, c.counts(), c.levels, t.at, t.line
	c.values, c.levels, c.index = nil, nil, map[string]int{}
	for i, level := range levels {
		v := math.NaN()
		if counts[i] > 0 { // not in rows alone that were dropped
			odds := len(c.odd)
			var err error
			t.at, t.line = c.firsts[i].row, c.firsts[i].line
			if v, err = t.numberIn(c, level); err != nil {
				t.wrong(c, t.at, err)
			}
			if len(c.odd) > odds {
				v, c.odd[odds].count = math.NaN(), counts[i]
			}
		}
		c.values = append(c.values, v)
	}
	for i, v := range values {
		if !math.IsNaN(v) {
			values[i] = c.values[int(v)]
		}
	}
	c.values, c.firsts, t.at, t.line = values, nil, at, line
}

// findUnits looks whether the first row has texts in all columns that have numbers in the others.
func (t *table) findUnits() {
	var units []string
	words := 0
	for _, c := range t.columns {
		odds := slices.Clone(c.odd)
		if c.open {
			for i, count := range c.counts() {
				if count > 0 && !isNumeral(c.levels[i], t.opts.Decimal) {
					odds = append(odds, odd{c.levels[i], c.firsts[i].row, 0, count})
				}
			}
		}
		switch {
		case c.role != number || len(odds) > 1 && c.open: // perhaps of texts
			continue
		case len(odds) == 0 && (len(c.values) == 0 || !math.IsNaN(c.values[0])), len(odds) > 1:
			return // it begins with a number
		case len(odds) == 1 && (odds[0].row > 0 || odds[0].count > 1 || len(c.values) < 3):
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

// addOdd counts a text that is no number.
func (c *column) addOdd(o odd) {
	for i := range c.odd {
		if c.odd[i].text == o.text {
			c.odd[i].count++
			return
		}
	}
	if len(c.odd) == mostFaults { // the last counts for the others, too
		c.odd[mostFaults-1].count++
		return
	}
	o.text = strings.Clone(o.text)
	c.odd = append(c.odd, o)
}

// note adds to Dataset.Notes.
func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// place names a row.
func (t *table) place(row int) string {
	if row == 0 && t.firstLine > 0 {
		return fmt.Sprintf("row 0 (line %d)", t.firstLine)
	}
	if t.line > 0 {
		return fmt.Sprintf("row %d (line %d)", row, t.line)
	}
	return fmt.Sprintf("row %d", row)
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

// mostFaults is the number of faults that an error lists, each of another column.
const mostFaults = 10

// faulty is an error that lists what is wrong with the table.
func (t *table) faulty() error {
	var all []error
	add := func(err error, count int) {
		if count > 1 {
			err = fmt.Errorf("%w (so in %d more rows)", err, count-1)
		}
		if err != nil {
			all = append(all, err)
		}
	}
	if t.columns[0].rowNames && t.row == 1 {
		add(fmt.Errorf("%s has %d fields, but %d are needed, one for each name in the header", t.place(0), len(t.columns),
			len(t.columns)-1), 1)
	}
	add(t.units, 1)
	add(t.short, t.shorts)
	for _, c := range t.columns {
		add(c.fault, c.faults)
		if len(c.odd) == 0 || t.units != nil && c.odd[0].row == 0 {
			continue
		}
		t.line = c.odd[0].line
		err, count := fmt.Errorf("%s, column %q: %w", t.place(c.odd[0].row), c.name, t.unread(c, c.odd[0])), 0
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
	switch {
	case len(all) == 0:
		return nil
	case len(all) == 1:
		return all[0]
	case len(all) > mostFaults:
		all = append(all[:mostFaults], fmt.Errorf("and %d more", len(all)-mostFaults))
	}
	return errors.Join(append([]error{errors.New("several things must be mended")}, all...)...)
}
