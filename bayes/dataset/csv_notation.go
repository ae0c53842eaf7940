package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// This file has the ways in which numbers, dates and missing values are written.

// notation is how a column writes its numbers, all of them alike.
type notation string

const (
	plainNumber notation = "a number"
	percentage  notation = "a percentage"
	boolean     notation = "true or false"
)

// read returns the number that a text stands for, by CSVOptions.Decimal: 1 and 0 for true and false, and percentages
// without their sign.
func read(text string, mark rune) (float64, notation, error) {
	switch boolOf(text) {
	case "true":
		return 1, boolean, nil
	case "false":
		return 0, boolean, nil
	}
	as := plainNumber
	number, isPercentage := strings.CutSuffix(text, "%")
	if isPercentage {
		as = percentage
	}
	if mark != 0 {
		number = decimal(number, mark)
	}
	v, err := parseNumber(strings.TrimSpace(number))
	return v, as, err
}

// boolOf is the text in lower case if it is true or false in any case, else the text.
func boolOf(text string) string {
	for _, truth := range []string{"true", "false"} {
		if strings.EqualFold(text, truth) {
			return truth
		}
	}
	return text
}

// parseNumber reads a decimal number. Go's other notations, "1_10" for 110 and "0x1p3" for 8, are text: in a table they
// are codes.
func parseNumber(text string) (float64, error) {
	if strings.ContainsAny(text, "_xX") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

func isNumber(text string) bool {
	_, err := parseNumber(text)
	return err == nil
}

func allNumbers(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !isNumber(text) })
}

// groupMarks may group digits by threes: a space, its narrow and unbreakable forms, and an apostrophe; so may the mark
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

// plainText is a number as people write it: without an exponent, unless it is very large or small.
func plainText(v float64) string {
	if size := math.Abs(v); size >= 1e21 || size < 1e-6 && size > 0 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// isDigits says whether a text is digits alone, or a minus and digits.
func isDigits(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isPadded says whether a text is digits with leading zeros, as of a code: "01234" is another one than "1234".
func isPadded(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return len(digits) > 1 && digits[0] == '0' && isDigits(digits)
}

// exact is the largest number up to which float64 holds all whole numbers.
const exact = 1 << 53

// isCode says whether a text of the number v is perhaps a code: digits with leading zeros, or beyond the whole numbers
// that float64 holds exactly.
func isCode(text string, v float64) bool {
	return isPadded(text) || math.Abs(v) >= exact && isDigits(text)
}

// whole is "1" for "1.", "1.0", "1.00", "true" for "TRUE" and "True", and else the text itself. Programs write whole
// numbers with a point once a value of the column is missing.
func whole(text string) string {
	before, after, _ := strings.Cut(text, ".")
	if strings.Trim(after, "0") == "" && isDigits(before) {
		return before
	}
	return boolOf(text)
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
	text = strings.TrimSpace(strings.TrimFunc(text, isCurrency))
	for _, m := range []rune{mark, '.', ','} {
		if v, _, err := read(text, m); err == nil || v != 0 { // infinite, of a number beyond float64
			return true
		}
	}
	return false
}

func isCurrency(r rune) bool { return unicode.Is(unicode.Sc, r) }

// dates are the forms of dates, with and without a time.
var dates = []string{
	time.DateOnly, time.DateTime, time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006/01/02", "2006/1/2 15:04",
	"1/2/2006", "2/1/2006", "1/2/2006 15:04", "2/1/2006 15:04", "1/2/06", "2/1/06", "2.1.2006", "2.1.2006 15:04",
	"2-Jan-2006", "2-Jan-06", "2 Jan 2006", "Jan 2, 2006", "Jan 2 2006",
	"2 January 2006", "January 2, 2006", "January 2 2006",
}

func isDate(text string) bool {
	return len(text) >= 6 && len(text) <= 35 && strings.ContainsAny(text, "-/. ") &&
		slices.ContainsFunc(dates, func(layout string) bool {
			_, err := time.Parse(layout, text)
			return err == nil
		})
}

func errDate(text string) error {
	return fmt.Errorf("%q is a date, which is no feature: list the column in CSVOptions.Ignore, or name it as "+
		"CSVOptions.Order if later rows are to be the test, and put what matters of it into columns of numbers, such as the "+
		"month or the days since a first one", text)
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
		seconds, at := readAllBy(texts, func(text string) (float64, error) {
			date, err := time.Parse(layout, text)
			return float64(date.Unix()) + float64(date.Nanosecond())/1e9, err
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

// numbersOf reads texts that are numbers, or true and false. It returns the index of the first that cannot be read; -1:
// none.
func numbersOf(texts []string, mark rune) (numbers []float64, fault int) {
	return readAllBy(texts, func(text string) (float64, error) {
		v, _, err := read(text, mark)
		return v, err
	})
}

func readAllBy(texts []string, read func(text string) (float64, error)) (values []float64, fault int) {
	for i, text := range texts {
		v, err := read(text)
		if err != nil {
			return nil, i
		}
		values = append(values, v)
	}
	return values, -1
}
