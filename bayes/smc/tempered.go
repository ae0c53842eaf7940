package smc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/shapes"
)

// Tempered is an SMC sampler (Del Moral, Doucet and Jasra 2006, with moves that leave each distribution invariant,
// section 3.3.2.3), as a method of package fit. It samples all parameters of a model given all rows, a log-density of
// your own (fit.Sample), or the stochastic parameters of a trained posterior (fit.From), and estimates the evidence.
// The zero value of every field works.
//
// Particles begin as draws from the prior, by Problem.Initial, or as Problem.Start, [J, D], has them. Then each step
// does the following, until the posterior is reached:
//
//	weigh:     w_j <- w_j G(phi_j),  log Z <- log Z + log sum_j w_j G(phi_j), then the w_j are normalised
//	resample:  draw ancestors by their weights, w_j <- 1/J
//	move:      by a kernel that leaves the distribution so far invariant
//
// where log Z is the log evidence so far, and G = p(y | phi)^(power' - power) is the part of the likelihood that comes
// in: its power goes from 0 to 1, and power' is the largest at which the effective sample size is at least Threshold J.
// The number of powers grows with the information in the data, about as sqrt(D); a vague prior needs more. Ancestors
// are drawn independently (Multinomial): only for these can the evidence's standard error be estimated (see Genealogy),
// and since particles move after each resampling, schemes of smaller variance would gain little. Each move evaluates
// all rows. Problem.Target must give a Factored target.
//
// What is called the prior may be any distribution that can be drawn from, such as a fitted approximation of the
// posterior. Its log-density is the target's LogPrior; a constant that is left out there is missing in the evidence
// too. Where a graph cannot draw from it, Problem.Start must hold independent draws from it, of the run's DType,
// instead of Initial. With particles from elsewhere, such as draws of an earlier posterior, the evidence is wrong, and
// so is the posterior where moves do not mix. So draws of Initial are tested, in up to a thousand dimensions, and
// refused if they are clearly not from LogPrior's distribution. In a few dimensions an error of .4 of a standard
// deviation in the place, or of .4 of the width, is seen. Draws of Start are tested likewise; the fewer they are, the
// larger an error must be to show, and a hundred are too few. They are not tested if the target has a method Folded,
// which says that each draw stands for all its images under a symmetry.
//
// A kernel of your own that carries the log-density or the gradient of another point than the particle's is an error
// once it shows, as for mcmc.Chains.
//
// After a complete run all particles have the same weight, and the evidence of its draws is log p(y), relative to the
// density of what Problem.Initial draws. Its standard error is estimated from this run alone: from the families of the
// particles (Genealogy) and from how far the moves changed the estimate (StepRecord.Drift). It is noisy if there are
// few families (StepRecord.First): with 27 of them 6 of 60 runs, of one tanh unit with 300 particles, were off by more
// than twice the stated error, the worst by 3.1 times; the root mean square was 1.2.
//
// A run that is cancelled has the weighted particles as they are, of the distribution that it has come to, as the
// result's Approximation says, and no evidence. So has one whose particles choose the ladder, if even the smallest step
// leaves one particle nearly all the weight: its error says that the ladder stalls, its status is run.Stopped. If no
// particle has any weight left, the error wraps bayes.ErrZeroWeights. The run is observed after each temperature. The
// scores of Progress are the "power", "ESS", "acceptance" and "log evidence". Details are a *Details.
//
// A narrow mode may be lost while the power is low, when its share of the particles is small. Then the particles, the
// evidence and its stated error all miss it, and nothing tells. Run again with more particles. pmcnet/annealed has
// further estimates of the evidence to compare with.
type Tempered struct {
	Kernel    mcmc.Kernel // leaves its target invariant; default mcmc.HMC{}
	Particles int         // J, at least 2; default 1000

	// Ladder holds the powers of the likelihood, ascending, the last 1. Empty: each is chosen during the run, as the
	// largest at which the effective sample size is at least Threshold J. With a Ladder the evidence has no bias from the
	// choice of the powers; a ladder chosen during the run adds a bias of order 1/J. So do, with a Ladder too, step sizes,
	// scales and a number of moves that are chosen by the particles that they then move: only a kernel of fixed settings,
	// with Moves given, leaves the evidence unbiased.
	Ladder []float64
	// Threshold is a share of J, above 0 and below 1. It chooses the powers where Ladder is empty; the particles are then
	// resampled and moved at each power. With a Ladder they are moved at each power, but resampled (unless WasteFree is
	// set) only if the effective sample size is at most Threshold J, and at the last power. Default 0.5.
	Threshold float64
	// WasteFree is P, the number of states of each chain that become particles; it must divide Particles, and leave at
	// least 2 chains. J/P particles are resampled, each is the start of a chain of P states, and all these states are the
	// new particles (Dau and Chopin 2022). It is best where a kernel mixes within P moves. With fewer than some hundred
	// chains there are few families of particles, and the standard error is unreliable. Default 0: all J particles are
	// resampled and moved, and only their last states are kept.
	WasteFree int
	// Moves is the number of transitions of the kernel after a resampling. Default 0: as many as it takes until the
	// correlation of the particles' log prior with its value before the moves is at most 0.1, and that of their
	// log-likelihood too, and at most a hundredth of them have never moved. (Buchholz, Chopin and Jacob 2021 take the
	// correlation of the coordinates; a network's coordinates stay correlated because of its symmetries.) They end earlier
	// after 100, or if twice as many lowered the correlation by less than a tenth, as between modes that the kernel does
	// not leave. With WasteFree it is the number of transitions from one state of a chain that is kept to the next;
	// default 1.
	Moves int
}

