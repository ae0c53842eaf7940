// Package baseline fits Bayesian neural networks by established methods, to compare particle samplers with.
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
// estimate of the shared ones, psi. With bayes.All() every method treats the whole network.
//
//   - MLE and MAP are points: one particle, no uncertainty but the likelihood's noise. MAP's prior is on phi alone.
//   - Ensemble trains members from different starting points (Lakshminarayanan, Pritzel and Blundell 2017). They share
//     nothing, so all parameters are particles, whatever the partition. It is hard to beat: take it if you don't know
//     which.
//   - SAE trains members one after another, each towards an anchor that a Markov chain draws of the prior (Delaunoy and
//     Louppe 2021): as spread as the prior where there are no data, and too narrow where there are.
//   - Dropout zeroes units at random in training and prediction (Gal and Ghahramani 2016), before every layer with
//     stochastic weights.
//   - SWAG fits a Gaussian to the iterates of an optimiser that goes around the mode (Maddox, Garipov, Izmailov, Vetrov
//     and Wilson 2019).
//   - VI fits independent normals by the evidence lower bound (Graves 2011; Blundell, Cornebise, Kavukcuoglu and
//     Wierstra 2015).
//   - Laplace takes the Gaussian that has the curvature at the mode (MacKay 1992; Daxberger et al. 2021): diagonal,
//     full, of the last layer, or a Kronecker product for each layer (Ritter et al. 2018). It predicts with the network
//     linearised at the mode (Immer et al. 2021), or, if asked, with the network itself.
//   - MAPHMC samples phi exactly, at MAP's psi (Sharma, Farquhar, Nalisnick and Rainforth 2023).
//   - SGLD and SGHMC sample phi at MAP's psi from mini-batches, with a bias that grows with the step size (Welling and
//     Teh 2011; Chen, Fox and Guestrin 2014).
//   - HMC samples all parameters, exactly, given all rows: the reference where its cost allows.
//   - SMC samples all parameters along a ladder of tempered likelihoods from the prior on (package smc), and estimates
//     the model's evidence with a standard error: take it to compare models, and where modes lie apart.
//   - ReplicaExchange samples all parameters at every power of the likelihood at once (Geyer 1991): the check of SMC,
//     and of its evidence, which it shares nothing with.
//
// # How it is computed
//
// Members, draws and masks are particles: one compiled step evaluates all of them. A learner has J independent members,
// theta [J, Q], and an objective for each; package ascent trains them, with mini-batches, Adam, validation, early
// stopping and checkpoints. Point estimates are members whose parameters are all per particle. Dropout and VI are
// families q of distributions of phi: their parameters, and psi, maximise the evidence lower bound
//
//	(1/S) sum_s (N/n) log p(y_batch | phi_s; psi) + E_q log p(phi) - E_q log q(phi),  phi_s ~ q,
//
// and the posterior's particles are drawn as the phi_s in training.
//
// SWAG, Laplace, MAPHMC, SGLD and SGHMC begin with MAP: with the same Settings.Checkpoint it is trained once for all of
// them.
//
// # How to write your own
//
// Implement Method with the methods of its Job: Mode trains MAP, Train any ascent.Learner, and Posterior makes a
// posterior of particles. See the example of Method.
//
// # What it costs
//
// Methods spend Settings.Epochs passes over the data on training. On top, SWAG makes SWAG.Collect passes, SGLD and
// SGHMC by default as many again, Laplace one, MAPHMC and HMC one for each leapfrog step of each transition. A step of
// VI or of dropout evaluates Draws or Masks copies of the layers from the first stochastic one on. A comparison at
// equal cost must count these.
//
// # Where it goes wrong
//
// With Laplace.Sampled the particles are evaluated by the network itself, and a wide Gaussian then predicts worse than
// its mode. Mean-field VI underestimates variances where parameters are correlated, and so does a diagonal Laplace.
// SGLD and SGHMC need their step sizes tuned to the data: their defaults fall as 1/N, and are safe rather than fast. A
// class that no row of the training part has is an error, dataset.ErrMissingClass.
package baseline
