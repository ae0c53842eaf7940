package diag

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	"gobnn/bayes/dataset"
)

// Row has the diagnostics of one parameter.
type Row struct {
	Name             string
	Mean, SD         float64
	BulkESS, TailESS float64
	RHat             float64

	mcseMean float64 // Monte Carlo standard error of the mean: the standard deviation over sqrt(ESS)
}

// Summary has the diagnostics of the parameters of several chains.
//
// A parameter whose draws are all equal, or differ by less than 1e-15, has no autocorrelation. As in ArviZ its ESS is
// the number of draws (one fewer per chain if that is odd), and its R-hat is NaN. (The bulk ESS and R-hat look at
// ranks, and are NaN or the number of draws only if all draws are equal.) If each chain is constant, but at different
// values, R-hat is +Inf.
type Summary struct {
	Chains, Draws int
	Rows          []Row // [Parameters]
}

// OfSample diagnoses all parameters of a sample, on all processors. It takes longer for chains that mix more slowly.
//
// There must be at least 1 chain, 4 draws and 1 parameter, and Chains x Draws x Parameters values. If any is not finite
// the error names the parameter, the chain and the draw of the first.
func OfSample(s Sample) (Summary, error) {
	c, err := chainsIn(s)
	if err != nil {
		return Summary{}, err
	}
	return c.summary()
}

func (c *chains) summary() (Summary, error) {
	s := Summary{Chains: c.sample.Chains, Draws: c.sample.Draws, Rows: make([]Row, c.sample.Parameters)}
	failed := make([]error, len(s.Rows))
	each(len(s.Rows), func() func(int) {
		w := newWorkspace(c)
		return func(i int) {
			if failed[i] = w.load(i); failed[i] == nil {
				s.Rows[i] = w.row(c.name(i))
			}
		}
	})
	for _, err := range failed {
		if err != nil {
			return Summary{}, err
		}
	}
	return s, nil
}

func (w *workspace) row(name string) Row {
	mean, variance := meanVariance(w.draws)
	larger, _, _ := w.rhat()
	return Row{
		Name: name, Mean: mean, SD: math.Sqrt(variance), BulkESS: w.bulkESS(), TailESS: w.tailESS(), RHat: larger,
		mcseMean: math.Sqrt(variance / w.meanESS()),
	}
}

// each calls functions that worker makes, one for each processor, with 0 to n-1.
func each(n int, worker func() func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		all.Go(func() {
			do := worker()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// maxRows is the most parameters that String prints.
const maxRows = 30

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
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "parameter\tmean\tsd\tMCSE mean\tbulk ESS\ttail ESS\tR-hat")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.*g\t%.3g\t%.2g\t%.0f\t%.0f\t%.3f\n", r.Name, dataset.Digits(r.Mean, r.SD, 4), r.Mean, r.SD,
			r.mcseMean, r.BulkESS, r.TailESS, r.RHat)
	}
	_ = w.Flush() // a strings.Builder does not fail
	problems := s.problems()
	for _, p := range problems {
		fmt.Fprintln(&b, p)
	}
	if len(problems) == 0 {
		fmt.Fprintln(&b, "R-hat and ESS are within their thresholds")
	}
	return b.String()
}

// problems has a line for each diagnostic that is beyond mostRHat or leastESS, or cannot be computed, with the number
// of parameters and the worst. It is empty if there are none.
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
	report(fmt.Sprintf("R-hat is above %v", mostRHat), "%.3f", 1, mostRHat, func(r Row) float64 { return r.RHat })
	report(fmt.Sprintf("bulk ESS is below %d", leastESS), "%.0f", -1, leastESS, func(r Row) float64 { return r.BulkESS })
	report(fmt.Sprintf("tail ESS is below %d", leastESS), "%.0f", -1, leastESS, func(r Row) float64 { return r.TailESS })
	if still := s.still(); len(still) > 0 {
		problems = append(problems, fmt.Sprintf("R-hat is undefined for %d of %d parameters, the first %s: all draws are "+
			"equal", len(still), len(s.Rows), still[0]))
	}
	if s.Chains == 1 {
		problems = append(problems, "there is 1 chain: R-hat compares its halves only")
	}
	return problems
}

// still are the names of the parameters that never change: all draws are equal.
func (s Summary) still() (names []string) {
	for _, r := range s.Rows {
		if math.IsNaN(r.RHat) {
			names = append(names, r.Name)
		}
	}
	return names
}
