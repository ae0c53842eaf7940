package pmcnet

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// Settings are the settings of a run of Fit or Sample that do not depend on the algorithm. The zero value of every
// field works.
type Settings struct {
	Seed uint64 // of everything random

	DType  compute.DType   // default compute.Float32
	Engine *compute.Engine // default compute.Default
	// Devices is the number of the engine's devices that share the particles of both SMC samplers of Annealed, in parts of
	// equal size; default 1. The result depends on it by rounding only, until rounding decides whether a proposal is
	// accepted. PMC runs on one device: other values are an error.
	Devices int

	// Checkpoint is a file that holds the whole state of the run. It is written every CheckpointEvery (default 30 s), when
	// the context is cancelled (run.Context is, by Ctrl-C) and at the end. If it exists, the run resumes from it, bit for
	// bit as an uninterrupted one; a file of another problem, algorithm, seed or settings is an error. The training that
	// finds the starting point of a PMC has a file of its own, Checkpoint with ".start" appended. For Annealed, Checkpoint
	// is the state of the first SMC and Checkpoint with ".bridge" appended that of the bridge; the steps between them are
	// repeated.
	Checkpoint      string
	CheckpointEvery time.Duration
	// Replace begins anew if the checkpoint is of another run, of an older format or damaged, and overwrites it.
	Replace bool
	// Observe, if set, is called after each ObserveEvery iterations of PMC (default 1), but not for those before a resume,
	// with the posterior that would be returned if the run ended there. Annealed calls it once, at its end, with step 1.
	// An error ends the run, with the status run.Stopped. It is for Fit: Sample has no posterior, and returns an error if
	// Observe is set.
	Observe      func(step int, now *bayes.Posterior) error
	ObserveEvery int
	// Progress, if set, is called after an iteration, at most ten times a second, and at the end. The scores of PMC are
	// "ESS", "k-hat" and, if k-hat is at most MaxKHat, "log evidence", of the iteration; for those of Annealed see
	// smc.Settings.
	Progress func(run.Progress)
}

// withDefaults fills in what is zero and checks the rest.
func (s Settings) withDefaults() (Settings, error) {
	if s.DType == 0 {
		s.DType = compute.Float32
	}
	if s.CheckpointEvery == 0 {
		s.CheckpointEvery = 30 * time.Second
	}
	byDefault(&s.Devices, 1)
	byDefault(&s.ObserveEvery, 1)
	return s, limits.Check("pmcnet: Settings",
		limits.Field("DType", s.DType, s.DType == compute.Float32 || s.DType == compute.Float64,
			"compute.Float32 or compute.Float64"),
		limits.Field("Devices", s.Devices, s.Devices >= 1, "at least 1 (0: the default, 1)"),
		limits.Field("CheckpointEvery", s.CheckpointEvery, s.CheckpointEvery > 0, "positive (0: 30 s)"),
		limits.Field("ObserveEvery", s.ObserveEvery, s.ObserveEvery >= 1, "at least 1 (0: 1)"),
	)
}

// MarshalJSON writes what decides the draws.
func (a PMC) MarshalJSON() ([]byte, error) {
	type plain PMC
	return json.Marshal(plain(a))
}

// withDefaults fills in what is zero for a problem of d coordinates and checks the rest. hasModel says that there is a
// likelihood to maximise.
func (a PMC) withDefaults(d int, hasModel bool) (PMC, error) {
	byDefault(&a.Proposals, 50)
	byDefault(&a.Draws, 100)
	byDefault(&a.Iterations, 20)
	byDefault(&a.Halvings, 20)
	byDefault(&a.Mixture, a.Proposals)
	byDefault(&a.StdDev, 0.1)
	byDefault(&a.Forgetting, 0.5)
	byDefault(&a.Noise, 1)
	byDefault(&a.ESS, 0.1)
	if a.Own != nil {
		byDefault(&a.Weights, ownWeights(a.Own))
	}
	byDefault(&a.Weights, Honest)
	byDefault(&a.Keep, LastIteration)
	byDefault(&a.Scheme, smc.Stratified)
	byDefault(&a.Rank, max(1, min(5, d-1)))
	if a.Light {
		byDefault(&a.Covariance, DiagonalCovariance)
	}
	byDefault(&a.Covariance, FullCovariance)
	if a.Start == "" {
		if a.Start = FromPrior; hasModel {
			a.Start = AroundMLE
		}
	}
	if a.Shrinkage == 0 && a.Covariance == FullCovariance && a.Draws <= d {
		a.Shrinkage = float64(d) / float64(d+a.Draws)
	}
	return a, a.check(d, hasModel)
}