var (
	_ fit.Taker = Tempered{}
)

// The constants of the moves.
const (
	enoughForgotten = 0.1 // correlation of the log prior and of the log-likelihood at which moves end, see Tempered.Moves
	mostMoves       = 100
)

// Takes implements fit.Taker.
func (Tempered) Takes() fit.Takes { return fit.Takes{Density: true, Trained: true} }

// Title implements fit.Method.
func (Tempered) Title() string {
	return "tempered sequential Monte Carlo (Del Moral, Doucet and Jasra 2006)"
}

// MarshalJSON writes the settings, with the kernel's type, and what has become a constant: checkpoints of earlier
// versions have it.
func (t Tempered) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kernel": fmt.Sprintf("%T", t.Kernel), "settings": t.Kernel, "particles": t.Particles, "tempering": "likelihood",
		"ladder": t.Ladder, "block": 1, "threshold": t.Threshold, "resampler": Multinomial,
		"waste_free": t.WasteFree, "moves": t.Moves,
	})
}

// Prepare implements fit.Method.
func (t Tempered) Prepare(j *fit.Job) (fit.Method, error) {
	if t.Kernel == nil {
		t.Kernel = mcmc.HMC{}
	}
	moves := limits.Int("Moves", &t.Moves).Zero("as many as it takes").From(1)
	if t.WasteFree > 0 {
		moves = limits.Int("Moves", &t.Moves, 1).From(1)
	}
	dim := j.Dim()
	if err := limits.Fill("smc: Tempered",
		limits.Int("Particles", &t.Particles, 1000).From(2),
		limits.Float("Threshold", &t.Threshold, .5).Inside(0, 1),
		limits.Int("WasteFree", &t.WasteFree).Zero("none").From(2),
		moves,
	); err != nil {
		return nil, err
	}
	if err := limits.Check("smc: Tempered",
		limits.Field("WasteFree", t.WasteFree,
			t.WasteFree == 0 || t.Particles%t.WasteFree == 0 && t.Particles/t.WasteFree >= 2,
			fmt.Sprintf("a divisor of the %d Particles that leaves 2 chains", t.Particles)),
		limits.Numbers("Particles", t.Particles, t.Particles, dim),
	); err != nil {
		return nil, err
	}
	t.Ladder = slices.Clone(t.Ladder) // the caller may change it while the run is on its way
	if err := t.checkLadder(); err != nil {
		return nil, err
	}
	if err := t.checkKernel(dim); err != nil {
		return nil, err
	}
	return t, j.OnDevices("the number of particles that are moved", t.chains())
}

