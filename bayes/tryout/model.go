package tryout

import (
	"errors"
	"fmt"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/internal/stats"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// The methods of a user's own network, likelihood or prior must agree with each other: a likelihood's LogDensity, which
// trains, with its Predictive, which scores; a prior's Sample with its LogDensity; and a layer must treat every
// particle and every row independently. So these parts are tried on a few small numbers, on the Go backend, which takes
// some milliseconds. This file evaluates them; network.go and prior.go judge.

// Model is an error if parts of a model that are not of this library contradict themselves.
func Model(bound *bayes.BoundModel) error {
	network, prior := Foreign(bound.Model.Network) || Foreign(bound.Model.Likelihood), Foreign(bound.Model.Prior)
	if !network && !prior {
		return nil
	}
	engine, err := compute.Open(compute.GoBackend) // every build of the program has it
	if err != nil {
		return err
	}
	m := &model{
		BoundModel: bound, engine: engine, targets: bound.Targets(), counts: bayes.IsCounted(bound.Model.Likelihood),
	}
	switch bound.Model.Likelihood.Task() {
	case dataset.BinaryClassification:
		m.classes = 2
	case dataset.Classification:
		m.classes = bound.Outputs
	}
	m.stochastic = slices.DeleteFunc(slices.Clone(bound.Slots), func(s bayes.Slot) bool { return !s.Stochastic })
	if network {
		err = m.tryNetwork()
	}
	if err == nil && prior {
		err = m.tryPrior()
	}
	return err
}

// model is a model on trial.
type model struct {
	*bayes.BoundModel
	engine           *compute.Engine
	targets, classes int          // classes is 0 for a regression
	counts           bool         // targets are counts
	stochastic       []bayes.Slot // the parameters with a prior
}

// evaluated holds outputs and log-densities for the particles and rows of a trial.
type evaluated struct {
	outputs []float64 // [particles, width, rows]
	density []float64 // [particles, rows]
}

// scale is the prior's for the coordinates of a slot.
func (b *model) scale(s bayes.Slot) float64 { return b.Model.Prior.Scale(s.Parameter) }

// evaluate evaluates network and likelihood for phi, [J, D], psi, [W], x, [B, d], and y, [B, K], with the particles in
// blocks of the given size.
func (b *model) evaluate(block int, phi, psi, x, y []float64) (evaluated, error) {
	targets := []int{triedRows}
	if b.Targets() > 1 {
		targets = append(targets, b.Targets())
	}
	args := []any{
		compute.Floats(compute.Float32, phi, triedParticles, b.D),
		compute.Floats(compute.Float32, x, triedRows, b.Inputs),
		compute.Floats(compute.Float32, y, targets...),
	}
	if b.W > 0 {
		args = append(args, compute.Floats(compute.Float32, psi, b.W))
	}
	var t evaluated
	err := b.onHost(func(_ *graph.Graph, in []*graph.Node) []*graph.Node {
		var shared *graph.Node
		if b.W > 0 {
			shared = in[3]
		}
		params := b.Unpack(nn.Block(in[0], block), shared, nil)
		outputs := b.Suffix(params, b.Prefix(params, in[1]))
		byParticle := func(x *graph.Node, width int) *graph.Node { // to [J, width * B]
			x = graph.Reshape(x, x.Shape().Dim(0), width*triedRows, -1)
			return nn.Unblock(graph.BroadcastToDims(x, triedParticles/block, width*triedRows, block), triedParticles)
		}
		return []*graph.Node{byParticle(outputs.Full(), b.Width), byParticle(b.LogDensity(params, outputs, in[2]), 1)}
	}, args, &t.outputs, &t.density)
	if err != nil {
		return t, fmt.Errorf("bayes: %T and %T cannot be evaluated for %d particles in blocks of %d: %w",
			b.Model.Network, b.Model.Likelihood, triedParticles, block, err)
	}
	return t, nil
}

// predictives gives the likelihood's Predictive for a particle, a row and a target of a trial.
func (b *model) predictives(outputs, phi, psi []float64) func(j, row, target int) stats.Distribution {
	own := make([][]float64, triedParticles)
	for _, p := range b.Model.Likelihood.Parameters(b.Outputs) {
		for _, slot := range b.Slots {
			for j := range own {
				if slot.Name != p.Name {
					continue
				}
				values := psi
				if slot.Stochastic {
					values = phi[j*b.D : (j+1)*b.D]
				}
				own[j] = append(own[j], values[slot.Offset:slot.Offset+slot.Size()]...)
			}
		}
	}
	return func(j, row, target int) stats.Distribution {
		values := make([]float64, b.Width)
		for w := range values {
			values[w] = outputs[(j*b.Width+w)*triedRows+row]
		}
		return b.Model.Likelihood.Predictive(values, append([]float64{}, own[j]...), target)
	}
}

// onHost calls a graph, with or without arguments, and copies its results; a panic while the graph is built becomes an
// error.
func (b *model) onHost(
	build func(g *graph.Graph, in []*graph.Node) []*graph.Node, args []any, into ...*[]float64,
) (err error) {
	failed := compute.Try(func() {
		var results []*tensors.Tensor
		if len(args) == 0 {
			results, err = graph.CallOnceN(b.engine.Backend(), func(g *graph.Graph) []*graph.Node { return build(g, nil) })
		} else {
			results, err = graph.CallOnceN(b.engine.Backend(),
				func(in []*graph.Node) []*graph.Node { return build(in[0].Graph(), in) }, args...)
		}
		for i := 0; err == nil && i < len(results); i++ {
			*into[i], err = compute.Float64s(results[i])
		}
	})
	return errors.Join(failed, err)
}
