// Package shards runs the penalty algorithm of package pbnn on data that stay with their holders. Each holder is a
// Shard, which computes differences of log-likelihoods on its own rows, and sends these sums, but no rows (section 7 of
// "Penalty Bayesian Neural Networks").
//
// # The estimate
//
// Mini-batch i is a sample of n rows of every shard. Its loss difference is the sum over the shards s
//
//	d_i = -log p(theta') + log p(theta) - sum_s (points/N) (N_s/n) sum_{its n of the N_s rows} l
//	l = log p(y | x, theta') - log p(y | x, theta)
//
// where points is N for pbnn.TargetFull. It is as unbiased as that of pbnn.Metropolis, and delta and sigma^2 follow
// from the d_i by eq. 24 and 25.
//
// # Which to take
//
// New is a shard of rows in this process. Serve answers for a shard to other processes, and Dial reaches it from there.
// [Metropolis] samples over any shards, also of a type of your own:
//
//	method := shards.Metropolis{Metropolis: pbnn.Metropolis{BatchSize: 20}, Shards: all}
//	result, err := fit.Fit(ctx, model, method, dataset.Parts{}, run.Settings{})
//
// # Where it fails
//
// The rows that are drawn depend only on the seed, the shard's number and the step. So if a shard fails or is late the
// run ends before that step, with the draws so far, and a checkpoint resumes there with the same rows: nothing is
// counted twice. No shard is ever left out of a run: the draws before and after would be of different posteriors.
//
// Serve keeps one question from blocking the shard, and one answer from revealing a single row. It does not limit how
// many questions there are: from many overlapping sums single rows can be computed.
//
// Noise (pbnn.Metropolis) and the Estimate WithinBatches are not possible, since both need single rows, nor is
// Langevin's proposal, since shards give no gradients.
package shards
