package pbnn

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	"github.com/gomlx/gomlx/core/graph"
)

// miniBatches is a FromMiniBatches target of a network in a graph: M mini-batches of n of the N rows, each without
// replacement and independent of the others, drawn in the graph for each move.
//
// All chains use the same rows: they are gathered once, and the network's first layer is one matrix product for all
// chains. Each chain has the distribution that it would have with rows of its own, but the chains are not independent
// of one another: compute standard errors along each chain, not from the differences between chains.
type miniBatches struct {
	likelihood density.Likelihood // of all chains on all M n rows
	points     float64            // that the likelihood counts for
	rows       int                // N
	size       int                // n
	batches    int                // M
	// data has x, [N, d], or the features from the shared layers before the first stochastic one, [N, width]; y, [N];
	// and psi, [W], if anything is shared.
	data compute.Nodes
}

var _ density.MiniBatchTarget = miniBatches{}

// draw gathers the rows of M mini-batches, one after the other: [M n] rows.
func (t miniBatches) draw(rng random.Stream) density.Batch {
	rows := graph.Reshape(rng.Named("rows").Subsets(t.batches, t.rows, t.size), t.batches*t.size, 1)
	return density.BatchOf(t.data, rows)
}

// all is the target estimated from all rows of a batch: the mean over the M mini-batches.
func (t miniBatches) all(batch density.Batch) density.Target {
	return density.At(density.Tempered(t.likelihood, t.points), t.data["psi"], batch)
}

// WithMiniBatch implements density.MiniBatchTarget: minus the mean of the M mini-batches' losses.
func (t miniBatches) WithMiniBatch(rng random.Stream) density.Target { return t.all(t.draw(rng)) }

// LogDensity implements density.Target, on all rows, for use outside of moves.
func (t miniBatches) LogDensity(phi *graph.Node) *graph.Node {
	return t.all(density.BatchOf(t.data, nil)).LogDensity(phi)
}

// Gradient implements density.Target, on all rows.
func (t miniBatches) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return t.all(density.BatchOf(t.data, nil)).Gradient(phi)
}

// Differences implements density.MiniBatchTarget: -d_i of eq. 24, [J, M], and the variance of one of them, from the
// sample variance S^2 of its rows' contributions, pooled over the mini-batches: for n of N rows without replacement it
// is scale^2 n (1 - n/N) S^2 (Cochran 1977, theorem 2.1).
func (t miniBatches) Differences(
	rng random.Stream, from, to *graph.Node,
) (estimates, variance *graph.Node, degrees float64) {
	batch, psi := t.draw(rng), t.data["psi"]
	// Row by row and then summed: a difference of two large sums would have larger rounding errors.
	byRow := graph.Sub(t.likelihood.Rows(to, psi, batch), t.likelihood.Rows(from, psi, batch)) // [J, M n]
	byRow = graph.Reshape(byRow, from.Shape().Dim(0)*t.batches, t.size)
	sums := graph.Reshape(compute.RowSums(byRow), from.Shape().Dim(0), t.batches)
	prior := graph.Sub(t.likelihood.Model.LogPrior(to), t.likelihood.Model.LogPrior(from)) // [J]
	n := float64(t.size)
	scale := t.points / n
	estimates = graph.Add(graph.MulScalar(sums, scale), graph.BroadcastToShape(graph.ExpandAxes(prior, 1), sums.Shape()))
	if t.size < 2 {
		return estimates, nil, 0
	}
	_, ofRows := sample(byRow) // [J M]
	pooled := graph.DivScalar(compute.RowSums(graph.Reshape(ofRows, sums.Shape().Dimensions...)), float64(t.batches))
	return estimates, graph.MulScalar(pooled, scale*scale*n*(1-n/float64(t.rows))), float64(t.batches) * (n - 1)
}
