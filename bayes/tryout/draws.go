package tryout

import (
	"fmt"
	"math"

	"gobnn/bayes/compute"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Weights are relative to the distribution of the first particles. Its density must be LogPrior, or the log evidence is
// wrong and nothing shows it. So the draws are tested by a step of random-walk Metropolis under LogPrior, which changes
// no mean if they have that density. For a move by +v or -v, each with probability 1/2, and any function g,
//
//	E[ a(phi, phi + v) (g(phi + v) - g(phi)) + a(phi, phi - v) (g(phi - v) - g(phi)) ] = 0
//
// where a(phi, phi') = min(1, p(phi') / p(phi)) is the probability of acceptance, and the mean is over the draws phi.
// This needs no gradient and no constant, and holds for densities with bounds and jumps too. Two functions g are tried:
// the place along v shows a wrong mean, and its distance from the mean a wrong width. In units of v the terms are from
// -1 to 1, and from -1 to 2. So an empirical Bernstein bound (Maurer and Pontil 2009, Theorem 4) holds for their means,
// whatever the distribution. It refuses fewer than one of 10^9 right priors.

// The sizes of the trial.
const (
	mostDraws    = 4096    // draws
	leastDraws   = 1024    // draws in many dimensions
	drawNumbers  = 1 << 21 // of all moved draws
	triedBlocks  = 16      // of coordinates, each of which is moved by itself
	triedError   = 5e-3    // of rounding in float32
	triedLog     = 26.     // log(2/delta) for 32 delta = 1e-9 or less: two functions and sixteen blocks
	triedOutside = .05     // the most draws, as a share, that may be where the log prior is not finite
)

// DrawsToTry returns the number of draws to test in dim dimensions, and the number of blocks of coordinates. Both are 0
// if there are too many dimensions for a test that costs next to nothing.
func DrawsToTry(dim int) (draws, blocks int) {
	blocks = min(dim, triedBlocks, drawNumbers/(2*leastDraws*dim))
	if blocks == 0 {
		return 0, 0
	}
	return min(mostDraws, drawNumbers/(2*blocks*dim)), blocks
}

// Draws tests draws, [n, D], which by names: Problem.Initial or Problem.Start. Its numbers: those of the draws where
// the log prior is not finite, and then for each g the mean and the standard deviation of the terms in each block.
func (t *Trial) Draws(by string, draws *Node, logPrior func(phi *Node) *Node) {
	_, blocks := DrawsToTry(draws.Shape().Dim(1))
	g, dtype, n, d := draws.Graph(), draws.DType(), draws.Shape().Dim(0), draws.Shape().Dim(1)
	share := make([][]float64, blocks) // 1 over the root of the block's size, [K, D]
	for k := range share {
		share[k] = make([]float64, d)
		first, end := blockOf(k, d, blocks)
		for i := first; i < end; i++ {
			share[k][i] = 1 / math.Sqrt(float64(end-first))
		}
	}
	in := ConvertDType(Const(g, share), dtype)
	centred := Sub(draws, ReduceAndKeep(draws, ReduceMean, 0))
	stdDev := Sqrt(ReduceMean(Square(centred), 0))
	stdDev = Where(GreaterThan(stdDev, ZerosLike(stdDev)), stdDev, OnesLike(stdDev)) // of draws that are all the same
	along := Einsum("nd,kd->nk", Div(centred, BroadcastToShape(ExpandAxes(stdDev, 0), centred.Shape())), in)
	move := Mul(in, BroadcastToShape(ExpandAxes(stdDev, 0), in.Shape()))

	density := func(phi *Node, dims ...int) *Node {
		logDensity := logPrior(phi)
		if want := shapes.Make(dtype, phi.Shape().Dim(0)); !logDensity.Shape().Equal(want) {
			panic(fmt.Errorf("the log prior has shape %s: it must be %s", logDensity.Shape(), want))
		}
		return Reshape(compute.Gate(logDensity), dims...)
	}
	here := density(draws, n, 1)
	outside := ReduceAllSum(ConvertDType(Not(IsFinite(here)), dtype))
	all := shapes.Make(dtype, n, blocks)
	shift, spread := Zeros(g, all), Zeros(g, all)
	for _, sign := range []float64{1, -1} {
		to := Add(BroadcastToDims(ExpandAxes(draws, 1), n, blocks, d),
			BroadcastToDims(ExpandAxes(MulScalar(move, sign), 0), n, blocks, d))
		there := density(Reshape(to, n*blocks, d), n, blocks)
		accepted := Exp(MinScalar(Sub(there, BroadcastToShape(here, all)), 0))
		accepted = Where(IsFinite(there), accepted, ZerosLike(accepted)) // 1 from where the density is 0 to where it is not
		shift = Add(shift, MulScalar(accepted, sign))
		spread = Add(spread, Mul(accepted, Sub(Abs(AddScalar(along, sign)), Abs(along))))
	}
	record := []*Node{Reshape(outside, 1)}
	for _, terms := range []*Node{shift, spread} {
		mean := ReduceMean(terms, 0)
		variance := ReduceMean(Square(Sub(terms, BroadcastToShape(ExpandAxes(mean, 0), all))), 0)
		record = append(record, mean, Sqrt(variance))
	}
	t.add(Concatenate(record, 0),
		func(record []float64) error { return checkDraws(record, n, d, by) })
}

// blockOf returns the coordinates of block k: from first to end - 1.
func blockOf(k, d, blocks int) (first, end int) { return k * d / blocks, (k + 1) * d / blocks }

// checkDraws returns an error if, by the record of their trial, draws in dim dimensions do not have the density of the
// log prior.
func checkDraws(record []float64, draws, dim int, by string) error {
	cure := by + " must draw from the density that LogPrior computes, since weights and the log evidence are relative " +
		"to it"
	if by != "Problem.Initial" {
		cure = by + " must hold independent draws from the density that LogPrior computes, since weights and the log " +
			"evidence are relative to it: leave it out, and the particles begin at draws of Problem.Initial"
	}
	if outside := record[0]; outside > triedOutside*float64(draws) {
		return fmt.Errorf("the log prior is not finite at %.0f of %d draws of %s: %s", outside, draws, by, cure)
	}
	_, blocks := DrawsToTry(dim)
	n := float64(draws)
	for f, what := range []struct {
		is    string
		width float64 // the terms' largest less their smallest
	}{{"mean", 2}, {"mean distance from their mean", 3}} {
		at := 1 + 2*f*blocks
		for k := range blocks {
			mean, stdDev := record[at+k], record[at+blocks+k]
			bound := stdDev*math.Sqrt(2*triedLog/n) + 7*triedLog*what.width/(3*(n-1)) + triedError
			if math.Abs(mean) <= bound {
				continue
			}
			coordinates := fmt.Sprintf("coordinate %d", k)
			if blocks < dim {
				first, end := blockOf(k, dim, blocks)
				coordinates = fmt.Sprintf("coordinates %d to %d", first, end-1)
			}
			return fmt.Errorf("%s and the target's LogPrior are different distributions: a step of Metropolis "+
				"under LogPrior must leave the draws' means as they are, and changes the %s of %d draws, in %s, by %.3g of "+
				"their standard deviations, where chance allows %.2g: %s", by, what.is, draws, coordinates, mean/2, bound/2, cure)
		}
	}
	return nil
}
