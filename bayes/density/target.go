// Package density evaluates the targets of the samplers: the log-posterior of all particles, its gradients, and the
// evidence.
//
// The log-likelihood of a mini-batch of n of N rows estimates that of all data only if it is multiplied by N/n. A
// Posterior is made for one kind of batches, so that no sampler can forget the factor: Full takes a batch of all rows
// and never scales; MiniBatch has N and scales by N/n; Tempered is the posterior that a given number of points would
// have.
//
// Particles are evaluated in chunks (compute.Plan), one after another: one chunk's activations are freed before the
// next begins. Where those of one particle would take more than 2 GiB, the rows are cut into parts too. Within a
// chunk they are in blocks (nn.Block) where that is faster. The gradient with respect to the shared parameters is one
// reverse pass per chunk through a weighted sum, never J gradients (Fisher's identity), and chunks are merged by a
// running log-sum-exp.
//
// Non-finite numbers are handled in one place: a log-likelihood that is NaN or infinite counts as -Inf, and a particle
// with a coordinate that is not finite, or so large that its square overflows, is evaluated as zeros, with weight 0, so
// that it does not affect the others' gradient.
package density

import (
	"maps"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Batch is some rows of the data, in a graph. Rows from Count on are padding, whatever they hold.
type Batch struct {
	X     *graph.Node // [B, d], standardised, or the bytes of pictures (see bayes.Numbers)
	Y     *graph.Node // [B]: the standardised target, or the index of the class; [B, K] for K targets
	Count *graph.Node // scalar of Y's type: how many rows are real; nil if all are
	// Features are the output of the layers before the first stochastic one, [width, B], if computed before (see
	// Likelihood.Features); X is then not used, and there is no gradient with respect to psi.
	Features *graph.Node

	before *Node // how many rows at the beginning do not count, an int32 scalar; nil: all do
}

// mask is true for rows that count, [1, B]; nil if all do.
func (b Batch) mask() (mask *Node) {
	if b.Count != nil {
		rows := shapes.Make(b.Count.DType(), b.rows())
		mask = ExpandAxes(LessThan(Iota(b.Y.Graph(), rows, 0), b.Count), 0)
	}
	if b.before == nil {
		return mask
	}
	counted := ExpandAxes(GreaterOrEqual(rowNumbers(b.Y.Graph(), b.rows()), b.before), 0)
	if mask == nil {
		return counted
	}
	return And(mask, counted)
}

// count is the number of real rows, a scalar.
func (b Batch) count() *Node {
	if b.Count != nil {
		return b.Count
	}
	return ConstAs(b.Y, float64(b.rows()))
}

// rows is the number of rows B, padding included.
func (b Batch) rows() int { return b.Y.Shape().Dim(0) }

// filled is the batch with its first row, which is real, in place of padding. Padding may hold anything: its density
// does not count, but in the gradient 0 times NaN is NaN. Zeros would not do: a likelihood may have no density there.
func (b Batch) filled() Batch {
	mask := b.mask()
	if mask == nil {
		return b
	}
	fill := func(x *Node, axis int) *Node { // axis is that of the rows
		dims, first := make([]int, x.Rank()), make([]SliceAxisSpec, x.Rank())
		for i := range dims {
			dims[i], first[i] = 1, AxisRange()
		}
		dims[axis], first[axis] = b.rows(), AxisRange(0, 1)
		real := BroadcastToDims(Reshape(mask, dims...), x.Shape().Dimensions...)
		return Where(real, x, BroadcastToShape(Slice(x, first...), x.Shape()))
	}
	if b.Features == nil {
		b.X = fill(b.X, 0)
	} else {
		b.Features = fill(b.Features, b.Features.Rank()-1)
	}
	b.Y = fill(b.Y, 0)
	return b
}

// Likelihood evaluates log p(y_batch | phi_j; psi), unscaled. Its methods build graph, and panic as GoMLX does.
type Likelihood struct {
	Model *bayes.BoundModel
	Plan  compute.Plan // of the particle axis
}

// chunk is a part of the particles in the network's suffix.
type chunk struct {
	compute.Span
	params nn.Params // all parameters that the suffix and the likelihood use
}

// evaluation is a pass over all chunks.
type evaluation struct {
	Likelihood
	batch  Batch
	phi    *Node
	prefix nn.Params
	common nn.Params // shared parameters after the prefix
	input  nn.Value  // the prefix's output
	// Of an evaluation of a part of the rows: the number of all rows, and the first of the part, an int32 scalar.
	whole int
	from  *Node
}

// Features is Batch.Features of a batch, for repeated evaluations with the same psi, in the given type.
func (l Likelihood) Features(psi *graph.Node, batch Batch, dtype compute.DType) *graph.Node {
	prefix := l.Model.Unpack(nil, psi, func(s bayes.Slot) bool { return s.InPrefix })
	return l.features(prefix, batch, dtype, true).Node
}

// begin prepares a pass over all particles, phi, [J, D]: what they share, and the prefix's output. The rows are cut
// into parts where the plan says so, if they may be.
func (l Likelihood) begin(phi, psi *Node, batch Batch, cut bool) *evaluation {
	batch = batch.filled()
	if !cut {
		l.Plan.Bytes, l.Plan.Parts = l.Plan.Bytes*int64(max(l.Plan.Parts, 1)), 1
	}
	l.Plan = l.Plan.For(phi)
	e := &evaluation{Likelihood: l, batch: batch, phi: phi}
	e.prefix = l.Model.Unpack(nil, psi, func(s bayes.Slot) bool { return s.InPrefix })
	e.common = l.Model.Unpack(nil, psi, func(s bayes.Slot) bool { return !s.InPrefix && !s.Stochastic })
	if batch.Features != nil {
		e.input = nn.Value{Node: batch.Features}
	} else {
		e.input = l.features(e.prefix, batch, phi.DType(), cut)
	}
	return e
}

// chunk builds the parameters of a chunk, with particles phi, [c, D].
func (e *evaluation) chunk(s compute.Span, phi *Node) chunk {
	block := e.block(phi.Graph(), s.Count, e.batch.rows())
	params := e.Model.Unpack(nn.Block(phi, block), nil, func(s bayes.Slot) bool { return s.Stochastic })
	maps.Copy(params, e.common)
	return chunk{s, params}
}

// outputs returns the network's outputs.
func (e *evaluation) outputs(c chunk) nn.Value { return e.Model.Suffix(c.params, e.input) }

// rows is log p(y_b | phi_j; psi), times the row's weight, in blocks of particles, [., B, .], with 0 for padding.
func (e *evaluation) rows(c chunk, outputs nn.Value) *Node {
	return e.counted(c, outputs, e.Model.LogDensity(c.params, outputs, e.batch.Y))
}

// counted is a density of rows for each particle of the chunk, with 0 for padding.
func (e *evaluation) counted(c chunk, outputs nn.Value, density *Node) *Node {
	if !outputs.PerParticle && density.Shape().Dim(0) != c.Count { // nothing in it is per particle
		density = BroadcastToDims(density, c.Count, density.Shape().Dim(1), 1)
	}
	if mask := e.batch.mask(); mask != nil {
		density = Where(BroadcastToDims(ExpandAxes(mask, -1), density.Shape().Dimensions...), density, ZerosLike(density))
	}
	return density
}

// sum is log p(y_batch | phi_j; psi) of a chunk's particles, [c].
func (e *evaluation) sum(c chunk, outputs nn.Value) *Node {
	density := e.rows(c, outputs)
	blocks, rows, block := density.Shape().Dim(0), density.Shape().Dim(1), density.Shape().Dim(2)
	if block == 1 {
		return compute.RowSums(Reshape(density, blocks, rows))
	}
	return compute.Span{Count: c.Count}.Of(Reshape(ReduceSum(density, 1), blocks*block))
}

// only replaces the outputs, and the likelihood's own parameters, of particles that are not usable, [c], by zeros:
// where a density overflows its gradient may be infinite, and weight 0 times that is NaN.
func (e *evaluation) only(usable *Node, c chunk, outputs nn.Value) (chunk, nn.Value) {
	block := e.block(usable.Graph(), c.Count, e.batch.rows())
	if missing := (block - c.Count%block) % block; missing > 0 {
		usable = Concatenate([]*Node{usable, BroadcastToDims(Const(usable.Graph(), false), missing)}, 0)
	}
	zeroed := func(v nn.Value) nn.Value {
		dims := v.Node.Shape().Dimensions // blocks first, the particles of a block last
		mask := make([]int, len(dims))
		for axis := range mask {
			mask[axis] = 1
		}
		mask[0], mask[len(mask)-1] = dims[0], dims[len(dims)-1]
		v.Node = Where(BroadcastToDims(Reshape(usable, mask...), dims...), v.Node, ZerosLike(v.Node))
		return v
	}
	if outputs.PerParticle {
		outputs = zeroed(outputs)
	}
	c.params = maps.Clone(c.params)
	for _, slot := range e.Model.Slots {
		if slot.Stochastic && slot.Layer == 0 {
			c.params[slot.Name] = zeroed(c.params[slot.Name])
		}
	}
	return c, outputs
}

// LogLikelihood is log p(y_batch | phi_j; psi), [J]: unscaled, and -Inf where it is not finite. phi is [J, D], psi [W]
// or nil.
func (l Likelihood) LogLikelihood(phi, psi *graph.Node, batch Batch) *graph.Node {
	rows, _ := l.begin(phi, psi, batch, true).over(pass{
		rows: [][]int{{}},
		chunk: func(e *evaluation, c chunk, _ []*Node) (rows, sums []*Node) {
			return []*Node{e.sum(c, e.outputs(c))}, nil
		},
	})
	return compute.Gate(rows[0])
}

// LogPredictive is log sum_j w_j p(y_b | phi_j; psi) for each row, times the row's weight, [B], where logWeights, [J],
// are normalised; 0 for padding.
func (l Likelihood) LogPredictive(phi, psi, logWeights *graph.Node, batch Batch) *graph.Node {
	rows := batch.rows()
	_, sums := l.begin(phi, psi, batch, true).over(pass{
		outer: []*Node{logWeights},
		none:  []*Node{BroadcastToDims(ConstAs(phi, math.Inf(-1)), 1, rows)},
		chunk: func(e *evaluation, c chunk, outer []*Node) (_, sums []*Node) {
			outputs := e.outputs(c)
			alone := e.counted(c, outputs, e.Model.LogDensityAlone(c.params, outputs, e.batch.Y))
			density := compute.Gate(nn.Unblock(alone, c.Count)) // [c, B]
			ofRows := compute.LogSumExp(Add(density, ExpandAxes(c.Of(outer[0]), 1)), 0)
			return nil, []*Node{e.ofWhole(ofRows, math.Inf(-1))}
		},
		merge: func(a, b []*Node) []*Node {
			return []*Node{compute.LogSumExp(Concatenate([]*Node{a[0], b[0]}, 0), 0)}
		},
	})
	density := Reshape(sums[0], rows)
	if weights := l.Model.RowWeights(batch.Y); weights != nil {
		density = Mul(density, weights)
	}
	if mask := batch.mask(); mask != nil {
		density = Where(Reshape(mask, rows), density, ZerosLike(density))
	}
	return density
}

// Rows is log p(y_b | phi_j; psi) for each particle and row, [J, B], and 0 for padding. Numbers that are not finite are
// returned as they are.
func (l Likelihood) Rows(phi, psi *graph.Node, batch Batch) *graph.Node {
	rows, _ := l.begin(phi, psi, batch, true).over(pass{
		rows: [][]int{{batch.rows()}},
		chunk: func(e *evaluation, c chunk, _ []*Node) (rows, sums []*Node) {
			return []*Node{e.ofWhole(nn.Unblock(e.rows(c, e.outputs(c)), c.Count), 0)}, nil
		},
	})
	return rows[0]
}

// Posterior is an unnormalised log-posterior of all particles given a batch, log p(phi) + Scale log p(y_batch | phi;
// psi). Full, MiniBatch and Tempered make it: each says what the batches are of.
type Posterior struct {
	Likelihood
	Rows int // N, of MiniBatch

	// Of these at most one is set: Scale is points/B, the number of batches, or the power. It is no function, so that
	// compute.KeyOf has a key for it.
	points  float64
	batches int
	power   *Node
}

// Full is the posterior given all rows: its batches must hold the whole data.
func Full(l Likelihood) Posterior { return Posterior{Likelihood: l} }

// MiniBatch is the posterior given N rows, estimated from batches of n: log p(phi) + (N/n) log p(y_batch | phi; psi).
func MiniBatch(l Likelihood, rows int) Posterior {
	return Posterior{Likelihood: l, Rows: rows, points: float64(rows)}
}

// EqualBatches is MiniBatch where a short batch has the same rows in each epoch, as of a Source: then the number of
// batches takes the place of N/n, by which these rows would count for more than others.
func EqualBatches(l Likelihood, rows, batches int) Posterior {
	return Posterior{Likelihood: l, Rows: rows, batches: batches}
}

// Tempered is the posterior that a number of points, above 0, would give, estimated from batches of B of the data's N
// rows: log p(phi) + (points/B) log p(y_batch | phi; psi). In the mean over batches, or by one batch of all rows, it is
// the tempered posterior, with the likelihood to the power points/N.
func Tempered(l Likelihood, points float64) Posterior {
	return Posterior{Likelihood: l, points: points}
}

// Scale is the factor of the batch's log-likelihood, a scalar: 1, N/n or points/B.
func (p Posterior) Scale(batch Batch) *graph.Node {
	switch {
	case p.points > 0:
		return Div(ConstAs(batch.Y, p.points), batch.count())
	case p.batches > 0:
		return ConstAs(batch.Y, float64(p.batches))
	case p.power != nil:
		return p.power
	}
	return ConstAs(batch.Y, 1.0)
}

// logPosterior is log p(phi_j) + Scale log p(y_batch | phi_j; psi), [J], -Inf where not finite.
func (p Posterior) logPosterior(phi, psi *graph.Node, batch Batch) *graph.Node {
	return compute.Gate(Add(p.Model.LogPrior(phi), Mul(p.Scale(batch), p.LogLikelihood(phi, psi, batch))))
}

// Gradient is the log-posterior, [J], and its gradient with respect to phi, [J, D]. It differentiates the sum over
// particles, which gives each particle's own gradient, since no particle's density depends on another's parameters.
func (p Posterior) Gradient(phi, psi *graph.Node, batch Batch) (value, gradient *graph.Node) {
	rows, _ := p.begin(phi, psi, batch, true).over(pass{
		outer: []*Node{p.Scale(batch)},
		rows:  [][]int{{}, {phi.Shape().Dim(1)}},
		chunk: func(e *evaluation, c chunk, outer []*Node) (rows, sums []*Node) {
			logLik := Mul(e.sum(c, e.outputs(c)), outer[0])
			return []*Node{logLik, e.gradient(c, logLik)}, nil
		},
	})
	prior := p.Model.LogPrior(phi)
	ofPrior := Gradient(ReduceAllSum(prior), phi)[0]
	return compute.Gate(Add(prior, rows[0])), Add(ofPrior, rows[1])
}

// largest is the largest coordinate that a particle may have: a network's sums of squares stay finite.
func largest(dtype compute.DType) float64 {
	if dtype == compute.Float64 {
		return 1e150
	}
	return 1e18
}
