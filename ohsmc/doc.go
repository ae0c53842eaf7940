// Package ohsmc trains partial Bayesian neural networks by sequential Monte Carlo (SMC).
//
// In a partial Bayesian network f(x; phi, psi) only the weights phi are stochastic and have a prior p(phi): often those
// of one layer. All other weights, psi, are learnt as a point estimate, which maximises the marginal likelihood
//
//	p(y; psi) = integral of p(y | phi; psi) p(phi) over phi
//
// The result is the posterior p(phi | y; psi) at the psi found, given by particles phi_1, ..., phi_J with weights w_1,
// ..., w_J that add up to 1. The gradient that psi follows is the posterior mean of grad_psi log p(y | phi; psi)
// (Fisher's identity), which the weighted particles estimate:
//
//	grad_psi log p(y; psi) = E[grad_psi log p(y | phi; psi) | y]  ~  sum_j w_j grad_psi log p(y | phi_j; psi)
//
// It takes one reverse pass with the weights held constant. How the particles came about, by resampling and moves, is
// not differentiated.
//
// # The algorithms
//
// Zhao, Mair, Schön and Sjölund (2024) have three: the type SMC is their Algorithms 1 and 2, OpenHorizon is their
// Algorithm 3. N is the number of rows, M the number of rows in a batch.
//
// Algorithm 1 (SMC) begins each step on psi with particles from the prior, and takes the N rows one by one. For row n
// it moves the particles by an MCMC kernel that leaves p(phi | y_1:n-1; psi) invariant, multiplies each weight by p(y_n
// | phi_j; psi), and resamples if the effective sample size (ESS) is low. After row N the particles represent the
// posterior, and psi moves along the gradient above.
//
// Algorithm 2 (SGSMC) is the same on a random batch of M rows, with the gradient multiplied by N/M.
//
// Algorithm 3 (open-horizon SMC) draws particles from the prior only once, and keeps them from batch to batch. For each
// batch S it
//
//  1. resamples the particles, if their ESS is low;
//  2. moves them by a kernel h, phi_j ~ h(. | phi_j): a random walk or an Ornstein-Uhlenbeck process;
//  3. weighs them by the whole batch, w_j <- w_j p(y_S | phi_j; psi), and normalises the weights;
//  4. moves psi by Adam along g = (N/M) sum_j w_j grad_psi log p(y_S | phi_j; psi).
//
// Guided is Algorithm 3 of Millard, Murphy, Zhao and Maskell (2025). It also keeps the particles, but its moves may use
// the gradient: Langevin or Hamiltonian steps go toward the posterior given the current batch. Its weights account for
// the moves by a backward kernel.
//
// # Which one to take
//
// Fit repeats the step of an Algorithm over the batches:
//
//   - OpenHorizon, if you do not know; a nil Algorithm stands for it. Its step is the cheapest: each particle is
//     evaluated and differentiated once on the batch, as in training an ensemble of J networks.
//   - Guided with the Proposal Langevin or HMC, if the particles should follow the gradient of the posterior.
//   - SMC, if you need the evidence, or, with all rows in one batch, the exact posterior. It costs many times more.
//   - One of your own: see Algorithm and its example. See Proposal for a move of your own in Guided.
//
// If there is a validation part, the result is the state with the lowest validation NLPD (negative log predictive
// density). Sample then draws from the exact p(phi | y; psi) at its psi, by HMC or NUTS.
//
// # Where the particles are not the posterior
//
// The kernel of OpenHorizon accepts every move and leaves no posterior invariant, so the particles do not converge to
// p(phi | y; psi). Each batch makes their distribution narrower, by its likelihood, and each move makes it wider. In
// equilibrium it depends on about the last few batches. For a linear Gaussian model it is the distribution of a Kalman
// filter: for a random walk of variance q and batches that add the precision r, the stationary variance v solves 1/v =
// 1/(v + q) + r. It is too wide where batches are small and q is large. It is too narrow where q is small, since the
// same rows count again in each epoch. In the conjugate regression of the package's tests (30 rows, posterior variance
// .022), batches of 3 rows with q = .1 give a stationary variance of .10, batches of 30 with q = .0005 one of .003. The
// tests compare the particles with the filter. If the exact posterior matters, call Sample.
//
// Guided is exact for a target that stays the same, that is with all rows in one batch and psi fixed: the tests check
// this for every proposal. But the particles must have moved far enough from those few that the first batch leaves (see
// Guided). With mini-batches its target changes from step to step, and its particles are not exact either.
package ohsmc
