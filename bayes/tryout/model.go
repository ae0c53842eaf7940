package tryout

import (
	"fmt"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/internal/stats"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
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
	case bayes.BinaryClassification:
		m.classes = 2
	case bayes.Classification:
		m.classes = bound.Outputs
	}
	_, m.joint = bound.Model.Prior.(bayes.JointPrior)
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
	joint            bool         // the prior is a distribution of all coordinates together, which are not independent
	stochastic       []bayes.Slot // the parameters with a prior
}

// evaluated holds outputs and log-densities for the particles and rows of a trial.
type evaluated struct {
	outputs []float64 // [particles, width, rows]
	density []float64 // [particles, rows]
}

// of are the coordinates of a slot, of phi, [J, D].
func of(s bayes.Slot, phi *graph.Node) *graph.Node {
	return graph.Slice(phi, graph.AxisRange(), graph.AxisRange(s.Offset, s.Offset+s.Size()))
}

// scale is the prior's for the coordinates of a slot.
func (b *model) scale(s bayes.Slot) float64 { return b.Model.Prior.Scale(s.Parameter) }

// scales are those of all coordinates, [D].
func (b *model) scales() []float64 {
	scales := make([]float64, b.D)
	for _, slot := range b.stochastic {
		for i := range slot.Size() {
			scales[slot.Offset+i] = b.scale(slot)
		}
	}
	return scales
}

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
	err := onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(b.engine.Backend(), func(in []*graph.Node) []*graph.Node {
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
		}, args...)
	}, &t.outputs, &t.density)
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

// priorDraws draws from the prior, and evaluates its density and gradient there.
func (b *model) priorDraws(draws int) (d drawn, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(b.engine.Backend(), func(g *graph.Graph) []*graph.Node {
			phi := b.SamplePrior(random.New(g, 1), compute.Float32, draws)
			logPrior := b.LogPrior(phi)
			if want := shapes.Make(compute.Float32, draws); !logPrior.Shape().Equal(want) {
				panic(fmt.Errorf("the log-density of %d particles is %s: it must be one number a particle, %s", draws,
					logPrior.Shape(), want))
			}
			score := graph.Gradient(graph.ReduceAllSum(logPrior), phi)[0]
			var shift, scale []*graph.Node
			for _, slot := range b.stochastic {
				shift = append(shift, graph.ReduceMean(of(slot, score), -1))
				scale = append(scale, graph.AddScalar(graph.ReduceMean(of(slot, graph.Mul(phi, score)), -1), 1))
			}
			some := func(from, to int) *graph.Node { return graph.Slice(phi, graph.AxisRange(from, to)) }
			mean := graph.ReduceMean(score, 0)
			stdDev := graph.Sqrt(graph.ReduceMean(graph.Square(graph.Sub(score, graph.ExpandAxes(mean, 0))), 0))
			return []*graph.Node{graph.Stack(shift, 0), graph.Stack(scale, 0), mean, stdDev, b.LogPrior(some(0, 4)),
				b.LogPrior(graph.Concatenate([]*graph.Node{some(0, 1), some(4, 7)}, 0)),
				b.LogPrior(graph.Concatenate([]*graph.Node{some(4, 7), some(3, 4)}, 0))}
		})
	}, &d.moments[0], &d.moments[1], &d.own[0], &d.own[1], &d.density[0], &d.density[1], &d.density[2])
	return d, err
}

// priorSample draws coordinates of the given scales, [draws, len(scales)]; all of phi where the prior is a JointPrior.
func (b *model) priorSample(key uint64, draws int, scales []float64) (all []float64, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(b.engine.Backend(), func(g *graph.Graph) []*graph.Node {
			rng := random.New(g, key)
			if b.joint {
				return []*graph.Node{b.SamplePrior(rng, compute.Float32, draws)}
			}
			return []*graph.Node{b.Model.Prior.Sample(rng, compute.Float32, draws, scales)}
		})
	}, &all)
	return all, err
}

// logPrior is the log-density, [J], of phi, [J, n], under the prior of n coordinates of the given scales; of all
// coordinates where the prior is a JointPrior.
func (b *model) logPrior(phi, scales []float64) (logDensity []float64, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(b.engine.Backend(), func(phi *graph.Node) []*graph.Node {
			if b.joint {
				return []*graph.Node{b.LogPrior(phi)}
			}
			return []*graph.Node{b.Model.Prior.LogDensity(phi, scales)}
		}, compute.Floats(compute.Float32, phi, len(phi)/len(scales), len(scales)))
	}, &logDensity)
	return logDensity, err
}

// priorAlone evaluates the log-prior at a few draws twice: for all coordinates together, and as the sum of the
// log-densities of each coordinate alone.
func (b *model) priorAlone(draws int) (together, alone []float64, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(b.engine.Backend(), func(g *graph.Graph) []*graph.Node {
			phi := b.SamplePrior(random.New(g, 2), compute.Float32, draws)
			var parts []*graph.Node
			for _, slot := range b.stochastic {
				each := graph.Reshape(of(slot, phi), -1, 1)
				each = b.Model.Prior.LogDensity(each, []float64{b.scale(slot)})
				parts = append(parts, graph.Reshape(each, draws, -1))
			}
			return []*graph.Node{b.LogPrior(phi), graph.ReduceSum(graph.Concatenate(parts, 1), 1)}
		})
	}, &together, &alone)
	return together, alone, err
}

// onHost calls a graph and copies its results; a panic while the graph is built becomes an error.
func onHost(call func() ([]*tensors.Tensor, error), into ...*[]float64) (err error) {
	failed := compute.Try(func() {
		var results []*tensors.Tensor
		if results, err = call(); err != nil {
			return
		}
		for i, values := range into {
			if *values, err = compute.Float64s(results[i]); err != nil {
				return
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}
