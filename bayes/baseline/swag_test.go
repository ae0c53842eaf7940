package baseline

import (
	"math"
	"math/rand/v2"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"gonum.org/v1/gonum/stat"
)

// SWAG's mean, variances and deviations are those of the iterates at the ends of the epochs, computed here, and its
// draws have the moments of the paper's equation 1.
func TestSWAGFitsTheIterates(t *testing.T) {
	const collect, rank, within = 9, 4, 1e-12
	j, m := jobOf(t, small, SWAG{Collect: collect, Rank: rank}, dataset.Parts{Train: line(30)},
		Settings{Epochs: 3, BatchSize: 12, Engine: goEngine(t), DType: compute.Float64})
	p, err := newPoints(j, m.Training, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	_, width := p.Size()
	start := make([]float64, width)
	for i := range start {
		start[i] = math.Sin(float64(i))
	}
	var all [][]float64
	task := m.collecting(j, p, start)
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

	rng := rand.New(rand.NewPCG(1, 1))
	draws := make([][]float64, 4000)
	for n := range draws {
		draws[n] = g.draw(rng)
	}
	for i := range width {
		v := g.variance[i] / 2
		for _, d := range g.deviations {
			v += d[i] * d[i] / (2 * (rank - 1))
		}
		var of []float64
		for _, d := range draws {
			of = append(of, d[i])
		}
		checkMoments(t, of, g.mean[i], math.Sqrt(v))
	}
	// The first two coordinates' covariance is the low-rank part's.
	a, b, want := make([]float64, len(draws)), make([]float64, len(draws)), 0.0
	for n, d := range draws {
		a[n], b[n] = d[0], d[1]
	}
	for _, d := range g.deviations {
		want += d[0] * d[1] / (2 * (rank - 1))
	}
	v1, v2 := stat.Variance(a, nil), stat.Variance(b, nil)
	if z := (stat.Covariance(a, b, nil) - want) / math.Sqrt((want*want+v1*v2)/4000); math.Abs(z) > 4.5 {
		t.Errorf("covariance is off by %.1f standard errors", z)
	}
}
