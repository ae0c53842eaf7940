// Package ohsmc trains partial Bayesian neural networks by sequential Monte Carlo.
//
// A partial Bayesian network f(x; phi, psi) has stochastic parameters phi with a prior, and shared parameters psi,
// which are learnt as a point estimate: psi maximises the marginal likelihood log p(y; psi), and the result is the
// posterior p(phi | y; psi) at that psi. Particles phi_1, ..., phi_J represent the posterior while psi moves by Adam
// along the gradient of Fisher's identity, one reverse pass through the weighted particles: resampling and moves are
// not differentiated. Fit runs an Algorithm, which defines the step:
//
//   - OpenHorizon (Zhao, Mair, Schön and Sjölund 2024, Algorithm 3): particles persist from batch to batch. A step is
//     as cheap as one of an ensemble. Take this one if you don't know; nil does.
//   - Guided (Millard, Murphy, Zhao and Maskell 2025, Algorithm 3): the same, but particles move toward the current
//     batch's posterior, by Langevin or Hamiltonian steps, and are weighed against a backward kernel.
//   - SMC (Zhao et al. 2024, Algorithms 1 and 2): each step draws particles from the prior and conditions them on the
//     data one by one, with MCMC moves in between. It is the only one that estimates the evidence and, on all rows,
//     the exact posterior, at many times the cost.
//   - One of your own: see Algorithm and its example, and Proposal for a move of your own in Guided.
//
// The state at the best validation NLPD is kept. Sample then draws from the exact p(phi | y; psi) at the psi found,
// by HMC or NUTS.
//
// # Open-horizon SMC
//
// OpenHorizon draws particles from the prior and then, for each mini-batch S of M of the N rows:
//
//  1. resamples the particles, if their effective sample size has fallen;
//  2. moves them by a kernel h, phi_j ~ h(. | phi_j): a random walk or an Ornstein-Uhlenbeck process;
//  3. weighs them by the batch, w_j <- w_j p(y_S | phi_j; psi), and normalises;
//  4. moves psi by Adam along g = (N/M) sum_j w_j grad_psi log p(y_S | phi_j; psi), which is the gradient of the
//     batch's log evidence (Fisher's identity).
//
// # What it does not do
//
// The kernel accepts every move and leaves no posterior invariant. So the particles do not converge to p(phi | y; psi):
// each batch multiplies the distribution by a likelihood, each move widens it, and in equilibrium it depends on about
// the last few batches. For a linear Gaussian model the distribution is that of a Kalman filter: for a random walk of
// variance q and batches of precision r, the stationary variance v solves 1/v = 1/(v + q) + r. It is too wide where
// batches are small and q is large, and too narrow where q is small, since the same rows count again in each epoch. In
// the conjugate regression of the package's tests (30 rows, posterior variance .022) batches of 3 with q = .1 give a
// stationary variance of .10, batches of 30 with q = .0005 one of .003. The tests compare the particles with the
// filter. If the exact posterior matters, call Sample.
//
// Guided is exact for a fixed target, all rows in one batch and psi fixed: the tests check this for every proposal.
// With mini-batches its target is a different one at each step.
package ohsmc
