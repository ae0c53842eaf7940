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
// estimate of the shared ones, psi. With bayes.All() every method treats the whole network.
//
//   - MLE and MAP are points: one particle, with no uncertainty except the likelihood's noise. MAP has a prior on phi
//     only.
//   - Ensemble trains members from different starting points (Lakshminarayanan, Pritzel and Blundell 2017). They share
//     nothing, so all parameters are particles, whatever the partition. It is hard to beat: take it if you do not know
//     which method to take.
//   - SAE trains members one after another, each pulled towards an anchor, the current state of a Markov chain that
//     samples the prior (Delaunoy and Louppe 2021). Predictions are as uncertain as the prior's where there are no
//     data, and too certain where there are.
//   - Dropout zeroes units at random in training and prediction (Gal and Ghahramani 2016), before every layer with
//     stochastic weights.
//   - SWAG fits a Gaussian to the iterates of an optimiser that moves around the mode (Maddox, Garipov, Izmailov,
//     Vetrov and Wilson 2019).
//   - VI fits independent normals by maximising the evidence lower bound (Graves 2011; Blundell, Cornebise, Kavukcuoglu
//     and Wierstra 2015).
//   - Laplace takes the Gaussian at the mode whose precision is the curvature of the negative log-posterior there
//     (MacKay 1992; Daxberger et al. 2021): the diagonal, the full matrix, the last layer's, or a Kronecker product for
//     each layer (Ritter et al. 2018). It predicts with the network linearised at the mode (Immer et al. 2021), or, if
//     asked, with the network itself.
//   - MAPHMC samples phi by HMC, with psi fixed at MAP's estimate (Sharma, Farquhar, Nalisnick and Rainforth 2023).
//   - SGLD and SGHMC sample phi at MAP's psi from mini-batches, with a bias that grows with the step size (Welling and
//     Teh 2011; Chen, Fox and Guestrin 2014).
//   - HMC samples all parameters given all rows, and is asymptotically exact: the reference, if you can afford it.
//   - SMC samples all parameters by tempering from the prior to the posterior (package smc), and estimates the model's
//     evidence with a standard error. Take it to compare models, or if the posterior has separate modes.
//   - ReplicaExchange samples all parameters at all powers of the likelihood in parallel (Geyer 1991). It shares no
//     particle and no estimator with SMC, so it checks SMC and its evidence.
//
// # How it is computed
//
// Members, draws and masks are particles: one compiled step evaluates all of them. A learner has J independent members,
// theta [J, Q], and an objective for each; package ascent trains them, with mini-batches, Adam, validation, early
// stopping and checkpoints. Point estimates are members whose parameters are all per particle. Dropout and VI fit a
// distribution q of phi from a parametric family: the parameters of q, and psi, maximise the evidence lower bound
//
//	(1/S) sum_s (N/n) log p(y_batch | phi_s; psi) + E_q log p(phi) - E_q log q(phi),  phi_s ~ q,
//
// and the posterior's particles are draws from q, as the phi_s are in training.
//
// SWAG, Laplace, MAPHMC, SGLD and SGHMC begin with MAP: with the same Settings.Checkpoint it is trained once for all of
// them.
//
// # How to write your own
//
// Implement Method with the methods of its Job: Mode trains MAP, Train trains any train.Learner, and Posterior makes a
// posterior from particles. See the example of Method.
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
// SGLD and SGHMC need their step sizes tuned to the data: their defaults fall as 1/N, and are safe rather than fast. If
// a class has no row in the training part, Fit returns dataset.ErrMissingClass.
package baseline
