package metric_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// sharpened is a prediction of 300 rows by two particles that disagree. Their average gives the classes probabilities
// proportional to q^sharpness, where q are shares that the classes of the rows have exactly.
func sharpened(sharpness float64, binary bool) (p bayes.Prediction, y []float64) {
	shares := [][]float64{{.7, .2, .1}, {.1, .5, .4}, {.3, .1, .6}}
	if binary {
		shares = [][]float64{{.7, .3}, {.4, .6}, {.1, .9}}
	}
	p = bayes.Prediction{Likelihood: bayes.Categorical{}, Particles: 2, Rows: 300, Width: 3, Weights: []float64{.4, .6}}
	if binary {
		p.Likelihood, p.Width = bayes.Bernoulli{}, 1
	}
	average := make([][]float64, len(shares))
	for i, q := range shares {
		total := 0.
		for _, v := range q {
			total += math.Pow(v, sharpness)
		}
		for c, v := range q {
			average[i] = append(average[i], math.Pow(v, sharpness)/total)
			for range int(math.Round(100 * v)) {
				y = append(y, float64(c))
			}
		}
	}
	for j := range p.Particles {
		for n := range p.Rows {
			own := append([]float64(nil), average[n/100]...)
			shift := .5 * min(own[0], own[1]) // from one class to another, by weight none at all
			if j == 1 {
				shift *= -p.Weights[0] / p.Weights[1]
			}
			own[0], own[1] = own[0]+shift, own[1]-shift
			if binary {
				p.Outputs = append(p.Outputs, math.Log(own[1]/own[0]))
				continue
			}
			for _, v := range own {
				p.Outputs = append(p.Outputs, 7+math.Log(v)) // a number added to all logits changes nothing
			}
		}
	}
	return p, y
}

// The temperature of probabilities that are too sharp, or not sharp enough, by a known power is that power, and the
// calibrated probabilities are the classes' shares.
func TestTemperature(t *testing.T) {
	for _, binary := range []bool{false, true} {
		for _, sharpness := range []float64{.3, 1, 2.5} {
			p, y := sharpened(sharpness, binary)
			temperature, err := metric.FitTemperature(p, y)
			if err != nil || math.Abs(float64(temperature)/sharpness-1) > 1e-6 {
				t.Fatalf("binary %v: temperature %v, %v, want %v", binary, temperature, err, sharpness)
			}
			calibrated, err := temperature.Calibrate(p)
			if err != nil {
				t.Fatal(err)
			}
			probabilities, err := calibrated.Probabilities()
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]float64{false: .2, true: .3}[binary]; math.Abs(probabilities[99][1]-want) > 1e-6 {
				t.Errorf("binary %v: calibrated %v, want %v for class 1", binary, probabilities[99], want)
			}
			score := func(of func(bayes.Prediction, []float64) (metric.Estimate, error)) (before, after float64) {
				t.Helper()
				a, err := of(p, y)
				if err != nil {
					t.Fatal(err)
				}
				b, err := of(calibrated, y)
				if err != nil {
					t.Fatal(err)
				}
				return a.Value, b.Value
			}
			if before, after := score(metric.NLPD); after > before+1e-12 || sharpness != 1 && after > before-1e-3 {
				t.Errorf("binary %v, sharpness %v: NLPD %v, calibrated %v", binary, sharpness, before, after)
			}
			if before, after := score(metric.Accuracy); before != after {
				t.Errorf("binary %v, sharpness %v: accuracy %v, calibrated %v", binary, sharpness, before, after)
			}
			before, after := score(func(p bayes.Prediction, y []float64) (metric.Estimate, error) {
				return metric.ECE(p, y, 0)
			})
			if after > 1e-6 || sharpness != 1 && before < .05 {
				t.Errorf("binary %v, sharpness %v: ECE %v, calibrated %v", binary, sharpness, before, after)
			}
		}
	}
}

func TestTemperatureErrors(t *testing.T) {
	p, y := sharpened(1, false)
	all := classification([]float64{.9, .1}, []float64{.3, .7})
	fitted := func(p bayes.Prediction, y []float64) error { _, err := metric.FitTemperature(p, y); return err }
	calibrated := func(p bayes.Prediction, t metric.Temperature) error { _, err := t.Calibrate(p); return err }
	calm, err := metric.Temperature(2).Calibrate(p)
	if err != nil {
		t.Fatal(err)
	}
	_, energy := metric.Energy(calm)
	for _, c := range []struct {
		err  error
		want string
	}{
		{fitted(all, []float64{0, 1}), "all 2 rows are predicted right"},
		{fitted(all, []float64{1, 0}), "no more probability"},
		{fitted(p, y[1:]), "y has 299 values"},
		{fitted(regression([]float64{1}, 1, []float64{0}), []float64{0}), "is for classification"},
		{calibrated(p, 0), "temperature 0"},
		{calibrated(p, metric.Temperature(math.NaN())), "temperature NaN"},
		{calibrated(classification([]float64{1, 0}), 1), "not finite"},
		{energy, "Energy is for bayes.Categorical"}, // the logarithms of averages have none
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", c.err, c.want)
		}
	}
}
