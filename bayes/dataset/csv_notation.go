package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// This file is how tables are written: the delimiter, and numbers that are not plain.

// separatorLine reads Excel's first line "sep=;", if it is there.
func separatorLine(r *bufio.Reader) (delimiter rune, found bool) {
	start, _ := r.Peek(10)
	line := separates.FindSubmatch(start)
	if line == nil {
		return 0, false
	}
	delimiter, _ = utf8.DecodeRune(line[1])
	_, _ = r.Discard(len(line[0])) // just peeked
	return delimiter, true
}

var separates = regexp.MustCompile(`(?s)^sep=(.)\r?\n`)

// commentLines passes over the lines at the beginning that start with #, and returns the last without it.
func commentLines(r *bufio.Reader) (lines int, last string) {
	for {
		if start, _ := r.Peek(1); string(start) != "#" {
			return lines, last
		}
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) { // it is longer than the buffer
			return lines, last
		}
		lines, last = lines+1, strings.TrimLeft(string(line), "# ")
	}
}

// findDelimiter is a tab, a semicolon or a bar if it cuts the first line, which a comma does not, or if it cuts each of
// the first lines into equally many fields, at least two; the first may lack one. Else it is a comma, or a space if
// there is no comma and spaces cut the lines so.
func findDelimiter(r *bufio.Reader) rune {
	const lines = 10
	start, err := r.Peek(1 << 16)
	if err == nil { // there is more: the last line may be cut
		start = start[:max(bytes.LastIndexByte(start, '\n'), 0)]
	}
	// cuts are the fields of the first line, and whether each line has as many.
	cuts := func(delimiter rune) (fields int, alike bool) {
		records := newLineReader(bytes.NewReader(start), delimiter)
		before := 0
		for line := range lines {
			record, err := records.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if line == 0 {
				fields = len(record)
			}
			if err != nil || line > 1 && len(record) != before || line == 1 && len(record)-fields > 1 {
				return fields, false
			}
			before = len(record)
		}
		return max(fields, before), before >= fields
	}
	byComma, _ := cuts(',')
	for _, delimiter := range []rune{'\t', ';', '|'} {
		if fields, alike := cuts(delimiter); fields > 1 && (alike || byComma < 2) {
			return delimiter
		}
	}
	if fields, alike := cuts(' '); byComma < 2 && fields > 1 && alike {
		return ' '
	}
	return ','
}

// notation is how a column writes its numbers, all of them alike.
type notation string

const (
	plainNumber notation = "a number"
	percentage  notation = "a percentage"
	boolean     notation = "true or false"
)

// boolOf is the text in lower case if it is true or false in any case, else the text.
func boolOf(text string) string {
	for _, truth := range []string{"true", "false"} {
		if strings.EqualFold(text, truth) {
			return truth
		}
	}
	return text
}

func isTruth(text string) bool { return boolOf(text) != text || text == "true" || text == "false" }

// read is the number that a text stands for, by CSVOptions.Decimal: 1 and 0 for true and false, and percentages without
// their sign.
func read(text string, mark rune) (float64, notation, error) {
	switch boolOf(text) {
	case "true":
		return 1, boolean, nil
	case "false":
		return 0, boolean, nil
	}
	number, isPercentage := strings.CutSuffix(text, "%")
	if mark != 0 {
		number = decimal(number, mark)
	}
	v, err := parseNumber(strings.TrimSpace(number))
	if isPercentage {
		return v, percentage, err
	}
	return v, plainNumber, err
}

// groupMarks are what groups digits by threes: a space, its narrow and unbreakable forms, an apostrophe, and the mark
// that is not the decimal one.
const groupMarks = " \u00a0\u202f'’"

// decimal is a number with a point for the decimal mark and without groups of three digits; empty if its marks do not
// stand as they should.
func decimal(text string, mark rune) string {
	other := ","
	if mark == ',' {
		other = "."
	}
	whole, fraction, hasFraction := strings.Cut(text, string(mark))
	if at := strings.IndexAny(whole, groupMarks+other); at >= 0 {
		_, size := utf8.DecodeRuneInString(whole[at:])
		groups := strings.Split(whole, whole[at:at+size])
		for i, g := range groups {
			digits := strings.TrimLeft(g, "+-")
			if i > 0 && (len(g) != 3 || digits != g) || len(digits) < 1 || len(digits) > 3 || !isDigits(digits) {
				return ""
			}
		}
		whole = strings.Join(groups, "")
	}
	if strings.Contains(fraction, ".") {
		return ""
	}
	if hasFraction {
		return whole + "." + fraction
	}
	return whole
}

