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
// Student-t distributions, to where the particles have come, and weighs new draws of it. What it gains is a second
// opinion: two estimates of the evidence that go wrong for different reasons, the SMC's where its moves do not mix,
// the mixture's where it does not cover the posterior, which k-hat shows. Result.Annealed has both.
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
// Annealed takes the weighted draws where k-hat is at most .7 and at least 100 draws are effective, otherwise the
// SMC's particles and evidence. On a linear model of 14 dimensions, 253 rows of boston, 4450 of 5000 draws are
// effective and log p(y) is known to .005, where 2000 particles give it to .09. It earns its place where the SMC is
// wrong and does not know: on a network 1-2-1 with 12 points, whose log p(y) is -34.93 by quadrature, 2000 particles
// and as many moves as seem to be enough gave -35.26 +- .07, -35.28 and -35.07 in three runs, the weighted draws
// -34.93 +- .01, -34.90 and -34.91.
//
// In 31 dimensions, with two hidden units on boston, it stands on the brink: k-hat is .75 and .94 in two runs with
// tanh, so that the result is the SMC's; with ReLU .48 and .58, of 264 effective draws and of 33. There the draws
// said -286.51 +- .06, and SMC -286.13 +- .08 and -286.21 +- .09 in two runs: a good k-hat does not prove that no
// part of the posterior was missed, since it knows only the draws that there are. Where the two differ by more than
// three standard errors, Result.Warnings says so, and then neither is to be believed before a run with more
// particles. With four tanh units, 61 dimensions, k-hat is 1.8. More components than the particles can tell make it
// worse.
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
// The authors' program computes its weights as exp(log pi - log q) + 1e-50 without subtracting the largest: beyond some
// 20 dimensions all are 1e-50, and the sampler adapts by equal weights. That is no option here.
package pmcnet
