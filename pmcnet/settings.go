package pmcnet

import (
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
)

// PMC is adaptive importance sampling with M proposals N(mu_m, Sigma_m), K draws of each in every one of T iterations:
// PMCnet (Algorithm 1; the package comment has its steps). The zero value of every field works. The paper's variants
// are settings:
//
//	PMC{}                                                 PMCnet
//	PMC{Ascent: NoAscent}                                 gradient-free PMCnet
//	PMC{Covariance: FixedCovariance}                      covariance-free PMCnet
//	PMC{Ascent: NoAscent, Covariance: FixedCovariance}    DM-PMC (Elvira, Martino, Luengo and Bugallo 2017)
//	PMC{Ascent: MiniBatchAscent}                          PMCnet-light
//
// The result has the weighted draws of the last iteration. Its evidence is the log of the mean of their honest weights
// (see Weights), the integral of the target's density; it is NaN if that mean is no estimate, because k-hat is above
// MaxKHat or unknown, and if the run did not complete. The details are a *Details. Errors wrap bayes.ErrZeroWeights if
// no draw has any weight, and baseline.ErrDiverged if the start was not found.
//
// Observe sees the posterior of each iteration, unless ObserveEvery is set. The scores of Progress are the iteration's
// "ESS", "k-hat" and, if k-hat is at most MaxKHat, "log evidence". The training that finds the MLE to begin at has a
// checkpoint of its own, whose name ends in ".start".
//
// An iteration takes M K evaluations of the target, M gradients and, for the backtracking, 21 M evaluations more; with
// full covariances it also takes 3 M D^3 + M^2 K D^2 multiplications.
type PMC struct {
	Proposals  int `json:"proposals"`  // M; default 50
	Draws      int `json:"draws"`      // K, the draws of each proposal in each iteration; default 100
	Iterations int `json:"iterations"` // T; default 20

	// Covariance is the form of the proposals' covariances; default "full", and DiagonalCovariance with
	// MiniBatchAscent, which does not allow full ones, and beyond 1000 dimensions, where these take minutes an iteration.
	Covariance Covariance `json:"covariance"`
	// StdDev is sigma: each covariance begins as sigma^2 times the identity. Default 0.1.
	StdDev float64 `json:"std_dev"`

	// Start is where the means begin; default "MLE" for fit.Fit, FromPrior for fit.Sample.
	Start Start `json:"start"`
	// Noise is the standard deviation of the Gaussian noise that a start at the MLE adds to each coordinate of each mean;
	// default 1, which the authors take for shallow networks (.02 for deep ones).
	Noise float64 `json:"noise"`
	// BatchSize is the number of rows of a mini-batch, of the training that finds the MLE and of MiniBatchAscent;
	// default 50, or all rows if fewer.
	BatchSize int `json:"batch_size"`

	// Weights are the weights by which proposals adapt and of the result's draws; default the honest ones.
	Weights Weights `json:"weights"`
	// Resampling is how the next means are drawn; default 0: locally.
	Resampling Resampling `json:"resampling"`
	// Ascent is how step 5 moves the means uphill; default by one step along the gradient.
	Ascent Ascent `json:"ascent"`
}

// What the paper, or the authors' program, keeps fixed.
const (
	forgetting   = 0.5  // beta, the weight of an iteration's own covariance in the update of step 4
	mostHalvings = 20   // of gamma, in step 5
	leastESS     = 0.1  // that tempered weights leave, as a share of the draws
	mostFull     = 1000 // dimensions in which covariances are full by default
)

// Weights are the weights of the draws, computed from the honest weights w = pi(theta) / q(theta), with pi the target
// and q the mixture of proposals. The default, "honest", is w itself, the paper's. The evidence and k-hat are always
// computed from the honest weights.
type Weights string

// The weights.
const (
	honestWeights Weights = "honest"
	// Tempered is w^lambda, with the largest lambda, at most 1, for which the effective sample size of all draws is at
	// least a tenth of their number. The draws are then of a distribution between q and the target.
	Tempered Weights = "tempered"
	// Floored is w + 1e-50, which the authors' program computes: beyond some 20 dimensions all weights are then 1e-50. Do
	// not use it: it is here so that the study pmcnet.floored can show where the published numbers come from.
	Floored Weights = "floored"
)

// Covariance is the form of the covariance matrices, and how they are stored. "full" ones take D^2 numbers each.
type Covariance string

