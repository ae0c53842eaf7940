package stats

import "math"

// ESS estimates the effective sample size of Markov chains by their autocorrelations. It holds the memory of one
// estimate for the next. The zero value works; it is for one goroutine at a time.
type ESS struct{ lags autocovariance }

// Mean is the ESS of M half chains x of n draws, [M, n] flat, for their mean: M n / tau, with
//
//	tau = -1 + 2 sum_k P_k,  P_k = rho_{2k} + rho_{2k+1},
//
// rho_t being the autocorrelation at lag t of all chains together, 1 - (W - mean_m acov_m(t)) / var+ (Vehtari et al.
// 2021, section 3.2). The sum ends before the first negative P_k (Geyer's initial positive sequence; these sums of
// neighbours are positive for a reversible chain, so a negative one is noise), and P_k is kept from rising (his
// monotone sequence). tau is at least 1 / log10(M n). Draws that are all alike count as independent.
func (e *ESS) Mean(x []float64, n int) float64 {
	low, high := x[0], x[0]
	for _, v := range x {
		low, high = min(low, v), max(high, v)
	}
	if high-low < 1e-15 {
		return float64(len(x))
	}
	within, total := e.lags.load(x, n) // W and var+
	rho := func(lag int) float64 { return 1 - (within-e.lags.at(lag))/total }

	// kept holds rho_0, rho_1, ... in whole pairs; one term may follow the last pair.
	even, odd := 1.0, rho(1)
	kept := []float64{even, odd}
	lag := 1
	for lag < n-3 && even+odd > 0 {
		even, odd = rho(lag+1), rho(lag+2)
		if even+odd >= 0 {
			kept = append(kept, even, odd)
		} else {
			kept = append(kept, 0, 0)
		}
		lag += 2
	}
	// The last pair keeps only its first term, if positive, which counts once: the pair's sum is negative, or its
	// second lag does not exist.
	last := len(kept) - 2
	if even > 0 {
		kept[last] = even
	}
	for k := 2; k+1 < last; k += 2 {
		if before := kept[k-2] + kept[k-1]; kept[k]+kept[k+1] > before {
			kept[k], kept[k+1] = before/2, before/2
		}
	}
	tau := -1 + kept[last]
	for _, r := range kept[:last] {
		tau += 2 * r
	}
	size := float64(len(x))
	return size / max(tau, 1/math.Log10(size))
}