// write is an error if the column's numbers were written in another way in a row before.
func (c *column) write(as notation, text string) error {
	if c.trained != "" && (as == percentage) != (c.trained == percentage) {
		return fmt.Errorf("%.40q is %s, and in training the column had %s in each row (where 10%% is 10): write it as there",
			text, as, c.trained)
	}
	if c.notation != "" && c.notation != as {
		return fmt.Errorf("%.40q is %s, and in a row before there is %s: write all of the column alike, or list it in "+
			"Categorical", text, as, c.notation)
	}
	c.notation = as
	return nil
}

// dates are the forms of dates, with and without a time.
var dates = []string{
	time.DateOnly, time.DateTime, time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006/01/02", "2006/1/2 15:04",
	"1/2/2006", "2/1/2006", "1/2/2006 15:04", "2/1/2006 15:04", "1/2/06", "2/1/06", "2.1.2006", "2.1.2006 15:04",
	"2-Jan-2006", "2-Jan-06", "2 Jan 2006", "Jan 2, 2006", "Jan 2 2006",
	"2 January 2006", "January 2, 2006", "January 2 2006",
}

func isDate(text string) bool {
	if len(text) < 6 || len(text) > 35 || !strings.ContainsAny(text, "-/. ") {
		return false
	}
	for _, layout := range dates {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

// places are numbers, or seconds since 1970 of dates, all in one form. It is an error if two forms fit and differ, as
// where day and month may change places.
func places(texts []string, mark rune) ([]float64, error) {
	numbers, at := numbersOf(texts, mark)
	if at < 0 {
		return numbers, nil
	}
	var found []float64
	form := ""
	for _, layout := range dates {
		seconds, at := placesBy(texts, func(text string) (float64, error) {
			date, err := time.Parse(layout, text)
			return float64(date.Unix()), err
		})
		switch {
		case at >= 0:
		case found == nil:
			found, form = seconds, layout
		case !slices.Equal(found, seconds):
			return nil, fmt.Errorf("the dates, such as %q, may be %q or %q: write them as 2006-01-31", texts[0], form, layout)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%q is no number, and not all values are dates of one form, such as 2006-01-31 or "+
			"31.1.2006 12:30", texts[at])
	}
	return found, nil
}

// numbersOf is placesBy of texts that are numbers, or true and false.
func numbersOf(texts []string, mark rune) (numbers []float64, unread int) {
	return placesBy(texts, func(text string) (float64, error) {
		v, _, err := read(text, mark)
		return v, err
	})
}

// placesBy reads all texts, and gives the index of the first that cannot be read; -1: none.
func placesBy(texts []string, read func(text string) (float64, error)) (places []float64, unread int) {
	for i, text := range texts {
		v, err := read(text)
		if err != nil {
			return nil, i
		}
		places = append(places, v)
	}
	return places, -1
}

func errDate(text string) error {
	return fmt.Errorf("%q is a date, which is no feature: list the column in Ignore, or name it as Order if later rows "+
		"are to be the test, and put what matters of it into columns of numbers, such as the month or the days since a "+
		"first one", text)
}

// noValueCure is how a text is made a missing value.
func (t *table) noValueCure() string {
	if t.opts.inMemory {
		return "write a null for the text"
	}
	return "list the text in MissingTokens"
}

// unread is the error of a text that is no number, with what may mend it.
func (t *table) unread(c *column, o odd) error {
	text := o.text
	cannot := fmt.Sprintf("cannot read %.40q as a number", text)
	digits := strings.Trim(text, "+-0123456789.,"+groupMarks) == ""
	switch {
	case isDate(text):
		return errDate(text)
	case t.opts.Decimal == 0 && digits && strings.ContainsAny(text, ","+groupMarks):
		return fmt.Errorf("%s: set Decimal to ',' if a comma is its decimal mark, or to '.' if a point is, and what else "+
			"stands between the digits groups them", cannot)
	case isNoValue(text) && strings.ContainsAny(text, "<>≤≥"):
		cannot += ", since it is a bound: write its number"
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Sc, r) }):
		cannot += ": write it without its currency"
	}
	cure := "the column in Categorical or Ignore"
	if c.target {
		cure = "set Task to BinaryClassification or Classification if the target is a label"
	}
	if o.row > 0 && o.row == t.row-1 {
		cure += ", or leave the row out if it is a footer"
	}
	return fmt.Errorf("%s; %s if it stands for no value, or %s", cannot, t.noValueCure(), cure)
}
