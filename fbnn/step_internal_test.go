package fbnn

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// gaussianJob is a run whose true posterior is N(at, diag(1/precision)), about 0 without at, and an evaluator of any
// other such.
func gaussianJob(t *testing.T, precision []float64, at ...float64) (*ces, func(precision []float64) density.Problem) {
	t.Helper()
	problem := func(precision []float64) density.Problem {
		return density.Problem{
			Dim: len(precision), Target: func(compute.Nodes, []*Node) density.Target {
				return density.Func(func(theta *Node) *Node {
					row := func(values []float64) *Node {
						return BroadcastToShape(ConvertDType(Const(theta.Graph(), [][]float64{values}), theta.DType()), theta.Shape())
					}
					p := row(precision)
					if at != nil {
						theta = Sub(theta, row(at))
					}
					return MulScalar(ReduceSum(Mul(p, Square(theta)), 1), -.5)
				})
			},
		}
	}
	own := &job{Job: &fit.Job{Settings: run.Settings{Engine: computetest.Go(t), DType: compute.Float64, Seed: 5}}}
	truth, err := newEvaluator(own, problem(precision))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(truth.Close)
	return &ces{job: own, truth: truth, details: &Details{}}, problem
}

// logNormal is the log-density of N(0, diag(1/precision)) at x, up to a constant.
func logNormal(x, precision []float64) (sum float64) {
	for i, v := range x {
		sum -= precision[i] * v * v / 2
	}
	return sum
}

// stepByLoops is the candidate with the largest mean of min(1, r) |jump|^2, where r is the ratio of the true densities
// over that of the emulated ones to the given power, which is 1. Its trajectories have momenta of its own.
func stepByLoops(begin *mat.Dense, truth, cheap []float64, steps int, power float64) (chosen float64) {
	furthest := 0.
	for step := 1.; step > 1e-3; step /= 2 {
		rng := rand.New(rand.NewPCG(5, 6)) // the same for each candidate
		jump, accepted := 0., 0.
		for range 20 { // trajectories from each place
			for j := range atOnce {
				from := begin.RawRowView(j)
				x, p := mat.Row(nil, j, begin), make([]float64, len(truth))
				for i := range p {
					p[i] = rng.NormFloat64()
				}
				before := floats.Dot(p, p)/2 - logNormal(x, cheap)
				for i := range x {
					for range steps { // the leapfrog
						p[i] -= step / 2 * cheap[i] * x[i]
						x[i] += step * p[i]
						p[i] -= step / 2 * cheap[i] * x[i]
					}
				}
				if rng.Float64() >= math.Exp(before-floats.Dot(p, p)/2+logNormal(x, cheap)) {
					continue
				}
				ratio := logNormal(x, truth) - logNormal(from, truth) - power*(logNormal(x, cheap)-logNormal(from, cheap))
				length := floats.Distance(x, from, 2)
				jump += min(1, math.Exp(ratio)) * length * length
				accepted += min(1, math.Exp(ratio)) / (20 * atOnce)
			}
		}
		if accepted >= .15 && jump > furthest {
			chosen, furthest = step, jump
		}
		if accepted > .9 {
			break
		}
	}
	return chosen
}

