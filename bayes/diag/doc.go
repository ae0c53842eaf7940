// Package diag measures whether draws can be trusted: effective sample sizes, R-hat and Monte Carlo standard errors of
// Markov chains, and the Pareto k-hat of importance weights.
//
//	chains, err := diag.New(diag.Sample{Values: draws, Chains: 4, Draws: 1000, Parameters: 3})
//	fmt.Println(chains.Summary())
//
// [New] takes draws as numbers, [NewForModel] names and groups them by a model's layers, and [NewForPosterior] and
// [NewForPrediction] take a sampler's result: the latter diagnoses the function that the network computes instead of
// its parameters.
//
// # What the numbers mean
//
// R-hat compares chains with one another. Each chain is cut into halves, the draws are replaced by normal scores of
// their ranks, and R-hat is the square root of the variance of all draws divided by the variance within the halves: 1
// if all halves look alike. It is computed again for the distances from the median, which shows chains of equal
// location and unequal spread, and the larger of the two is reported. Ranks make it safe for tails without a variance.
// Use draws with R-hat < 1.01. If it is larger, run longer, or find out why the chains disagree. (Vehtari, Gelman,
// Simpson, Carpenter and Bürkner 2021, Rank-normalization, folding, and localization, Bayesian Analysis 16(2), sections
// 3.1, 4.1 and 4.2.) A single chain is compared with itself, half against half: this shows a drift, but never a mode
// that the chain did not find.
//
// The effective sample size (ESS) is the number of independent draws that would estimate equally well. It is computed
// from the autocorrelations, summed by Geyer's initial monotone sequence, and from the disagreement between chains.
// Which ESS matters depends on what is estimated: [Bulk] is that of the normal scores, for the centre of the
// distribution; [Tail] is the smaller one of the 5 % and the 95 % quantile, for intervals; [Mean], [SD] and [Quantile]
// are the ESS of these estimates. Below 400, that is 100 for each of four chains, neither R-hat nor the ESS itself is
// reliable (same paper). It may exceed the number of draws: antithetic chains, which step from side to side, estimate a
// mean better than independent draws. To compare samplers by cost, [Summary.PerEvaluation] is the ESS for each
// evaluation of all data; [Of] computes it for results that count their evaluations.
//
// The Monte Carlo standard error ([Chains.MCSE]) is the standard deviation of an estimate over repeated runs of the
// sampler. It has the unit of the estimate and says how many of its digits are meaningful.
//
// k-hat is the shape of a generalised Pareto distribution fitted to the largest values. [PSIS] fits it to importance
// weights. Moments of the weights exist up to order 1/k: if k-hat is below 0.5 the variance is finite and the central
// limit theorem holds. Up to 0.7 estimates from Pareto smoothed weights are still reliable with a feasible number of
// draws; above, the proposal misses part of the target, and no standard error that is computed from these weights shows
// it. The 0.7 holds from about 2000 draws on; with S of them it is min(1 - 1/log10 S, 0.7) ([KHatThreshold]). (Vehtari,
// Simpson, Gelman, Yao and Gabry 2024, Pareto smoothed importance sampling, JMLR 25(72); the fit is by Zhang and
// Stephens 2009, A new and efficient estimation method for the generalized Pareto distribution, Technometrics 51(3).)
// [Chains.KHat] fits it to both tails of plain draws: above 0.5 the parameter has no finite variance, and the Monte
// Carlo error of its mean is meaningless; above 1 it has no mean.
//
// # Predictions of rows that were not seen
//
// [NewLOOForPosterior] estimates how well a posterior would predict each of its training rows if it had been fitted
// without that row: the expected log predictive density (ELPD) by leave-one-out cross-validation, without another fit.
// [Compare] compares models, with the standard errors of their differences and the weights of stacking. A large k-hat
// marks a row whose omission changes the posterior too much for importance weights. LOORow.PIT shows whether
// predictions are too wide or too narrow.
//
// # Parameters or functions
//
// The weights of a neural network are not identified: hidden units may change places and, with odd activations, signs.
// Chains that agree on every prediction may be in different copies of one mode, so that R-hat of the weights is 2 or
// more. Chains that all mix within one copy have a small R-hat, although none has seen the whole posterior. So judge
// convergence in function space, on predictions at inputs that matter, and read the parameters layer by layer, by the
// median as well as the worst coordinate, to find out where a sampler is slow. [Mixing] judges predictions at some of
// the training rows, and warns if chains are far from converged; the Warnings of results of the packages pbnn, baseline
// and ohsmc (Sample) include it.
//
// # Many parameters
//
// The largest of 10 000 R-hats exceeds 1.01 more often than a single one does, even if the chains have converged. With
// many parameters take more draws, or judge by the median and by the share beyond the threshold ([Summary.Problems]).
//
// # Agreement with ArviZ
//
// Numbers agree with those of ArviZ (arviz-stats 1.3) to a relative 1e-6; testdata/arviz.py computes the reference
// numbers of the tests. The differences: R-hat of one chain, which ArviZ leaves at NaN, compares its two halves;
// non-finite draws are an error and not NaN; weights of which one dominates have a k-hat of +Inf, and a tail that
// cannot be fitted is an error, or of draws a k-hat of NaN, where ArviZ has NaN or raises an exception. A constant
// parameter is treated as in ArviZ, see [Chains].
package diag

import "math"

// Thresholds in common use, explained in the package comment.
const (
	MaxRHat = 1.01 // R-hat should be below
	MinESS  = 400  // bulk and tail ESS should be above
	MaxKHat = 0.7  // k-hat of importance weights should be below, if there are about 2000 draws or more
)

// KHatThreshold is the k-hat up to which Pareto smoothed importance sampling is reliable with that many draws, min(1 -
// 1/log10(draws), 0.7) (Vehtari et al. 2024). With fewer than 10 draws it is negative: no k-hat is small enough.
func KHatThreshold(draws int) float64 {
	if draws <= 1 {
		return math.Inf(-1)
	}
	return min(1-1/math.Log10(float64(draws)), MaxKHat)
}
