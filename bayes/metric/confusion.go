package metric

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Confusion counts rows by whether they are positive and whether they are taken for positive.
type Confusion struct{ TruePositive, FalsePositive, TrueNegative, FalseNegative int }

func (c *Confusion) add(positive, taken bool) {
	switch {
	case positive && taken:
		c.TruePositive++
	case positive:
		c.FalseNegative++
	case taken:
		c.FalsePositive++
	default:
		c.TrueNegative++
	}
}

// newConfusion is of one class, the positive one, and the class of largest probability.
func newConfusion(probabilities [][]float64, y []float64, class int) (c Confusion) {
	for n, p := range probabilities {
		c.add(int(y[n]) == class, floats.MaxIdx(p) == class)
	}
	return c
}

// share is a / (a + b); 0 if both are 0.
func share(a, b int) float64 { return float64(a) / math.Max(float64(a+b), 1) }

// Accuracy is the share of rows that are taken for what they are.
func (c Confusion) Accuracy() float64 {
	return share(c.TruePositive+c.TrueNegative, c.FalsePositive+c.FalseNegative)
}

// Precision is the share of positive rows among those taken for positive; 0 if none is.
func (c Confusion) Precision() float64 { return share(c.TruePositive, c.FalsePositive) }

// Recall is the share of positive rows that are found; 0 if there is none.
func (c Confusion) Recall() float64 { return share(c.TruePositive, c.FalseNegative) }

// Specificity is the share of negative rows that are not taken for positive; 0 if there is none.
func (c Confusion) Specificity() float64 { return share(c.TrueNegative, c.FalsePositive) }

// F1 is the harmonic mean of Precision and Recall; 0 if no positive row is found.
func (c Confusion) F1() float64 {
	return share(2*c.TruePositive, c.FalsePositive+c.FalseNegative)
}
