// Package pmcnet samples all weights of a network by adaptive importance sampling, and estimates the evidence.
//
// Importance sampling draws theta_1, .., theta_N from a proposal q, and gives each draw the weight w_j = pi(theta_j) /
// q(theta_j), where pi(theta) = p(theta) p(y | theta) is the posterior times its unknown normalising constant, the
// evidence p(y). Then sum_j w_j f(theta_j) / sum_j w_j estimates the posterior mean of f, and the mean of the w_j
// estimates the evidence without bias, for every N. Both are accurate only if q has mass wherever pi has. Two numbers
// tell: the effective sample size (ESS), and k-hat, the shape of a Pareto distribution fitted to the largest weights
// (diag.PSIS), which is too large if few draws hold nearly all the weight.
//
// PMC is the algorithm of the paper (PMCnet: Huang, Chouzenoux, Elvira and Pesquet 2023) and adapts q from its own
// weighted draws. Annealed, the default, fits q to the particles of an SMC sampler instead. Take Annealed for networks:
// the weights of PMC degenerate on networks of 50 parameters and more.
//
// # Population Monte Carlo
//
// The q of PMC is a mixture of M Gaussians N(mu_m, Sigma_m), m = 1..M, adapted in T iterations (Algorithm 1). Each one
//
//  1. draws K times from each Gaussian, theta_mk ~ N(mu_m, Sigma_m), k = 1..K;
//  2. weighs the draws by the whole mixture, w_mk = pi(theta_mk) / (1/M sum_i N(theta_mk; mu_i, Sigma_i)). These
//     deterministic-mixture weights have a smaller variance than pi(theta_mk) / N(theta_mk; mu_m, Sigma_m) (Elvira,
//     Martino, Luengo and Bugallo 2019);
//  3. resamples the means by these weights: each becomes one of the K draws of its own Gaussian (Local), or one of all
//     M K draws (Global), and then takes over the covariance of the Gaussian that made the draw;
//  4. adapts the covariances: Sigma' = (1 - beta) Sigma + beta ((1 - eta) S^ + eta S~), where S^ is the covariance of
//     the Gaussian's weighted draws, S~ is the same with the sqrt(K) largest weights cut to the next largest, and eta =
//     1/t in iteration t;
//  5. moves each mean uphill, mu' = mu + gamma Sigma' grad log pi(mu), with the largest gamma of 1, 1/2, 1/4, ... at
//     which pi does not decrease.
//
// The posterior's particles are the weighted draws of the last iteration, or of all. The paper's variants, DM-PMC and
// PMCnet without gradient or without adapted covariances, are settings of PMC, and so is PMCnet-light, which replaces
// step 5 by an epoch of mini-batch steps. An iteration is one compiled program, in which all M K densities are one
// batched evaluation. Weights are kept as logs, in float64.
//
// # Annealed
//
// In D dimensions the standard deviations of q must be right to a relative error of about sqrt(1/(2D)) (see below),
// which no first guess is. So Annealed does not guess (its own comment has the steps in detail):
//
//   - an SMC sampler (package smc) moves particles from the prior to the posterior through powers of the likelihood;
//   - q, a mixture of Student-t distributions and one wide component, is fitted to these particles;
//   - new draws of q are weighted by pi/q;
//   - if these weights are doubtful, a second SMC sampler, the bridge, moves particles from q to the posterior, through
//     the densities q^(1-power) pi^power. The way is short if q resembles the posterior; where it would be longer than
//     that from the prior, as in hundreds of dimensions, the bridge is left out.
//
// This gives up to three estimates of the evidence, which fail for different reasons: the first SMC if its moves do not
// mix on the way from the prior, the weighted draws if q does not fit, which k-hat shows, and the bridge if its moves
// do not mix. Result.Annealed has them all, and says which one the result is, and why. All three fail together, unseen,
// where the first SMC has found no particle and the wide component does not reach.
//
// # Symmetries
//
// Exchanging two hidden units does not change the function of a network, and neither does changing the signs of all
// weights into and out of a tanh unit. So the posterior has |G| identical images, with |G| = n! for a layer of n units,
// times 2^n for tanh, multiplied over the layers; a mixture would need components for each image. Annealed therefore
// replaces each particle by its image in canonical order, and fits q to that one image, in the region R of parameters
// in this order. Draws outside R have weight 0, so the mean weight estimates the integral over R, and the evidence is
// |G| times that: log p(y) = log |G| + log mean w. Predictions do not depend on the order. There is a canonical order
// for an nn.MLP with one of this library's priors. For others |G| is 1, and Estimates.Order says why. It also says so
// if fewer than a twentieth of the draws are in R, as for layers of many units, where R has so many edges that no
// mixture fits: then q is fitted to the particles as they are, is wide, and the bridge is longer.
//
// # Which estimate of Annealed is the result
//
// In order of preference:
//
//  1. the weighted draws, if k-hat plus its standard error is at most .5 and their ESS is at least 100;
//  2. the bridge, if it has no warnings;
//  3. the weighted draws, if k-hat is at most MaxKHat, .7, and their ESS is at least 100;
//  4. the first SMC, if there is no bridge or it has warnings.
//
// The result is the first of these whose log evidence no other of them exceeds by more than three standard errors,
// since an estimate that has missed a part of the posterior is too low. Result.Warnings reports estimates that differ
// by more than that, and a k-hat above MaxKHat. The first limit is .5 because the weights have no variance above it,
// and their stated error means nothing: on two ReLU units k-hat was .50 to .64 in four runs, and the log evidence too
// low by up to three stated errors.
//
// The table has 2000 particles and four seeds, each with its stated error: regressions with known evidence; a network
// 1-2-1 with 12 points, whose log p(y) is known by quadrature; and boston (Javid et al. 2020, split 6).
//
//	                      D   k-hat         SMC - exact          importance sampling   bridge
//	regression            5   -.3 to -.1    -.09 to .01 +- .06    -.005 to .004 +- .003  .000 to .005 +- .004
//	regression           20   -.1 to .1     .01 to .22 +- .13     -.002 to .007 +- .006  -.005 to .02 +- .01
//	12 points, tanh 2     7   .47 to .63    -.30 to -.07 +- .09   -.014 to .006 +- .015  -.03 to .004 +- .02
//
//	                      D   k-hat         SMC                  importance sampling   bridge
//	boston, tanh 2       31   .63 to .83    -285.14 to -284.94    -285.18, -285.04       -285.07 to -284.94 +- .04
//	boston, ReLU 2       31   .50 to .64    -276.62 to -276.48    -276.73 to -276.56     -276.62 to -276.50 +- .04
//	boston, tanh 4, 4    81   8.3 to 9.4    -287.53 to -287.39    none                   -287.44 to -287.27 +- .07
//
// The SMC's stated errors on boston are .07 to .09: the bridge halves them on two units, and still works where
// importance sampling has failed.
//
// # Where PMC fails
//
// PMC has no second estimate: look at k-hat and ESS before anything else. If k-hat is above .7, no number of draws
// makes importance weights reliable; Result.Warnings says so, and Result.Evidence is NaN.
//
// For a Gaussian pi in D dimensions and a q whose standard deviations are wrong by a factor 1 + e, the log-weights have
// a standard deviation of about e sqrt(2D): e must be below sqrt(1/(2D)). On linear regressions PMC gets there: in 5
// dimensions, 50 proposals of 100 draws have an ESS of 4500 of 5000 and log p(y) to .01; in 20 dimensions they need
// 1000 draws each. With 100 draws there, and on networks of 50 dimensions and more, the weights degenerate: one draw
// has nearly all the weight, the covariances shrink (to an eighth of the variance already on a Gaussian), and log p(y)
// is far too low. Tests check both the exact cases and that a collapse is reported.
//
// Adaptation is more robust if it trusts the weights less: Tempered and TemperedWithin raise them to a power below 1,
// chosen for a given ESS, and Clipped cuts the largest. The draws are then of a distribution between q and the
// posterior. Their predictions are good, and k-hat, computed from the unchanged weights, still reports that they are
// not the posterior. Begin with a StdDev that is too large rather than too small (.5 with a prior N(0, 1)), and
// resample globally every second iteration (GlocalEvery(2), as the authors' program does).
//
// Moving the means by Hamiltonian Monte Carlo (HAIS, arXiv 2209.13716; HPMC, arXiv 2412.19576) is not provided, because
// better means alone do not help. At best the means are posterior draws. With 50 and 500 draws of a long NUTS run as
// Problem.Start, 5000 draws around them and a fixed sigma from .05 to 1.2, the smallest k-hat was 1.8 and 1.5 on a
// network with 400 rows (D = 16), with an ESS of 1 to 8, and 4.5 and 4.5 on Ionosphere (D = 176). With diagonal
// covariances adapted over 5 iterations it was 1.5 and 1.7, and 4.4 and 4.7. Full covariances were not tried.
//
// The authors' program computes exp(log pi - log q) + 1e-50 without subtracting the largest log-weight. Beyond some 20
// dimensions all weights are then 1e-50, and it adapts by equal weights. This package does not reproduce that.
package pmcnet
