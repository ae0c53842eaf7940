package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

// Missing says what to do with a row that has a missing value.
type Missing int

const (
	// MissingError refuses the file and names the first missing value. The default.
	MissingError Missing = iota
	// MissingDropRow leaves out every row with a missing value in a column that is used.
	MissingDropRow
	// MissingMean fills a missing feature with the mean of its column. A missing category gets the mean of its one-hot
	// columns, the categories' frequencies. The mean is over the whole file, and so includes rows that are later split
	// off for the test. With CSVOptions.Like it is over Like's rows only, and no row of the file enters. A missing
	// target is still an error.
	MissingMean
)

// CSVOptions say how to read a table. The zero value reads a comma-separated file with a header line, numbers
// throughout, the last column being the target of a regression.
//
// A column is given by its name in the header or, where no column has that name, by its index as text: "0" is the
// first, "-1" the last. Without a header the columns are called "x0", "x1", ...
type CSVOptions struct {
	// Encoding of the file, such as charmap.Windows1252 of golang.org/x/text/encoding/charmap. nil: UTF-8, or UTF-16 if
	// its byte order mark says so.
	Encoding encoding.Encoding
	// Delimiter between fields; of a space there may be several. Default: a tab, a semicolon or a bar if it cuts the first
	// lines alike; else a comma, or a space where there is no comma.
	Delimiter rune
	// Decimal is the decimal mark, '.' or ','. If it is set, spaces, apostrophes and the other mark may group digits by
	// threes, as in "1,234.5". Default: a point, and no groups, since "1,234" may mean either.
	Decimal rune
	// NoHeader says that the first line is data already.
	NoHeader bool
	// Target is the target's column. Default: the last.
	Target string
	// Targets are the columns of several targets of a regression, in the order of Dataset.Targets; Target is then
	// empty.
	Targets []string
	// Task of the data. Default: Regression. For a classification the target may be any text: it is a label.
	// TaskByTarget finds it.
	Task Task
	// Classes are the labels in the order of their index, so that Classes[1] is class 1: of ordered ones, as the
	// likelihood bayes.Ordinal takes them, from the lowest to the highest. A label that is not among them is an error, and
	// one that no row has is not. Default: those found, sorted (as numbers where all of them are).
	Classes []string
	// Categorical columns become one column of 0 and 1 for each value found, called "column=value", sorted as the
	// classes are. Categories and labels are texts, but "1.0" is the same as "1", and is called as it is written first:
	// programs add the point once a value of the column is missing. So are "TRUE" and "True". "01" is another one than
	// "1". Where all values are numbers, one must not be written in two other ways, "1.5" and "1.50". EveryText stands
	// for all columns of text, which all values of a column decide: one of numbers may have no text, and is an error if it
	// has few, or words such as "null". One that has another text in most of its rows, such as a name, is an error too.
	Categorical []string
	// Ignore lists columns to leave out.
	Ignore []string
	// Group and Order name columns that are no features: Dataset.Group, such as a patient's number, and Dataset.Order,
	// of numbers or dates. Split and Folds go by them.
	Group, Order string
	// Weight, Exposure and Event name columns that are no features: Dataset.Weights and Exposure, and for
	// Dataset.Censored one that says whether the target was seen (1 or true) or is at least so much (0 or false).
	Weight, Exposure, Event string
	// MissingTokens are the texts that stand for a missing value; letter case does not matter. Default (nil): "", "NA",
	// "?", "nan". A token that is a whole number stands for it with a point too: "-999" for "-999.0". A slice that is
	// empty but not nil: no text stands for a missing value, and "NA", for instance, is a category of its own.
	MissingTokens []string
	// Missing says what to do with a row that has a missing value. Default: MissingError.
	Missing Missing
	// Like is the table that a model was trained on. It is for reading new rows: they get Like's features, in Like's
	// order, and its task, targets and classes, so that Posterior.Predict takes their X as it is. Leave Target,
	// Targets, Task, Classes and Categorical empty then.
	//
	// The file needs the columns that Like's features come from, under the same names but in any order. Other columns
	// are left out. The features "sex=f" and "sex=m", for instance, come from the texts f and m of a column "sex" (or,
	// where the file has columns "sex=f" and "sex=m", are their numbers). A category that Like does not have is an
	// error, as is a class (ErrMissingClass). If the file has no target, or Ignore lists it, Y is empty: such rows can
	// be predicted, but not trained on or scored.
	//
	// MissingMean fills in the means of Like's X. A text that is a category or class of Like is never a missing value.
	// NoHeader finds columns by their position, as it did for Like: such a file must have all columns, and may lack the
	// target only if that was the last.
	//
	// Where Like's rows are not at hand, names will do, as Posterior.Like gives them: a Dataset with Task, Features,
	// Target or Targets, and Classes. MissingMean needs the means too, as an X of one row.
	Like *Dataset

	inMemory bool // of FromColumns, where a name is no data
}