// checkLadder returns an error if the powers do not ascend from above 0 to 1.
func (t Tempered) checkLadder() error {
	before := 0.
	for i, power := range t.Ladder {
		if !(power > before && power <= 1) || i == len(t.Ladder)-1 && power != 1 {
			return fmt.Errorf("smc: Tempered.Ladder[%d] is %v: powers ascend from above 0, and the last is 1", i, power)
		}
		before = power
	}
	return nil
}

// checkKernel returns an error for a kernel that does not leave its target invariant.
func (t Tempered) checkKernel(dim int) error {
	if err := mcmc.Check(t.Kernel, dim, true); err != nil {
		return fmt.Errorf("smc: %w", err)
	}
	if !t.Kernel.Traits().Exact {
		return fmt.Errorf(
			"smc: %T leaves no target invariant, or does not say so (mcmc.Traits): take a kernel that accepts or "+
				"rejects, such as mcmc.HMC", t.Kernel)
	}
	return nil
}

// checkProblem returns an error for a problem without a prior to draw from, or whose target changes from move to move.
func checkProblem(p density.Problem) error {
	return limits.Check("smc: Problem",
		limits.Field("Initial", "nil", p.Initial != nil || p.Start != nil,
			"a function that draws from the prior, whose density is the target's LogPrior, unless Start has such draws"),
		limits.Field("Inputs", "set", p.Inputs == nil && p.HostInputs == nil,
			"nil, as HostInputs: the target must be the same at every move"),
	)
}

// chains is the number of particles that are resampled and moved: J, or the J/P chains of a waste-free sampler.
func (t Tempered) chains() int { return t.Particles / max(t.WasteFree, 1) }

// Run implements fit.Method.
func (t Tempered) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return t.run(ctx, j, j.Seed, &machine{})
}

// RunTo is the part of Run that ends where the first rungs powers of the Ladder have come into the weights, before the
// moves at the last of them, or, if rungs is 0, at the posterior. Its random numbers are those of a seed, not of the
// job's. Where the job's checkpoint is a copy of that of another RunTo, of any seed, that came to fewer powers, it goes
// on from there: particles that were copied go ways of their own. The evidence of the result's draws is of all powers
// from the prior on; its standard error says nothing of particles that were copied, and no warning is about it.
func (t Tempered) RunTo(ctx context.Context, j *fit.Job, rungs int, seed uint64) (*fit.Result, error) {
	if rungs < 0 || rungs > len(t.Ladder) {
		return nil, fmt.Errorf("smc: RunTo %d powers of the Ladder's %d: it must be from 1 to all of them, or 0, to the "+
			"posterior", rungs, len(t.Ladder))
	}
	return t.run(ctx, j, seed, &machine{part: true, rungs: rungs})
}

func (t Tempered) run(ctx context.Context, j *fit.Job, seed uint64, m *machine) (*fit.Result, error) {
	problem, err := j.Density(t.chains())
	if err != nil {
		return nil, err
	}
	if err := checkProblem(problem); err != nil {
		return nil, err
	}
	if start := problem.Start; start != nil {
		if want := shapes.Make(j.DType, t.Particles, problem.Dim); !start.Shape().Equal(want) {
			return nil, fmt.Errorf("smc: Problem.Start is %s: it must be %s, a draw from the prior for each particle",
				start.Shape(), want)
		}
	}
	m.Tempered, m.Job, m.problem, m.key = t, j, problem, random.KeyOf(seed).Named("sequence")
	return m.loop().Run(ctx, j)
}
