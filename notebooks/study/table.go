package study

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// losses are the metrics that are infinite of a method that diverged on a data set, which then has no others.
var losses = []string{"NLPD", "test loss", "RMSE", "MSE"}

// missing is the text of a cell whose number is not finite: of a loss "diverged", and "-" of any other score, which is
// then not known, such as k-hat of weights without a tail, or the standard error of no estimate. Records keep neither
// NaN nor infinity, so which of these a number was makes no difference.
func (c Cell) missing() string {
	switch {
	case c.Reps == 0:
		return "not measured"
	case slices.Contains(losses, c.Metric):
		return "diverged"
	}
	return "-"
}

// number is a score as text: four decimals, or three digits and a power of ten for very small ones, and "-" where it is
// not known, or not finite.
func number(x *float64) string {
	switch {
	case finite(x) == nil:
		return "-"
	case *x != 0 && math.Abs(*x) < 1e-4:
		return fmt.Sprintf("%.2e", *x)
	default:
		return fmt.Sprintf("%.4f", *x)
	}
}

// Text is the cells as a table for a terminal. Data set and method are blank where they repeat the row above.
func Text(cells []Cell) string {
	if len(cells) == 0 {
		return "" // as of a figure that is drawn without numbers
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	line := func(texts ...any) { fmt.Fprintf(table, "%s\t%s\t%s\t%10s\t%8s\t%4s\t%8s\t%8s\t%8s\n", texts...) }
	line("data", "method", "metric", "ours", "± SE", "reps", "paper", "± SE", "seconds")
	for i, c := range cells {
		data, method := c.Data, c.Method
		if i > 0 && cells[i-1].Data == c.Data && cells[i-1].Method == c.Method {
			data, method = "", ""
		}
		ours := number(&c.Ours)
		if finite(&c.Ours) == nil {
			ours = c.missing()
		}
		line(data, method, c.Metric, ours, number(&c.SE), fmt.Sprint(c.Reps), number(c.Paper), number(c.PaperSE),
			fmt.Sprintf("%.1f", c.Seconds))
	}
	failOn(table.Flush())
	return out.String()
}

// letters has the Greek letters for names of parameters and losses in figures and tables.
var letters = map[string]string{"phi": "φ", "psi": "ψ", "Phi": "Φ", "theta": "θ", "sigma": "σ", "eta": "η"}

var names = regexp.MustCompile(`[A-Za-z_0-9]+`)

// label is a data set's name for figures and tables, such as "red wine" for wine_red and "Boston" for boston. For other
// names it is the name with spaces in place of underscores.
func label(name string) string {
	if label, ok := labels[name]; ok {
		return label
	}
	return strings.ReplaceAll(name, "_", " ")
}

// labels are the names that are not written as words of a sentence are.
var labels = map[string]string{
	"wine_red": "red wine", "boston": "Boston", "california": "California", "australian": "Australian", "adult": "Adult",
	"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "svhn": "SVHN", "celeba": "CelebA",
}

// shown is a name for readers: labels of data sets, and Greek letters.
func shown(text string) string {
	return names.ReplaceAllStringFunc(text, func(word string) string {
		if letter, ok := letters[word]; ok {
			return letter
		}
		return label(word)
	})
}

// mostColumns is the number of methods that fit side by side into a notebook's width.
const mostColumns = 10

// Matrix makes a table for a notebook of one metric of the cells. It has a row for each data set and a column for each
// method, in the order in which they come, or the other way round where that would be too wide. A cell has our value ±
// its standard error, and the paper's with its own in brackets where it has one. A loss that is not finite is
// "diverged", another such score "-"; without repetitions it is "not measured". Data sets without the metric are left
// out.
func Matrix(cells []Cell, metric string) string {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return c.Metric != metric })
	methods := distinct(cells, func(c Cell) string { return c.Method })
	at := map[[2]string]string{}
	for _, c := range cells {
		text := c.text()
		if c.Paper != nil {
			text += " (" + c.reported() + ")"
		}
		at[[2]string{c.Data, c.Method}] = text
	}
	rows, columns := distinct(cells, func(c Cell) string { return c.Data }), methods
	place := func(row, column string) string { return at[[2]string{row, column}] }
	if len(methods) > max(mostColumns, len(rows)) {
		rows, columns = methods, rows
		place = func(row, column string) string { return at[[2]string{column, row}] }
	}
	var table [][]string
	for _, r := range rows {
		line := []string{shown(r)}
		for _, c := range columns {
			line = append(line, place(r, c))
		}
		table = append(table, line)
	}
	heads := []string{shown(metric)}
	for _, c := range columns {
		heads = append(heads, shown(c))
	}
	var out strings.Builder
	markdown(&out, heads, table)
	return out.String()
}

// text is our number, ± its standard error.
func (c Cell) text() string {
	if finite(&c.Ours) == nil {
		return c.missing()
	}
	format := c.decimals()
	text := fmt.Sprintf(format, c.Ours)
	if finite(&c.SE) != nil {
		text += " ± " + fmt.Sprintf(format, c.SE)
	}
	return text
}

// reported is the paper's number, with two digits of its standard error; empty: none.
func (c Cell) reported() string {
	if c.Paper == nil {
		return ""
	}
	text := printed(*c.Paper)
	if c.PaperSE != nil && *c.PaperSE > 0 {
		digits := max(0, 1-int(math.Floor(math.Log10(*c.PaperSE))))
		text += " ± " + strconv.FormatFloat(*c.PaperSE, 'f', digits, 64)
	}
	return text
}

// printed is a paper's number as papers print them: two decimals, or more if it has more; none if it is large and
// whole.
func printed(x float64) string {
	text := strconv.FormatFloat(math.Round(x*1e10)/1e10, 'f', -1, 64) // 91.3 / 100 is .9129999999999999
	_, fraction, _ := strings.Cut(text, ".")
	if len(fraction) < 2 && (fraction != "" || math.Abs(x) < 10) {
		return fmt.Sprintf("%.2f", x)
	}
	return text
}

// decimals is the format of a number in a Matrix: three decimals, digits and a power of ten for tiny numbers; for large
// ones as few as leave two digits of a standard error below 1, and as many as the paper prints.
func (c Cell) decimals() string {
	size := math.Abs(c.Ours)
	if size < 10 {
		if size != 0 && size < 5e-3 {
			return "%.2g"
		}
		return "%.3f"
	}
	n := 0
	if size < 100 {
		n = 1
	}
	if c.SE > 0 && c.SE < 1 {
		n = max(n, 1+int(math.Ceil(-math.Log10(c.SE))))
	}
	if c.Paper != nil {
		_, fraction, _ := strings.Cut(printed(*c.Paper), ".")
		n = max(n, min(len(fraction), 3))
	}
	return fmt.Sprintf("%%.%df", n)
}

// distinct returns the names of items, each once, in the order in which they come.
func distinct[T any](items []T, name func(T) string) []string {
	var names []string
	for _, item := range items {
		if n := name(item); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// markdown writes a table. The first column is text, the others are numbers.
func markdown(out *strings.Builder, head []string, table [][]string) {
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
		if i > 0 {
			rule[i] = "---:"
		}
	}
	for _, row := range append([][]string{head, rule}, table...) {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		out.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
}