// The step of an HMC on an emulated posterior that is wrong in one of several directions is the one that plain loops
// choose, and not the one that they choose where the emulated densities are left out, or count the other way round.
func TestChosenStep(t *testing.T) {
	for name, c := range map[string]struct {
		d, steps int
		precise  float64 // the true precision over the emulated one, in the first direction
	}{"too wide": {4, 20, 30}, "too narrow": {30, 20, 1. / 400}} {
		truth, cheap := make([]float64, c.d), make([]float64, c.d)
		for i := range c.d {
			truth[i] = 1 + float64(i)/3
			cheap[i] = truth[i]
		}
		truth[0] *= c.precise
		r, problem := gaussianJob(t, truth)
		rng := rand.New(rand.NewPCG(1, 2))
		begin := mat.NewDense(atOnce, c.d, nil)
		begin.Apply(func(_, i int, _ float64) float64 { return rng.NormFloat64() / math.Sqrt(truth[i]) }, begin)
		emulator, err := newEvaluator(r.job, problem(cheap))
		if err != nil {
			t.Fatal(err)
		}
		defer emulator.Close()
		got, err := r.chosenStep(t.Context(), problem(cheap), emulator, begin, mcmc.HMC{Steps: c.steps})
		if err != nil {
			t.Fatal(err)
		}
		for power, same := range map[float64]bool{1: true, 0: false, -1: false} {
			if !same && name == "too wide" {
				continue // there all choose the same
			}
			if step := stepByLoops(begin, truth, cheap, c.steps, power); (got == step) != same {
				t.Errorf("%s: the step is %v, by loops with the emulated densities to the power %v it is %v", name, got, power,
					step)
			}
		}
	}
}

// At the Beta that is chosen for a pCN, on a Gaussian posterior that is narrower than the prior, plain loops give an
// acceptance of .3: proposals sqrt(1 - Beta^2) theta + Beta xi, with xi from the prior N(0, s^2), and the ratio of the
// likelihoods. A posterior far from the prior's mean shows the root: by 1 - Beta in its place proposals would be drawn
// towards that mean. The choice is by 50 proposals, whose mean has a standard error of at most .06: a false alarm is
// rarer than one in 50 changes of the random numbers.
func TestAcceptedBeta(t *testing.T) {
	precision := []float64{300, 80}
	k := mcmc.PreconditionedCrankNicolson{StdDev: []float64{2, 1.5}}
	for _, at := range [][]float64{{0, 0}, {5, -8}} {
		r, _ := gaussianJob(t, precision, at...)
		begin := mat.NewDense(2, 2, []float64{at[0] + .03, at[1] - .04, at[0] - .02, at[1] + .09})
		beta, err := r.acceptedBeta(t.Context(), r.truth, begin, k)
		if err != nil {
			t.Fatal(err)
		}
		likelihood := func(x []float64) float64 {
			sum := logNormal([]float64{x[0] - at[0], x[1] - at[1]}, precision)
			for i, v := range x {
				z := v / k.StdDev[i]
				sum += z * z / 2
			}
			return sum
		}
		rng, got := rand.New(rand.NewPCG(8, 9)), 0.
		const proposals = 20_000
		for j := range proposals {
			from, to := begin.RawRowView(j%2), make([]float64, 2)
			for i, s := range k.StdDev {
				to[i] = math.Sqrt(1-beta*beta)*from[i] + beta*s*rng.NormFloat64()
			}
			got += min(1, math.Exp(likelihood(to)-likelihood(from))) / proposals
		}
		if math.Abs(got-wanted) > .15 {
			t.Errorf("about %v beta %v is accepted with %v, want %v", at, beta, got, wanted)
		}
	}
}

// The centre and the scale are of the first four fifths of the pairs, whatever is held out.
func TestHeldOutPairsAreNotLearnt(t *testing.T) {
	const rows, learnt = 50, 40
	rng := rand.New(rand.NewPCG(3, 4))
	theta := mat.NewDense(rows, 2, nil)
	theta.Apply(func(j, i int, _ float64) float64 {
		if j >= learnt {
			return 1e6
		}
		return float64(i) + rng.NormFloat64()
	}, theta)
	p, err := newPairs(theta, make([]float64, rows))
	if err != nil {
		t.Fatal(err)
	}
	if p.learnt != learnt {
		t.Errorf("%d pairs are learnt, want %d", p.learnt, learnt)
	}
	for i := range 2 {
		mean, sd := stat.PopMeanStdDev(mat.Col(nil, i, theta)[:learnt], nil)
		computetest.Near(t, "centre and scale", []float64{p.center[i], p.scale[i]}, []float64{mean, sd}, 1e-12)
	}
}
