// Package pbnn samples Bayesian neural networks by Metropolis' algorithm on mini-batches, with a penalty for the noise
// that mini-batches bring: penalty Bayesian neural networks (PBNN), after the penalty method of Ceperley and Dewing
// (1999).
//
// # The algorithm
//
// Metropolis' algorithm proposes theta' and accepts it by the difference of the losses, L(theta') - L(theta), where L
// is minus the log-posterior. From mini-batches only an estimate delta of the difference is known. Accepting with
// probability min(1, exp(-delta)), as if the estimate were exact, is wrong even if delta is unbiased: by Jensen's
// inequality the noise raises the acceptance, and the chain samples too wide a distribution. If delta is Gaussian about
// the difference, with variance sigma^2, then
//
//	A(theta', theta) = min(1, q(theta | theta') / q(theta' | theta) exp(-delta - sigma^2/2))
//
// is right: averaged over the noise it is in detailed balance with exp(-L). The price is a lower acceptance, which
// falls as exp(-sigma^2/2). A step, for all chains at once in one compiled graph (kernel.Move; Algorithm 1 of the
// paper):
//
//	(a) propose theta' ~ q(. | theta): a random walk, or Langevin's step with a gradient from mini-batches of its own
//	(b) draw M mini-batches of n of the N rows; d_i = L_i(theta') - L_i(theta), both losses on mini-batch i;
//	    delta = mean of d_i                                                                                (eq. 24)
//	(c) sigma^2 = sum_i (d_i - delta)^2 / (M (M-1))                                                        (eq. 25)
//	(d) the acceptance A above, with a correction for sigma^2 being an estimate
//	(e, f) accept if u < A, u uniform on (0, 1)
//
// Eq. numbers are those of "Penalty Bayesian Neural Networks". Its step is sqrt(2 eta) eps; StepSize is h = sqrt(2 eta)
// throughout.
//
// # What is sampled
//
// N is the number of rows throughout, n that of a mini-batch, M the number of mini-batches. With the factor N/n in the
// loss of a mini-batch the distribution is the posterior given all rows (TargetFull). Without it, it is the posterior
// that n points give in the mean (TargetExpected); n can then be chosen to calibrate the predictive distribution. The
// targets are types, and a Result names its own.
//
// The paper distinguishes the expected posterior from the tempered one, whose likelihood is raised to the power n/N,
// since the first is defined by new data for each mini-batch. With N rows that stay the same the mean of the losses
// without N/n is the tempered loss: Metropolis with TargetExpected converges to exactly TargetTempered{Points: n}, at a
// cost of M n rows a step instead of N; the tests check this. Differences in practice come from the noise: at small n
// and M delta is not Gaussian, or sigma^2 is a poor estimate.
//
// # How large n and M should be
//
// Near the mode, for a step of k posterior widths in each of D coordinates, sigma^2 is about k^2 D N/(n M) for
// TargetFull and k^2 D/M for TargetExpected. A sigma^2 about 1 costs little; at 10 nothing moves. So the full posterior
// of a large network needs small steps or large parts of the data, and the expected one does not: that is where the
// method is cheap. With Metropolis.Noise set to the sigma^2 wanted, trial runs before the first draw raise M and n
// until it is reached. The variance between few mini-batches is a poor estimate: take M of at least 10, the rule
// Corrected (the default), or the Estimate WithinBatches.
//
// # What else there is
//
// Barker uses Barker's acceptance test, in which the noise replaces a part of the test's own randomness, and draws
// mini-batches until the noise is small enough for that. Confidence decides as Metropolis' algorithm on all rows would,
// except with a given probability of error, and evaluates as many rows as a concentration bound needs, without assuming
// Gaussian noise: nearly all rows for the full posterior, a part of them for the expected posterior of few points.
// FitShards runs Algorithm 1 on data that stay with their holders: only the differences d_i are sent, and the gradients
// if the proposal uses them. Unadjusted and AllRows run package mcmc's kernels on the same targets, for comparison:
// SGLD and Langevin without acceptance, Metropolis and MALA on all rows, and the tempered posterior. Result.Passes,
// WarmUpPasses and RowsPerStep count what each evaluates in the same units.
//
// # Where it goes wrong
//
// The noise must be Gaussian: with n = 2 and heavy-tailed losses it is not, and the penalty is wrong by terms of the
// third and higher cumulants. Result.Skewness and Result.Bias estimate the error from the third cumulant, and
// Result.Warnings has a warning where an acceptance ratio may be wrong by a tenth. Chains share their mini-batches, so
// each chain is right by itself but they are not independent: take standard errors over time, not between chains. SGLD
// and the unadjusted Langevin algorithm (Unadjusted, AllRows) accept everything and are biased at any step size; the
// rule Naive is there to show its bias.
//
// # How to write your own
//
// A Target says how many points its likelihood counts for: FromMiniBatches and FromAllRows have four methods each, and
// all samplers take them. A Sampler is a struct of settings with four methods: Prepare fills in and checks the
// settings, Sampled is the target, RowsPerMove the cost of a move, and Problem gives the mcmc.Problem, made by
// Data.MiniBatches or Data.AllRows, and the mcmc.Kernel that samples it. The kernel is a few lines if it only proposes
// and leaves (b) to (f) above to Judge. See the examples of Sampler and of Target. A sampler whose kernel never sees
// the rows is refused, and so is a target of no points.
package pbnn
