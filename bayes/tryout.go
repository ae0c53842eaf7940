package bayes

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/internal/stats"
	"gobnn/bayes/nn"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// The methods of a user's own network, likelihood or prior must agree with each other: a likelihood's LogDensity, which
// trains, with its Predictive, which scores; a prior's Sample with its LogDensity; and a layer must treat every
// particle and every row independently. If they do not, nothing fails but all results are wrong. So Bind tries parts
// that are not the library's own on a few small numbers, on the Go backend, which takes some milliseconds. Package
// tryout judges what this file evaluates.

// tryOut is an error if parts of the model that are not of this library contradict themselves.
func (b *BoundModel) tryOut(engine *compute.Engine) error {
	network, likelihood := tryout.Foreign(b.Model.Network), tryout.Foreign(b.Model.Likelihood)
	if network || likelihood {
		trial := tryout.Network{
			Network: b.Model.Network, Likelihood: b.Model.Likelihood, Inputs: b.Inputs, Width: b.Width, D: b.D, W: b.W,
			Targets: b.Targets(), Classes: b.classes(), Counts: IsCounted(b.Model.Likelihood),
			Check: func(y float64) error { return CheckTarget(b.Model.Likelihood, y) },
			Evaluate: func(block int, phi, psi, x, y []float64) (tryout.Evaluated, error) {
				return b.evaluate(engine, block, phi, psi, x, y)
			},
			Predictives: b.predictives,
		}
		if err := trial.Try(); err != nil {
			return err
		}
	}
	if tryout.Foreign(b.Model.Prior) {
		return b.tryPrior(engine)
	}
	return nil
}

// evaluate evaluates network and likelihood for phi, [J, D], psi, [W], x, [B, d], and y, [B, K], with the particles in
// blocks of the given size.
func (b *BoundModel) evaluate(engine *compute.Engine, block int, phi, psi, x, y []float64) (tryout.Evaluated, error) {
	targets := []int{tryout.Rows}
	if b.Targets() > 1 {
		targets = append(targets, b.Targets())
	}
	args := []any{
		compute.Floats(compute.Float32, phi, tryout.Particles, b.D),
		compute.Floats(compute.Float32, x, tryout.Rows, b.Inputs),
		compute.Floats(compute.Float32, y, targets...),
	}
	if b.W > 0 {
		args = append(args, compute.Floats(compute.Float32, psi, b.W))
	}
	var t tryout.Evaluated
	err := onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(in []*graph.Node) []*graph.Node {
			var shared *graph.Node
			if b.W > 0 {
				shared = in[3]
			}
			params := b.Unpack(nn.Block(in[0], block), shared, nil)
			outputs := b.Suffix(params, b.Prefix(params, in[1]))
			byParticle := func(x *graph.Node, width int) *graph.Node { // to [J, width * B]
				x = graph.Reshape(x, x.Shape().Dim(0), width*tryout.Rows, -1)
				return nn.Unblock(graph.BroadcastToDims(x, tryout.Particles/block, width*tryout.Rows, block), tryout.Particles)
			}
			return []*graph.Node{byParticle(outputs.Full(), b.Width), byParticle(b.LogDensity(params, outputs, in[2]), 1)}
		}, args...)
	}, &t.Outputs, &t.Density)
	if err != nil {
		return t, fmt.Errorf("bayes: %T and %T cannot be evaluated for %d particles in blocks of %d: %w",
			b.Model.Network, b.Model.Likelihood, tryout.Particles, block, err)
	}
	return t, nil
}

// predictives gives the likelihood's Predictive for a particle, a row and a target of a trial.
func (b *BoundModel) predictives(outputs, phi, psi []float64) func(j, row, target int) stats.Distribution {
	own := make([][]float64, tryout.Particles)
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
			values[w] = outputs[(j*b.Width+w)*tryout.Rows+row]
		}
		return b.Model.Likelihood.Predictive(values, append([]float64{}, own[j]...), target)
	}
}

// tryPrior tries the prior.
func (b *BoundModel) tryPrior(engine *compute.Engine) error {
	_, joint := b.Model.Prior.(JointPrior)
	trial := tryout.Prior{
		Prior: b.Model.Prior, D: b.D, Joint: joint,
		Draws: func(draws int) (tryout.Drawn, error) { return b.priorDraws(engine, draws) },
		Sample: func(key uint64, draws int, scales []float64) ([]float64, error) {
			return b.priorSample(engine, key, draws, scales)
		},
		LogDensity: func(phi, scales []float64) ([]float64, error) { return b.logPriorOf(engine, phi, scales) },
		Alone:      func(draws int) (together, alone []float64, err error) { return b.priorAlone(engine, draws) },
	}
	for _, slot := range b.stochasticSlots() {
		trial.Parts = append(trial.Parts,
			tryout.Part{Name: slot.Name, Offset: slot.Offset, Size: slot.Size(), Scale: b.Model.Prior.Scale(slot.Parameter)})
	}
	return trial.Try()
}

