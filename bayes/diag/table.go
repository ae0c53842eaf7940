package diag

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"gobnn/bayes/dataset"
)

// maxRows is the most parameters that String prints.
const maxRows = 30

// table is a table as text: the head, then rows of as many cells.
type table [][]string

// String aligns the columns.
func (t table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder does not fail
	return b.String()
}

// parameterTable has a line for each of the rows.
func parameterTable(rows []Row) table {
	t := table{{"parameter", "mean", "sd", "MCSE mean", "bulk ESS", "tail ESS", "R-hat", "k-hat"}}
	for _, r := range rows {
		t = append(t, []string{
			r.Name, fmt.Sprintf("%.*g", dataset.Digits(r.Mean, r.SD, 4), r.Mean), fmt.Sprintf("%.3g", r.SD),
			fmt.Sprintf("%.2g", r.mcseMean), fmt.Sprintf("%.0f", r.BulkESS),
			fmt.Sprintf("%.0f", r.TailESS), fmt.Sprintf("%.3f", r.RHat),
			fmt.Sprintf("%.2f", r.KHat),
		})
	}
	return t
}

// problems has a line for each diagnostic that is beyond MaxRHat, MinESS or maxKHat, or cannot be computed, with the
// number of parameters and the worst. It is empty if there are none.
func (s Summary) problems() []string {
	var problems []string
	// report adds a line about the rows whose diagnostic, times sign, exceeds the limit; sign is -1 for one that should be
	// large.
	report := func(what, verb string, sign, limit float64, of func(Row) float64) {
		found, worst := 0, 0
		for i, r := range s.Rows {
			if sign*of(r) > sign*limit {
				if found++; found == 1 || sign*of(r) > sign*of(s.Rows[worst]) {
					worst = i
				}
			}
		}
		if found > 0 {
			problems = append(problems, fmt.Sprintf("%s for %d of %d parameters, worst "+verb+" for %s", what, found,
				len(s.Rows), of(s.Rows[worst]), s.Rows[worst].Name))
		}
	}
	report(fmt.Sprintf("R-hat is above %v", MaxRHat), "%.3f", 1, MaxRHat, func(r Row) float64 { return r.RHat })
	report(fmt.Sprintf("bulk ESS is below %d", MinESS), "%.0f", -1, MinESS, func(r Row) float64 { return r.BulkESS })
	report(fmt.Sprintf("tail ESS is below %d", MinESS), "%.0f", -1, MinESS, func(r Row) float64 { return r.TailESS })
	report(fmt.Sprintf("k-hat is above %v", maxKHat), "%.2f", 1, maxKHat, func(r Row) float64 { return r.KHat })
	undefined, first := 0, ""
	for _, r := range s.Rows {
		if math.IsNaN(r.RHat) {
			if undefined++; undefined == 1 {
				first = r.Name
			}
		}
	}
	if undefined > 0 {
		problems = append(problems,
			fmt.Sprintf("R-hat is undefined for %d of %d parameters, the first %s: all draws are equal",
				undefined, len(s.Rows), first))
	}
	if s.Chains == 1 {
		problems = append(problems, "there is 1 chain: R-hat compares its halves only")
	}
	return problems
}

// String has the parameters, of more than 30 those with the largest R-hat, and the problems.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d chains, %d draws each, %d parameters\n", s.Chains, s.Draws, len(s.Rows))
	rows := s.Rows
	if len(rows) > maxRows {
		fmt.Fprintf(&b, "the %d with the largest R-hat\n", maxRows)
		rows = slices.SortedStableFunc(slices.Values(rows), func(x, y Row) int { return cmp.Compare(y.RHat, x.RHat) })
		rows = rows[:maxRows]
	}
	b.WriteString(parameterTable(rows).String())
	problems := s.problems()
	for _, p := range problems {
		fmt.Fprintln(&b, p)
	}
	if len(problems) == 0 {
		fmt.Fprintf(&b, "R-hat, ESS and k-hat are within their thresholds\n")
	}
	return b.String()
}
