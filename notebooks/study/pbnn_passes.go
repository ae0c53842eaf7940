package study

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/diag"
	"gobnn/bayes/mcmc"
	"gobnn/pbnn"
	"gobnn/viz"
)

// Samplers at equal passes over the data. A pass is N evaluations of a row's likelihood, a gradient counted as one; the
// chains begin at exact draws, so that the error is that of a chain in equilibrium.

const passRows = 10_000

// passTarget is one of the two posteriors, as a target of mini-batches and of all rows, with the steps h in posterior
// widths: for samplers that accept by mini-batches, such that sigma^2 is at most about 1, and for SGLD. All steps are
// given, since a warm-up would begin with steps too long for any number of mini-batches.
type passTarget struct {
	name        string
	batches     pbnn.FromMiniBatches
	rows        pbnn.FromAllRows
	noisy, sgld float64
}

var passTargets = []passTarget{
	{"posterior of all rows", pbnn.TargetFull{}, pbnn.TargetFullData{}, .13, .05},
	{"posterior of 100 points", pbnn.TargetExpected{Points: 100}, pbnn.TargetTempered{Points: 100}, 1, .3},
}

// passSamplers are the study's methods. With all rows steps of 1.1 widths are about the best in 5 dimensions (Roberts
// and Rosenthal 2001, section 2).
func passSamplers(t passTarget, width float64) []penaltyRun {
	const n, m = 100, 10
	noisy, exact, sgld := t.noisy*width, 1.1*width, t.sgld*width
	return []penaltyRun{
		{name: "penalty random walk", sampler: pbnn.Metropolis{Target: t.batches, BatchSize: n, Batches: m, StepSize: noisy}},
		{name: "penalty Langevin", sampler: pbnn.Metropolis{Target: t.batches, BatchSize: n, Batches: m, StepSize: noisy,
			Proposal: pbnn.Langevin}},
		{name: "Barker, mini-batches", sampler: pbnn.Barker{Target: t.batches, BatchSize: n, Batches: m, StepSize: noisy}},
		{name: "confidence sampler", sampler: pbnn.Confidence{Target: t.batches, BatchSize: 10 * n, StepSize: exact}},
		{name: "Metropolis, all rows", sampler: pbnn.AllRows{Target: t.rows,
			Kernel: mcmc.RandomWalkMetropolis{StepSize: exact}}},
		{name: "MALA, all rows", sampler: pbnn.AllRows{Target: t.rows, Kernel: mcmc.MALA{StepSize: exact}}},
		{name: "SGLD", sampler: pbnn.Unadjusted{Target: t.batches, BatchSize: n, Kernel: mcmc.SGLD{StepSize: sgld * sgld}}},
	}
}

// passBudget is the number of passes of each chain; -epochs sets another.
const passBudget = 100

func passPoints(o Options) []point {
	p := newPlane("plane", passRows, 4, .6, func(rng *rand.Rand) float64 { return .6 * rng.NormFloat64() })
	budget := cmp.Or(o.Epochs, passBudget)
	var points []point
	for _, target := range passTargets {
		for _, run := range passSamplers(target, p.width(target.batches.EffectivePoints(passRows))) {
			points = append(points, point{
				data: target.name, method: run.name,
				settings: []any{fmt.Sprintf("%#v", run.sampler), budget, passChains, p.data.Hash()},
				run: func(ctx context.Context, repetition int) (Result, error) {
					return p.atPasses(ctx, run.sampler, float64(budget), uint64(repetition+1))
				},
			})
		}
	}
	return points
}

const (
	passChains = 16
	passPlaces = 40 // of the curves, from one pass to the budget
)

