// Package pbnn samples Bayesian neural networks by the Metropolis algorithm on mini-batches, with a penalty for the
// noise that mini-batches bring: penalty Bayesian neural networks (PBNN), after the penalty method of Ceperley and
// Dewing (1999).
//
// # The algorithm
//
// Let L(theta) be the loss, minus the log-posterior. The Metropolis-Hastings algorithm proposes theta' and accepts it
// with a probability that depends on the difference of the losses, L(theta') - L(theta), which takes all N rows. A few
// mini-batches give only an estimate delta of it. If delta is used as if it were exact, the chain samples too wide a
// distribution, even if delta is unbiased: by Jensen's inequality the noise raises the mean of exp(-delta). If delta is
// Gaussian about the true difference, with variance sigma^2, the acceptance probability
//
//	A(theta', theta) = min(1, q(theta | theta') / q(theta' | theta) exp(-delta - sigma^2/2))
//
// is right: averaged over the noise it is in detailed balance with exp(-L). The price is that fewer steps are accepted.
// If both losses are equal and the proposal is symmetric, the mean acceptance is 2 Phi(-sigma/2), with Phi the standard
// normal distribution function: .62 at sigma^2 = 1, and .11 at 10. A step, for all chains at once in one compiled graph
// (kernel.Move; Algorithm 1 of the paper), is:
//
//	(a) propose theta' ~ q(. | theta): a random walk, or Langevin's step with a gradient from mini-batches of its own
//	(b) draw M mini-batches of n of the N rows; d_i = L_i(theta') - L_i(theta), both losses on mini-batch i;
//	    delta = mean of d_i                                                                                (eq. 24)
//	(c) sigma^2 = sum_i (d_i - delta)^2 / (M (M-1))                                                        (eq. 25)
//	(d) the acceptance A above, with a correction for sigma^2 being an estimate
//	(e, f) accept if u < A, u uniform on (0, 1)
//
// Eq. numbers are those of "Penalty Bayesian Neural Networks". The noise of the paper's proposals is sqrt(2 eta) eps;
// StepSize is h = sqrt(2 eta) throughout.
//
// # What is sampled
//
// N is the number of rows throughout, n that of a mini-batch, M the number of mini-batches. With the factor N/n before
// the log-likelihood of a mini-batch, the distribution is the posterior given all rows (TargetFull). Without the factor
// it is the expected posterior: that of n points in place of N (TargetExpected). n can then be chosen to calibrate the
// predictive distribution. Each target is a type, and Result.Target says which one was sampled.
//
// The paper distinguishes the expected posterior from the tempered one, whose likelihood is raised to the power n/N. In
// the paper each mini-batch of the expected posterior is new data. Here all mini-batches are drawn from the same N
// rows, and then the mean loss of TargetExpected is the tempered loss: Metropolis with TargetExpected converges to
// exactly TargetTempered{Points: n}, at a cost of M n rows a step instead of N. The tests check this. If the two differ
// in practice, the noise is the reason: at small n and M delta is not Gaussian, or sigma^2 is a poor estimate.
//
// # How large n and M should be
//
// Near the mode, for a step of k posterior widths in each of D coordinates, sigma^2 is about k^2 D N/(n M) for
// TargetFull and k^2 D/M for TargetExpected. A sigma^2 of 1 costs little; with 10 or more few steps are accepted. So
// TargetFull of a large network needs short steps or a large part of the rows. TargetExpected does not: that is where
// the method is cheap. Set Metropolis.Noise to the sigma^2 you want, and trial runs before the first draw raise M and n
// until it is reached. The variance between few mini-batches is a poor estimate: take M of at least 10 and the rule
// Corrected (the defaults), or the Estimate WithinBatches.
//
// # Other samplers
//
//   - Barker uses Barker's acceptance test, which has random noise of its own. The noise of the mini-batches takes the
//     place of a part of it, so that no penalty is needed. It draws mini-batches until their noise is small enough.
//   - Confidence decides as the Metropolis algorithm on all rows would, except with a given probability of error. It
//     evaluates as many rows as a concentration bound asks for, without assuming Gaussian noise: nearly all rows for
//     TargetFull, a part of them for TargetExpected with few points.
//   - FitShards runs Algorithm 1 on data that stay with their holders. Only the differences d_i are sent, and the
//     gradients if the proposal uses them.
//   - Unadjusted and AllRows run the kernels of package mcmc on the same targets, for comparison: SGLD and Langevin
//     without acceptance, Metropolis and MALA on all rows, and the tempered posterior.
//
// Result.Passes, WarmUpPasses and RowsPerStep count in the same units what each evaluates.
//
// # Where it goes wrong
//
// The noise must be Gaussian. With n = 2 and heavy-tailed losses it is not, and the penalty is wrong by terms of the
// third and higher cumulants. Result.Skewness and Result.Bias estimate the error from the third cumulant, and
// Result.Warnings has a warning if an acceptance ratio may be wrong by a tenth.
//
// All chains use the same mini-batches. Each chain by itself is right, but the chains are not independent: compute
// Monte Carlo standard errors from the autocorrelation along each chain, not from the differences between chains.
//
// SGLD and the unadjusted Langevin algorithm (Unadjusted, AllRows) accept every step and are biased at any step size.
// The rule Naive uses delta as if it were exact; it is there to show the bias of that.
//
// # How to write your own
//
// A Target says how many points its likelihood counts for. A type of your own needs four methods, of FromMiniBatches or
// of FromAllRows, and all samplers that take such a target take it.
//
// A Sampler is a struct of settings with four methods: Prepare fills in and checks the settings, Sampled is the target,
// RowsPerMove the cost of a move, and Problem gives the mcmc.Problem, made by Data.MiniBatches or Data.AllRows, and the
// mcmc.Kernel that samples it. The kernel is a few lines if it only proposes, and leaves (b) to (f) above to Judge. See
// the examples of Sampler and of Target. A sampler whose kernel does not depend on the rows is an error, and so is a
// target of no points.
package pbnn
