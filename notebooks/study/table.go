package study

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// columns of a printed table; the first three are text.
var columns = []string{"data", "method", "metric", "ours", "± SE", "reps", "paper", "± SE", "seconds"}

const textColumns = 3

// rows are the cells as text, in columns' order. What is the same as in the row above is left out of the first two.
func rows(cells []Cell) [][]string {
	out := make([][]string, len(cells))
	for i, c := range cells {
		data, method, seconds := c.Data, c.Method, fmt.Sprintf("%.1f", c.Seconds)
		if i > 0 && cells[i-1].Data == c.Data && cells[i-1].Method == c.Method {
			data, method, seconds = "", "", ""
		}
		out[i] = []string{data, method, c.Metric, number(&c.Ours), number(&c.SE), fmt.Sprint(c.Reps), number(c.Paper), number(c.PaperSE), seconds}
	}
	return out
}

// number is a score for people: four decimals, or three digits and a power of ten where those would say little.
func number(x *float64) string {
	switch {
	case x == nil || math.IsNaN(*x):
		return "-"
	case *x != 0 && math.Abs(*x) < 1e-4:
		return fmt.Sprintf("%.2e", *x)
	default:
		return fmt.Sprintf("%.4f", *x)
	}
}

// Text is the cells as a table for a terminal.
func Text(cells []Cell) string {
	table := append([][]string{columns}, rows(cells)...)
	widths := make([]int, len(columns))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range table {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < textColumns {
				line.WriteString(cell + pad + "  ")
			} else {
				line.WriteString(pad + cell + "  ")
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.String()
}

// Markdown is the cells as a table for a notebook.
func Markdown(cells []Cell) string {
	var out strings.Builder
	write := func(row []string) { out.WriteString("| " + strings.Join(row, " | ") + " |\n") }
	write(columns)
	rule := make([]string, len(columns))
	for i := range rule {
		rule[i] = "---"
		if i >= textColumns {
			rule[i] = "---:"
		}
	}
	write(rule)
	for _, row := range rows(cells) {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		write(row)
	}
	return out.String()
}
