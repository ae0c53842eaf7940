package mcmc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// every kernel of this file's tests, for two dimensions.
func every() []Kernel {
	return []Kernel{
		RandomWalk{Variance: .04}, OrnsteinUhlenbeck{Time: .2}, RandomWalkMetropolis{StepSize: .5},
		PreconditionedCrankNicolson{Beta: .3},
		MALA{StepSize: .4}, SGLD{StepSize: .1, Decay: .6}, SGHMC{LearningRate: .05},
		HMC{StepSize: .3, Steps: 4, Jitter: .5},
	}
}

// noGradient is a standard normal, in one dimension, whose gradient is NaN above 1.
type noGradient struct{ density.Func }

func (n noGradient) Gradient(phi *Node) (logDensity, gradient *Node) {
	logDensity, gradient = n.Func.Gradient(phi)
	return logDensity, Where(GreaterThan(phi, OnesLike(phi)), Sqrt(Neg(OnesLike(phi))), gradient)
}

func aboveOne() (plain, holed density.Target) {
	normal := density.Func(func(phi *Node) *Node { return MulScalar(Square(Squeeze(phi, 1)), -.5) })
	return normal, noGradient{normal}
}

// Where the gradient at a proposal is not finite, the kernels that accept or reject stay, in that particle alone, and
// count it: they leave the normal below 1 invariant. HMC does with trajectories that only pass there, which are as many
// in both directions.
func TestGradientIsNotFinite(t *testing.T) {
	plain, holed := aboveOne()
	below := distuv.UnitNormal.CDF(1)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		r := rand.New(rand.NewPCG(1, 2))
		phi := make([]float64, j)
		for i := range phi {
			phi[i] = distuv.UnitNormal.Quantile(below * r.Float64())
		}
		for _, kernel := range []Kernel{MALA{StepSize: 1.2}, HMC{StepSize: .9, Steps: 3}} {
			if _, hmc := kernel.(HMC); engine.IsXLA() && hmc {
				continue // compiles long
			}
			free, _, _ := mover(t, engine, dtype, kernel, 1, plain)(phi, 1)
			move := mover(t, engine, dtype, kernel, 1, holed)
			first, _, nonFinite := move(phi, 1)
			for i := range phi {
				if nonFinite[i] == 0 && math.Abs(first[i]-free[i]) > 1e-6 {
					t.Fatalf("%T: particle %d met no NaN, but went to %v instead of %v", kernel, i, first[i], free[i])
				}
				if nonFinite[i] == 0 && free[i] > 1 {
					t.Fatalf("%T: particle %d met NaN at %v, which is not counted", kernel, i, free[i])
				}
				if nonFinite[i] != 0 && math.Abs(first[i]-phi[i]) > 1e-6 {
					t.Fatalf("%T: particle %d met NaN, but went from %v to %v", kernel, i, phi[i], first[i])
				}
			}
			if share := stat.Mean(nonFinite, nil); share < .05 || share > .5 {
				t.Errorf("%T: %.2f of the particles met NaN: this tests little", kernel, share)
			}
			after, _, _ := move(first, 20)
			follows(
				t, fmt.Sprintf("%T: the normal below 1", kernel), after,
				func(x float64) float64 { return min(1, distuv.UnitNormal.CDF(x)/below) },
			)
		}
	})
}

// Kernels without accept or reject step to where the gradient is not finite and find it there: that particle alone
// goes back, and is counted.
func TestUnadjustedGoBack(t *testing.T) {
	plain, holed := aboveOne()
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		phi := make([]float64, 200)
		for i := range phi {
			phi[i] = float64(float32(1 - float64(i)/100))
		}
		phi[17] = math.NaN()
		for _, kernel := range []Kernel{SGLD{StepSize: .5}, SGHMC{LearningRate: .5, Friction: .5}} {
			if _, sgld := kernel.(SGLD); engine.IsXLA() && !sgld {
				continue // compiles long
			}
			var step uint32
			free := countedMover(t, engine, dtype, kernel, 1, plain, nil, &step)
			once, _, _ := free(phi, 1)
			step = 0
			twice, _, _ := free(phi, 2)
			after, _, nonFinite := mover(t, engine, dtype, kernel, 1, holed)(phi, 2)
			back := 0
			for i := range phi {
				switch {
				case i == 17:
					if !math.IsNaN(after[i]) || nonFinite[i] != 2 {
						t.Errorf("%T: the particle that is NaN went to %v, and counts %v", kernel, after[i], nonFinite[i])
					}
				case once[i] > 1:
					back++
					if math.Abs(after[i]-phi[i]) > 1e-6 || nonFinite[i] != 1 {
						t.Errorf(
							"%T: particle %d went from %v to %v, where the gradient is NaN, and then to %v, counting %v", kernel, i, phi[i],
							once[i], after[i], nonFinite[i],
						)
					}
				case math.Abs(after[i]-twice[i]) > 1e-6 || nonFinite[i] != 0:
					t.Errorf(
						"%T: particle %d met no NaN, but went to %v instead of %v, counting %v", kernel, i, after[i], twice[i],
						nonFinite[i],
					)
				}
			}
			if back < 10 {
				t.Errorf("%T: %d particles met NaN: this tests little", kernel, back)
			}
		}
	})
}

// Where the energy rises without bound a trajectory ends early, as a rejection, and is divergent: in a steep well with
// a step far too long.
func TestDivergence(t *testing.T) {
	steep := density.Func(func(phi *Node) *Node { return MulScalar(Square(Squeeze(phi, 1)), -.5e6) })
	kernel := HMC{StepSize: .1, Steps: 50}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		out := computetest.Run(t, engine, func(g *Graph, a []*Node) []*Node {
			s := Start(kernel, random.New(g, 5), a[0], steep)
			next, info := kernel.Move(random.New(g, 5), s, steep, Tuning{})
			return []*Node{next.Phi, info.Divergent, info.Complete, info.Accepted, info.Acceptance, info.Length, info.NonFinite}
		}, compute.Floats(dtype, []float64{.5, 1, 0, math.NaN()}, 4, 1))
		for i, want := range []float64{.5, 1, 0, math.NaN()} {
			nonFinite := 0.0
			if i == 3 {
				nonFinite = 1
			}
			if got := []float64{
				out[1][i], out[2][i], out[3][i], out[4][i], out[5][i], out[6][i],
			}; !slices.Equal(got, []float64{1, 1, 0, 0, 1, nonFinite}) {
				t.Errorf("particle %d: divergent, complete, accepted, acceptance, length, not finite: %v", i, got)
			}
			if out[0][i] != want && !math.IsNaN(want) {
				t.Errorf("particle %d went from %v to %v", i, want, out[0][i])
			}
		}
	})
}
