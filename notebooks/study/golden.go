package study

import "math"

// evaluatedAt is a point at which a function was evaluated, and its value there.
type evaluatedAt struct{ X, Value float64 }

// goldenSection minimises a function of one variable between low and high by golden-section search (Kiefer 1953), with
// the given number of evaluations, at least 2, and returns the evaluated point of lowest value. Each evaluation after
// the first reduces the interval by the factor .618. The interval holds the minimum if the function has only one; if it
// has several, or steps, as an accuracy does, the search ends at one of them. NaN counts as +Inf.
func goldenSection(low, high float64, evaluations int, f func(x float64) float64) evaluatedAt {
	best := evaluatedAt{math.NaN(), math.Inf(1)}
	ratio := (math.Sqrt(5) - 1) / 2
	at := func(x float64) evaluatedAt {
		v := f(x)
		if math.IsNaN(v) {
			v = math.Inf(1)
		}
		if v < best.Value || math.IsNaN(best.X) {
			best = evaluatedAt{x, v}
		}
		return evaluatedAt{x, v}
	}
	left, right := at(high-ratio*(high-low)), at(low+ratio*(high-low))
	for range evaluations - 2 {
		if left.Value <= right.Value {
			high, right = right.X, left
			left = at(high - ratio*(high-low))
		} else {
			low, left = left.X, right
			right = at(low + ratio*(high-low))
		}
	}
	return best
}
