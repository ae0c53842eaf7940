package diag

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Row has the diagnostics of one parameter.
type Row struct {
	Name             string
	Mean, SD         float64
	BulkESS, TailESS float64
	RHat             float64
	KHat             float64 // of the heavier tail

	mcseMean float64 // Monte Carlo standard error of the mean
}

// Summary is the result of [Chains.Summary].
type Summary struct {
	Chains, Draws int
	Rows          []Row // [Parameters]
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
	return s
}

func (w *workspace) row(parameter int) Row {
	w.load(parameter)
	r := Row{Name: w.chains.Name(parameter)}
	mean, variance := meanVariance(w.draws)
	r.Mean, r.SD = mean, math.Sqrt(variance)
	r.mcseMean = w.meanError()
	r.BulkESS, r.TailESS = w.bulkESS(), w.tailESS()
	r.RHat = larger(w.rhat())
	r.KHat = largerKHat(w.kHat(r.TailESS))
	return r
}
