package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/mcmc"
	"gobnn/pbnn"
	"gobnn/viz"
)

// The bias of the naive sampler (section 4.1), and of the penalty where noise is not Gaussian, which the paper
// describes in words: errors of the draws from a posterior that is known.

// biasRules are the acceptance rules, by the names of the study's methods.
var biasRules = []struct {
	name string
	rule pbnn.Rule
}{{"penalty, corrected", pbnn.Corrected}, {"penalty", pbnn.Penalty}, {"naive", pbnn.Naive}}

// The study's data: residuals that are normal, in mini-batches of many rows or few; and log-normal ones, whose tail is
// heavy and to one side, in mini-batches of 2, with short steps or long.
const (
	normalRows = "normal"
	heavyRows  = "heavy tails"
)

func biasPoints(o Options) []point {
	settings := mcmc.Settings{Chains: 32, Draws: cmp.Or(o.Epochs, 1500), Thin: 2, WarmUp: 50}
	var points []point
	add := func(name string, p plane, setting string, sampler pbnn.Metropolis) {
		for _, rule := range biasRules {
			sampler := sampler
			sampler.Rule = rule.rule
			points = append(points, point{
				data: name, method: rule.name, setting: setting,
				settings: []any{fmt.Sprintf("%#v", sampler), settings.Chains, settings.Draws, settings.Thin, p.data.Hash()},
				run: func(ctx context.Context, repetition int) (Result, error) {
					return p.bias(ctx, sampler, settings, repetition)
				},
			})
		}
	}
	normal := newPlane(normalRows, 200, 2, .6, func(rng *rand.Rand) float64 { return .6 * rng.NormFloat64() })
	for _, n := range []int{64, 16, 8, 4} {
		add(normalRows, normal, fmt.Sprintf("n = %d", n),
			pbnn.Metropolis{Target: pbnn.TargetFull{}, BatchSize: n, Batches: 10, StepSize: .5 * normal.width(200)})
	}
	heavy := newPlane(heavyRows, 200, 1, 1, func(rng *rand.Rand) float64 {
		return (math.Exp(rng.NormFloat64()) - math.Exp(.5)) / math.Sqrt(math.E*(math.E-1))
	})
	for _, widths := range []float64{.5, 1, 1.5, 2.5} {
		add(heavyRows, heavy, fmt.Sprintf("step %g widths", widths),
			pbnn.Metropolis{Target: pbnn.TargetExpected{Points: 2}, BatchSize: 2, Batches: 10,
				StepSize: widths * heavy.width(2)})
	}
	return points
}

// bias is a repetition: the errors of the draws' moments, and the result's own measures of its noise.
func (p plane) bias(ctx context.Context, sampler pbnn.Metropolis, s mcmc.Settings, repetition int) (Result, error) {
	s.Seed = uint64(repetition + 1)
	result, distribution, err := p.sample(ctx, sampler, s)
	if err != nil {
		return Result{}, err
	}
	center, variance := distribution.moments(result.Chains.Draws)
	return Result{Values: map[string]float64{
		"error of the mean": center, "error of the variance": variance, "sigma^2": result.Noise,
		"acceptance": result.Acceptance, "Result.Bias": result.Bias,
	}}, nil
}

// penaltyBias draws the errors of mean and variance against sigma^2 for each rule, and beside them Result.Bias where
// there is a penalty.
func penaltyBias(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	points, cells, err := sweep(ctx, o, "pbnn.bias", 3, biasPoints(o))
	if err != nil {
		return nil, cells, err
	}
	var panels []*viz.Figure
	var names []string // of the columns
	datas := datasOf(points)
	for _, data := range datas {
		for _, value := range []struct{ name, label string }{
			{"error of the mean", "error [standard deviations]"}, {"error of the variance", "error [of the variance]"},
			{"Result.Bias", "log of an acceptance ratio"},
		} {
			traces := curves(points, data, value.name, "sigma^2")
			if value.name == "Result.Bias" {
				traces = slices.DeleteFunc(traces, func(t viz.Trace) bool { return t.Name == "naive" })
			}
			if len(traces) == 0 {
				continue
			}
			panel, err := viz.Traces(traces, viz.TraceOptions{LogX: true,
				Frame: panelFrame(data+": "+value.name, "σ²", value.label), TruthName: "exact"})
			if err != nil {
				return nil, cells, err
			}
			panels = append(panels, panel)
			if data == datas[0] {
				names = append(names, value.name)
			}
		}
	}
	fig, err := viz.Grid(viz.GridOptions{Columns: len(names), ColumnNames: names, RowNames: datas}, panels...)
	return fig, cells, err
}
