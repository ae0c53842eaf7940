// Package baseline fits Bayesian neural networks by established methods, for comparison with the particle samplers.
//
// All methods take the same bayes.Model, the same dataset.Parts and the same Settings, and return a bayes.Posterior, so
// a study is a loop:
//
//	for _, method := range []baseline.Method{baseline.MAP{}, baseline.Ensemble{}, baseline.SWAG{Rank: 20}} {
//		result, err := baseline.Fit(ctx, model, method, parts, baseline.Settings{Epochs: 200, BatchSize: 50})
//		...
//		prediction, err := result.Posterior.Predict(ctx, parts.Test.X)
//	}
//
// A method gives a distribution of the parameters that the model's partition calls stochastic, phi, and a point
// estimate of the shared ones, psi. For [Ensemble], [SAE], [HMC] and [SMC] all parameters are phi.
//
// # Which to take
//
//   - [Ensemble], if you do not know. It is hard to beat.
//   - [HMC] as the reference, if you can afford it: it is asymptotically exact.
//   - [SMC] to compare models by their evidence, or if the posterior has separate modes. Package exchange checks it:
//     the two share no particle and no estimator.
//   - [MLE] and [MAP] for one network, with no uncertainty except the likelihood's noise.
//   - [SWAG], [Laplace], [VI] and [Dropout] for a simple distribution of phi, such as a Gaussian.
//   - [MAPHMC] for draws of phi at the psi of MAP; [SGLD] and [SGHMC] for the same from mini-batches.
//   - [SAE] for predictions that are as uncertain as the prior where there are no data.
//   - One of your own: see [Method] and its example.
//
// # What it costs
//
// A comparison at equal cost must count passes over the data. Training makes Settings.Epochs. On top, SWAG makes
// SWAG.Collect, SGLD and SGHMC by default as many again, Laplace one, MAPHMC and HMC one for each leapfrog step. A step
// of VI or of Dropout evaluates Draws or Masks copies of the layers from the first stochastic one on. SWAG, Laplace,
// MAPHMC, SGLD and SGHMC begin with MAP, which is trained once if they have the same Settings.Checkpoint.
//
// # Where it fails
//
// Read Result.Warnings, and mind:
//
//   - VI and a diagonal Laplace underestimate variances where parameters are correlated.
//   - With Laplace.Sampled the particles predict by the network itself, and worse than the mode if the Gaussian is
//     wide.
//   - SGLD and SGHMC have a bias that grows with the step size. Tune it to the data: the defaults fall as 1/N, and are
//     safe rather than fast.
//   - SAE is too certain where there are data.
package baseline
