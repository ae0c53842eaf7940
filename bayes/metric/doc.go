// Package metric scores predictions of weighted particles against the truth: NLPD, RMSE and MSE, accuracy, ECE, Brier
// score, CRPS, the energy score of several targets, and coverage, width and interval score of a central interval.
//
// Each score is one call,
//
//	nlpd, err := metric.NLPD(prediction, y) // 0.112 ± 0.003
//
// and [Scores] returns the usual scores of a task as a table, [Of] those of a posterior on a data set.
//
// The log score of each row is [bayes.Prediction.LogDensity]; [NLPD] is its negative mean.
//
// These scores are of the weighted mixture of all particles, but for [ParticleRMSE], [ParticleECE] and
// [ParticleAccuracy], which are means over particles of each one's own. [ScoreDraws] scores single draws.
//
// [Energy], [Entropy], [MutualInformation] and [LeastConfidence] score each row of a classification by how little the
// model knows it, and [Detect], [Threshold] and [Decide] say how well such a score finds rows from outside the training
// part's distribution.
//
// # Two errors, and which is which
//
// A score of J particles on N test rows is uncertain for two reasons.
//
// J other particles from the same posterior would have given another score. [Estimate.StdErr] is this Monte Carlo
// error. It falls as 1/sqrt(J), and says whether more particles are worth their time.
//
// N other test rows would have given another score. [Estimate.SamplingStdErr] is this sampling error, for means over
// independent rows and RMSE. It is usually the larger of the two, and no number of particles makes it smaller.
//
// Neither includes the variation between runs of a sampler that has not converged: repeat the run for it.
//
// # How the Monte Carlo error is found
//
// By the delete-a-group jackknife (Efron and Tibshirani 1993, ch. 11; Kott 2001, Journal of Official Statistics 17(4)):
// the particles are cut into G = 20 groups (J if fewer), the score is computed without each group, and
//
//	SE^2 = (G-1)/G sum_g (theta_(g) - mean_g theta_(g))^2.
//
// Groups are contiguous, since resampling leaves the copies of one ancestor side by side.
//
// Accuracy, ECE and coverage count rows, and leaving out a twentieth of the particles hardly ever flips one. For these
// the deviations of the class probability or the distribution function are stretched by sqrt(G-1), to the size of one
// standard error, and SE^2 = 1/G sum_g (theta_g - mean_g theta_g)^2. If no row flips, StdErr is 0: report the sampling
// error then.
//
// When not to trust it: with one particle of positive weight StdErr is NaN. With few particles it is itself uncertain
// (G = 20: by 16 %; G = 5: by 35 %). If one group has nearly all the weight, neither the scores nor their errors are
// reliable: check the effective sample size. Particles that depend on each other across groups, as those of a Markov
// chain that mixes more slowly than J/G draws, make it too small.
package metric
