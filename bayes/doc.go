// Package bayes defines Bayesian neural networks whose posterior is represented by weighted particles: the model, the
// posterior that a sampler returns, and its predictions.
//
// A Model is a network, a likelihood, a prior, and a Partition that says which parameters are stochastic. The
// stochastic ones, phi, have a distribution, carried by J weighted particles; the others, psi, are shared by all
// particles and learnt as a point estimate. With Layers(3) a model is a partial Bayesian network, with All() a full
// one. Bind fits a model to the widths of its data, and BoundModel.Summary prints the partition.
//
//	model := bayes.Model{
//		Network:    nn.MLP{Hidden: []int{50, 20, 5}, Activation: nn.GELU},
//		Likelihood: bayes.Gaussian{StdDev: 1},
//		Prior:      bayes.Normal{StdDev: 1},
//		Stochastic: bayes.Layers(3),
//	}
//
// Samplers, such as those of the package ohsmc, take a Model and data and return a Posterior: particles, log-weights,
// shared parameters, the scalers of the data, and a record of the run (its provenance). A Posterior predicts from raw
// features, and is saved to and loaded from one file that holds no code. A Prediction holds every particle's prediction
// for every row; its methods give means, standard deviations, quantiles, class probabilities, entropies and
// log-densities of the weighted mixture, and package metric scores it.
//
// Who fits networks needs this package with nn (networks), dataset (tables), fit and run (a fit, and how it goes on
// after a stop), a method (auto, the default; baseline, mcmc, smc; the papers' ohsmc, pmcnet, fbnn and pbnn), metric,
// diag, conformal, effect and distill (judging and using a posterior), cluster, and viz. Who builds a method needs
// density, compute, train, limits and mcmc/check too, and particles for one that moves weighted particles over
// mini-batches, as ohsmc does.
package bayes
