package diag

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// maxRows is the most parameters that String prints one by one.
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

// parameterTable has a row for each parameter.
func (s Summary) parameterTable() table {
	t := table{{"parameter", "mean", "sd", "MCSE mean", "bulk ESS", "tail ESS", "R-hat", "k-hat"}}
	for _, r := range s.Rows {
		t = append(t, []string{
			r.Name, fmt.Sprintf("%.4g", r.Mean), fmt.Sprintf("%.3g", r.SD), fmt.Sprintf("%.2g", r.MCSEMean),
			fmt.Sprintf("%.0f", r.BulkESS), fmt.Sprintf("%.0f", r.TailESS), fmt.Sprintf("%.3f", r.RHat),
			fmt.Sprintf("%.2f", r.KHat),
		})
	}
	return t
}

// groupTable has a row for each group: the worst of each diagnostic, its median in brackets, and which parameter has
// the largest R-hat.
func (s Summary) groupTable() table {
	t := table{{"group", "parameters", "R-hat", "bulk ESS", "tail ESS", "k-hat", "worst R-hat"}}
	for _, g := range s.Groups {
		worst := "-"
		if g.RHat.At >= 0 {
			worst = s.Rows[g.RHat.At].Name
		}
		t = append(t, []string{
			g.Name, fmt.Sprint(g.Parameters), g.RHat.format("%.3f"), g.BulkESS.format("%.0f"), g.TailESS.format("%.0f"),
			g.KHat.format("%.2f"), worst,
		})
	}
	return t
}

// format is the worst and, in brackets, the median.
func (s Spread) format(verb string) string {
	return fmt.Sprintf(verb+" ("+verb+")", s.Worst, s.Median)
}

// Problems has a line for each diagnostic that is beyond MaxRHat, MinESS or maxKHat, or cannot be computed, with the
// number of parameters and the worst. It is empty if there are none.
func (s Summary) Problems() []string {
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

// String has the parameters if there are at most 30, the groups if there are several or many parameters, and the
// problems.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d chains, %d draws each, %d parameters\n", s.Chains, s.Draws, len(s.Rows))
	if len(s.Rows) <= maxRows {
		b.WriteString(s.parameterTable().String())
	}
	if len(s.Groups) > 1 || len(s.Rows) > maxRows {
		b.WriteString("worst (median) of each group\n")
		b.WriteString(s.groupTable().String())
	}
	problems := s.Problems()
	for _, p := range problems {
		fmt.Fprintln(&b, p)
	}
	if len(problems) == 0 {
		fmt.Fprintf(&b, "R-hat, ESS and k-hat are within their thresholds\n")
	}
	return b.String()
}
