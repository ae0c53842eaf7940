package pbnn

import (
	"context"
	"errors"
	"math"
	"sync"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat/distuv"
)

// Barker accepts by the mini-batch test of Seita, Pan, Chen and Canny (2017, algorithm 1). Barker's test, with the
// exact difference of the losses for delta, accepts if
//
//	-delta + log q(theta | theta') - log q(theta' | theta) + X_log > 0
//
// where X_log is a random number with the logistic distribution: the sum of a standard normal and a correction X_corr,
// which is drawn from a distribution chosen for this. If delta is an estimate with Gaussian noise of variance s <= 1,
// this noise serves as a part of the standard normal. So a normal of variance 1 - s and X_corr are added in place of
// X_log, and the test is right without a penalty.
//
// Mini-batches are drawn, Batches at a time, until s <= 1 or the answer is beyond doubt, separately for each chain: a
// move is one round of Batches mini-batches, and a transition is as many rounds as it takes. So the cost adapts to the
// proposal, while the penalty costs the same for all proposals. But Barker's test accepts less often than the
// Metropolis rule, half as often where the losses are equal, and the worst proposals cost most.
//
// No distribution of X_corr makes the sum exactly logistic; with the one used here it is within 2e-4 in distribution
// (see correction). As with the penalty, the noise must be Gaussian, and s is itself an estimate, which here also says
// when to stop.
type Barker struct {
	Sampling
	Target    FromMiniBatches `json:"target,omitempty"` // default TargetFull{}
	BatchSize int             `json:"batch_size"`       // n; default 100, or all rows if there are fewer
	Batches   int             `json:"batches"`          // M of a round, at least 2; default 10
	Proposal  Proposal        `json:"proposal"`         // default RandomWalk
	StepSize  float64         `json:"step_size"`        // h = sqrt(2 eta); 0: a warm-up chooses
}

var _ Sampler = Barker{}

// Title implements fit.Method.
func (b Barker) Title() string { return title(b, b.Target) }

// metropolis is a Metropolis with the settings that both types have.
func (b Barker) metropolis() Metropolis {
	return Metropolis{
		Sampling: b.Sampling, Target: b.Target, BatchSize: b.BatchSize, Batches: b.Batches, Proposal: b.Proposal,
		StepSize: b.StepSize, Estimate: MeanOfBatches, Rule: Corrected,
	}
}

// Prepare implements fit.Method.
func (b Barker) Prepare(j *fit.Job) (fit.Method, error) {
	if b.Batches == 1 {
		return nil, errors.New("pbnn: Barker.Batches is 1: it must be at least 2, as one mini-batch has no variance (0: 10)")
	}
	m, err := b.metropolis().prepared("Barker", j)
	return Barker{m.Sampling, m.Target, m.BatchSize, m.Batches, m.Proposal, m.StepSize}, err
}

// Run implements fit.Method.
func (b Barker) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return Run(ctx, j, b, b.Target)
}

// Problem implements Sampler.
func (b Barker) Problem(d *Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := d.MiniBatches(b.Target, b.BatchSize, b.Batches)
	return problem, barker{kernel{b.Proposal, MeanOfBatches, Corrected, b.StepSize}}, err
}

// A proposal so far away that neither the logistic number nor the noise can change the answer is answered, whatever s
// is: a first step may be wrong by thousands of nats, whose s only millions of rows would bring down to 1. The logistic
// number is beyond 40 with a probability of 1e-17, the mean of ten differences ten of its own standard errors off with
// one of 4e-6.
const farLogistic, farErrors = 40, 10

// barker is the kernel of Barker's test: a move is a round of mini-batches for all chains. It carries, for each chain,
// the proposal, the log-ratio of the proposal densities, and the mean, sum of squared deviations and number of the
// differences so far.
type barker struct{ kernel }

var (
	_ mcmc.Stateful = barker{}
	_ mcmc.Tunable  = barker{}
)

// Tune implements mcmc.Tunable: for the random walk 0.158 is best in many dimensions (Agrawal, Vats, Latuszynski and
// Roberts 2023); for Langevin's proposal, MALA's 0.574 lowered in about the same ratio.
func (k barker) Tune() (stepSize, acceptance float64) {
	if k.Proposal == Langevin {
		return k.StepSize, 0.35
	}
	return k.StepSize, 0.158
}

// Start implements mcmc.Stateful.
func (k barker) Start(_ random.Stream, s mcmc.State) mcmc.State {
	zero := graph.Zeros(s.Phi.Graph(), s.PerParticle())
	s.Auxiliary = map[string]*graph.Node{"proposal": s.Phi, "ratio": zero, "mean": zero, "squares": zero, "count": zero}
	return s
}

