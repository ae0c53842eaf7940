// Package ohsmc trains partial Bayesian neural networks by sequential Monte Carlo (SMC).
//
// In a partial Bayesian network f(x; phi, psi) only the weights phi have a prior, p(phi): often those of one layer. All
// other weights, psi, are learnt as a point estimate, which maximises the marginal likelihood
//
//	p(y; psi) = integral of p(y | phi; psi) p(phi) over phi
//
// The result is the posterior p(phi | y; psi) at the psi found, given by particles phi_1, ..., phi_J with weights w_1,
// ..., w_J that add up to 1. The algorithms are methods that fit.Fit runs, with the settings of package run:
//
//	method := ohsmc.OpenHorizon{Training: particles.Training{Particles: 1000, Epochs: 200}}
//	result, err := fit.Fit(ctx, model, method, parts, run.Settings{Seed: 1})
//
// What a step does stands here; what repeats it over mini-batches, validates, and makes the posterior is package
// particles, whose Training has the settings that all algorithms share. fit.Details[*particles.Details](result) has a
// record of each step.
//
// # Which to take
//
//   - [OpenHorizon], if you do not know. Its step is the cheapest: each particle is evaluated and differentiated once
//     on the batch, as in training an ensemble of J networks.
//   - [Guided] with the Proposal [Langevin] or [HMC], if the particles should follow the gradient of the posterior.
//   - [SMC], if you need the evidence, or, with all rows in one batch, the exact posterior. It costs many times more.
//   - One of your own: see package particles, or [Proposal] for a move of your own in Guided.
//
// With a validation part the result is the state with the lowest validation NLPD (negative log predictive density).
//
// # Where the particles are not the posterior
//
//   - OpenHorizon accepts every move. Its particles are too wide with small batches and long moves, and too narrow
//     with short moves, since each epoch counts the rows again.
//   - Guided is exact only if the target stays the same: with all rows in one batch and psi fixed. With mini-batches
//     few particles have most of the weight: watch the ESS of each step (particles.StepRecord).
//   - SMC with mini-batches gives the posterior given the last batch alone. Only its psi is of use.
//
// If the exact posterior matters, continue the training with Markov chains, which draw from p(phi | y; psi) given all
// rows. With a psi trained by SMC and the kernel mcmc.HMC they are SGSMC-HMC of Zhao et al.:
//
//	exact := fit.From{Trained: result.Posterior, Method: mcmc.Chains{}}
//	sampled, err := fit.Fit(ctx, bayes.Model{}, exact, parts, run.Settings{})
//
// Papers: Zhao, Mair, Schön and Sjölund (2024) for SMC and OpenHorizon; Millard, Murphy, Zhao and Maskell (2025) for
// Guided.
package ohsmc
