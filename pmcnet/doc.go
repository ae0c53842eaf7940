// Package pmcnet samples all weights of a network by adaptive importance sampling, and estimates the evidence.
//
// Importance sampling draws theta_1, .., theta_N from a proposal q, and gives each the weight w_j = pi(theta_j) /
// q(theta_j), where pi(theta) = p(theta) p(y | theta). Weighted means of the draws estimate those of the posterior, and
// the mean weight the evidence p(y). Both are accurate only if q has mass wherever pi has. Two numbers tell: the
// effective sample size (ESS), and k-hat, the shape of a Pareto distribution fitted to the largest weights (diag.PSIS).
//
// PMC is the paper's algorithm (Huang, Chouzenoux, Elvira and Pesquet 2023). Its q is a mixture of M Gaussians
// N(mu_m, Sigma_m), adapted in T iterations (Algorithm 1). Each one
//
//  1. draws K times from each Gaussian, theta_mk ~ N(mu_m, Sigma_m);
//  2. weighs the draws by the whole mixture, w_mk = pi(theta_mk) / (1/M sum_i N(theta_mk; mu_i, Sigma_i));
//  3. resamples the means by these weights: each becomes a draw of its own Gaussian, or globally of any, whose
//     covariance it takes over;
//  4. adapts the covariances: Sigma' = (1 - beta) Sigma + beta ((1 - eta) S^ + eta S~), where S^ is the covariance of
//     the Gaussian's weighted draws, S~ that with the sqrt(K) largest weights cut to the next largest, beta = 1/2, and
//     eta = 1/t in iteration t;
//  5. moves each mean uphill, mu' = mu + gamma Sigma' grad log pi(mu), with the largest gamma of 1, 1/2, 1/4, ... at
//     which pi does not fall.
//
// The particles are the weighted draws of the last iteration.
//
// # Which to take
//
// For networks annealed.Annealed: PMC's weights degenerate in networks of 16 parameters already.
//
// # Where PMC fails
//
// If k-hat is above .7, no number of draws helps: the result's warnings say so, and its evidence is NaN. In D
// dimensions the standard deviations of q must be right to about sqrt(1/(2D)). On linear regressions PMC gets there: in
// 5 dimensions 50 proposals of 100 draws have an ESS of 4500; 20 dimensions need 1000 draws each. With too few, one
// draw has nearly all the weight, and log p(y) is far too low.
//
// Adaptation is more robust with Tempered weights. The draws are then of a distribution between q and the posterior,
// but predict well. Begin with a StdDev that is too large (.5 for a prior N(0, 1)); resample by GlocalEvery(2).
package pmcnet