// Move implements mcmc.Kernel.
func (k barker) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	losses := byMiniBatches(target)
	count := s.Auxiliary["count"]
	fresh := graph.Equal(count, graph.ZerosLike(count))
	proposal, ratio := k.propose(rng, s.Phi, losses, tuning)
	proposal = mcmc.Choose(fresh, proposal, s.Auxiliary["proposal"])
	ratio = graph.Where(fresh, ratio, s.Auxiliary["ratio"])

	// Mean and squared deviations are updated by the round's differences (Chan, Golub and LeVeque 1983).
	differences, _, _ := losses.Differences(rng.Named("differences"), s.Phi, proposal) // [J, M], -d_i
	m := float64(differences.Shape().Dim(1))
	mean, variance := sample(differences)
	apart := graph.Sub(mean, s.Auxiliary["mean"])
	total := graph.AddScalar(count, m)
	mean = graph.Add(s.Auxiliary["mean"], graph.Div(graph.MulScalar(apart, m), total))
	squares := graph.Add(graph.MulScalar(variance, m-1),
		graph.Div(graph.Mul(graph.Square(apart), graph.MulScalar(count, m)), total))
	squares = graph.Add(squares, s.Auxiliary["squares"])
	noise := graph.Div(squares, graph.Mul(total, graph.AddScalar(total, -1))) // s, of the mean: eq. 25

	dtype, chains := s.Phi.DType(), s.Phi.Shape().Dim(0)
	logRatio := graph.Add(mean, ratio)
	finite := graph.And(graph.And(graph.IsFinite(logRatio), graph.IsFinite(noise)),
		compute.RowsAll(graph.IsFinite(proposal), dtype))
	far := graph.AddScalar(graph.MulScalar(graph.Sqrt(noise), farErrors), farLogistic)
	done := graph.Or(graph.Or(graph.Not(finite), graph.LessOrEqual(noise, graph.OnesLike(noise))),
		graph.GreaterThan(graph.Abs(logRatio), far))
	missing := graph.Sqrt(graph.Max(graph.OneMinus(noise), graph.ZerosLike(noise)))
	missing = graph.Mul(missing, rng.Named("normal").Normal(dtype, chains))
	test := graph.Add(graph.Add(logRatio, missing), drawCorrection(rng.Named("correction"), dtype, chains))
	accepted := graph.And(graph.And(done, finite), graph.GreaterThan(test, graph.ZerosLike(test)))

	next := s
	next.Phi = mcmc.Choose(accepted, proposal, s.Phi)
	zero := graph.ZerosLike(count)
	next.Auxiliary = map[string]*graph.Node{
		"proposal": proposal, "ratio": ratio,
		"mean": graph.Where(done, zero, mean), "squares": graph.Where(done, zero, squares),
		"count": graph.Where(done, zero, total),
	}
	probability, rounds := graph.Sigmoid(logRatio), graph.DivScalar(total, m)
	return next, k.gradients(mcmc.Info{
		Complete:   graph.ConvertDType(done, dtype),
		Acceptance: graph.Where(finite, probability, zero),
		Accepted:   graph.ConvertDType(accepted, dtype),
		NonFinite:  graph.ConvertDType(graph.Not(finite), dtype),
		Noise:      noise,
		Cost:       mcmc.Cost{Length: rounds, Partial: graph.MulScalar(rounds, 2)}, // at both places, in each round
	})
}

// The grid of X_corr's distribution: correctionCells cells of width correctionWidth, centred at 0.
const (
	correctionCells = 321
	correctionWidth = 0.075
)

func correctionAt(i int) float64 { return correctionWidth * float64(i-correctionCells/2) }

// correction is the distribution of X_corr on the grid: probabilities whose convolution with a standard normal is
// nearest to the logistic distribution, by Kullback-Leibler divergence. They are found by the iterations of Richardson
// (1972) and Lucy (1974), which keep them positive. (Seita et al. solve least squares and cut off what is negative.)
var correction = sync.OnceValue(func() []float64 {
	logistic := func(x float64) float64 { return 1 / (4 * math.Pow(math.Cosh(x/2), 2)) }
	var normal [correctionCells]float64 // by distance
	var want, probabilities [correctionCells]float64
	for i := range correctionCells {
		normal[i] = distuv.UnitNormal.Prob(correctionWidth*float64(i)) * correctionWidth
		want[i] = logistic(correctionAt(i)) * correctionWidth
		probabilities[i] = want[i]
	}
	blur := func(x [correctionCells]float64) (out [correctionCells]float64) {
		reach := int(9 / correctionWidth)
		for i := range out {
			for j := max(0, i-reach); j < min(correctionCells, i+reach+1); j++ {
				out[i] += normal[max(i-j, j-i)] * x[j]
			}
		}
		return out
	}
	for range 600 {
		quotient := blur(probabilities)
		for i := range quotient {
			quotient[i] = want[i] / quotient[i]
		}
		for i, q := range blur(quotient) {
			probabilities[i] *= q
		}
	}
	return probabilities[:]
})

// drawCorrection draws X_corr, [J]: a cell of the grid, and a uniform place in it.
func drawCorrection(rng random.Stream, dtype compute.DType, chains int) *graph.Node {
	probabilities := correction()
	cumulative := make([]float64, len(probabilities))
	sum := 0.0
	for i, p := range probabilities {
		sum += p
		cumulative[i] = sum
	}
	cell := random.InverseCDF(graph.Const(rng.Graph(), cumulative), rng.Named("cell").Uniform(dtypes.Float64, chains))
	place := graph.AddScalar(rng.Named("place").Uniform(dtype, chains), -0.5-float64(correctionCells/2))
	return graph.MulScalar(graph.Add(graph.ConvertDType(cell, dtype), place), correctionWidth)
}
