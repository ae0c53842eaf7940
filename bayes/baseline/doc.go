// Package baseline has established methods for Bayesian neural networks, for comparison with the particle samplers.
//
// They are methods of package fit, so a study is a loop:
//
//	training := baseline.Training{Epochs: 200, BatchSize: 50}
//	for _, method := range []fit.Method{
//		baseline.MAP{Training: training}, baseline.Ensemble{Training: training},
//		baseline.SWAG{Training: training, Rank: 20}, mcmc.Chains{},
//	} {
//		result, err := fit.Fit(ctx, model, method, parts, run.Settings{})
//		...
//		prediction, err := result.Posterior.Predict(ctx, parts.Test.X)
//	}
//
// A method gives a distribution of the parameters that the model's partition calls stochastic, phi, and a point
// estimate of the shared ones, psi. For [Ensemble] and [SAE] all parameters are phi. The details of a result are a
// *train.Details, and for methods that run chains a *mcmc.Details too.
//
// # Which to take
//
//   - [Ensemble], if you do not know: it is hard to beat. Package auto makes one by cross-validation, and samples on.
//   - mcmc.Chains as the reference, if you can afford it: it is asymptotically exact. So is smc.Tempered, which
//     estimates the evidence too.
//   - [MLE] and [MAP] for one network.
//   - [SWAG], [Laplace], [VI] and [Dropout] for a simple distribution of phi, such as a Gaussian.
//   - [MAPHMC] for draws of phi at the psi of MAP; [SGLD] and [SGHMC] for the same from mini-batches.
//   - [SAE] for predictions that are as uncertain as the prior where there are no data.
//   - Of rows that memory does not hold (dataset.Source), any of [Ensemble], [MLE], [MAP], [SWAG], [VI], [Dropout] and
//     [SAE]. Parts.Validation is then in memory, or left out.
//
// # What it costs
//
// A comparison at equal cost must count passes over the data. Training makes Training.Epochs. On top, SWAG makes
// SWAG.Collect, SGLD and SGHMC by default as many again, Laplace one, MAPHMC one for each leapfrog step. A step of VI
// or of Dropout evaluates Draws or Masks copies of the layers from the first stochastic one on. SWAG, Laplace, MAPHMC,
// SGLD and SGHMC begin with MAP, which is trained once if they have the same Settings.Checkpoint.
//
// Settings.Observe gets the posterior of the current parameters once an epoch, then of the chains' draws so far.
// SWAG's collection and SAE's members after the first are not observed.
//
// # Where it fails
//
// Read Result.Warnings, and mind:
//
//   - VI underestimates variances where parameters are correlated.
//   - SGLD and SGHMC have a bias that grows with the step size. Tune it to the data: the defaults fall as 1/N, and are
//     safe rather than fast.
//   - SAE is too certain where there are data.
package baseline
