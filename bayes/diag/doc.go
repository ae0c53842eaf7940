// Package diag measures whether draws can be trusted: effective sample sizes, R-hat and Monte Carlo standard errors of
// Markov chains, and the Pareto k-hat of importance weights.
//
//	summary, err := diag.OfSample(diag.Sample{Values: draws, Chains: 4, Draws: 1000, Parameters: 3})
//	fmt.Println(summary)
//
// [Of] diagnoses the result of any method, [OfPosterior] the parameters of a posterior and [OfPrediction] the function
// that the network computes. Judge by the function, since hidden units may change places. Chains in different copies of
// one mode agree on every prediction, and have an R-hat of 2 for the weights. Chains that all mix within one copy have
// a small one, although none has seen the whole posterior.
//
// # What the numbers mean
//
// R-hat compares the halves of all chains by the ranks of their draws: 1 if all halves look alike. Use draws with R-hat
// below 1.01; if it is larger, run longer, or find out why the chains disagree (Vehtari, Gelman, Simpson, Carpenter and
// Bürkner 2021, Bayesian Analysis 16(2)). A single chain is compared with itself, which never shows a mode that it did
// not find.
//
// The effective sample size (ESS) is the number of independent draws that would estimate equally well: the bulk ESS for
// the centre of the distribution, the tail ESS for intervals. Below 400 neither R-hat nor the ESS itself is reliable.
//
// The Monte Carlo standard error (MCSE) is the standard deviation of an estimate over repeated runs, in the estimate's
// unit.
//
// k-hat is the shape of the tail of importance weights ([PSIS]): below 0.5 their variance is finite, up to 0.7 (less
// for fewer than 2000 draws) estimates are reliable, above it the proposal misses part of the target, and no standard
// error that is computed from these weights shows it (Vehtari, Simpson, Gelman, Yao and Gabry 2024, JMLR 25(72)).
//
// # Predictions of rows that were not seen
//
// [NewLOOForPosterior] estimates how well a posterior would predict each of its training rows without that row, and
// [Compare] compares models so. A large k-hat marks a row whose omission changes the posterior too much.
//
// # Agreement with ArviZ
//
// Numbers agree with those of ArviZ (arviz-stats 1.3) to a relative 1e-6. But here R-hat of one chain compares its
// halves, and draws that are not finite are an error, as are weights whose tail cannot be fitted.
package diag

import "math"

// The usual bounds, explained in the package comment.
const (
	mostRHat         = 1.01
	leastESS         = 400 // bulk and tail
	leastESSPerChain = 100 // bulk
	maxKHat          = 0.7 // if there are about 2000 draws or more
)

// kHatThreshold is the k-hat up to which Pareto smoothed importance sampling is reliable with that many draws, min(1 -
// 1/log10(draws), 0.7) (Vehtari et al. 2024). With fewer than 10 draws it is negative: no k-hat is small enough.
func kHatThreshold(draws int) float64 {
	if draws <= 1 {
		return math.Inf(-1)
	}
	return min(1-1/math.Log10(float64(draws)), maxKHat)
}
