package viz_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"
	"gobnn/viz"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// linear is a posterior of two particles of a linear function of d features, in the given task.
func linear(t *testing.T, likelihood bayes.Likelihood, d int) *bayes.Posterior {
	t.Helper()
	bound := computetest.Must(bayes.Model{Network: nn.MLP{}, Likelihood: likelihood, Stochastic: bayes.All()}.Bind(d, 1))
	engine := computetest.Must(compute.Open(compute.GoBackend))
	names := []string{"speed", "mass", "a", "b", "c"}
	features := dataset.Scaler{Mean: []float64{1, 5, .6, .2, .2}[:d], StdDev: []float64{2, .5, .5, .4, .4}[:d]}
	var phi []float64
	for i := range 2 * (d + 1) {
		phi = append(phi, math.Sin(float64(i)))
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, phi, 2, d+1), LogWeights: bayes.EqualLogWeights(2),
	}, bayes.Origin{
		Features: features, Target: dataset.Scaler{Mean: []float64{3}, StdDev: []float64{4}},
		FeatureNames: names[:d], TargetNames: []string{"force"}, Engine: engine,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// table has a category in its last three columns, of which the third has one row, and numbers before them; its last row
// is the nearest to the mean.
func table() *dataset.Dataset {
	return &dataset.Dataset{X: mat.NewDense(5, 5, []float64{
		0, 4, 1, 0, 0,
		2, 6, 1, 0, 0,
		8, 6, 0, 1, 0,
		9, 4, 0, 0, 1,
		4, 5, 1, 0, 0,
	}), Y: []float64{1, 2, 3, 4, 5}, Features: []string{"speed", "mass", "a", "b", "c"}, Target: "force"}
}

// The band along a feature is that of a grid by hand, with the others at a row that exists, at which a category's
// columns are one 1 and zeros. By default the grid goes a tenth beyond the data. Each point is as far from the curve as
// its target is from its row's prediction.
func TestAlong(t *testing.T) {
	p := linear(t, bayes.Gaussian{StdDev: .1}, 5)
	data := table()
	again, err := data.Subset([]int{4, 1, 2, 3}) // the central row is the first, but was number 4
	if err != nil {
		t.Fatal(err)
	}
	meansOf := func(rows *mat.Dense) []float64 {
		return computetest.Must(computetest.Must(p.Predict(t.Context(), rows)).Mean())
	}
	byHand := func(of *dataset.Dataset, column int, at []float64, from, to float64, opt viz.BandOptions) string {
		opt.TrainLabel, opt.TrainX = "residuals of the training data", mat.Col(nil, column, of.X)
		moved := mat.DenseCopyOf(of.X)
		for i, x := range opt.TrainX {
			moved.SetRow(i, at)
			moved.Set(i, column, x)
		}
		opt.TrainY = floats.SubTo(make([]float64, len(of.Y)), of.Y, meansOf(mat.DenseCopyOf(of.X)))
		floats.Add(opt.TrainY, meansOf(moved))
		const points = 200
		grid, xs := mat.NewDense(points, 5, nil), make([]float64, points)
		for i := range xs {
			xs[i] = from + (to-from)*float64(i)/(points-1)
			grid.SetRow(i, at)
			grid.Set(i, column, xs[i])
		}
		prediction, err := p.Predict(t.Context(), grid)
		if err != nil {
			t.Fatal(err)
		}
		return svgOf(viz.PredictiveBandOf(xs, prediction, opt))
	}
	speed := viz.BandOptions{Frame: viz.Frame{XLabel: "speed", YLabel: "force"}}
	mass := viz.BandOptions{Frame: viz.Frame{XLabel: "mass", YLabel: "force"}}
	const held = "the other features are those of row 4 of the data (counted from 0)"
	row := []float64{4, 5, 1, 0, 0}
	for i, c := range []struct {
		feature string
		opt     viz.AlongOptions
		want    string
	}{
		{"speed", viz.AlongOptions{Data: data}, byHand(data, 0, row, -.9, 9.9, speed.Noted(0, 9, held))},
		{"mass", viz.AlongOptions{Data: again}, byHand(again, 1, row, 3.8, 6.2, mass.Noted(4, 6, held))},
		{"speed", viz.AlongOptions{Data: data, From: -9, To: 5}, byHand(data, 0, row, -9, 5, speed.Noted(0, 9, held))},
	} {
		if got := svgOf(viz.Along(t.Context(), p, c.feature, c.opt)); got != c.want {
			t.Errorf("picture %d is another than that of a grid by hand", i)
		}
	}
}

// What lies beyond the data has a grey ground, up to the first and from the last point, and the legend says so.
func TestBeyondTheData(t *testing.T) {
	band := func(from, to float64, trainX []float64) string {
		x := []float64{from, to}
		return svgOf(viz.PredictiveBand(x, []float64{0, 0}, []float64{1, 1}, viz.BandOptions{TrainX: trainX,
			TrainY: make([]float64, len(trainX))}))
	}
	const grey, name = "opacity:0.078431", "beyond the data"
	for _, c := range []struct {
		from, to float64
		trainX   []float64
		grounds  int // with that of the legend
	}{
		{0, 4, []float64{3, 1}, 3}, {0, 4, []float64{0, 1}, 2}, {0, 4, []float64{2, 4}, 2}, {0, 4, []float64{-1, 5}, 0},
		{0, 4, []float64{6, 5}, 2}, {0, 4, nil, 0},
	} {
		svg := band(c.from, c.to, c.trainX)
		if n := strings.Count(svg, grey); n != c.grounds || strings.Contains(svg, name) != (n > 0) {
			t.Errorf("points %v on [%v, %v]: %d grey areas, want %d", c.trainX, c.from, c.to, n, c.grounds)
		}
	}
}
