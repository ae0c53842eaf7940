package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/pbnn"
	"gobnn/viz"
)

// The cost of noise, which the paper describes in words: acceptance and sigma^2 of the penalty random walk on figure
// 2's data and network, against n and M, with the same step throughout.

// acceptanceTargets have steps small enough for M = n = 10: those for the full posterior are far shorter.
var acceptanceTargets = []struct {
	name   string
	target func(n int) pbnn.FromMiniBatches
	step   float64
}{
	{"all rows, h = 0.0003", func(int) pbnn.FromMiniBatches { return pbnn.TargetFull{} }, .0003},
	{"n points, h = 0.01", func(n int) pbnn.FromMiniBatches { return pbnn.TargetExpected{Points: n} }, .01},
}

func acceptancePoints(o Options, data *dataset.Dataset, modes func(context.Context) (*bayes.Posterior, error)) []point {
	draws := cmp.Or(o.Epochs, 250)
	var points []point
	add := func(along, setting string, at float64, n, batches int) {
		for _, t := range acceptanceTargets {
			sampler := pbnn.Metropolis{Target: t.target(n), BatchSize: n, Batches: batches, StepSize: t.step}
			points = append(points, point{
				data: data.Name + ", " + along, method: t.name, setting: setting, at: at,
				settings: []any{fmt.Sprintf("%#v", sampler), draws, penaltyWaveModel, data.Hash()},
				run: func(ctx context.Context, repetition int) (Result, error) {
					start, err := modes(ctx)
					if err != nil {
						return Result{}, err
					}
					return acceptance(ctx, start, data, sampler,
						mcmc.Settings{Chains: penaltyChains, Draws: draws, WarmUp: 2 * draws, Seed: uint64(repetition + 1)})
				},
			})
		}
	}
	for _, n := range []int{2, 5, 10, 20, 50, 100, 200} {
		add("M = 10", fmt.Sprintf("n = %d", n), float64(n), n, 10)
	}
	for _, m := range []int{3, 10, 30, 100} {
		add("n = 10", fmt.Sprintf("M = %d", m), float64(m), 10, m)
	}
	return points
}

// acceptance is a repetition. Chains that noise has stopped count with acceptance 0 and their sigma^2.
func acceptance(
	ctx context.Context, start *bayes.Posterior, data *dataset.Dataset, sampler pbnn.Sampler, s mcmc.Settings,
) (Result, error) {
	result, err := pbnn.FitFrom(ctx, start, sampler, dataset.Parts{Train: data}, pbnn.Settings{Sampling: s})
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if stuck := (*mcmc.StuckError)(nil); errors.As(err, &stuck) {
		return Result{Values: map[string]float64{"acceptance": 0, "sigma^2": stuck.Noise}}, nil
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Values: map[string]float64{"acceptance": result.Acceptance, "sigma^2": result.Noise}}, nil
}

// penaltyAcceptance draws acceptance and sigma^2, a row against n and a row against M.
func penaltyAcceptance(ctx context.Context, o Options) (*viz.Figure, []Cell, error) {
	data, err := dataset.GappedWave(2000, penaltyNoise, 1)
	if err != nil {
		return nil, nil, err
	}
	modes := onceStarts(o, penaltyWaveModel, data)
	points, cells, err := sweep(ctx, o, "pbnn.acceptance", 1, acceptancePoints(o, data, modes))
	if err != nil {
		return nil, cells, err
	}
	var panels []*viz.Figure
	for _, name := range datasOf(points) {
		x := "n"
		if strings.HasSuffix(name, "n = 10") {
			x = "M"
		}
		rate, err := viz.Traces(curves(points, name, "acceptance", ""),
			viz.TraceOptions{Frame: panelFrame(name, x, "acceptance"), LogX: true})
		if err != nil {
			return nil, cells, err
		}
		variance, err := viz.Traces(curves(points, name, "sigma^2", ""),
			viz.TraceOptions{Frame: panelFrame(name, x, "σ²"), LogX: true, LogY: true})
		if err != nil {
			return nil, cells, err
		}
		panels = append(panels, rate, variance)
	}
	fig, err := viz.Grid(viz.GridOptions{Columns: 2}, panels...)
	return fig, cells, err
}
