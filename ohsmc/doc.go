// Package ohsmc trains partial Bayesian neural networks by sequential Monte Carlo.
//
// A partial Bayesian network f(x; phi, psi) has stochastic parameters phi with a prior, and shared parameters psi, which are
// learnt as a point estimate: psi maximises the marginal likelihood log p(y; psi), and the answer is the posterior p(phi | y; psi) at that
// psi. Particles phi_1, ..., phi_J carry the posterior along while psi moves.
//
// # Open-horizon SMC (Zhao, Mair, Schön and Sjölund 2024, Algorithm 3)
//
// Train draws particles from the prior and then, for each mini-batch S of M of the N rows:
//
//  1. resamples the particles, if their effective sample size has fallen;
//  2. moves them by a kernel h, phi_j ~ h(. | phi_j): a random walk or an Ornstein-Uhlenbeck process;
//  3. weighs them by the batch, w_j <- w_j p(y_S | phi_j; psi), and normalises;
//  4. moves psi by Adam along g = (N/M) sum_j w_j grad_psi log p(y_S | phi_j; psi), which is the gradient of the batch's log evidence
//     (Fisher's identity): one reverse pass, nothing is differentiated through resampling or moves.
//
// The particles persist from batch to batch, which makes a step as cheap as one of an ensemble, and the state at the best validation NLPD is kept.
//
// # What it does not do
//
// The kernel accepts and rejects nothing and leaves no posterior invariant. So the particles do not converge to p(phi | y; psi): each batch
// multiplies a likelihood in, each move blurs, and the balance is a distribution that remembers about the last few batches. On a linear
// Gaussian model it is that of a Kalman filter: for a random walk of variance q and batches of precision r, the stationary variance v solves
// 1/v = 1/(v + q) + r. It is too wide where batches are small and q is large, and too narrow where q is small, since the same rows count again
// each epoch. On the conjugate regression of the package's tests (30 rows, posterior variance .022) batches of 3 with q = .1 give a stationary
// variance of .10, batches of 30 with q = .0005 one of .003. The tests hold the particles to the filter. If the exact posterior matters, run
// MCMC at the psi found here.
package ohsmc