// priorDraws draws from the prior, and evaluates its density and gradient there.
func (b *BoundModel) priorDraws(engine *compute.Engine, draws int) (d tryout.Drawn, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(g *graph.Graph) []*graph.Node {
			phi := b.SamplePrior(random.New(g, 1), compute.Float32, draws)
			logPrior := b.LogPrior(phi)
			if want := shapes.Make(compute.Float32, draws); !logPrior.Shape().Equal(want) {
				panic(fmt.Errorf("the log-density of %d particles is %s: it must be one number a particle, %s", draws,
					logPrior.Shape(), want))
			}
			score := graph.Gradient(graph.ReduceAllSum(logPrior), phi)[0]
			var shift, scale []*graph.Node
			for _, slot := range b.stochasticSlots() {
				shift = append(shift, graph.ReduceMean(slot.of(score), -1))
				scale = append(scale, graph.AddScalar(graph.ReduceMean(slot.of(graph.Mul(phi, score)), -1), 1))
			}
			of := func(from, to int) *graph.Node { return graph.Slice(phi, graph.AxisRange(from, to)) }
			mean := graph.ReduceMean(score, 0)
			stdDev := graph.Sqrt(graph.ReduceMean(graph.Square(graph.Sub(score, graph.ExpandAxes(mean, 0))), 0))
			return []*graph.Node{graph.Stack(shift, 0), graph.Stack(scale, 0), mean, stdDev, b.LogPrior(of(0, 4)),
				b.LogPrior(graph.Concatenate([]*graph.Node{of(0, 1), of(4, 7)}, 0)),
				b.LogPrior(graph.Concatenate([]*graph.Node{of(4, 7), of(3, 4)}, 0))}
		})
	}, &d.Moments[0], &d.Moments[1], &d.Own[0], &d.Own[1], &d.Density[0], &d.Density[1], &d.Density[2])
	return d, err
}

// priorSample draws coordinates of the given scales, [draws, len(scales)]; all of phi where the prior is a JointPrior.
func (b *BoundModel) priorSample(
	engine *compute.Engine, key uint64, draws int, scales []float64,
) (all []float64, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(g *graph.Graph) []*graph.Node {
			rng := random.New(g, key)
			if _, ok := b.Model.Prior.(JointPrior); ok {
				return []*graph.Node{b.SamplePrior(rng, compute.Float32, draws)}
			}
			return []*graph.Node{b.Model.Prior.Sample(rng, compute.Float32, draws, scales)}
		})
	}, &all)
	return all, err
}

// logPriorOf is the log-density, [J], of phi, [J, n], under the prior of n coordinates of the given scales; of all
// coordinates where the prior is a JointPrior.
func (b *BoundModel) logPriorOf(engine *compute.Engine, phi, scales []float64) (logDensity []float64, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(phi *graph.Node) []*graph.Node {
			if _, ok := b.Model.Prior.(JointPrior); ok {
				return []*graph.Node{b.LogPrior(phi)}
			}
			return []*graph.Node{b.Model.Prior.LogDensity(phi, scales)}
		}, compute.Floats(compute.Float32, phi, len(phi)/len(scales), len(scales)))
	}, &logDensity)
	return logDensity, err
}

// priorAlone evaluates the log-prior at a few draws twice: for all coordinates together, and as the sum of the
// log-densities of each coordinate alone.
func (b *BoundModel) priorAlone(engine *compute.Engine, draws int) (together, alone []float64, err error) {
	err = onHost(func() ([]*tensors.Tensor, error) {
		return graph.CallOnceN(engine.Backend(), func(g *graph.Graph) []*graph.Node {
			phi := b.SamplePrior(random.New(g, 2), compute.Float32, draws)
			var parts []*graph.Node
			for _, slot := range b.stochasticSlots() {
				each := graph.Reshape(slot.of(phi), -1, 1)
				each = b.Model.Prior.LogDensity(each, []float64{b.Model.Prior.Scale(slot.Parameter)})
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
