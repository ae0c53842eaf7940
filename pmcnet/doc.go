// Package pmcnet samples all weights of a network by adaptive importance sampling, and estimates the evidence.
//
// Importance sampling draws theta_j from a proposal q that one can draw from, and weighs each draw by w_j = pi(theta_j)
// / q(theta_j), where pi(theta) = p(theta) p(y | theta) is the posterior up to a constant. Then sum_j w_j f(theta_j) /
// sum_j w_j is the posterior mean of f, and the mean of the w_j estimates the constant, the evidence p(y), unbiased for
// every number of draws. All depends on q: it must be wide where pi is, and the weights tell whether it was.
//
// # Population Monte Carlo
//
// PMC adapts q, a mixture of M Gaussians N(mu_m, Sigma_m), m = 1..M, in T iterations (PMCnet, Algorithm 1). In each,
//
//  1. it draws K from each proposal, theta_mk ~ N(mu_m, Sigma_m);
//  2. weighs them by the whole mixture, w_mk = pi(theta_mk) / (1/M sum_i N(theta_mk; mu_i, Sigma_i)): the
//     deterministic-mixture weights (Elvira, Martino, Luengo and Bugallo 2019), which vary less than those by the
//     draw's own proposal;
//  3. resamples the means: each becomes one of its proposal's draws (Local), or all are drawn from all (Global), and
//     then the covariance of the parent comes along;
//  4. adapts the covariances: Sigma' = (1 - beta) Sigma + beta ((1 - eta) S^ + eta S~), where S^ is the covariance of
//     the proposal's weighted draws, S~ that with the sqrt(K) largest weights clipped to the next largest, and eta =
//     1/t in iteration t;
//  5. and takes a Newton-like step of each mean, mu' = mu + gamma Sigma' grad log pi(mu), with the largest gamma of 1,
//     1/2, 1/4, ... at which pi does not fall.
//
// The last draws, or all, are the posterior's, with their weights. Gradient-free, covariance-free, DM-PMC and
// PMCnet-light, whose step 5 is an epoch of mini-batch steps, are settings of PMC. All M K targets are one batched
// evaluation, and an iteration is one compiled program; everything about weights is in logs and float64.
//
// # Annealed
//
// Of what nothing is known, q cannot be right: in D dimensions its scales must be right within sqrt(1/(2D)). So
// Annealed, which is what nil means, does not begin with a proposal but with the prior, and goes to the posterior
// through powers of the likelihood, by sequential Monte Carlo (package smc). Only then it fits q, a mixture of
// Student-t distributions, to where the particles have come, and weighs new draws of it. Where q is not near enough for
// that, it goes on from q to the posterior by SMC again, through q^(1-power) pi^power: the bridge. That way is short
// where q is anything like the posterior, and wants no more of q than that.
//
// What it gains is a second opinion: estimates of the evidence that go wrong for different reasons, the SMC's where its
// moves do not mix on the long way from the prior, the weighted draws' where q does not fit, which k-hat shows, the
// bridge's where its own moves do not mix. Result.Annealed has all three, and says which is the result and why.
//
// A network's posterior has many images: exchange two hidden units, or change the signs of all weights into and out
// of a tanh unit, and the function is the same. With n units in a layer there are n! of them, times 2^n, and a
// mixture would need components for each. So the particles are put into a canonical order first, and q is fitted to
// one image, in a region R. A draw outside R has weight 0; those inside say what the integral over R is, and by
// symmetry the evidence is |G| times that, with |G| the number of images: log p(y) = log |G| + log mean w. With four
// tanh units log |G| is 5.95. Draws come out in that order, which makes no difference to predictions. There is an
// order for an nn.MLP with one of this library's priors; without one |G| is 1, and Estimates.Order says why.
//
// # Where it works, and where it does not
//
// Annealed takes the weighted draws where k-hat, with its standard error added, is at most .5, and at least 100 draws
// are effective; then comes the bridge, if nothing about it is doubtful; then the weighted draws after all, if 100 of
// them are effective and k-hat is at most MaxKHat; and where there is no sound bridge, last the SMC. Where two
// estimates differ by more than three standard errors, Result.Warnings says so, and the result is the first in this
// order that none of the others lies above by so much: an estimate that has missed a part of the posterior is too low.
// The limit is .5, not MaxKHat, since above it the weights have no variance: on two ReLU units k-hat was .50 to .64 in
// four runs, and the evidence too low by up to three of the errors that the weights stated. Where k-hat is above
// MaxKHat, a warning says so, and whose particles and evidence the result has instead.
//
// Measured with 2000 particles and four seeds, each with its stated error, on regressions with known evidence, on a
// network 1-2-1 with 12 points whose log p(y) quadrature gives, and on boston (Javid et al. 2020, split 6):
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
// The SMC's stated errors on boston are .07 to .09. So the bridge halves the error of the SMC that it started from, and
// is the second estimator where importance sampling has long failed. What no particle of the SMC has found it does not
// find either, except by its wide component.
//
// Of many units a region with one image has so many edges that no mixture fits into it: where fewer than a twentieth of
// the draws are inside, the particles are left as they are, with all images, and q is fitted to these; it is then wide
// and the bridge longer. Estimates.Order says so.
//
// PMC has nothing but its weights. Effective sample size and k-hat (diag.PSIS) tell: above a k-hat of .7 importance
// weights are no estimate of anything, however many draws there are, the Result says so in its Warnings, and its
// Evidence is not known. Look at them before anything else.
//
// A Gaussian in D dimensions whose scale is wrong by a factor 1 + e has weights whose log varies by about e sqrt(2 D):
// e must be below sqrt(1/(2D)). On conjugate regressions the proposals get there: 50 proposals of 100 draws have 4500
// effective draws of 5000 in 5 dimensions, and log p(y) to .01; in 20 dimensions they need 1000 draws each. With 100
// they degenerate there, as on networks of 50 dimensions and more: one draw takes all the weight, covariances are those
// of one draw (they shrink, to an eighth of the variance already on a Gaussian), and log p(y) comes out far too low.
// The tests hold the sampler to both, the exactness and the flagged collapse.
//
// What helps adaptation is not to believe the weights too soon: Tempered and TemperedWithin raise them to the power
// that leaves an effective sample size, Clipped cuts the largest; then the draws are of a distribution between q and
// the posterior, which predicts well, and the evidence and k-hat, of the honest weights, still say that it is not the
// posterior. Begin with a StdDev that is too large rather than too small (.5 with a prior N(0, 1)), and resample
// globally every second iteration (GlocalEvery(2), as the authors' program does).
//
// Locations that Hamiltonian Monte Carlo moves between iterations, with proposals around them (HAIS, arXiv 2209.13716;
// HPMC, arXiv 2412.19576), are no option: they do not earn it. At their best they are draws of the posterior. So
// PMC was given 50 and 500 draws of a long NUTS run as Problem.Start, and drew 5000 around them, with fixed sigma from
// .05 to 1.2: the least k-hat was 1.8 and 1.5 on a control network with 400 rows (D = 16), with effective sample sizes
// of 1 to 8, and 4.5 and 4.5 on Ionosphere (D = 176). Diagonal covariances that adapt over 5 iterations had 1.5 and
// 1.7, and 4.4 and 4.7. So better locations alone do not help; full covariances were not tried there.
//
// The authors' program computes its weights as exp(log pi - log q) + 1e-50 without subtracting the largest: beyond some
// 20 dimensions all are 1e-50, and the sampler adapts by equal weights. That is no option here.
package pmcnet
