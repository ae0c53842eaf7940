// Package pbnn samples Bayesian neural networks by the Metropolis algorithm on mini-batches, with a penalty for the
// noise that mini-batches bring: penalty Bayesian neural networks (PBNN), after the penalty method of Ceperley and
// Dewing (1999). Equation numbers are those of "Penalty Bayesian Neural Networks".
//
// # The algorithm
//
// L(theta) is the loss, minus the log-posterior. Metropolis needs L(theta') - L(theta), which takes all N rows.
// Mini-batches of n rows give an estimate delta of it. Used as if it were exact, it makes the chain sample too wide a
// distribution. If it is Gaussian with variance sigma^2, this acceptance probability is right:
//
//	A(theta', theta) = min(1, q(theta | theta') / q(theta' | theta) exp(-delta - sigma^2/2))
//
// A step, for all chains at once in one compiled graph (kernel.Move; Algorithm 1), is:
//
//	(a) propose theta' ~ q(. | theta): a random walk, or Langevin's step with a gradient from mini-batches of its own
//	(b) draw M mini-batches of n of the N rows; d_i = L_i(theta') - L_i(theta), both losses on mini-batch i;
//	    delta = mean of d_i                                                                                (eq. 24)
//	(c) sigma^2 = sum_i (d_i - delta)^2 / (M (M-1))                                                        (eq. 25)
//	(d) the acceptance A above, with a correction for sigma^2 being an estimate
//	(e, f) accept if u < A, u uniform on (0, 1)
//
// StepSize is h, the standard deviation of a proposal; eta is h^2/2.
//
//	method := pbnn.Metropolis{Target: pbnn.TargetExpected{}, BatchSize: 20}
//	result, err := fit.Fit(ctx, model, method, parts, run.Settings{Seed: 1})
//
// # Which target, and how large n and M
//
// TargetFull is the posterior given all rows; TargetExpected, of n points, is exactly TargetTempered{Points: n}.
//
// For steps of k posterior widths in D coordinates sigma^2 is about k^2 D N/(n M) for TargetFull and k^2 D/M for
// TargetExpected. At a sigma^2 of 1 a step costs little; at 10 few are accepted. So TargetFull of a large network needs
// short steps or most of the rows. Metropolis.Noise raises M and n until sigma^2 is small enough.
//
// Unadjusted and AllRows are for comparison; see shards too.
//
// # Where it goes wrong
//
// The noise must be Gaussian: [Details].Bias estimates the error if it is not, and a warning says when it is large.
// All chains use the same mini-batches, so compute standard errors along each chain. SGLD is biased.
//
// A Target and a Sampler can be your own: see their examples.
package pbnn
