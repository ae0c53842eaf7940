package viz_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/viz"
)

// twoParticles predicts x and 3 - x at x = 0, 1, 2 with weights 0.75 and 0.25.
func twoParticles() bayes.Prediction {
	return bayes.Prediction{
		Likelihood: bayes.Gaussian{StdDev: 0.5},
		Outputs:    []float64{0, 1, 2, 3, 2, 1}, Particles: 2, Rows: 3, Width: 1,
		Weights: []float64{0.75, 0.25},
	}
}

// svgOf is the drawing of a figure that a call returns.
func svgOf(fig *viz.Figure, err error) string {
	return string(computetest.Must(computetest.Must(fig, err).SVG()))
}

// threeToOne are the 20 functions that are drawn of two particles with weights .75 and .25.
func threeToOne(first, second []float64) [][]float64 {
	return slices.Concat(slices.Repeat([][]float64{first}, 15), slices.Repeat([][]float64{second}, 5))
}

func TestPredictiveBandOf(t *testing.T) {
	x := []float64{0, 1, 2}
	got := svgOf(viz.PredictiveBandOf(x, twoParticles(), viz.BandOptions{}))
	// mean = 0.75 f_1 + 0.25 f_2; variance = 0.75 * 0.25 (f_1 - f_2)^2 + 0.25, f_1 - f_2 = -3, -1, 1
	mean := []float64{0.75, 1.25, 1.75}
	sd := []float64{math.Sqrt(0.1875*9 + 0.25), math.Sqrt(0.1875 + 0.25), math.Sqrt(0.1875 + 0.25)}
	first, second := []float64{0, 1, 2}, []float64{3, 2, 1}
	want := svgOf(viz.PredictiveBand(x, mean, sd, viz.BandOptions{}.Drawn(threeToOne(first, second)...)))
	if got != want {
		t.Error("the band of the prediction differs from that of its mean, standard deviation and 3 to 1 draws")
	}
	if _, err := viz.PredictiveBandOf(x[:2], twoParticles(), viz.BandOptions{}); err == nil ||
		!strings.Contains(err.Error(), "x has 2") {
		t.Errorf("2 coordinates for 3 rows: error %v", err)
	}
	if _, err := viz.PredictiveBandOf(x, bayes.Prediction{Likelihood: bayes.Bernoulli{}},
		viz.BandOptions{}); err == nil {
		t.Error("a classification has no band, but no error")
	}
}

func TestPredictedVsTrueOf(t *testing.T) {
	p := twoParticles()
	p.Weights = []float64{1, 0} // one Gaussian: its 90 % interval is mean ± 1.645 * 0.5
	svg := svgOf(viz.PredictedVsTrueOf([]float64{0.82, 1, 2.83}, p, viz.Frame{}))
	if !strings.Contains(svg, "inside the 90 % interval: 66.7 % of 3 rows") {
		t.Errorf("no coverage of 2 in 3 rows in %v", regexp.MustCompile(`>inside[^<]*`).FindString(svg))
	}
	if _, err := viz.PredictedVsTrueOf([]float64{1}, p, viz.Frame{}); err == nil ||
		!strings.Contains(err.Error(), "y has 1 values") {
		t.Errorf("1 target for 3 rows: error %v", err)
	}
	// Two targets, whose units differ, are not drawn as six rows of one.
	p = bayes.Prediction{Likelihood: bayes.Gaussian{}, Particles: 1, Rows: 3, Width: 2, Size: 2, Weights: []float64{1},
		Outputs: []float64{1, 100, 2, 200, 3, 300}}
	if _, err := viz.PredictedVsTrueOf(p.Outputs, p, viz.Frame{}); err == nil ||
		!strings.Contains(err.Error(), "of 2 targets") {
		t.Errorf("two targets: error %v", err)
	}
	second := computetest.Must(p.Of(1))
	if _, err := viz.PredictedVsTrueOf([]float64{100, 200, 300}, second, viz.Frame{}); err != nil {
		t.Errorf("one of two targets: %v", err)
	}
}

