package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineReader gives the records of a CSV file with their line numbers.
type lineReader struct {
	csv    *csv.Reader
	line   int // the line on which the last record begins, counted from 1
	before int // lines before the first that csv reads
}

func newLineReader(r io.Reader, delimiter rune) *lineReader {
	c := csv.NewReader(r)
	c.Comma = delimiter
	c.FieldsPerRecord = -1 // any: table.add checks the number, for a better error
	c.ReuseRecord = true
	c.TrimLeadingSpace = !unicode.IsSpace(delimiter) // not for tabs: empty fields would be lost
	return &lineReader{csv: c}
}

// next is the next record, its fields trimmed; io.EOF after the last. The record is overwritten by the next call.
func (l *lineReader) next() ([]string, error) {
	record, err := l.csv.Read()
	if err == io.EOF {
		return nil, io.EOF
	}
	if errors.Is(err, csv.ErrBareQuote) || errors.Is(err, csv.ErrQuote) {
		return nil, fmt.Errorf("cannot read the file: %w: a field with a quote is written \"in quotes, each \"\" "+
			"doubled\"", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	l.line, _ = l.csv.FieldPos(0)
	l.line += l.before
	for i, field := range record {
		field = strings.TrimSpace(field)
		if number, minus := strings.CutPrefix(field, "\u2212"); minus && isNumber(number) { // a typographic minus
			field = "-" + number
		}
		record[i] = field
	}
	return record, nil
}

func validRune(r rune) bool { return utf8.ValidRune(r) && r != 0 }
