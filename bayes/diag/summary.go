package diag

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Row has the diagnostics of one parameter.
type Row struct {
	Name, Group      string
	Mean, SD         float64
	MCSEMean, MCSESD float64 // Monte Carlo standard errors of the two
	BulkESS, TailESS float64
	RHat             float64
	KHat             float64 // of the heavier tail
}

// Group summarises the parameters of a group, such as a layer.
type Group struct {
	Name             string
	Parameters       int
	RHat, KHat       Spread
	BulkESS, TailESS Spread
}

// Spread summarises a diagnostic over the parameters of a group.
type Spread struct {
	Worst  float64 // the largest R-hat or k-hat, the smallest ESS; NaN if all are
	Median float64 // of those that are not NaN
	At     int     // the parameter that has the worst, an index of Summary.Rows; -1 if all are NaN
}

// Summary is the result of [Chains.Summary].
type Summary struct {
	Chains, Draws int
	Rows          []Row   // [Parameters]
	Groups        []Group // in the order in which they appear
}

// Summary diagnoses all parameters, on all processors. It takes longer for chains that mix more slowly.
func (c *Chains) Summary() Summary {
	s := Summary{Chains: c.sample.Chains, Draws: c.sample.Draws, Rows: make([]Row, c.sample.Parameters)}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.Rows)) {
		workers.Go(func() {
			w := newWorkspace(c)
			for i := int(next.Add(1)) - 1; i < len(s.Rows); i = int(next.Add(1)) - 1 {
				s.Rows[i] = w.row(i)
			}
		})
	}
	workers.Wait()
	s.group()
	return s
}

func (w *workspace) row(parameter int) Row {
	w.load(parameter)
	r := Row{Name: w.chains.Name(parameter), Group: w.chains.group(parameter)}
	mean, variance := meanVariance(w.draws)
	r.Mean, r.SD = mean, math.Sqrt(variance)
	r.MCSEMean, r.MCSESD = w.meanError(), w.sdError()
	r.BulkESS, r.TailESS = w.ess(Bulk), w.ess(Tail)
	r.RHat = larger(w.rhat())
	r.KHat = largerKHat(w.kHat(r.TailESS))
	return r
}

// group fills in Groups.
func (s *Summary) group() {
	members := map[string][]int{}
	var names []string
	for i, r := range s.Rows {
		if members[r.Group] == nil {
			names = append(names, r.Group)
		}
		members[r.Group] = append(members[r.Group], i)
	}
	for _, name := range names {
		own := members[name]
		g := Group{Name: name, Parameters: len(own)}
		g.RHat = s.spread(own, 1, func(r Row) float64 { return r.RHat })
		g.KHat = s.spread(own, 1, func(r Row) float64 { return r.KHat })
		g.BulkESS = s.spread(own, -1, func(r Row) float64 { return r.BulkESS })
		g.TailESS = s.spread(own, -1, func(r Row) float64 { return r.TailESS })
		s.Groups = append(s.Groups, g)
	}
}

// spread of a diagnostic over rows; bad is 1 if large values are bad, -1 if small ones are.
func (s *Summary) spread(rows []int, bad float64, of func(Row) float64) Spread {
	rows = slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return math.IsNaN(of(s.Rows[i])) })
	if len(rows) == 0 {
		return Spread{Worst: math.NaN(), Median: math.NaN(), At: -1}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(bad*of(s.Rows[b]), bad*of(s.Rows[a])) })
	value := func(i int) float64 { return of(s.Rows[rows[i]]) }
	return Spread{Worst: value(0), Median: value((len(rows)-1)/2)/2 + value(len(rows)/2)/2, At: rows[0]}
}