// EveryText in CSVOptions.Categorical stands for all columns of text.
const EveryText = "*"

// maxCategories bounds the categories of a column and the number of classes: an identifier listed by mistake would
// otherwise become as many columns as there are rows.
const maxCategories = 1000

// OpenCSV reads a table from a file, whose name without its endings is the data set's. See [ReadCSV].
func OpenCSV(path string, opts CSVOptions) (*Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	d, err := ReadCSV(f, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	d.Name = strings.TrimSuffix(base, filepath.Ext(base))
	return d, nil
}

// ReadCSV reads a table, which gzip may have compressed, as the data set "csv". A byte order mark of UTF-8 or UTF-16,
// CRLF line ends, quoted fields (RFC 4180; nothing may stand between the closing quote and the delimiter), spaces
// around other fields and empty lines are fine. Lines before the header that begin with # are left out. A first column
// without a name is left out if it is an index, as pandas and R write it, different in all rows; other columns without
// a name are if they are empty, and so are rows of empty fields. Errors name the row (of data, counted from 0), the
// line (of the file, counted from 1) and the column; an error lists the faults of up to ten columns.
//
// Every number must be finite and decimal: "1_10" and "0x1p3" are text. A column may hold percentages, whose numbers
// are read ("10%" is 10), or true and false, in any case, which are 1 and 0. A date is no feature. It is an error if
// two codes would be the same number, such as "01234" and "1234" or, since whole numbers beyond 2^53 are rounded,
// "9007199254740993" and "9007199254740992": list such a column in CSVOptions.Categorical or Ignore.
//
// To predict new rows by a model that was trained on a table, or a single row, set CSVOptions.Like to that table.
func ReadCSV(r io.Reader, opts CSVOptions) (*Dataset, error) {
	d, err := readCSV(r, opts)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	d.Name = "csv"
	return d, nil
}

func readCSV(r io.Reader, opts CSVOptions) (*Dataset, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	text, err := decoded(r, opts.Encoding)
	if err != nil {
		return nil, err
	}
	comments := commentLines(text)
	if opts.Delimiter == 0 {
		opts.Delimiter = findDelimiter(text)
	}
	if d := opts.Delimiter; strings.ContainsRune("\"\r\n\uFFFD\x00", d) || !utf8.ValidRune(d) || d == opts.Decimal {
		return nil, fmt.Errorf("the delimiter %q cannot separate fields: set CSVOptions.Delimiter to ',', ';' or '\\t'", d)
	}
	all, lines, err := records(text, opts.Delimiter, comments, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("the file is empty: it needs a header line and rows of data")
	}
	names, rowNames := all[0], false
	if !opts.NoHeader {
		if names, rowNames, err = header(all, lines[0]); err != nil {
			return nil, err
		}
		all, lines = all[1:], lines[1:]
	}
	t, err := newTable(names, opts)
	if err != nil {
		return nil, err
	}
	t.columns[0].rowNames = rowNames
	if comments > 0 {
		t.note("%s at the beginning, with #, left out", counted(comments, "line"))
	}
	var rows [][]string
	for i, record := range all {
		if t.add(record, lines[i]) {
			rows = append(rows, record)
		}
	}
	for i, c := range t.columns {
		c.cell = func(row int) (string, bool) { return rows[row][i], true }
	}
	return t.dataset()
}

func (o CSVOptions) withDefaults() (CSVOptions, error) {
	if o.Like != nil {
		if err := o.checkLike(); err != nil {
			return o, err
		}
		o.Task, o.Classes = o.Like.Task, o.Like.Classes
	}
	if len(o.Targets) > 0 && o.Target != "" {
		return o, fmt.Errorf("both of CSVOptions.Target, %q, and CSVOptions.Targets, %q, are set: "+
			"set one of them", o.Target, o.Targets)
	}
	if o.Target != "" {
		o.Targets = []string{o.Target}
	}
	switch {
	case o.Task == TaskByTarget && (len(o.Targets) > 1 || o.Exposure != "" || o.Event != ""): // numbers alone have these
		o.Task = Regression
	case len(o.Targets) > 1 && o.Task != Regression:
		return o, fmt.Errorf("the task is %v but there are %d targets %q: several are for a regression "+
			"(CSVOptions.Targets)", o.Task, len(o.Targets), o.Targets)
	}
	if o.Decimal != 0 && o.Decimal != '.' && o.Decimal != ',' {
		return o, fmt.Errorf("CSVOptions.Decimal, the decimal mark, is %q: take '.' or ','", o.Decimal)
	}
	if o.MissingTokens == nil {
		o.MissingTokens = []string{"", "NA", "?", "nan"}
	}
	switch o.Task {
	case Regression:
		if len(o.Classes) > 0 {
			return o, fmt.Errorf("there are CSVOptions.Classes but the task is regression: set CSVOptions.Task to " +
				"BinaryClassification or Classification")
		}
	case BinaryClassification, Classification:
	case TaskByTarget:
		if len(o.Classes) > 0 {
			o.Task = taskOf(len(o.Classes))
		}
	default:
		return o, fmt.Errorf("unknown task %v: take Regression, BinaryClassification or Classification", o.Task)
	}
	if o.Missing < MissingError || o.Missing > MissingMean {
		return o, fmt.Errorf("unknown policy Missing(%d): take MissingError, MissingDropRow or MissingMean", int(o.Missing))
	}
	seen := map[string]bool{}
	for _, c := range o.Classes {
		if seen[c] {
			return o, fmt.Errorf("the class %q is listed twice in CSVOptions.Classes, %q: list each once", c, o.Classes)
		}
		seen[c] = true
	}
	return o, nil
}

// checkLike is an error if options contradict Like, or if Like does not say which columns there are.
func (o CSVOptions) checkLike() error {
	if o.Target != "" || len(o.Targets)+len(o.Classes)+len(o.Categorical) > 0 || o.Task != Regression || o.Order != "" {
		return errors.New("CSVOptions.Like says what the columns are: leave CSVOptions.Target, CSVOptions.Targets, " +
			"CSVOptions.Task, CSVOptions.Classes, CSVOptions.Categorical and CSVOptions.Order empty")
	}
	like := o.Like
	if len(like.Features) == 0 {
		return fmt.Errorf("the table Like, %q, has no names of features: it must have those that the model was trained on",
			like.Name)
	}
	if err := like.validateTask(); err != nil {
		return fmt.Errorf("the table Like, %q: %w", like.Name, err)
	}
	seen := map[string]bool{}
	for _, name := range append(slices.Clone(like.Features), like.TargetNames()...) {
		if seen[name] {
			return fmt.Errorf("the table Like, %q, has two columns of the name %q: rename one, in the first file as well",
				like.Name, name)
		}
		seen[name] = true
	}
	if dims := like.Dims(); like.X != nil && dims != len(like.Features) {
		return fmt.Errorf("the table Like, %q, has %d names of features, but its X has %d columns: there must be one for "+
			"each", like.Name, len(like.Features), dims)
	}
	if o.Missing == MissingMean && like.Dims() == 0 {
		return fmt.Errorf("Missing is MissingMean, but Like, %q, has no X to take the means of: give it its rows, or the "+
			"means as one row", like.Name)
	}
	return nil
}

// forms are the first bytes of files that are not CSV files, with what they are and what to do.
var forms = []struct{ start, is, cure string }{
	{"PAR1", "a Parquet file", "open it by package parquet"},
	{"PK\x03\x04", "a workbook, such as Excel's .xlsx, or another ZIP file", "save its sheet as CSV, or unpack it"},
	{"\xd0\xcf\x11\xe0", "an .xls workbook of Excel", "save its sheet as CSV"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it"},
	{"BZh", "compressed by bzip2", "decompress it"},
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
	if bytes.HasPrefix(start, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read the file: %w", err)
		}
		text = bufio.NewReaderSize(z, size)
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

// commentLines passes over the lines at the beginning that start with #.
func commentLines(r *bufio.Reader) (lines int) {
	for {
		if start, _ := r.Peek(1); string(start) != "#" {
			return lines
		}
		if _, err := r.ReadSlice('\n'); err != nil && !errors.Is(err, io.EOF) { // it is longer than the buffer
			return lines
		}
		lines++
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
	// cuts are the fields of the first lines, and whether each has as many.
	cuts := func(delimiter rune) (fields int, alike bool) {
		all, _, err := records(bytes.NewReader(start), delimiter, 0, lines)
		if len(all) == 0 {
			return 0, false
		}
		first := len(all[0])
		second := len(all[min(1, len(all)-1)])
		other := func(record []string) bool { return len(record) != second }
		if err != nil || second < first || second > first+1 || slices.ContainsFunc(all[1:], other) {
			return first, false
		}
		return second, true
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

// records reads so many records at most, whose fields are trimmed, and the lines on which they begin, counted from 1,
// where some were read before. With an error it returns those that come before it.
func records(r io.Reader, delimiter rune, before, most int) (all [][]string, lines []int, err error) {
	c := csv.NewReader(r)
	c.Comma = delimiter
	c.FieldsPerRecord = -1                 // any: table.add checks the number, for a better error
	c.TrimLeadingSpace = delimiter != '\t' // of which each counts, so that fields may be empty
	for len(all) < most {
		record, err := c.Read()
		if err == io.EOF {
			break
		}
		if errors.Is(err, csv.ErrBareQuote) || errors.Is(err, csv.ErrQuote) {
			err = fmt.Errorf("%w: a field with a quote is written \"in quotes, each \"\" doubled\"", err)
		}
		if err != nil {
			return all, lines, fmt.Errorf("cannot read the file: %w", err)
		}
		line, _ := c.FieldPos(0)
		for i, field := range record {
			field = strings.TrimSpace(field)
			if number, minus := strings.CutPrefix(field, "\u2212"); minus && isNumber(number) { // a typographic minus
				field = "-" + number
			}
			record[i] = field
		}
		if n := len(record) - 1; delimiter == ' ' && n > 0 && record[n] == "" { // spaces at the end
			record = record[:n]
		}
		all, lines = append(all, record), append(lines, line+before)
	}
	return all, lines, nil
}

// header has the names of the columns, by the first record. Where the second has a field more, an empty name is added:
// in front for names of rows, as R writes them, or at the end if nothing stands there.
func header(all [][]string, line int) (names []string, rowNames bool, err error) {
	names = all[0]
	row := all[min(1, len(all)-1)]
	switch more := len(row) - len(names); {
	case more == 1 && row[len(row)-1] == "":
		return append(slices.Clone(names), ""), false, nil
	case more == 1:
		return append([]string{""}, names...), true, nil
	case more > 1 && (len(names) == 1 || allNumbers(names)):
		return nil, false, fmt.Errorf("line %d, %.80q, is no header of the %d columns that follow: take it out of the file, "+
			"if it is a title or counts the rows (is the delimiter right?)", line, names, len(row))
	}
	return names, false, nil
}
