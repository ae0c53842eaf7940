package fbnn

import (
	"context"
	"errors"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"gonum.org/v1/gonum/mat"
)

// ErrEmulator is wrapped by the error of a run whose emulator is of no use, for instance if it returns NaN.
var ErrEmulator = errors.New("fbnn: the emulator is of no use")

// errPairs says that there is nothing to learn from the pairs of the calibration, for instance if all are the same.
var errPairs = errors.New("fbnn: nothing can be learnt from the pairs")

// Details of a run of CES, Chain or Prior: fit.Details[*fbnn.Details](result). The result's Posterior predicts by the
// network.
type Details struct {
	Calibration *mcmc.Details // the run that made the pairs; nil after Prior
	Sampling    *mcmc.Details // the run that made the draws; the calibration after Chain, nil after Prior
	// HeldOut are the emulator's errors on the pairs that were held out from its training, the last fifth of the chain.
	HeldOut Errors
	Truth   Truth
	// Beta is the Beta of the sampling's pCN; 0 for other kernels.
	Beta float64
	// SecondStage is the mean probability with which the true posterior accepts what the emulated chain has reached (the
	// second stage of delayed acceptance); NaN if there is no second stage.
	SecondStage float64
	// Evaluations counts the evaluations in all steps: of the network on all rows (Full, FullGradients), and of the
	// emulator (Partial, PartialGradients).
	Evaluations mcmc.Evaluations

	trueBeta float64             // of a pCN that the true posterior accepts with probability .3
	stepSize float64             // that was chosen for the sampling's HMC; 0 if it was set
	emulated *emulatedPrediction // for CES.PaperMode; otherwise nil
	job      *job                // for Potentials
	cheap    density.Problem     // the emulated posterior; its Target is nil if there is none
}

// Errors are those of an emulator on held-out pairs.
type Errors struct {
	// R2 is 1 minus the squared error of what is emulated (outputs or log-likelihood) divided by its variance over the
	// held-out pairs: 1 is exact. It may be far below 0, since the chain moves on to regions that the learnt pairs do not
	// reach.
	R2 float64
	// Phi is the root mean square error of the log-likelihood.
	Phi float64
	// Gradient is |g - g^| / |g|, with g the gradients of the log-likelihood with respect to theta at all held-out pairs,
	// and g^ the emulated ones: 0 is exact.
	Gradient float64
}

// Truth compares the potential Phi = -log p(y | theta) with the emulated one, Phi^e, at states of the sampling that are
// evenly spaced over its draws.
type Truth struct {
	True, Emulated float64 // means of Phi and of Phi^e over the states
	RMS            float64 // root mean square of Phi - Phi^e
	Calibration    float64 // mean of Phi over the pairs
	Prior          float64 // median of Phi over draws from the prior

	states            int     // their number: 100, or all draws if there are fewer; all draws for Chain and Prior
	calibrationStdDev float64 // of Phi over the pairs
	nonFinite         int     // states where Phi or Phi^e is not finite: left out of the means
	medianESS, minESS float64 // effective sample sizes of the draws: of up to 200 coordinates
}

// emulatedPrediction computes the emulator's outputs at any rows, as linear combinations of the pairs' outputs.
type emulatedPrediction struct {
	pairs   *bayes.Posterior
	weights *mat.Dense // [S, J]: weight of pair j in draw s; rows sum to 1
	chains  int
}

// Predict predicts at raw features x, [N, d], by the emulator in place of the network, after CES with PaperMode. The
// emulator's prediction at a row is a linear combination of the pairs' predictions there, with weights that depend on
// the draw.
func (d *Details) Predict(ctx context.Context, x mat.Matrix) (bayes.Prediction, error) {
	if d.emulated == nil {
		return bayes.Prediction{}, errors.New("fbnn: only CES.PaperMode predicts by the emulator: take Posterior.Predict, " +
			"which predicts by the network")
	}
	e := d.emulated
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
