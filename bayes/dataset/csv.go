package dataset

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
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
	// Name of the data set. Default: "csv", or the file's name without its ending.
	Name string
	// Encoding of the file, such as charmap.Windows1252 of golang.org/x/text/encoding/charmap. nil: UTF-8, or UTF-16 if
	// its byte order mark says so.
	Encoding encoding.Encoding
	// Delimiter between fields; of a space there may be several. Default: a tab, a semicolon or a bar if it cuts the first
	// lines alike, or what a first line "sep=;" says; else a comma, or a space where there is no comma.
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
	// "?", "nan". In columns of numbers a token that is a number stands for that number however it is written: "-999"
	// for "-999.0". A slice that is empty but not nil: no text stands for a missing value, and "NA", for instance, is a
	// category of its own.
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

// OpenCSV reads a table from a file. See [ReadCSV].
func OpenCSV(path string, opts CSVOptions) (*Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	if opts.Name == "" {
		base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".bz2")
		opts.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	d, err := ReadCSV(f, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// ReadCSV reads a table, which gzip or bzip2 may have compressed. A byte order mark of UTF-8 or UTF-16, CRLF line ends,
// quoted fields (RFC 4180; nothing may stand between the closing quote and the delimiter), spaces around other fields
// and empty lines are fine. Lines before the header that begin with # are left out; the last may be the header itself.
// A first column without a name is left out if it is an index, as pandas and R write it, different in all rows; other
// columns without a name are if they are empty, and so are rows of empty fields. Errors name the row (of data, counted
// from 0), the line (of the file, counted from 1) and the column; an error lists the faults of up to ten columns. A
// record may have 16 MiB.
//
// Every number must be finite and decimal: "1_10" and "0x1p3" are text. A column may hold percentages, whose numbers
// are read ("10%" is 10), or true and false, in any case, which are 1 and 0. A date is no feature. It is an error if
// two codes would be the same number, such as "01234" and "1234" or, since whole numbers beyond 2^53 are rounded,
// "9007199254740993" and "9007199254740992": list such a column in CSVOptions.Categorical or Ignore.
//
// To predict new rows by a model that was trained on a table, or a single row, set CSVOptions.Like to that table.
func ReadCSV(r io.Reader, opts CSVOptions) (*Dataset, error) {
	if opts.Name == "" {
		opts.Name = "csv"
	}
	d, err := readCSV(r, opts)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", opts.Name, err)
	}
	return d, nil
}

func readCSV(r io.Reader, opts CSVOptions) (*Dataset, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	buffered, err := decoded(r, opts.Encoding)
	if err != nil {
		return nil, err
	}
	separator, said := separatorLine(buffered)
	comments, comment := commentLines(buffered)
	switch {
	case opts.Delimiter != 0:
	case said:
		opts.Delimiter = separator
	default:
		opts.Delimiter = findDelimiter(buffered)
	}
	if err := opts.checkDelimiter(); err != nil {
		return nil, err
	}
	lines := newLineReader(buffered, opts.Delimiter)
	if lines.before = comments; said {
		lines.before++
	}
	first, err := lines.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: it needs a header line and rows of data")
	}
	if err != nil {
		return nil, err
	}
	first = slices.Clone(first)
	record, line, rowNames := first, lines.line, false
	var rest error
	if !opts.NoHeader {
		named, err := newLineReader(strings.NewReader(comment), opts.Delimiter).next()
		if err == nil && len(named) == len(first) && slices.ContainsFunc(first, isNumber) {
			first, comments = slices.Clone(named), comments-1
		} else {
			if record, rest = lines.next(); rest == nil {
				first, rowNames, rest = besideHeader(first, record, line)
			}
			line = lines.line
		}
	}
	if rest != nil && !errors.Is(rest, io.EOF) {
		return nil, rest
	}
	t, err := newTable(first, opts)
	if err != nil {
		return nil, err
	}
	if t.columns[0].rowNames = rowNames; comments > 0 {
		t.note("%s at the beginning, with #, left out", counted(comments, "line"))
	}
	for rest == nil {
		t.add(record, line)
		record, rest = lines.next()
		line = lines.line
	}
	if !errors.Is(rest, io.EOF) {
		return nil, rest
	}
	return t.dataset()
}

// besideHeader compares the header with the first row. Where that has a field more, the header is given a name for it,
// an empty one: in front for names of rows, as R writes them, or at the end if nothing stands there.
func besideHeader(header, row []string, line int) (names []string, rowNames bool, err error) {
	switch more := len(row) - len(header); {
	case more == 1 && row[len(row)-1] == "":
		return append(header, ""), false, nil
	case more == 1:
		return append([]string{""}, header...), true, nil
	case more > 1 && (len(header) == 1 || !slices.ContainsFunc(header, func(name string) bool { return !isNumber(name) })):
		return nil, false, fmt.Errorf("line %d, %.80q, is no header of the %d columns that follow: take it out of the file, "+
			"if it is a title or counts the rows (is the delimiter right?)", line, header, len(row))
	}
	return header, false, nil
}

func (o CSVOptions) checkDelimiter() error {
	if strings.ContainsRune("\"\r\n\uFFFD\x00", o.Delimiter) || !utf8.ValidRune(o.Delimiter) || o.Delimiter == o.Decimal {
		return fmt.Errorf("the delimiter %q cannot separate fields: take ',', ';' or '\\t'", o.Delimiter)
	}
	return nil
}

func (o CSVOptions) withDefaults() (CSVOptions, error) {
	if o.Like != nil {
		if err := o.checkLike(); err != nil {
			return o, err
		}
		o.Task, o.Classes = o.Like.Task, o.Like.Classes
	}
	switch {
	case o.Like != nil: // its targets
	case len(o.Targets) > 0 && o.Target != "":
		return o, fmt.Errorf("both of Target, %q, and Targets, %q, are set: set one of them", o.Target, o.Targets)
	case o.Task == TaskByTarget && (len(o.Targets) > 1 || o.Exposure != "" || o.Event != ""): // numbers alone have these
		o.Task = Regression
	case len(o.Targets) > 1 && o.Task != Regression:
		return o, fmt.Errorf("the task is %v but there are %d targets %q: several are for a regression", o.Task,
			len(o.Targets), o.Targets)
	case len(o.Targets) == 0 && o.Target != "":
		o.Targets = []string{o.Target}
	}
	if o.Decimal != 0 && o.Decimal != '.' && o.Decimal != ',' {
		return o, fmt.Errorf("the decimal mark is %q: take '.' or ','", o.Decimal)
	}
	if o.MissingTokens == nil {
		o.MissingTokens = []string{"", "NA", "?", "nan"}
	}
	switch o.Task {
	case Regression:
		if len(o.Classes) > 0 {
			return o, errors.New("there are Classes but the task is regression: set Task to BinaryClassification or " +
				"Classification")
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
			return o, fmt.Errorf("the class %q is listed twice in Classes, %q: list each once", c, o.Classes)
		}
		seen[c] = true
	}
	return o, nil
}