// The covariances.
const (
	fullCovariance     Covariance = "full"     // [M, D, D]
	DiagonalCovariance Covariance = "diagonal" // [M, D]: the same update on the diagonal
	FixedCovariance    Covariance = "fixed"    // sigma^2 times the identity, not adapted
)

// Resampling says how an iteration draws the next means. 0 is locally: each mean becomes one of its own proposal's K
// draws, by their weights. n > 0 is locally too, but globally in every n-th iteration: all means are drawn from all M K
// draws, and a mean brings the covariance of its draw's proposal.
type Resampling int

// GlocalEvery resamples globally in every n-th iteration and locally in the others. The authors' program uses n = 2.
func GlocalEvery(n int) Resampling { return Resampling(n) }

// Ascent says how step 5 moves the means uphill. The default, "gradient", is one step along the gradient of log pi, of
// all rows.
type Ascent string

// The ways to move the means.
const (
	gradientAscent  Ascent = "gradient"
	MiniBatchAscent Ascent = "mini-batch" // one epoch of mini-batch steps (PMCnet-light); for posteriors of networks
	NoAscent        Ascent = "none"       // the means stay at the draws that they became
)

// Start is where the means begin. "MLE" is the maximum of the likelihood, found by Adam, plus noise; it is for fit.Fit
// only, and its default.
type Start string

// The starts.
const (
	aroundMLE Start = "MLE"
	FromPrior Start = "prior" // M draws of Problem.Initial; Problem.Start, [M, D], if that is set
)

// Title implements fit.Method.
func (a PMC) Title() string {
	name := "PMCnet"
	switch fixed := a.Covariance == FixedCovariance; {
	case a.Ascent == MiniBatchAscent:
		name = "PMCnet-light"
	case a.Ascent == NoAscent && fixed:
		name = "DM-PMC"
	case a.Ascent == NoAscent:
		name = "gradient-free PMCnet"
	case fixed:
		name = "covariance-free PMCnet"
	}
	return name + ": adaptive importance sampling with deterministic-mixture weights (Algorithm 1)"
}

// Takes implements fit.Taker.
func (PMC) Takes() fit.Takes { return fit.Takes{Density: true} }

// Prepare implements fit.Method.
func (a PMC) Prepare(j *fit.Job) (fit.Method, error) {
	d, hasModel := j.Dim(), j.Bound != nil
	covariance, start := fullCovariance, FromPrior
	if a.Ascent == MiniBatchAscent || d > mostFull {
		covariance = DiagonalCovariance
	}
	if hasModel {
		start = aroundMLE
	}
	if err := limits.Fill("pmcnet: PMC",
		limits.Int("Proposals", &a.Proposals, 50).From(1),
		limits.Int("Draws", &a.Draws, 100).From(1),
		limits.Int("Iterations", &a.Iterations, 20).From(1),
		limits.Choice("Covariance", &a.Covariance, covariance, fullCovariance, DiagonalCovariance, FixedCovariance),
		limits.Float("StdDev", &a.StdDev, 0.1).Positive(),
		limits.Choice("Start", &a.Start, start, aroundMLE, FromPrior),
		limits.Float("Noise", &a.Noise, 1).Positive(),
		limits.Int("BatchSize", &a.BatchSize).Zero("50, or all rows if fewer").From(1),
		limits.Choice("Weights", &a.Weights, honestWeights, honestWeights, Tempered, Floored),
		limits.Choice("Ascent", &a.Ascent, gradientAscent, gradientAscent, MiniBatchAscent, NoAscent),
		limits.Field("Resampling", a.Resampling, a.Resampling >= 0,
			"0, which is local, or pmcnet.GlocalEvery of a positive number"),
	); err != nil {
		return nil, err
	}
	isFull, numbers := a.Covariance == fullCovariance, d // of a covariance
	if isFull {
		numbers *= d
	}
	if err := limits.Check("pmcnet: PMC",
		limits.Numbers("Proposals", a.Proposals, a.Proposals, numbers),
		limits.Numbers("Draws", a.Draws, a.Proposals, a.Draws, d),
		limits.Field("Covariance", a.Covariance, !isFull || a.Ascent != MiniBatchAscent, "pmcnet.DiagonalCovariance "+
			"(left out: the default) or FixedCovariance with MiniBatchAscent, each of whose many small steps would take "+
			"M D^2 multiplications with full ones; or leave out Ascent"),
		limits.Field("Start", a.Start, a.Start == FromPrior || hasModel,
			"pmcnet.FromPrior: a log-density alone has no likelihood to maximise; set Problem.Start, or use fit.Fit"),
	); err != nil {
		return nil, err
	}
	return a, nil
}
