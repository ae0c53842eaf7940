package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Column is a column of a table in memory, as other formats than CSV have it: of numbers, of texts, or of times.
type Column struct {
	Name string
	// Numbers are those of each row, NaN where one is missing; of times they are seconds since 1970. nil: it is of
	// texts.
	Numbers []float64
	Times   bool
	// Read, if set, gives the numbers in place of Numbers when they are needed, in the slice if that has room, so that not
	// all columns are in memory beside the table; Rows is then their number.
	Read func(into []float64) ([]float64, error)
	Rows int
	// Whole says that the numbers are whole, so that beyond 2^53 they may have been rounded.
	Whole bool
	// Codes are, of texts, each row's index into Levels; -1: missing.
	Codes  []int32
	Levels []string
}

// rows is the number of rows.
func (c Column) rows() int {
	switch {
	case c.Read != nil:
		return c.Rows
	case c.Numbers != nil:
		return len(c.Numbers)
	}
	return len(c.Codes)
}

// text is a row's value as text, and whether it is there.
func (c Column) text(row int) (text string, present bool) {
	if c.Numbers == nil {
		if c.Codes[row] < 0 {
			return "", false
		}
		return c.Levels[c.Codes[row]], true
	}
	v := c.Numbers[row]
	switch {
	case math.IsNaN(v):
		return "", false
	case c.Times:
		whole, part := math.Modf(v)
		return time.Unix(int64(whole), int64(part*1e9)).UTC().Format(time.RFC3339Nano), true
	}
	return plainText(v), true
}

// FromColumns makes a Dataset of columns as [ReadCSV] does of a file's, with the options that do not say how numbers
// and texts are written: package parquet reads files by it. Rows are counted from 0. The columns may be changed.
func FromColumns(columns []Column, opts CSVOptions) (*Dataset, error) {
	if opts.Name == "" {
		opts.Name = "table"
	}
	d, err := fromColumns(columns, opts)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", opts.Name, err)
	}
	return d, nil
}

func fromColumns(columns []Column, opts CSVOptions) (*Dataset, error) {
	for _, o := range []struct {
		name string
		set  bool
	}{{"Delimiter", opts.Delimiter != 0}, {"Decimal", opts.Decimal != 0}, {"NoHeader", opts.NoHeader},
		{"MissingTokens", opts.MissingTokens != nil}, {"Encoding", opts.Encoding != nil},
	} {
		if o.set {
			return nil, fmt.Errorf("%s is set, which is for CSV files: the columns have their types; leave it empty", o.name)
		}
	}
	if len(columns) == 0 || columns[0].rows() == 0 {
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
		names[i] = c.Name
		if c.rows() != columns[0].rows() {
			return nil, fmt.Errorf("column %q has %d rows, and %q %d", c.Name, c.rows(), columns[0].Name, columns[0].rows())
		}
		if strings.TrimSpace(c.Name) == "" {
			return nil, fmt.Errorf("column %d has no name: name it", i)
		}
	}
	t, err := newTable(names, opts)
	if err != nil {
		return nil, err
	}
	t.row = columns[0].rows()
	drop := make([]bool, t.row)
	for i, c := range t.columns {
		if err := t.fill(c, columns[i], drop); err != nil {
			return nil, err
		}
	}
	for _, u := range t.unknown {
		if !drop[u.row] {
			t.wrong(u.column, u.row, u.err)
		}
	}
	for row, left := range drop {
		if !left {
			t.kept = append(t.kept, row)
		}
	}
	if len(t.kept) < t.row {
		for _, c := range t.columns {
			c.values, c.texts = chosen(c.values, t.kept), chosen(c.texts, t.kept)
		}
	}
	return t.dataset()
}

// fill reads a column's values. Rows that are to be left out are marked.
func (t *table) fill(c *column, from Column, drop []bool) error {
	if c.role == ignored || c.role == unnamed {
		return nil
	}
	if from.Levels != nil {
		from.Levels = slices.Clone(from.Levels)
		for i, level := range from.Levels {
			from.Levels[i] = strings.TrimSpace(level) // as in CSV files
		}
		padded := slices.IndexFunc(from.Levels, isPadded)
		switch {
		case padded < 0 || c.role != number || t.opts.Like != nil:
		case c.open:
			t.settle(c, false)
		default:
			return fmt.Errorf("column %q has texts such as %q, which are codes: list it in Categorical or Ignore", c.name,
				from.Levels[padded])
		}
	}
	if from.Numbers != nil || from.Read != nil {
		if err := c.write(plainNumber, "a column of numbers"); err != nil && c.role == number {
			return fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	at := func(row int, err error) error { return fmt.Errorf("row %d, column %q: %w", row, c.name, err) }
	if from.Read != nil {
		read := func(into []float64) ([]float64, error) {
			numbers, err := from.Read(into)
			if err == nil && len(numbers) != t.row {
				err = fmt.Errorf("it has %d values, and the table %d rows", len(numbers), t.row)
			}
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", c.name, err)
			}
			return numbers, nil
		}
		// A missing number may drop its row from all columns: then they are read at once.
		if c.isFeature() && c.role == number && !from.Times && t.opts.Missing != MissingDropRow {
			c.notation, c.open = plainNumber, false
			c.read = func(into []float64) ([]float64, error) {
				numbers, err := read(into)
				for row, v := range numbers {
					if err := t.number(c, v, from.Whole); err != nil {
						return nil, at(row, err)
					}
				}
				return numbers, err
			}
			return nil
		}
		var err error
		if from.Numbers, err = read(nil); err != nil {
			return err
		}
	}
	if c.role == aside {
		c.texts = make([]string, t.row)
		for row := range c.texts {
			text, present := from.text(row)
			if from.Times && present { // its fraction of a second counts
				text = strconv.FormatFloat(from.Numbers[row], 'g', -1, 64)
			}
			if !present {
				return at(row, errors.New("the value is missing, and every row needs one: fill it in, or leave the row out"))
			}
			c.texts[row] = text
		}
		return nil
	}
	if from.Times {
		text, _ := from.text(0)
		return fmt.Errorf("column %q: %w", c.name, errDate(cmp.Or(text, "a time")))
	}
	if from.Numbers != nil && c.role == number {
		c.open = false
		for row, v := range from.Numbers {
			t.wrong(c, row, t.number(c, v, from.Whole))
			drop[row] = drop[row] || math.IsNaN(v) && t.opts.Missing == MissingDropRow
		}
		c.values, c.notation = from.Numbers, plainNumber
		return nil
	}
	c.values = make([]float64, 0, t.row)
	for row := range t.row {
		text, present := from.text(row)
		cell := t.cell
		if !present {
			cell = t.absent
		}
		t.at = row
		v, err := cell(c, text)
		drop[row] = t.put(c, v, err) || drop[row]
	}
	return nil
}

// number is an error if a number may not stand in the column.
func (t *table) number(c *column, v float64, isWhole bool) error {
	switch {
	case math.IsNaN(v):
		_, err := t.absent(c, "")
		return err
	case isWhole && math.Abs(v) >= exact:
		return fmt.Errorf("the whole number %.0f is beyond 2^53, and may have been rounded: if it is a code, list the "+
			"column in Ignore", v)
	}
	if err := checkNumber(v); err != nil {
		return fmt.Errorf("the value %w", err)
	}
	return nil
}
