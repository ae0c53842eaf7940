package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gobnn/bayes/mcmc"
	"gobnn/pbnn"
	"gobnn/viz"

	"gonum.org/v1/gonum/stat"
)

// The bias by the step size, which the paper describes in words (section 6.3): with the penalty the distribution of the
// draws does not depend on eta, with SGLD and the unadjusted Langevin algorithm it does.

// etaSamplers are the study's methods, by the step h = sqrt(2 eta): all sample the posterior of 20 points.
func etaSamplers(h float64) []penaltyRun {
	const n = 20
	penalty := pbnn.Metropolis{Target: pbnn.TargetExpected{Points: n}, BatchSize: n, Batches: 10, StepSize: h}
	langevin := penalty
	langevin.Proposal = pbnn.Langevin
	return []penaltyRun{
		{name: "penalty random walk", sampler: penalty},
		{name: "penalty Langevin", sampler: langevin},
		{name: "SGLD", sampler: pbnn.Unadjusted{Target: pbnn.TargetExpected{Points: n}, BatchSize: n,
			Kernel: mcmc.SGLD{StepSize: h * h}}},
		{name: "Langevin, all rows", sampler: pbnn.AllRows{Target: pbnn.TargetTempered{Points: n},
			Kernel: mcmc.ULA{StepSize: h}}},
	}
}

func etaRuns(o Options) []point {
	p := newPlane("plane", 1000, 4, .6, func(rng *rand.Rand) float64 { return .6 * rng.NormFloat64() })
	settings := mcmc.Settings{Chains: 32, Draws: cmp.Or(o.Epochs, 1000), Thin: 4, WarmUp: 200}
	var points []point
	for _, widths := range []float64{.1, .2, .4, .8, 1.2} { // from eta to 144 eta
		h := widths * p.width(20)
		for _, s := range etaSamplers(h) {
			points = append(points, point{
				data: p.data.Name, method: s.name, setting: fmt.Sprintf("eta = %.2g", h*h/2), at: h * h / 2,
				settings: []any{fmt.Sprintf("%#v", s.sampler), settings.Chains, settings.Draws, settings.Thin, p.data.Hash()},
				run: func(ctx context.Context, repetition int) (Result, error) {
					settings := settings
					settings.Seed = uint64(repetition + 1)
					result, distribution, err := p.sample(ctx, s.sampler, settings)
					if err != nil {
						return Result{}, err
					}
					return p.predicted(result, distribution)
				},
			})
		}
	}
	return points
}

// predicted compares the predictions at 20 places with the exact ones: their means' distance, in exact epistemic
// standard deviations, and the ratio of the epistemic standard deviations; means over the places.
func (p plane) predicted(result *pbnn.Result, distribution *normal) (Result, error) {
	const places = 20
	distance, ratio := 0., 0.
	for place := range places {
		x := p.data.X.RawRowView(place)
		center, spread, err := distribution.prediction(x)
		if err != nil {
			return Result{}, err
		}
		var all []float64
		for _, chain := range lines(result.Chains.Draws, x) {
			all = append(all, chain...)
		}
		mean, sd := stat.MeanStdDev(all, nil)
		distance += math.Abs(mean-center) / spread / places
		ratio += sd / spread / places
	}
	values := map[string]float64{"distance of means": distance, "ratio of std": ratio}
	if !math.IsNaN(result.Acceptance) {
		values["acceptance"] = result.Acceptance
	}
	return Result{Values: values}, nil
}

// lines are w x + b of each draw, chain by chain.
func lines(draws *mcmc.Draws, x []float64) [][]float64 {
	out := make([][]float64, draws.Chains)
	for chain := range out {
		for i := range draws.PerChain {
			theta := draws.At(chain, i)
			f := theta[len(x)]
			for k, v := range x {
				f += theta[k] * v
			}
			out[chain] = append(out[chain], f)
		}
	}
	return out
}

// penaltyEta draws the errors of the predictions' means and standard deviations against eta.
func penaltyEta(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	points, cells, err := sweep(ctx, o, "pbnn.eta", 2, etaRuns(o))
	if err != nil {
		return nil, cells, err
	}
	const x = "η"
	means, err := viz.Traces(curves(points, points[0].data, "distance of means", ""), viz.TraceOptions{
		Frame: panelFrame("predictive mean", x, "distance to the exact [exact sd]"), TruthName: "exact", LogX: true,
	})
	if err != nil {
		return nil, cells, err
	}
	spreads, err := viz.Traces(curves(points, points[0].data, "ratio of std", ""), viz.TraceOptions{
		Frame: panelFrame("predictive standard deviation", x, "epistemic sd / exact sd"), Truth: 1, TruthName: "exact",
		LogX: true,
	})
	if err != nil {
		return nil, cells, err
	}
	fig, err := viz.Grid(viz.GridOptions{Columns: 2}, means, spreads)
	return fig, cells, err
}
