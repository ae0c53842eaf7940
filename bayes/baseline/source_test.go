package baseline

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// Each row of a Source counts once in an epoch, also one that is alone in its block, and in its mini-batch: an outlier
// there moves a line by as much as one of 65 537 rows can.
func TestSourceRowsCountAlike(t *testing.T) {
	const rows = 1<<16 + 1
	rng := rand.New(rand.NewPCG(1, 2))
	d := &dataset.Dataset{Name: "line", Features: []string{"x"}, Target: "y", X: mat.NewDense(rows, 1, nil)}
	for i := range rows {
		x := rng.NormFloat64()
		d.X.(*mat.Dense).Set(i, 0, x)
		d.Y = append(d.Y, 2*x+.1*rng.NormFloat64())
	}
	d.X.(*mat.Dense).Set(rows-1, 0, 1)
	d.Y[rows-1] = -50
	training := Training{Epochs: 80, BatchSize: 8192, Optimiser: train.Adam{Schedule: train.Exponential(.2, .5, 120)}}
	result, _ := fitted(t, fittest.Raw(fittest.Line(1)), MLE{training}, dataset.Parts{Source: dataset.RowsOf(d)},
		run.Settings{Seed: 1})
	slope, _, err := result.Posterior.Parameter("layer1/weights")
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(slope[0]-2) > .02 {
		t.Errorf("the slope is %v, and that of all rows but the last 2", slope[0])
	}
}