// ownWeights is the name of weights of one's own, in JSON.
func ownWeights(w Weighting) Weights { return Weights("own: " + w.Title()) }

func byDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// check is an error that names a setting that is out of bounds.
func (a PMC) check(d int, hasModel bool) error {
	inside := func(v float64) bool { return v > 0 && v <= 1 }
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
	oneOf := func(known ...any) string { return fmt.Sprintf("one of %q", known) }
	kept := 1
	if a.Keep == AllIterations {
		kept = a.Iterations
	}
	numbers := d // of a covariance
	if a.Covariance == FullCovariance {
		numbers *= d
	}
	if err := limits.Check("pmcnet: PMC",
		limits.Field("Proposals", a.Proposals, a.Proposals >= 1, "at least 1 (0: 50)"),
		limits.Field("Draws", a.Draws, a.Draws >= 1, "at least 1 (0: 100)"),
		limits.Field("Iterations", a.Iterations, a.Iterations >= 1, "at least 1 (0: 20)"),
		limits.Numbers("Proposals", a.Proposals, a.Proposals, numbers),
		limits.Numbers("Draws", a.Draws, kept, a.Proposals, a.Draws, d),
		limits.Field("Covariance", a.Covariance, a.Covariance == FullCovariance || a.Covariance == DiagonalCovariance ||
			a.Covariance == LowRankCovariance || a.Covariance == FixedCovariance,
			oneOf(FullCovariance, DiagonalCovariance, LowRankCovariance, FixedCovariance)),
		limits.Field("Covariance", a.Covariance, !a.Light || a.Covariance != FullCovariance, "pmcnet.DiagonalCovariance "+
			"(left out: the default), LowRankCovariance or FixedCovariance with Light, each of whose many small steps would "+
			"take M D^2 multiplications with full ones; or leave out Light"),
		limits.Field("Rank", a.Rank, a.Rank >= 1 && a.Rank <= max(1, d-1),
			fmt.Sprintf("at least 1 and below the %d coordinates (0: 5)", d)),
		limits.Field("StdDev", a.StdDev, positive(a.StdDev), "positive and finite (0: 0.1)"),
		limits.Field("Forgetting", a.Forgetting, inside(a.Forgetting), "above 0 and at most 1 (0: 0.5)"),
		limits.Field("Shrinkage", a.Shrinkage, a.Shrinkage == NoShrinkage || a.Shrinkage >= 0 && a.Shrinkage <= 1,
			"from 0 to 1, or pmcnet.NoShrinkage"),
		limits.Field("Start", a.Start, a.Start == AroundMLE || a.Start == AroundMAP || a.Start == FromPrior,
			oneOf(AroundMLE, AroundMAP, FromPrior)),
		limits.Field("Start", a.Start, a.Start == FromPrior || hasModel,
			"pmcnet.FromPrior: a log-density alone has no likelihood to maximise; set Problem.Start, or use Fit"),
		limits.Field("Noise", a.Noise, positive(a.Noise), "positive and finite (0: 1)"),
		limits.Field("Weights", a.Weights, a.Own == nil || a.Weights == ownWeights(a.Own), "left out with PMC.Own"),
		limits.Field("Weights", a.Weights, a.Own != nil || a.Weights == Honest || a.Weights == Tempered ||
			a.Weights == TemperedWithin || a.Weights == Clipped, oneOf(Honest, Tempered, TemperedWithin, Clipped)),
		limits.Field("ESS", a.ESS, inside(a.ESS), "above 0 and at most 1 (0: 0.1)"),
		limits.Field("Mixture", a.Mixture, a.Mixture >= 1 && a.Proposals%a.Mixture == 0,
			fmt.Sprintf("a divisor of the %d Proposals (0: all)", a.Proposals)),
		limits.Field("Resampling", a.Resampling, a.Resampling >= 0,
			"pmcnet.Local, pmcnet.Global or pmcnet.GlocalEvery of a positive number"),
		limits.Field("Halvings", a.Halvings, a.Halvings >= 0 && a.Halvings <= 60, "from 0, which takes 20, to 60"),
		limits.Field("Light", a.Light, !a.Light || !a.GradientFree, "false with GradientFree: its steps follow a gradient"),
		limits.Field("BatchSize", a.BatchSize, a.BatchSize >= 0, "positive (0: 50)"),
		limits.Field("Keep", a.Keep, a.Keep == LastIteration || a.Keep == AllIterations, oneOf(LastIteration, AllIterations)),
	); err != nil {
		return err
	}
	if err := a.Optimiser.Check(); err != nil {
		return fmt.Errorf("pmcnet: PMC: %w", err)
	}
	return a.Scheme.Check()
}
