package fbnn

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// gaussianJob is a run whose true posterior is N(0, diag(1/precision)), and an evaluator of any other such.
func gaussianJob(t *testing.T, precision []float64) (*ces, func(precision []float64) density.Problem) {
	t.Helper()
	problem := func(precision []float64) density.Problem {
		return density.Problem{
			Dim: len(precision), Target: func(compute.Nodes, []*Node) density.Target {
				return density.Func(func(theta *Node) *Node {
					p := BroadcastToShape(ConvertDType(Const(theta.Graph(), [][]float64{precision}), theta.DType()), theta.Shape())
					return MulScalar(ReduceSum(Mul(p, Square(theta)), 1), -.5)
				})
			},
		}
	}
	job := &Job{Settings: Settings{Engine: computetest.Go(t), DType: compute.Float64, Seed: 5}}
	truth, err := newEvaluator(job, problem(precision))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(truth.Close)
	return &ces{CES: CES{Transitions: 2}, Job: job, truth: truth, result: &Result{}}, problem
}

// logNormal is the log-density of N(0, diag(1/precision)) at x, up to a constant.
func logNormal(x, precision []float64) (sum float64) {
	for i, v := range x {
		sum -= precision[i] * v * v / 2
	}
	return sum
}

// stepByLoops is the candidate with the largest mean of min(1, r) |jump|^2, where r is the ratio of the true densities
// over that of the emulated ones to the given power, which is 1. Its trajectories have the momenta of r.transitions.
func stepByLoops(r *ces, begin *mat.Dense, truth, cheap []float64, steps int, power float64) (chosen float64) {
	furthest := 0.
	for step := 1.; step > 1e-3; step /= 2 {
		rng := rand.New(rand.NewPCG(r.Seed, 0x73746570)) // the same for each candidate
		at := mat.DenseCopyOf(begin)
		for range r.Transitions {
			momenta := mat.NewDense(atOnce, len(truth), nil)
			momenta.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, momenta)
			for j := range atOnce {
				x, p := mat.Row(nil, j, at), momenta.RawRowView(j)
				before := floats.Dot(p, p)/2 - logNormal(x, cheap)
				for i := range x {
					for range steps { // the leapfrog
						p[i] -= step / 2 * cheap[i] * x[i]
						x[i] += step * p[i]
						p[i] -= step / 2 * cheap[i] * x[i]
					}
				}
				if rng.Float64() < math.Exp(before-floats.Dot(p, p)/2+logNormal(x, cheap)) {
					at.SetRow(j, x)
				}
			}
		}
		jump, accepted := 0., 0.
		for j := range atOnce {
			x, from := at.RawRowView(j), begin.RawRowView(j)
			ratio := logNormal(x, truth) - logNormal(from, truth) - power*(logNormal(x, cheap)-logNormal(from, cheap))
			if length := floats.Distance(x, from, 2); length > 0 {
				jump += min(1, math.Exp(ratio)) * length * length
				accepted += min(1, math.Exp(ratio)) / atOnce
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
	}{"too wide": {4, 8, 100}, "too narrow": {30, 20, 1. / 36}} {
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
		got, err := r.chosenStep(t.Context(), problem(cheap), begin, mcmc.HMC{Steps: c.steps})
		if err != nil {
			t.Fatal(err)
		}
		for power, same := range map[float64]bool{1: true, 0: false, -1: false} {
			if step := stepByLoops(r, begin, truth, cheap, c.steps, power); (got == step) != same {
				t.Errorf("%s: the step is %v, by loops with the emulated densities to the power %v it is %v", name, got, power,
					step)
			}
		}
	}
}

// A trial of pCN's Beta, on a Gaussian posterior that is narrower than the prior, has the acceptance that plain loops
// give: proposals m + sqrt(1 - Beta^2) (theta - m) + Beta xi, with xi from the prior N(m, s^2) about its mean, and the
// ratio of the likelihoods.
func TestBetaTrial(t *testing.T) {
	precision := []float64{3, .8}
	r, _ := gaussianJob(t, precision)
	k := mcmc.PreconditionedCrankNicolson{Mean: []float64{.5, -1}, StdDev: []float64{2, 1.5}}
	begin := mat.NewDense(2, 2, []float64{.3, -.4, -.2, .9})
	trial := newBetaTrial(r.truth, begin, k, 7)
	before, err := trial.beyond(t.Context(), trial.from)
	if err != nil {
		t.Fatal(err)
	}
	likelihood := func(x []float64) float64 {
		sum := logNormal(x, precision)
		for i, v := range x {
			z := (v - k.Mean[i]) / k.StdDev[i]
			sum += z * z / 2
		}
		return sum
	}
	for _, beta := range []float64{.1, .5, .9} {
		got, err := trial.acceptance(t.Context(), beta, before)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.
		for j := range atOnce {
			from, to := begin.RawRowView(j%2), make([]float64, 2)
			for i, m := range k.Mean {
				to[i] = m + math.Sqrt(1-beta*beta)*(from[i]-m) + beta*trial.noise.At(j, i)
			}
			want += min(1, math.Exp(likelihood(to)-likelihood(from))) / atOnce
		}
		if math.Abs(got-want) > 1e-12 || want < .1 || want > .99 {
			t.Errorf("beta %v is accepted with %v, want %v", beta, got, want)
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
