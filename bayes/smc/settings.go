package smc

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// Tempering is the kind of sequence of distributions that leads from the prior to the posterior.
type Tempering string

// The kinds of sequence.
const (
	// LikelihoodTempering raises the likelihood to a power that goes from 0 to 1, on a ladder that the particles choose
	// unless Settings.Ladder is set. The number of powers grows with the information in the data, about as sqrt(D); a
	// vague prior needs more. Each move evaluates all rows. It needs a Factored target. It is the default, and the better
	// way to a posterior given fixed data.
	LikelihoodTempering Tempering = "likelihood"
	// DataTempering takes in the rows one after another, or Block rows at a time (IBIS: Chopin 2002). It gives the
	// evidence of the first n rows for each n, and moves particles more and more rarely as rows come in. But a single
	// outlier takes the weight of nearly all particles at once. It needs a Sequential target.
	DataTempering Tempering = "data"
)

// Settings of Sample. The zero value of every field works.
type Settings struct {
	Particles int    // J, at least 2; default 1000
	Seed      uint64 // of everything random

	Tempering Tempering // default LikelihoodTempering
	// Ladder holds the powers of the likelihood, ascending, the last 1. Empty: each is chosen during the run, as the
	// largest at which the effective sample size is at least Threshold J. With a Ladder the evidence has no bias from the
	// choice of the powers; a ladder chosen during the run adds a bias of order 1/J.
	Ladder []float64
	// Block is the number of rows that DataTempering adds at once; default 1.
	Block int
	// Threshold is a share of J, above 0 and below 1. It chooses the powers where Ladder is empty; the particles are then
	// resampled and moved at each power. With a Ladder they are moved at each power, but resampled (unless WasteFree is
	// set) only if the effective sample size is at most Threshold J. With DataTempering they are resampled and moved only
	// then. At the end of the sequence they are always resampled and moved. Default 0.5.
	Threshold float64
	// Resampler is the resampling scheme; default Multinomial, the only one for which the evidence's standard error can be
	// estimated (see Genealogy). Since particles move after each resampling, schemes of smaller variance gain little.
	Resampler Resampler

	// WasteFree is P, the number of states of each chain that become particles; it must divide Particles, and leave at
	// least 2 chains. J/P particles are resampled, each is the start of a chain of P states, and all these states are the
	// new particles (Dau and Chopin 2022). It is best where a kernel mixes within P moves. With fewer than some hundred
	// chains there are few families of particles, and the standard error is unreliable. Default 0: all J particles are
	// resampled and moved, and only their last states are kept.
	WasteFree int
	// Moves is the number of transitions of the kernel after a resampling; default 0: as many as it takes to reach
	// Correlation. With WasteFree it is the number of transitions from one state of a chain that is kept to the next;
	// default 1.
	Moves int
	// Correlation says, if Moves is 0, when the particles have moved far enough. Their log prior must be correlated by
	// at most this with its value before the moves, and so must their log-likelihood; and at most a hundredth of them
	// may never have moved. Transitions end earlier after MostMoves, or if twice as many lowered the correlation by
	// less than a tenth, as between modes that the kernel does not leave. (Buchholz, Chopin and Jacob 2021 take the
	// correlation of the coordinates; a network's coordinates stay correlated because of its symmetries.) Default 0.1
	// and 100; without effect with WasteFree, where Moves is 1 or more.
	Correlation float64
	MostMoves   int
	// StepSize is the first step size of a Tunable kernel whose own is 0, in units of the scales; default 2.38/sqrt(D). It
	// is then adapted from move to move towards the kernel's acceptance. At every other transition a particle takes a
	// random share of it, so that particles in narrow regions move too. Scales are found at each temperature: by
	// LocalScale for kernels that carry a gradient, and as the weighted particles' standard deviations for others.
	// FixedScale keeps them at 1.
	StepSize   float64
	FixedScale bool

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default
	// Devices is the number of the engine's devices that share the particles, in parts of equal size; default 1. The
	// result depends on it by rounding only.
	Devices int

	// Checkpoint is a file that holds the whole state of the run. It is written every CheckpointEvery (default 30 s), when
	// the context is cancelled (run.Context is, by Ctrl-C) and at the end. If it exists, Sample goes on from it, to the
	// same bits as an uninterrupted run; a file of another problem, kernel, seed or settings is an error.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if the checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool
	// Progress, if set, is called after a step, at most ten times a second, and at the end. Scores are "power" or
	// "rows", "ESS", "acceptance" and "log evidence".
	Progress func(run.Progress) `json:"-"`
}

