// Package baseline fits Bayesian neural networks by the methods that particle samplers are measured against.
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
// What the model's partition calls stochastic, phi, is what a method is uncertain about; the shared parameters psi are
// learnt as a point along with it. With bayes.All() every method treats the whole network.
//
//   - MLE and MAP are points: one particle, no uncertainty but the likelihood's noise. MAP's prior is on phi alone.
//   - Ensemble trains members from starts of their own (Lakshminarayanan, Pritzel and Blundell 2017). They share
//     nothing, so all parameters are particles, whatever the partition. It is hard to beat; take it where a method must
//     be chosen blindly.
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
//   - HMC samples all parameters, exactly, given all rows: the reference where it can be paid for.
//   - SMC samples all parameters along a ladder of tempered likelihoods from the prior on (package smc), and estimates
//     the model's evidence with a standard error: take it to compare models, and where modes lie apart.
//
// # How it is computed
//
// Members, draws and masks are particles: one compiled step evaluates all of them. A learner has J members that do not
// see one another, theta [J, Q], and an objective for each; package ascent trains them, with mini-batches, Adam,
// validation, patience and checkpoint. Point estimates are members of a network whose every
// parameter is a particle's own. Dropout and VI are families q of distributions of phi: their one member's parameters,
// and psi, maximise the evidence lower bound
//
//	(1/S) sum_s (N/n) log p(y_batch | phi_s; psi) + E_q log p(phi) - E_q log q(phi),  phi_s ~ q,
//
// and what draws phi_s in training draws the posterior's particles. A posterior of 100 particles predicts in one call.
//
// MAP is what SWAG, Laplace, MAPHMC, SGLD and SGHMC begin with: with the same Settings.Checkpoint it is trained once
// for all of them.
//
// # A method of one's own
//
// A method is a type with the methods of Method. What it is made of are the methods of its Job: Mode trains MAP, Train
// any ascent.Learner, and Posterior joins particles with all that a posterior keeps. See the example of Method.
//
// # What it costs
//
// Methods spend Settings.Epochs passes over the data on training. On top, SWAG makes SWAG.Collect passes, SGLD and
// SGHMC by default as many again, Laplace one, MAPHMC and HMC one for each leapfrog step of each transition. A step of
// VI or of dropout evaluates Draws or Masks copies of the layers from the first stochastic one on. A comparison at
// equal budgets has to count these.
//
// # Where it goes wrong
//
// Laplace's particles, if they are Sampled, go through the network itself, and a wide Gaussian then predicts worse than
// its mode. Mean-field VI underestimates variances where parameters are correlated, and so does a diagonal Laplace.
// SGLD and SGHMC need their step sizes tuned to the data: their defaults fall as 1/N, and are safe rather than fast. A
// class that no row of the training part has is an error, dataset.ErrMissingClass.
package baseline
