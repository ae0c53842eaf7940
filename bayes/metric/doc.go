// Package metric scores predictions of weighted particles against the truth: NLPD, RMSE and MSE, accuracy, ECE, Brier
// score, and coverage, width and interval score of a central interval.
//
// Each score is one call,
//
//	nlpd, err := metric.NLPD(prediction, y) // 0.112 ± 0.003
//
// and [Scores] returns the usual scores of a task as a table. If the predictions do not fit in memory, a [Metric] takes
// them in batches of rows, and [Evaluate] passes the batches to several Metrics. The result does not depend on how the
// rows are cut into batches, bit for bit.
//
// Except ParticleRMSE, these scores are of the weighted mixture of all particles. [ScoreDraws] scores single draws of
// the posterior, as some papers report, and [ROCEnvelope] computes intervals of their ROC curves. [ROC] is the ROC
// curve of any score.
//
// # Two errors, and which is which
//
// A score computed from J particles on N test rows is uncertain for two reasons.
//
// The Monte Carlo error: J other particles from the same posterior would have given another score. [Estimate.StdErr] is
// its standard error. It falls as 1/sqrt(J), and says whether more particles would be worth their time.
//
// The sampling error: N other test rows would have given another score. [Estimate.SamplingStdErr] is its standard
// error, for scores that are means over independent rows (and, by the delta method, RMSE). No number of particles makes
// it smaller. It is usually the larger of the two. Accuracy and coverage are shares, k of N rows; their sampling error
// is the standard deviation of Beta(k + 1/2, N - k + 1/2), the posterior of a probability under Jeffreys' prior (Brown,
// Cai and DasGupta 2001, Statistical Science 16(2)), since the formula for a mean would give 0 for k = 0 and k = N.
//
// Neither includes the variation between runs of a sampler that has not converged, or between training sets: for those,
// repeat the run.
//
// # How the Monte Carlo error is found
//
// By the delete-a-group jackknife (Efron and Tibshirani 1993, An Introduction to the Bootstrap, ch. 11; Kott 2001, The
// delete-a-group jackknife, Journal of Official Statistics 17(4)). The J particles are cut into G = 20 groups (J if
// fewer), the score is computed anew without each group, with the weights of the rest renormalised, and
//
//	SE^2 = (G-1)/G sum_g (theta_(g) - mean_g theta_(g))^2.
//
// It needs no formula for the score's variance, and accounts for the weights, since they are normalised again each
// time. It costs little, since sums over a group are computed once. Groups are contiguous: resampling leaves the copies
// of one ancestor side by side, so that they are left out together; as separate particles they would make the error
// seem too small.
//
// Accuracy, ECE and coverage are step functions of the particles: a row counts or it does not. Leaving out a twentieth
// of the particles hardly ever flips a row, so that the plain jackknife gives either no error or that of one flip
// multiplied by sqrt(G-1). Overall its standard error is then too large by a factor of about G^(1/4), or 2. For
// these scores the argument of the step (a class probability, a distribution function) is stretched: its deviation from
// the mean of the G values is multiplied by sqrt(G-1), so that it has the size of one standard error, not of the
// jackknife's smaller step. Rows then flip as often as they would with other particles, and SE^2 = 1/G sum_g (theta_g -
// mean_g theta_g)^2: for a smooth score the two are the same. If no row flips, the Monte Carlo error is too small for G
// values to show, and StdErr is 0: report the sampling error then, which is not 0.
//
// When not to trust it: with one particle of positive weight none can be left out, and StdErr is NaN. With few
// particles it is itself uncertain (G = 20 groups: by 16 %; G = 5: by 35 %). If one group has nearly all the weight,
// neither the estimates nor their errors are reliable: check the effective sample size. Particles that are dependent
// across groups (a Markov chain that mixes more slowly than J/G draws, or copies of an ancestor spread over groups)
// make it too small.
package metric