// DefaultKernel is HMC, with step size, scales and trajectories chosen from the particles: the kernel to take if there
// is a gradient.
func DefaultKernel() mcmc.Kernel { return mcmc.HMC{} }

// WithDefaults returns the settings with defaults in place of zeros. It is an error if one of them is wrong by itself;
// what depends on the problem or the kernel is not checked.
func (s Settings) WithDefaults() (Settings, error) {
	moves := 0
	if s.WasteFree > 0 {
		moves = 1
	}
	for _, f := range []struct {
		value     *int
		byDefault int
	}{{&s.Particles, 1000}, {&s.Block, 1}, {&s.Moves, moves}, {&s.MostMoves, 100}, {&s.Devices, 1}} {
		if *f.value == 0 {
			*f.value = f.byDefault
		}
	}
	if s.Tempering == "" {
		s.Tempering = LikelihoodTempering
	}
	if s.Resampler == "" {
		s.Resampler = Multinomial
	}
	if s.Threshold == 0 {
		s.Threshold = 0.5
	}
	if s.Correlation == 0 {
		s.Correlation = 0.1
	}
	if s.DType == 0 {
		s.DType = compute.Float32
	}
	s.Ladder = slices.Clone(s.Ladder) // the caller may change it while the run is on its way
	return s, s.check()
}

