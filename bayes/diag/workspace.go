package diag

import (
	"math"
	"slices"

	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
)

// workspace holds the draws of one parameter at a time, with the memory to diagnose it.
type workspace struct {
	chains *chains
	half   int       // draws in each half chain: an odd chain loses its middle draw
	draws  []float64 // [Chains, Draws]
	sorted []float64 // draws, sorted
	split  []float64 // [halves, half], with two halves of each chain
	median float64   // of split
	scores []float64 // the normal scores of split
	lags   stats.ESS
}

func newWorkspace(c *chains) *workspace { return &workspace{chains: c, half: c.sample.Draws / 2} }

// load makes a parameter the current one.
func (w *workspace) load(parameter int) (err error) {
	if w.draws, err = w.chains.draws(parameter); err != nil {
		return err
	}
	w.sorted = slices.Sorted(slices.Values(w.draws))
	w.split = w.split[:0]
	for chain := range slices.Chunk(w.draws, w.chains.sample.Draws) {
		w.split = append(w.split, chain[:w.half]...)
		w.split = append(w.split, chain[len(chain)-w.half:]...)
	}
	var sorted []float64
	sorted, w.scores = normalScores(w.split)
	middle := len(sorted) / 2 // the number of values is even
	w.median = (sorted[middle-1] + sorted[middle]) / 2
	return nil
}

// normalScores returns the values sorted, and the normal scores of their ranks r among n, Phi^-1((r - 3/8) / (n + 1/4))
// (Blom 1958). Equal values share the mean of their ranks.
func normalScores(x []float64) (sorted, scores []float64) {
	sorted, scores = slices.Sorted(slices.Values(x)), make([]float64, len(x))
	n := len(x)
	bySorted := make([]float64, n) // at the first of equal values
	for first := 0; first < n; {
		end := first + 1
		for end < n && sorted[end] == sorted[first] {
			end++
		}
		rank := float64(first+1+end) / 2
		bySorted[first] = mathext.NormalQuantile((rank - 0.375) / (float64(n) + 0.25))
		first = end
	}
	for i, v := range x {
		first, _ := slices.BinarySearch(sorted, v)
		scores[i] = bySorted[first]
	}
	return sorted, scores
}

// quantile of the draws by linear interpolation (type 7 of Hyndman and Fan 1996). The conversions keep the compiler
// from fusing products and sums, which on some machines would move a quantile that is a draw off that draw, and the
// draw out of the set at or below the quantile.
func (w *workspace) quantile(prob float64) float64 {
	at := float64(prob * float64(len(w.sorted)-1))
	low := int(at)
	if low+1 >= len(w.sorted) {
		return w.sorted[len(w.sorted)-1]
	}
	return w.sorted[low] + float64((w.sorted[low+1]-w.sorted[low])*(at-float64(low)))
}

// bulkESS is the ESS for the centre of the distribution, by normal scores of the ranks (Vehtari et al. 2021, sections
// 3.2 and 4.3). Of S draws in all chains it is at most S log10(S).
func (w *workspace) bulkESS() float64 { return w.essOf(w.scores) }

// tailESS is the ESS for the worse of the 5 % and the 95 % quantile.
func (w *workspace) tailESS() float64 { return min(w.quantileESS(0.05), w.quantileESS(0.95)) }

// quantileESS is the ESS of the indicator of what lies at or below a quantile.
func (w *workspace) quantileESS(prob float64) float64 {
	limit, below := w.quantile(prob), make([]float64, len(w.split))
	for i, v := range w.split {
		if v <= limit {
			below[i] = 1
		}
	}
	return w.essOf(below)
}

// meanESS is the ESS for the mean.
func (w *workspace) meanESS() float64 { return w.essOf(w.split) }

// essOf is the ESS of half chains x, [halves, half], for their mean.
func (w *workspace) essOf(x []float64) float64 { return w.lags.Mean(x, w.half) }

// rhat is the rank-normalised split R-hat (Vehtari et al. 2021, sections 4.1 and 4.2), the larger of two. The bulk
// R-hat, of the draws' normal scores, shows chains of different location. The folded one, of the normal scores of the
// distances from the median, shows chains of different spread. It is NaN if all draws are equally far from their
// median, as draws of two values are: then R-hat is the other.
func (w *workspace) rhat() (larger, bulk, folded float64) {
	distances := make([]float64, len(w.split))
	for i, v := range w.split {
		distances[i] = math.Abs(v - w.median)
	}
	_, scores := normalScores(distances)
	bulk, folded = w.rhatOf(w.scores), w.rhatOf(scores)
	if math.IsNaN(folded) {
		return bulk, bulk, folded
	}
	return max(bulk, folded), bulk, folded
}

// rhatOf is sqrt(var+ / W) of half chains x, [halves, half] (Vehtari et al. 2021, section 3.1).
func (w *workspace) rhatOf(x []float64) float64 {
	n := float64(w.half)
	means := make([]float64, len(x)/w.half)
	within := 0.0
	for m := range means {
		mean, variance := meanVariance(x[m*w.half : (m+1)*w.half])
		means[m] = mean
		within += variance / float64(len(means))
	}
	_, between := meanVariance(means)
	return math.Sqrt((n-1)/n + between/within)
}

// meanVariance returns the mean and the variance. For equal values both are exact, so that a chain that never moves has
// variance 0; a sum divided by the number of values may be rounded.
func meanVariance(x []float64) (mean, variance float64) {
	mean = x[0]
	for _, v := range x {
		if v != mean {
			return stat.MeanVariance(x, nil)
		}
	}
	return mean, 0
}
