package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"gobnn/bayes"
)

// ROC is a receiver operating characteristic: the true positive rate (the share of positive rows found) against the
// false positive rate (the share of negative rows taken for positive), as the threshold on a score falls. Rows of equal
// score are one step of both rates.
type ROC struct {
	FalsePositive, TruePositive []float64 // rates, ascending from (0, 0) to (1, 1), of equal length
}

// newROC is the curve of a score of each row, such as the probability of the positive class: larger is more positive.
// There must be rows of both kinds.
func newROC(score []float64, positive []bool) (ROC, error) {
	if len(score) != len(positive) {
		return ROC{}, fmt.Errorf("metric: a ROC of %d scores and %d labels", len(score), len(positive))
	}
	order := make([]int, len(score))
	count := [2]float64{} // of the negative rows, and of the positive ones
	for i, v := range score {
		if math.IsNaN(v) {
			return ROC{}, fmt.Errorf("metric: a ROC of scores of which number %d is NaN", i)
		}
		order[i] = i
		count[index(positive[i])]++
	}
	if count[0] == 0 || count[1] == 0 {
		return ROC{}, fmt.Errorf("metric: a ROC of %v positive and %v negative rows: it needs both", count[1], count[0])
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	c := ROC{FalsePositive: []float64{0}, TruePositive: []float64{0}}
	seen := [2]float64{}
	for i, row := range order {
		seen[index(positive[row])]++
		if i+1 == len(order) || score[order[i+1]] != score[row] {
			c.FalsePositive = append(c.FalsePositive, seen[0]/count[0])
			c.TruePositive = append(c.TruePositive, seen[1]/count[1])
		}
	}
	return c, nil
}

func index(positive bool) int {
	if positive {
		return 1
	}
	return 0
}

// AUC is the area under the curve: the probability that a positive row has a larger score than a negative one, where
// equal scores count half.
func (c ROC) AUC() float64 {
	area := 0.
	for i := 1; i < len(c.FalsePositive); i++ {
		area += (c.FalsePositive[i] - c.FalsePositive[i-1]) * (c.TruePositive[i] + c.TruePositive[i-1]) / 2
	}
	return area
}

// At is the true positive rate at a false positive rate from 0 to 1, by linear interpolation; at a vertical step it is
// the upper end.
func (c ROC) At(falsePositive float64) float64 {
	i := sort.Search(len(c.FalsePositive), func(i int) bool { return c.FalsePositive[i] > falsePositive })
	if i == len(c.FalsePositive) {
		return 1
	}
	x0, x1, y0, y1 := c.FalsePositive[i-1], c.FalsePositive[i], c.TruePositive[i-1], c.TruePositive[i]
	return y0 + (y1-y0)*(falsePositive-x0)/(x1-x0)
}

// ROCOf is the curve of the averaged probability of class 0, sum_j w_j p(0 | f_j(x)), against all other classes, for
// classification. y are the rows' classes.
func ROCOf(p bayes.Prediction, y []float64) (ROC, error) {
	probabilities, err := p.Probabilities()
	if err != nil {
		return ROC{}, fmt.Errorf("metric: %w", err)
	}
	if err := p.ValidateTarget(y); err != nil {
		return ROC{}, fmt.Errorf("metric: %w", err)
	}
	return rocOf(probabilities, y, positive)
}

func rocOf(probabilities [][]float64, y []float64, class int) (ROC, error) {
	score, positive := make([]float64, len(y)), make([]bool, len(y))
	for n := range y {
		score[n], positive[n] = probabilities[n][class], int(y[n]) == class
	}
	return newROC(score, positive)
}