// Within returns the settings of a sampler that is a part of a larger algorithm. The algorithm's own settings, outer,
// give Seed, DType, Engine, Checkpoint, CheckpointEvery, Replace and Progress; it is an error if s sets one of these
// too. The rest of s is checked, and filled in, as by WithDefaults. Errors name the algorithm as owner.
func (s Settings) Within(owner string, outer Settings) (Settings, error) {
	elsewhere := func(field string, value any, unset bool) limits.Limit {
		return limits.Field("Sampling."+field, value, unset,
			fmt.Sprintf("left out: set Settings.%s, which holds for all of the algorithm", field))
	}
	if err := limits.Check(owner,
		elsewhere("Seed", s.Seed, s.Seed == 0),
		elsewhere("DType", s.DType, s.DType == 0),
		elsewhere("Engine", s.Engine, s.Engine == nil),
		elsewhere("Checkpoint", s.Checkpoint, s.Checkpoint == ""),
		elsewhere("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery == 0),
		elsewhere("Replace", s.Replace, !s.Replace),
		elsewhere("Progress", "set", s.Progress == nil),
	); err != nil {
		return s, err
	}
	s.Seed, s.DType, s.Engine, s.Progress = outer.Seed, outer.DType, outer.Engine, outer.Progress
	s.Checkpoint, s.CheckpointEvery, s.Replace = outer.Checkpoint, outer.CheckpointEvery, outer.Replace
	s, err := s.WithDefaults()
	if err != nil {
		return s, fmt.Errorf("%s.Sampling: %w", owner, err)
	}
	return s, nil
}

// checkSampled returns an error if a problem or a kernel cannot be sampled.
func checkSampled(p density.Problem, kernel mcmc.Kernel) error {
	if err := limits.Check("smc: Problem",
		limits.Field("Dim", p.Dim, p.Dim >= 1, "at least 1"),
		limits.Field("Target", "nil", p.Target != nil, "a function that builds the log-density"),
		limits.Field("Initial", "nil", p.Initial != nil || p.Start != nil,
			"a function that draws from the prior, whose density is the target's LogPrior, unless Start has such draws"),
		limits.Field("Inputs", "set", p.Inputs == nil && p.HostInputs == nil,
			"nil, as HostInputs: the target must be the same at every move"),
	); err != nil {
		return err
	}
	if err := mcmc.Check(kernel, p.Dim, true); err != nil {
		return fmt.Errorf("smc: %w", err)
	}
	if !mcmc.LeavesInvariant(kernel) {
		return fmt.Errorf(
			"smc: %T leaves no target invariant, or does not say so (mcmc.Exact): take a kernel that accepts or "+
				"rejects, such as mcmc.HMC", kernel)
	}
	return nil
}

func (s Settings) check() error {
	if err := limits.Check("smc: Settings",
		limits.Field("Particles", s.Particles, s.Particles >= 2, "at least 2"),
		limits.Field("Tempering", s.Tempering, s.Tempering == LikelihoodTempering || s.Tempering == DataTempering,
			"smc.LikelihoodTempering or smc.DataTempering"),
		limits.Field("Ladder", s.Ladder, len(s.Ladder) == 0 || s.Tempering == LikelihoodTempering,
			"empty with DataTempering"),
		limits.Field("Block", s.Block, s.Block >= 1, "at least 1"),
		limits.Field("Threshold", s.Threshold, s.Threshold > 0 && s.Threshold < 1, "above 0 and below 1"),
		limits.Field("WasteFree", s.WasteFree, s.WasteFree == 0 || s.WasteFree >= 2, "0 (none) or at least 2"),
		limits.Field("WasteFree", s.WasteFree,
			s.WasteFree == 0 || s.Particles%s.WasteFree == 0 && s.Particles/s.WasteFree >= 2,
			fmt.Sprintf("a divisor of the %d Particles that leaves 2 chains", s.Particles)),
		limits.Field("Moves", s.Moves, s.Moves >= 0, "at least 1 (0: as many as Correlation asks)"),
		limits.Field("Correlation", s.Correlation, s.Correlation > 0 && s.Correlation < 1,
			"above 0 and below 1 (0: the default, 0.1)"),
		limits.Field("MostMoves", s.MostMoves, s.MostMoves >= 1, "at least 1 (0: the default, 100)"),
		limits.Field("StepSize", s.StepSize, s.StepSize >= 0 && !math.IsInf(s.StepSize, 1),
			"positive and finite (0: found)"),
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64,
			"compute.Float32 or compute.Float64"),
		limits.Field("Devices", s.Devices, s.Devices >= 1, "at least 1 (0: the default, 1)"),
		limits.Field("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery >= 0, "positive (0: 30 s)"),
	); err != nil {
		return err
	}
	if err := checkLadder("smc: Settings.Ladder", s.Ladder); err != nil {
		return err
	}
	return s.Resampler.Check()
}

// checkLadder returns an error if the powers do not ascend from above 0 to 1.
func checkLadder(name string, ladder []float64) error {
	before := 0.
	for i, power := range ladder {
		if !(power > before && power <= 1) || i == len(ladder)-1 && power != 1 {
			return fmt.Errorf("%s[%d] is %v: powers ascend from above 0, and the last is 1", name, i, power)
		}
		before = power
	}
	return nil
}

// chains is the number of particles that are resampled and moved: J, or the J/P chains of a waste-free sampler.
func (s Settings) chains() int { return s.Particles / max(s.WasteFree, 1) }

// Record returns the settings that determine the result, without the seed: for checkpoints and provenance.
func (s Settings) Record() map[string]any {
	return map[string]any{
		"particles": s.Particles, "tempering": s.Tempering, "ladder": s.Ladder, "block": s.Block, "threshold": s.Threshold,
		"resampler": s.Resampler, "waste_free": s.WasteFree, "moves": s.Moves, "correlation": s.Correlation,
		"most_moves": s.MostMoves, "step_size": s.StepSize,
		"fixed_scale": s.FixedScale, "dtype": s.DType.String(), "devices": s.Devices,
	}
}