// atPasses is a repetition: chains that make at least the budget's passes. Of the draws within the budget it has the
// effective sample size per pass and chain, at the worst of the places where they predict, and, along the passes, the
// error of a chain's predictive mean in exact epistemic standard deviations, root mean square over places and chains.
func (p plane) atPasses(ctx context.Context, sampler pbnn.Sampler, budget float64, seed uint64) (Result, error) {
	// an upper bound of the transitions within the budget; a transition of Barker has one round or more
	moves := int(math.Ceil(budget * float64(p.data.Rows()) / float64(sampler.RowsPerMove(p.data.Rows()))))
	thin := max(1, moves/1500)
	result, distribution, err := p.sample(ctx, sampler,
		mcmc.Settings{Chains: passChains, Draws: max(20, (moves+thin-1)/thin), Thin: thin, WarmUp: 20, Seed: seed})
	if err != nil {
		return Result{}, err
	}
	// Barker's rounds are more than its transitions, so that not all draws may be within the budget.
	kept := int(float64(result.Chains.Draws.PerChain) * min(1, budget/result.Passes))
	kept = max(kept, 4)
	const places = 10
	sample := diag.Sample{Values: make([]float64, passChains*kept*places), Chains: passChains, Draws: kept,
		Parameters: places}
	series := map[string][]float64{}
	squares := make([]float64, kept)
	for place := range places {
		center, spread, err := distribution.prediction(p.data.X.RawRowView(place))
		if err != nil {
			return Result{}, err
		}
		for chain, values := range lines(result.Chains.Draws, p.data.X.RawRowView(place)) {
			sum := 0.
			for i, f := range values[:kept] {
				sample.Values[(chain*kept+i)*places+place] = f
				sum += f
				z := (sum/float64(i+1) - center) / spread
				squares[i] += z * z / (places * passChains)
			}
		}
	}
	perDraw := result.Passes / float64(result.Chains.Draws.PerChain)
	for k := range passPlaces {
		passes := math.Pow(budget, float64(k+1)/passPlaces)
		if i := int(passes/perDraw+1e-9) - 1; i >= 0 && i < kept {
			series["passes"], series["error"] = append(series["passes"], passes), append(series["error"], math.Sqrt(squares[i]))
		}
	}
	chains, err := diag.New(sample)
	if err != nil {
		return Result{}, err
	}
	worst := math.Inf(1)
	for place := range places {
		size, err := chains.ESS(place, diag.Mean)
		if err != nil {
			return Result{}, err
		}
		worst = min(worst, size)
	}
	spent := perDraw * float64(kept)
	values := map[string]float64{"ESS per pass": worst / passChains / spent,
		"error of the mean": math.Sqrt(squares[kept-1]), "passes": spent}
	if !math.IsNaN(result.Acceptance) {
		values["acceptance"] = result.Acceptance
	}
	return Result{Values: values, Series: series}, nil
}

// errorCurve is the error, root mean square over repetitions, against the passes, where all repetitions have an error.
func errorCurve(results []Result) viz.Series {
	squares, count := map[float64]float64{}, map[float64]int{}
	for _, r := range results {
		for i, passes := range r.Series["passes"] {
			squares[passes] += math.Pow(r.Series["error"][i], 2) / float64(len(results))
			count[passes]++
		}
	}
	var s viz.Series
	for _, passes := range slices.Sorted(maps.Keys(squares)) {
		if count[passes] == len(results) {
			s.Step, s.Value = append(s.Step, passes), append(s.Value, math.Sqrt(squares[passes]))
		}
	}
	return s
}

// penaltyPasses draws the error against the passes, a panel for each posterior.
func penaltyPasses(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	points, cells, err := sweep(ctx, o, "pbnn.passes", 2, passPoints(o))
	if err != nil {
		return nil, cells, err
	}
	var panels []*viz.Figure
	for _, data := range datasOf(points) {
		var traces []viz.Trace
		for _, p := range points {
			if p.data == data {
				traces = append(traces, viz.Trace{Name: p.method, Series: errorCurve(p.results)})
			}
		}
		panel, err := viz.Traces(traces, viz.TraceOptions{LogX: true, LogY: true,
			Frame: panelFrame(data, "passes over the data", "error [posterior sd]")})
		if err != nil {
			return nil, cells, err
		}
		panels = append(panels, panel)
	}
	fig, err := viz.Grid(viz.GridOptions{Columns: len(panels), SharedX: true, SharedY: true}, panels...)
	return fig, cells, err
}
