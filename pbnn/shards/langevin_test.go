package shards

import (
	"math"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/pbnn"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/integrate"
)

// quartic is exp(-x^4/4 + x/2) in one dimension, whose gradient is seen through the factor and the shift of the
// mini-batch at hand; its differences are exact.
type quartic struct {
	factor, shift float64
}

func (q quartic) LogDensity(phi *Node) *Node {
	return ReduceSum(Add(MulScalar(Square(Square(phi)), -.25), MulScalar(phi, .5)), 1)
}

func (q quartic) Gradient(phi *Node) (logDensity, gradient *Node) {
	return density.Func(q.LogDensity).Gradient(phi)
}

func (q quartic) WithMiniBatch(random.Stream) density.Target {
	return density.Func(func(phi *Node) *Node {
		return Add(MulScalar(q.LogDensity(phi), q.factor), ReduceSum(MulScalar(phi, q.shift), 1))
	})
}

func (q quartic) Differences(_ random.Stream, from, to *Node) (estimates, variance *Node, degrees float64) {
	d := ExpandAxes(Sub(q.LogDensity(to), q.LogDensity(from)), 1)
	return Concatenate([]*Node{d, d}, 1), nil, 0
}

// A step of two moves, the second by what is asked where the first has proposed, leaves the distribution invariant:
// chains that begin on a grid, weighted by the distribution, have after it the moments that a quadrature gives, though
// the gradient is wrong by a factor and a shift. 200 draws for each of 801 places: the standard errors are below 0.002.
func TestLangevinAgainstQuadrature(t *testing.T) {
	const places, copies = 801, 200
	x, weights, moments := make([]float64, places), make([]float64, places), [3]float64{}
	for i := range x {
		x[i] = -4 + 8*float64(i)/(places-1)
		weights[i] = math.Exp(-math.Pow(x[i], 4)/4 + x[i]/2)
	}
	total := integrate.Simpsons(x, weights)
	for power := range moments {
		values := make([]float64, places)
		for i := range x {
			values[i] = math.Pow(x[i], float64(power+1)) * weights[i] / total
		}
		moments[power] = integrate.Simpsons(x, values)
	}
	from := make([][]float64, 0, places*copies)
	for i := range places * copies {
		from = append(from, []float64{x[i/copies]})
	}
	over := langevin{kernel{Estimate: pbnn.MeanOfBatches, Rule: pbnn.Penalty, StepSize: .8}}
	distribution := quartic{factor: 1.4, shift: -.3}
	after := computetest.Run(t, computetest.Go(t), func(g *Graph, a []*Node) []*Node {
		rng, phi := random.New(g, 11), a[0]
		s := over.Start(rng, mcmc.State{Phi: phi})
		s, first := over.Move(rng.Named("first"), s, distribution, mcmc.Tuning{})
		s, second := over.Move(rng.Named("second"), s, distribution, mcmc.Tuning{})
		complete := Mul(OneMinus(ReduceAllMax(first.Complete)), ReduceAllMin(second.Complete)) // 0 would leave nothing
		return []*Node{Mul(s.Phi, BroadcastToShape(complete, phi.Shape()))}
	}, from)[0]
	for power, want := range moments {
		mean := make([]float64, places)
		for i, v := range after {
			mean[i/copies] += math.Pow(v, float64(power+1)) / copies
		}
		for i := range mean {
			mean[i] *= weights[i] / total
		}
		if got := integrate.Simpsons(x, mean); math.Abs(got-want) > .01 {
			t.Errorf("moment %d after a step: %.4f, by the quadrature %.4f", power+1, got, want)
		}
	}
}
