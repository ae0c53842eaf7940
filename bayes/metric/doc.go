// Package metric scores predictions of weighted particles against the truth: NLPD, RMSE and MSE, accuracy, ECE, Brier
// score, and coverage, width and interval score of a central interval.
//
// Each score is one call,
//
//	nlpd, err := metric.NLPD(prediction, y) // 0.112 ± 0.003
//
// and, where the predictions are larger than memory, a [Metric] that takes them a batch of rows at a time, or
// [Evaluate], which feeds several. The result is the same, bit for bit, however the rows are cut into batches. [Scores]
// gives the usual scores of a task as a table.
//
// # Two errors, and which is which
//
// A score computed from J particles on N test rows is uncertain for two reasons.
//
// The Monte Carlo error: the particles stand for a posterior, and J others would have given another score.
// [Estimate.StdErr] is its standard error. It falls as 1/sqrt(J) and says whether more particles are worth their time.
//
// The sampling error: the test rows stand for all rows, and N others would have given another score.
// [Estimate.SamplingStdErr] is its standard error, for scores that are means over independent rows (and, by the delta
// method, RMSE). No number of particles makes it smaller. It is the larger of the two more often than not. Accuracy and
// coverage are shares, k of N rows; theirs is the standard deviation of Beta(k + 1/2, N - k + 1/2), the posterior of a
// probability under Jeffreys' prior (Brown, Cai and DasGupta 2001, Statistical Science 16(2)): that of a sample's mean
// would be 0 where all rows count, or none does.
//
// Neither holds the variation between runs of a sampler that has not converged, nor between training sets: for those,
// repeat the run.
//
// # How the Monte Carlo error is found
//
// By the delete-a-group jackknife (Efron and Tibshirani 1993, An Introduction to the Bootstrap, ch. 11; Kott 2001, The
// delete-a-group jackknife, Journal of Official Statistics 17(4)). The J particles are cut into G = 20 groups (J if
// fewer), the score is computed anew without each group, the weights of the rest renormalised, and
//
//	SE^2 = (G-1)/G sum_g (theta_(g) - mean_g theta_(g))^2.
//
// It needs no formula for the score's variance and takes the weights into account, for their normalisation is part of
// what is repeated. It costs little, since sums over a group are formed once. Groups are contiguous: resampling leaves
// the copies of one ancestor side by side, and copies in one group are left out together, where counting them as
// separate particles would make the error seem too small.
//
// Accuracy, ECE and coverage are step functions of the particles: a row counts or it does not. Leaving out a twentieth
// of the particles hardly ever flips a row, so that the plain jackknife would see no error, or one flip blown up by
// sqrt(G-1): in all a standard error about G^(1/4), or twice, too large. For these, what is behind the step (a class
// probability, a distribution function) is stretched: its deviation from the mean of the G values is multiplied by
// sqrt(G-1), which puts each replicate one standard error away instead of the fraction that the jackknife moves it.
// Rows then flip as often as they would with other particles, and SE^2 = 1/G sum_g (theta_g - mean_g theta_g)^2: for a
// smooth score the two are the same. Where no row flips, the Monte Carlo error is below what G values can show, and
// StdErr is 0: the sampling error, which is not, is then the one to report.
//
// When not to trust it: with one particle of positive weight there is nothing to leave out, and StdErr is NaN. With few
// particles it is itself uncertain (G = 20 groups: by 16 %; G = 5: by 35 %). Where one group holds nearly all the
// weight, no estimate from these particles is worth much, its error included: look at the effective sample size.
// Particles that are dependent across groups (a Markov chain that mixes more slowly than J/G draws, or copies of an
// ancestor spread over groups) make it too small.
package metric
