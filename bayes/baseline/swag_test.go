package baseline

import (
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/mat"
)

// SWAG's mean, variances and deviations are those of the iterates at the ends of the epochs, computed here, and its
// draws have the moments of the paper's equation 1.
func TestSWAGFitsTheIterates(t *testing.T) {
	const collect, rank, within = 9, 4, 1e-12
	j, m := fittest.Job(t, fittest.Small, SWAG{Training: Training{Epochs: 3, BatchSize: 12}, Collect: collect, Rank: rank},
		dataset.Parts{Train: fittest.Data(30)}, run.Settings{Engine: computetest.Go(t), DType: compute.Float64})
	p, err := newPoints(j, m.Training, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	_, width := p.Size()
	var all [][]float64
	task := m.collecting(j, p, wavy(width, 1))
	task.Posterior = func(status run.Status, theta []float64) (*bayes.Posterior, error) {
		if status == "" { // after each epoch: 30 rows in batches of 12
			all = append(all, theta)
		}
		return &bayes.Posterior{}, nil
	}
	observed := *j
	observed.Observe = func(int, *bayes.Posterior) error { return nil }
	collected, err := train.Run(t.Context(), &observed, m.around(), task)
	if err != nil {
		t.Fatal(err)
	}
	around := fit.Details[*train.Details](collected)
	if len(all) != collect {
		t.Fatalf("%d epochs, want %d", len(all), collect)
	}
	g, err := m.gaussian(around, collect)
	if err != nil {
		t.Fatal(err)
	}
	sum, mean, variance := make([]float64, width), make([]float64, width), make([]float64, width)
	var deviations [][]float64
	for n, theta := range all {
		deviation := make([]float64, width)
		for i, v := range theta {
			sum[i] += v
			deviation[i] = v - sum[i]/float64(n+1)
		}
		deviations = append(deviations, deviation)
	}
	for i := range mean {
		mean[i] = sum[i] / collect
		for _, theta := range all {
			variance[i] += (theta[i] - mean[i]) * (theta[i] - mean[i]) / collect
		}
	}
	computetest.Near(t, "mean", g.mean, mean, within)
	computetest.Near(t, "variance", g.variance, variance, within)
	for k := range rank {
		computetest.Near(t, "deviation", g.deviations[k], deviations[collect-rank+k], within)
	}

	// The covariance of a draw is half the variances, and the deviations' outer products over 2 (K - 1).
	covariance := mat.NewSymDense(width, nil)
	for i, v := range g.variance {
		covariance.SetSym(i, i, v/2)
	}
	for _, d := range g.deviations {
		covariance.SymRankOne(covariance, 1./(2*(rank-1)), mat.NewVecDense(width, d))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var draws []float64
	for range 4000 {
		draws = append(draws, g.draw(rng)...)
	}
	checkGaussian(t, draws, g.mean, covariance)
}
