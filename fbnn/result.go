package fbnn

import (
	"context"
	"errors"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Errors that Fit wraps; test for them with errors.Is.
var (
	// ErrPairs says that there is nothing to learn from the pairs of the calibration, such as if all are alike.
	ErrPairs = errors.New("fbnn: nothing can be learnt from the pairs")
	// ErrEmulator says that an emulator is of no use, such as if it gives NaN.
	ErrEmulator = errors.New("fbnn: the emulator is of no use")
)

// Result of Fit.
type Result struct {
	// Result has the Posterior, whose predictions are the network's own, and Warnings: look at them first.
	bayes.Result
	Algorithm Algorithm       // as it ran, with its defaults filled in
	Phi       *tensors.Tensor // the draws, [Chains n, D], chain after chain
	Chains    int

	Pairs       *bayes.Posterior // the calibration's draws that the emulator has learnt from, in their order
	Calibration *mcmc.Result     // the run that they are of
	Emulator    EmulatorReport
	Sampling    *mcmc.Result // the run of the draws
	Truth       Truth
	Distance    Distance
	// Beta is the step of the sampling's pCN, and TrueBeta the one at which the true chain would be accepted with a
	// probability of .3; 0 of other kernels.
	Beta, TrueBeta float64
	// StepSize is the one that was chosen for the sampling's HMC; 0 where it was set, and of other kernels.
	StepSize float64
	// SecondStage is the mean acceptance of the delayed acceptance's second stage, by the true posterior; NaN without it.
	SecondStage float64
	// Memory is what a run of FitSource was estimated to take at most, in bytes, with the program itself; 0 of Fit.
	Memory int64
	// Evaluations are those of all steps: of the network on all rows (Full, FullGradients), and of the emulator.
	Evaluations mcmc.Evaluations

	emulated *emulatedPrediction // of CES.PaperMode; nil else
	job      *Job                // for Potentials
	cheap    mcmc.Problem        // the emulated posterior; its Target is nil where there is none
}

// FullEvaluations implements diag.Evaluated: what all steps took, in full forwards of the network; 0 of draws of the
// prior, which take none.
func (r *Result) FullEvaluations() float64 { return r.Evaluations.Forwards() }

// EmulatorReport says what the emulator is, and how far it is off on the pairs that it has not learnt from: the last
// fifth of the chain.
type EmulatorReport struct {
	Of, By     string        // what is emulated, and by what
	Activation nn.Activation // that was chosen; empty if By has none
	Tried      []Tried       // what it was chosen among
	Rank       int           // how many numbers it predicts, R: of the outputs the leading principal components
	Left       float64       // share of the pairs' variance that is in no component
	Learnt     int           // pairs that it has learnt from
	HeldOut    Errors
}

// Tried is an emulator with one of the activations.
type Tried struct {
	Activation nn.Activation
	Errors
}

// Errors are those of an emulator on held-out pairs.
type Errors struct {
	// R2 is 1 less the squared error of what is emulated over its variance on the held-out pairs. It may be far below 0:
	// a chain goes where it has not been.
	R2 float64
	// Phi is the root mean square error of the log-likelihood.
	Phi float64
	// Gradient is |g - g^| / |g|, with g the gradient of the log-likelihood: the root of the ratio of the sums of
	// squares over the held-out pairs.
	Gradient float64
}

// Truth compares the potential Phi = -log p(y | theta) with the emulated one at emulated states, evenly spaced over the
// draws.
type Truth struct {
	States         int     // CES.Check of them, or all draws where there are fewer; of Chain and Prior all draws
	True, Emulated float64 // means over the states
	RMS            float64 // root mean square of the difference
	// Calibration and CalibrationStdDev are the mean and the standard deviation of Phi over the pairs, Prior its median
	// over draws from the prior.
	Calibration, CalibrationStdDev, Prior float64
	NonFinite                             int     // states at which one of both is not finite: they count in no mean
	MedianESS, MinESS                     float64 // of the coordinates' means, over at most 200 of them
}

// Distance says how far the draws are from the pairs, at the states of Truth. The pairs lie in a plane of at most J - 1
// dimensions.
type Distance struct {
	// Mahalanobis is the distance in the pairs' plane by their covariance, over the root of its dimension: 1 for draws
	// that are distributed as the pairs. Mean over the states, and the largest.
	Mahalanobis, MostMahalanobis float64
	// OffPlane is the distance to the plane over the root mean square distance of the pairs from their mean: 0 for the
	// pairs themselves. Mean over the states, and the largest.
	OffPlane, MostOffPlane float64
	Dimension              int // of the plane
}

// emulatedPrediction makes the emulator's outputs at any rows: linear combinations of the pairs' own.
type emulatedPrediction struct {
	pairs   *bayes.Posterior
	weights *mat.Dense // [S, J]: of draw s on pair j; rows sum to 1
	chains  int
}

// Predict predicts at raw features x, [N, d]: by the network itself at the draws, as Posterior.Predict does; with
// CES.PaperMode by the emulator, in the network's place. What the emulator predicts at a row is a combination of what
// the pairs predict there, with weights that depend on the draw.
func (r *Result) Predict(ctx context.Context, x *mat.Dense) (bayes.Prediction, error) {
	if r.emulated == nil {
		return r.Posterior.Predict(ctx, x)
	}
	e := r.emulated
	p, err := e.pairs.Predict(ctx, x)
	if err != nil {
		return p, fmt.Errorf("fbnn: %w", err)
	}
	if len(p.Own) > 0 {
		return p, errors.New("fbnn: an emulator's outputs are no prediction where the likelihood has parameters of its " +
			"own, such as a learnt noise: leave CES.PaperMode out")
	}
	draws, pairs := e.weights.Dims()
	if pairs != p.Particles {
		return p, fmt.Errorf("fbnn: %d pairs, but %d predictions of them", pairs, p.Particles)
	}
	var outputs mat.Dense
	outputs.Mul(e.weights, mat.NewDense(pairs, p.Rows*p.Width, p.Outputs))
	p.Outputs, p.Particles, p.Chains = outputs.RawMatrix().Data, draws, e.chains
	p.Weights = make([]float64, draws)
	for i := range p.Weights {
		p.Weights[i] = 1 / float64(draws)
	}
	return p, nil
}
