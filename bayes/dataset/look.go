package dataset

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gonum.org/v1/gonum/stat"
)

// What String and Markdown show at most.
const (
	lookRows    = 5   // rows
	lookWidth   = 100 // characters of a row
	lookTargets = 3   // targets
	lookClasses = 8   // names of classes
	lookName    = 24  // characters of a name of a column or class

	lookSpread = 1000 // rows, at most, whose standard deviation says how many digits a column needs
)

// String is a first look at the data: the name, the numbers of rows and features, the task and, in lines of at most 100
// characters, the first five rows, each with its number in the whole table. What does not fit is counted.
func (d *Dataset) String() string {
	head, lines, more := d.look()
	text := head + "\n"
	for _, cells := range lines {
		text += strings.Join(cells, "  ") + "\n"
	}
	return text + more + d.notes("note: ", func(text string) string { return text })
}

// notes are the Notes, a line each.
func (d *Dataset) notes(before string, shown func(string) string) (lines string) {
	for _, note := range d.Notes {
		lines += before + shown(plain(note, 10*lookWidth)) + "\n"
	}
	return lines
}

// Markdown is the same as String for a notebook, with the rows as a table.
func (d *Dataset) Markdown() string {
	head, lines, more := d.look()
	text := escape(head) + "\n\n"
	for i, cells := range lines {
		for _, cell := range cells {
			text += "| " + escape(strings.TrimLeft(cell, " ")) + " "
		}
		text += "|\n"
		if i == 0 {
			text += strings.Repeat("|---:", len(cells)) + "|\n"
		}
	}
	return text + "\n" + more + d.notes("\n", escape)
}

// marks are what Markdown would otherwise read as such, as the end of a table's cell.
var marks = regexp.MustCompile("[`*_<>$|~#&\\\\\\[\\]]")

// escape lets Markdown show marks.
func escape(text string) string { return marks.ReplaceAllString(text, `\$0`) }

// heading describes the table in a line; that says what is wrong if the data are not valid.
func (d *Dataset) heading() (text string, valid bool) {
	text = plain(d.Name, lookWidth)
	if d.Title != "" && d.Title != d.Name {
		text += " (" + plain(d.Title, lookWidth) + ")"
	}
	if err := d.validateShapes(); err != nil {
		return fmt.Sprintf("%s: %s", text, plain(err.Error(), 10*lookWidth)), false
	}
	text += fmt.Sprintf(": %s, %s, %v of %s", counted(d.Rows(), "row"), counted(d.Dims(), "feature"), d.Task,
		listed(d.TargetNames(), lookTargets))
	if len(d.Y) == 0 {
		text += ", which is not known"
	}
	if d.Exposure != nil {
		text += ", with exposures"
	}
	if d.Weights != nil {
		text += ", weighted"
	}
	if d.Censored != nil {
		text += fmt.Sprintf(", seen in %s", counted(d.Seen(), "row"))
	}
	if d.Task != Regression {
		text += fmt.Sprintf(", %d classes: %s", len(d.Classes), listed(d.Classes, lookClasses))
	}
	return text, true
}

// look makes the content of String and Markdown: a first line, the lines of a table, whose cells stand below each
// other, and a last line about what is left out. If the data are not valid there is no table.
func (d *Dataset) look() (head string, lines [][]string, more string) {
	head, valid := d.heading()
	if !valid {
		return head, nil, ""
	}
	// The columns: the rows' numbers, the features that fit, and the targets.
	rows := min(d.Rows(), lookRows)
	column := func(name string, cell func(row int) string) []string {
		out := []string{plain(name, lookName)}
		for row := range rows {
			out = append(out, cell(row))
		}
		width := 0
		for _, cell := range out {
			width = max(width, utf8.RuneCountInString(cell))
		}
		for i, cell := range out {
			out[i] = fmt.Sprintf("%*s", width, cell)
		}
		return out
	}
	first := column("row", func(row int) string { return strconv.Itoa(d.OriginalRow(row)) })
	var last [][]string
	targets := d.TargetNames()
	for k := range min(len(targets), lookTargets) {
		if len(d.Y) == 0 {
			break
		}
		text := d.texts(func(row int) float64 { return d.Y[row*len(targets)+k] })
		if d.Task != Regression {
			text = d.classText
		}
		last = append(last, column(targets[k], text))
	}
	columns := [][]string{first}
	width := utf8.RuneCountInString(first[0])
	for _, c := range last {
		width += 2 + utf8.RuneCountInString(c[0])
	}
	features := 0
	for ; features < d.Dims(); features++ {
		c := column(d.Features[features], d.texts(func(row int) float64 { return d.X.At(row, features) }))
		if width += 2 + utf8.RuneCountInString(c[0]); width > lookWidth && features > 0 {
			break
		}
		columns = append(columns, c)
	}
	columns = append(columns, last...)
	lines = make([][]string, 1+rows)
	for i := range lines {
		for _, c := range columns {
			lines[i] = append(lines[i], c[i])
		}
	}
	var left []string
	if n := d.Rows() - rows; n > 0 {
		left = append(left, counted(n, "row"))
	}
	if n := d.Dims() - features; n > 0 {
		left = append(left, counted(n, "feature"))
	}
	if len(left) > 0 {
		more = "not shown: " + strings.Join(left, ", ") + "\n"
	}
	return head, lines, more
}

// classText is the name of a row's class, or its number where there is no such class.
func (d *Dataset) classText(row int) string {
	v := d.Y[row]
	if v == math.Trunc(v) && v >= 0 && v < float64(len(d.Classes)) {
		return plain(d.Classes[int(v)], lookName)
	}
	return numberText(v, 0)
}

// texts returns the text of each row's number in a column, with as many digits as the column's spread asks for.
func (d *Dataset) texts(number func(row int) float64) func(row int) string {
	values := make([]float64, min(d.Rows(), lookSpread))
	for row := range values {
		values[row] = number(row)
	}
	stdDev := stat.PopStdDev(values, nil)
	return func(row int) string { return numberText(number(row), stdDev) }
}

// numberText is a number with four digits, with more where the standard deviation asks for them and, below a billion,
// with all that stand before the point.
func numberText(v, stdDev float64) string {
	digits, size := Digits(v, stdDev, 4), math.Abs(v)
	if size < 1e9 && v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	if decimals := digits - 1 - int(math.Log10(size)); size >= 1e3 && (size < 1e9 || decimals >= 0) {
		return strconv.FormatFloat(v, 'f', max(0, decimals), 64)
	}
	return strconv.FormatFloat(v, 'g', digits, 64)
}

// Digits is the number of significant digits that show v to a hundredth of a standard deviation, at least `least` and
// at most the 15 that a float64 surely keeps: 14 for 1700000000.0123 where it is .02. It is `least` where the standard
// deviation is 0, infinite or NaN.
func Digits(v, stdDev float64, least int) int {
	digits := math.Floor(math.Log10(math.Abs(v))) - math.Floor(math.Log10(math.Abs(stdDev))) + 3
	if stdDev == 0 || !(digits > float64(least)) {
		return least
	}
	return int(min(digits, 15))
}

// plain cuts a text to at most `most` characters, and replaces line ends and control characters by spaces.
func plain(text string, most int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, text))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// listed joins the first names with commas, and adds "…" if there are more.
func listed(names []string, most int) string {
	var some []string
	for _, name := range names[:min(len(names), most)] {
		some = append(some, plain(name, lookName))
	}
	if len(names) > most {
		some = append(some, "…")
	}
	return strings.Join(some, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
