package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/ohsmc"
	"gobnn/viz"

	"gonum.org/v1/gonum/stat"
)

// crescentReps are the repetitions of figure 1; the paper shows one.
const crescentReps = 8

// crescentRuns returns the paper's methods in the order of its figure, and three of ours.
func crescentRuns(o Options) ([]*trial, error) {
	type follow = func(ctx context.Context, parts dataset.Parts, settings crescentRun) (psi []float64, err error)
	sampler := func(algorithm fit.Method, batch, particles int) follow {
		return func(ctx context.Context, parts dataset.Parts, settings crescentRun) (psi []float64, err error) {
			settings.BatchSize, settings.Particles = batch, particles
			settings.Observe = psiInto(&psi)
			_, err = settings.fit(ctx, algorithm, parts)
			return psi, err
		}
	}
	var all []*trial
	for _, m := range []struct {
		name   string
		follow follow
	}{
		{"MC", bruteForce},
		{"OHSMC", sampler(crescentWalk(.001), 10, 1000)},
		{"VB", sampler(crescentVI, 10, 0)},
		{"SGSMC", sampler(crescentSMC, 10, 1000)},
		{"MAP", sampler(baseline.MAP{}, 10, 0)},
		{"SMC", sampler(ohsmc.SMC{Kernel: crescentSMC.Kernel, Moves: 1, Precondition: true}, 100, 200)},
		{"OHSMC (variance 0.01)", sampler(crescentWalk(.01), 10, 1000)},
	} {
		t := crescentTrial(o, crescentTraces, m.name, func(ctx context.Context, parts dataset.Parts, s crescentRun) (
			Result, error) {
			psi, err := m.follow(ctx, parts, s)
			if err != nil || len(psi) == 0 {
				return Result{}, err
			}
			for i, p := range psi {
				psi[i] = math.Abs(p)
			}
			_, maximum := bestPsi(parts.Train.Y)
			last := psi[len(psi)-1]
			return Result{Values: map[string]float64{"psi": last, "psi less the evidence's best": last - maximum},
				Series: map[string][]float64{"psi": psi}}, nil
		})
		t.reps = cmp.Or(o.Reps, crescentReps)
		all = append(all, t)
	}
	return all, nil
}

// psiInto appends the psi of each posterior that is observed.
func psiInto(all *[]float64) func(int, *bayes.Posterior) error {
	return func(_ int, now *bayes.Posterior) error {
		value, _, err := now.Parameter(shifted)
		if err == nil {
			*all = append(*all, value[0]+.1)
		}
		return err
	}
}

// bruteForce is the paper's MC (appendix A): psi maximises E_prior[sum_n log p(y_n | phi; psi)], by Jensen's inequality
// a lower bound of the log evidence, estimated at each step from 10 000 draws of the prior. The log-density's
// derivative is sum_n (y_n - f) df/dpsi with f = phi_1/psi + (phi_0^2 + psi^2)/2.
func bruteForce(ctx context.Context, parts dataset.Parts, settings crescentRun) ([]float64, error) {
	const draws = 10_000
	y := parts.Train.Y
	batches := must(dataset.NewBatches(len(y), settings.BatchSize, settings.Seed))
	rng := rand.New(rand.NewPCG(settings.Seed, 0))
	const decay, decaySquare, least = .9, .999, 1e-8 // Adam's, as everywhere
	psi, mean, square := .1, 0., 0.
	var trace []float64
	for step := range settings.Epochs * batches.PerEpoch() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		batch := batches.At(step)
		sum := 0.0
		for _, row := range batch.Rows[:batch.Count] {
			sum += y[row]
		}
		gradient := 0.0
		for range draws {
			phi0, phi1 := math.Sqrt2*rng.NormFloat64(), rng.NormFloat64()
			f := phi1/psi + (phi0*phi0+psi*psi)/2
			gradient += (sum - float64(batch.Count)*f) * (psi - phi1/(psi*psi))
		}
		gradient *= float64(len(y)) / float64(batch.Count) / draws
		mean = decay*mean + (1-decay)*gradient
		square = decaySquare*square + (1-decaySquare)*gradient*gradient
		t := float64(step + 1)
		psi += settings.Optimiser.Schedule.At(step) * mean / (1 - math.Pow(decay,
			t)) / (math.Sqrt(square/(1-math.Pow(decaySquare, t))) + least)
		if (step+1)%batches.PerEpoch() == 0 {
			trace = append(trace, psi)
		}
	}
	return trace, nil
}

// crescentFig1 is |psi| along the epochs, the median of each method, and each repetition of OHSMC: the evidence is the
// same at psi and -psi, and steps of 0.1 from 0.1 may cross 0. The cells have the last |psi|.
func crescentFig1(_ context.Context, _ Options, done []*trial) (*viz.Figure, error) {
	options := viz.TraceOptions{Frame: viz.Frame{XLabel: "epoch", YLabel: "|ψ|"}, Truth: 1, TruthName: "truth"}
	trace := func(name string, psi []float64) viz.Trace {
		series := viz.Series{Value: psi}
		for i := range psi {
			series.Step = append(series.Step, float64(i+1))
		}
		return viz.Trace{Name: name, Series: series}
	}
	var medians, runs []viz.Trace
	for _, t := range done {
		if len(t.results) == 0 {
			continue
		}
		var middle []float64
		for i := range t.results[0].Series["psi"] {
			var at []float64
			for _, r := range t.results {
				at = append(at, r.Series["psi"][i])
			}
			slices.Sort(at)
			middle = append(middle, stat.Quantile(.5, stat.LinInterp, at, nil))
		}
		medians = append(medians, trace(t.Method, middle))
		for i, r := range t.results {
			if t.Method == "OHSMC" && i < crescentReps {
				runs = append(runs, trace(fmt.Sprint("repetition ", i+1), r.Series["psi"]))
			}
		}
	}
	var both panels
	options.Title = "Crescent: |ψ|, the median of the repetitions"
	both.add(viz.Traces(medians, options))
	if options.Title = "Crescent: |ψ| of OHSMC with variance 0.001"; len(runs) > 0 {
		both.add(viz.Traces(runs, options))
	}
	return both.grid(viz.GridOptions{Columns: 1, SharedX: true})
}
