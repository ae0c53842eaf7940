package dataset

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// forms are the first bytes of files that are not CSV files, with what they are and what to do.
var forms = []struct{ start, is, cure string }{
	{"PAR1", "a Parquet file", "open it by package parquet"},
	{"PK\x03\x04", "a workbook, such as Excel's .xlsx, or another ZIP file", "save its sheet as CSV, or unpack it"},
	{"\xd0\xcf\x11\xe0", "an .xls workbook of Excel", "save its sheet as CSV"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it"},
	{"\xfd7zXZ", "compressed by xz", "decompress it"},
	{"ARROW1", "an Arrow or Feather file", "write it as Parquet or CSV"},
	{"\x89HDF", "an HDF5 file", "write its table as Parquet or CSV"},
	{"SQLite format 3", "a database", "write its table as CSV"},
	{"<!DOCTYPE", "a page of the web", "download the file itself"},
	{"{\"", "JSON", "write it as CSV, a row for each record"},
	{"[{", "JSON", "write it as CSV, a row for each record"},
}

// decoded is the text of a file: decompressed, without a byte order mark, and in UTF-8 if its mark says UTF-16, or by
// its encoding.
func decoded(r io.Reader, by encoding.Encoding) (*bufio.Reader, error) {
	const size = 1 << 16
	text := bufio.NewReaderSize(r, size)
	start, _ := text.Peek(3)
	switch {
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read the file: %w", err)
		}
		text = bufio.NewReaderSize(&unpacked{z, mostUnpacked}, size)
	case string(start) == "BZh":
		text = bufio.NewReaderSize(&unpacked{bzip2.NewReader(text), mostUnpacked}, size)
	}
	start, _ = text.Peek(16)
	for _, f := range forms {
		if bytes.HasPrefix(start, []byte(f.start)) {
			return nil, fmt.Errorf("it is no CSV file, but %s: %s", f.is, f.cure)
		}
	}
	if by != nil {
		text = bufio.NewReaderSize(by.NewDecoder().Reader(text), size)
	}
	start, _ = text.Peek(3)
	switch {
	case string(start) == "\uFEFF":
		_, _ = text.Discard(3) // just peeked
	case bytes.HasPrefix(start, []byte{0xFF, 0xFE}), bytes.HasPrefix(start, []byte{0xFE, 0xFF}): // as Excel writes
		wide := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
		text = bufio.NewReaderSize(wide.NewDecoder().Reader(text), size)
	}
	return text, nil
}

// mostUnpacked is the most text that is read of a compressed file, whose own size says nothing of it: a megabyte of
// zeros in a thousandth.
const mostUnpacked = 4 << 30

// unpacked is the text of a compressed file, of which so many bytes may still come.
type unpacked struct {
	r    io.Reader
	left int64
}

func (u *unpacked) Read(p []byte) (int, error) {
	if u.left <= 0 {
		return 0, fmt.Errorf("the compressed file has more than %d GiB of text: unpack it, if it is what you meant to "+
			"read, or write it as Parquet", mostUnpacked>>30)
	}
	n, err := u.r.Read(p[:min(int64(len(p)), u.left)])
	u.left -= int64(n)
	return n, err
}

// lineReader gives the records of a CSV file with their line numbers.
type lineReader struct {
	csv    *csv.Reader
	limit  *limit
	line   int // the line on which the last record begins, counted from 1
	before int // lines before the first that csv reads
}

func newLineReader(r io.Reader, delimiter rune) *lineReader {
	l := &lineReader{limit: &limit{r: r}}
	l.csv = csv.NewReader(l.limit)
	c := l.csv
	c.Comma = delimiter
	c.FieldsPerRecord = -1 // any: table.add checks the number, for a better error
	c.ReuseRecord = true
	c.TrimLeadingSpace = delimiter != '\t' // of which each counts, so that fields may be empty
	return l
}

// mostRecord is the largest number of bytes of a record: of an endless one not more is read.
const mostRecord = 16 << 20

// limit reads up to a number of bytes.
type limit struct {
	r    io.Reader
	left int
}

func (l *limit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a record has more than %d bytes: is a quote not closed?", mostRecord)
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// next is the next record, its fields trimmed; io.EOF after the last. The record is overwritten by the next call.
func (l *lineReader) next() ([]string, error) {
	l.limit.left = mostRecord
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
	if n := len(record) - 1; l.csv.Comma == ' ' && n > 0 && record[n] == "" { // spaces at the end
		record = record[:n]
	}
	return record, nil
}