// The lines of single particles are those of their own probabilities, heavy particles come more often, and a logit of 0
// is 1/2.
func TestDecisionMapOf(t *testing.T) {
	f := lattice(t)
	p := bayes.Prediction{Likelihood: bayes.Bernoulli{}, Particles: 2, Rows: 6, Width: 1, Weights: []float64{.75, .25}}
	var single [][]float64
	for j := range p.Particles {
		var own []float64
		for i := range p.Rows {
			logit := float64(i) - 1.3 - 1.5*float64(j)
			p.Outputs = append(p.Outputs, logit)
			own = append(own, 1/(1+math.Exp(-logit)))
		}
		single = append(single, own)
	}
	got := svgOf(viz.DecisionMapOf(f, p, 1, viz.DecisionOptions{}))
	mean := f
	mean.Values = make([]float64, 6)
	for i := range mean.Values {
		mean.Values[i] = .75*single[0][i] + .25*single[1][i]
	}
	opt := viz.DecisionOptions{ProbabilityLabel: "predicted probability of class 1"}.Drawn(
		threeToOne(single[0], single[1])...)
	if want := svgOf(viz.DecisionMap(mean, opt)); got != want {
		t.Error("the map of the prediction differs from that with 3 to 1 lines of its particles")
	}
	if !strings.Contains(got, "level 0.5 of single particles") {
		t.Error("the legend does not name the lines of single particles")
	}
	if _, err := viz.DecisionMap(mean, viz.DecisionOptions{}.Drawn([]float64{1, 2})); err == nil ||
		!strings.Contains(err.Error(), "particle 0") {
		t.Errorf("a particle of too few values: %v", err)
	}
	svg := svgOf(viz.DecisionMapOf(f, p, 0, viz.DecisionOptions{ClassNames: []string{"benign"}}))
	if !strings.Contains(svg, "predicted probability of benign") {
		t.Error("the colour bar does not name the class")
	}
	if _, err := viz.DecisionMapOf(f, p, 2, viz.DecisionOptions{}); err == nil ||
		!strings.Contains(err.Error(), "class 2") {
		t.Errorf("class 2 of 2: error %v", err)
	}
}

func TestCalibrationCurveOf(t *testing.T) {
	p := bayes.Prediction{Likelihood: bayes.Gaussian{}, Outputs: []float64{0, 0}, Particles: 1, Rows: 2, Width: 1,
		Weights: []float64{1}}
	y := []float64{0, 1} // at 0 standard deviations, covered by all intervals, and at 1, covered from level 0.683 on
	got := svgOf(viz.CalibrationCurveOf(p, y, viz.Frame{}))
	var nominal, observed []float64
	for i := 1; i < 20; i++ {
		q, covered := float64(i)/20, 0.5
		if q > 0.683 {
			covered = 1
		}
		nominal, observed = append(nominal, q), append(observed, covered)
	}
	if want := svgOf(viz.CalibrationCurve(nominal, observed, 2, viz.Frame{})); got != want {
		t.Error("the curve of the prediction differs from the coverage by hand")
	}
	if _, err := viz.CalibrationCurveOf(p, y[:1], viz.Frame{}); err == nil {
		t.Error("1 target for 2 rows: no error")
	}
}

// Any result's training is drawn by one call, to the same picture as its curves by hand; without training it says so.
func TestTrainingCurvesOf(t *testing.T) {
	r := &fit.Result{Curves: []fit.Curve{
		{Name: fit.ESSCurve, Steps: []int{1, 2, 3, 4}, Values: []float64{9, 8, 7, 6}},
		{Name: fit.LossCurve, Steps: []int{1, 2, 3, 4}, Values: []float64{4, 3, 2.5, 2.25}},
		{Name: fit.ValidationCurve, Steps: []int{2, 4}, Values: []float64{2, 1.5}},
	}}
	got := svgOf(viz.TrainingCurvesOf(r, viz.Frame{}))
	want := svgOf(viz.TrainingCurves(viz.Series{Value: []float64{4, 3, 2.5, 2.25}},
		viz.Series{Step: []float64{2, 4}, Value: []float64{2, 1.5}}, viz.Frame{}))
	if got != want {
		t.Error("the picture is another than that of the curves by hand")
	}
	r.Curves = r.Curves[:1]
	if _, err := viz.TrainingCurvesOf(r, viz.Frame{}); err == nil ||
		!strings.Contains(err.Error(), "nothing in it was trained") {
		t.Errorf("without training: %v", err)
	}
}
