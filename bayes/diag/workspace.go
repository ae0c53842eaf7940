package diag

import (
	"math"
	"slices"

	"gobnn/bayes/internal/stats"

	"gonum.org/v1/gonum/mathext"
)

// workspace holds the draws of one parameter at a time, with the memory to diagnose it.
type workspace struct {
	chains       *Chains
	draws        []float64 // [Chains, Draws]
	halves, half int       // half chains, and draws in each: an odd chain loses its middle draw
	split        []float64 // [halves, half]
	byValue      []ranked  // split, sorted
	median       float64   // of split
	sorted       []float64 // draws, sorted
	lags         stats.ESS

	folded []ranked  // scratch of rhat
	values []float64 // scratch, [halves, half]
}

// ranked is a value and its position.
type ranked struct {
	value float64
	at    int
}

func newWorkspace(c *Chains) *workspace {
	w := &workspace{chains: c, halves: 2 * c.sample.Chains, half: c.sample.Draws / 2}
	w.split = make([]float64, w.halves*w.half)
	w.values = make([]float64, w.halves*w.half)
	w.byValue = make([]ranked, len(w.split))
	w.folded = make([]ranked, len(w.split))
	return w
}

// load makes a parameter the current one.
func (w *workspace) load(parameter int) {
	w.draws = w.chains.gather(parameter, w.draws)
	w.halve(w.draws, w.split)
	for i, v := range w.split {
		w.byValue[i] = ranked{v, i}
	}
	w.byValue, w.folded = radixSort(w.byValue, w.folded)
	middle := len(w.byValue) / 2 // the number of values is even
	w.median = (w.byValue[middle-1].value + w.byValue[middle].value) / 2

	w.sorted = w.sorted[:0]
	if len(w.split) == len(w.draws) {
		for _, r := range w.byValue {
			w.sorted = append(w.sorted, r.value)
		}
	} else {
		w.sorted = append(w.sorted, w.draws...)
		slices.Sort(w.sorted)
	}
}

// radixSort sorts x by value, by the bytes of a key from the lowest to the highest, with scratch of the same length. It
// returns the sorted one of the two and the other. A sort by comparisons would take half of a summary's time.
func radixSort(x, scratch []ranked) (sorted, rest []ranked) {
	var counts [8][256]int
	for _, r := range x {
		for digit, k := 0, sortKey(r.value); digit < 8; digit, k = digit+1, k>>8 {
			counts[digit][k&0xff]++
		}
	}
	for digit := range counts {
		starts, shift := &counts[digit], 8*digit
		if starts[sortKey(x[0].value)>>shift&0xff] == len(x) {
			continue // all have the same byte
		}
		start := 0
		for b, n := range starts {
			starts[b] = start
			start += n
		}
		for _, r := range x {
			to := &starts[sortKey(r.value)>>shift&0xff]
			scratch[*to] = r
			*to++
		}
		x, scratch = scratch, x
	}
	return x, scratch
}

// sortKey is a whole number that orders as the finite floats do.
func sortKey(v float64) uint64 {
	bits := math.Float64bits(v)
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}

// halve cuts each chain of x, [Chains, Draws], into its first and its last half.
func (w *workspace) halve(x, halves []float64) {
	n := w.chains.sample.Draws
	halves = halves[:0]
	for chain := range w.chains.sample.Chains {
		own := x[chain*n : (chain+1)*n]
		halves = append(halves, own[:w.half]...)
		halves = append(halves, own[n-w.half:]...)
	}
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

// scoreTable returns the normal scores of ranks 1 to n, Phi^-1((r - 3/8) / (n + 1/4)) (Blom 1958), by rank.
func scoreTable(n int) []float64 {
	table := make([]float64, n+1)
	for r := 1; r <= n; r++ {
		table[r] = score(float64(r), n)
	}
	return table
}

func score(rank float64, n int) float64 {
	return mathext.NormalQuantile((rank - 0.375) / (float64(n) + 0.25))
}

// normalScores writes the normal score of each value's rank to dst. Equal values share the mean of their ranks.
func (w *workspace) normalScores(byValue []ranked, dst []float64) []float64 {
	table, n := w.chains.scores(), len(byValue)
	for first := 0; first < n; {
		end := first + 1
		for end < n && byValue[end].value == byValue[first].value {
			end++
		}
		z := table[end]
		if end-first > 1 {
			z = score(float64(first+1+end)/2, n)
		}
		for _, r := range byValue[first:end] {
			dst[r.at] = z
		}
		first = end
	}
	return dst
}

// fold sorts the distances from the median. Those below it and those above it are in order already: merging them spares
// a sort.
func (w *workspace) fold() []ranked {
	low, high := len(w.byValue)/2-1, len(w.byValue)/2
	distance := func(i int) float64 { return math.Abs(w.byValue[i].value - w.median) }
	for i := range w.folded {
		next := low
		if low < 0 || high < len(w.byValue) && distance(high) < distance(low) {
			next = high
		}
		w.folded[i] = ranked{distance(next), w.byValue[next].at}
		if next == low {
			low--
		} else {
			high++
		}
	}
	return w.folded
}
