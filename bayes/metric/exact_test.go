package metric_test

import (
	"math"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"

	"gonum.org/v1/gonum/stat/distuv"
)

// regression of the given outputs, [particles][rows], and one noise for all.
func regression(weights []float64, noise float64, outputs ...[]float64) bayes.Prediction {
	p := bayes.Prediction{Likelihood: bayes.Gaussian{Learn: true}, Particles: len(outputs), Rows: len(outputs[0]),
		Width: 1, Weights: weights}
	for _, row := range outputs {
		p.Outputs = append(p.Outputs, row...)
		p.Own = append(p.Own, math.Log(noise))
	}
	return p
}

// classification of one particle whose class probabilities are the given, [rows][classes].
func classification(probabilities ...[]float64) bayes.Prediction {
	p := bayes.Prediction{Likelihood: bayes.Categorical{}, Particles: 1, Rows: len(probabilities),
		Width: len(probabilities[0]), Weights: []float64{1}}
	for _, row := range probabilities {
		for _, v := range row {
			p.Outputs = append(p.Outputs, math.Log(v))
		}
	}
	return p
}

func value(t *testing.T, what string, want, tolerance float64) func(metric.Estimate, error) metric.Estimate {
	t.Helper()
	return func(e metric.Estimate, err error) metric.Estimate {
		t.Helper()
		if err != nil || !(math.Abs(e.Value-want) <= tolerance) {
			t.Errorf("%s: %v, %v, want %v", what, e, err, want)
		}
		return e
	}
}

func TestGaussianParticle(t *testing.T) {
	// One particle: the predictive distribution is N(f, 4).
	p := regression([]float64{1}, 2, []float64{0, 1, -3, 10})
	y := []float64{1, 1, 1, 20}
	const squares = 1 + 0 + 16 + 100 // (f - y)^2
	nlpd := value(t, "NLPD", math.Log(2)+0.5*math.Log(2*math.Pi)+squares/8.0/4, 1e-14)(metric.NLPD(p, y))
	if !math.IsNaN(nlpd.StdErr) {
		t.Errorf("one particle has no Monte Carlo standard error, got %v", nlpd)
	}
	mse := value(t, "MSE", squares/4.0, 1e-13)(metric.MSE(p, y))
	// Standard error of the mean of 1, 0, 16, 100: sd / sqrt(4).
	mean := squares / 4.0
	variance := ((1-mean)*(1-mean) + mean*mean + (16-mean)*(16-mean) + (100-mean)*(100-mean)) / 3
	if math.Abs(mse.SamplingStdErr-math.Sqrt(variance/4)) > 1e-12 {
		t.Errorf("sampling standard error of the MSE %v, want %v", mse.SamplingStdErr, math.Sqrt(variance/4))
	}
	rmse := value(t, "RMSE", math.Sqrt(mean), 1e-13)(metric.RMSE(p, y))
	if want := math.Sqrt(variance/4) / 2 / math.Sqrt(mean); math.Abs(rmse.SamplingStdErr-want) > 1e-12 {
		t.Errorf("sampling standard error of the RMSE %v, want %v", rmse.SamplingStdErr, want)
	}
	value(t, "particle RMSE", math.Sqrt(mean), 1e-13)(metric.ParticleRMSE(p, y))

	half := 2 * distuv.UnitNormal.Quantile(0.9) // of the 80 % interval: 2.563
	value(t, "width", 2*half, 1e-12)(metric.Width(p, y, 0.8))
	value(t, "coverage", 0.5, 0)(metric.Coverage(p, y, 0.8)) // rows 0 and 1
	value(t, "interval score", 2*half+10*((4-half)+(10-half))/4, 1e-12)(metric.IntervalScore(p, y, 0.8))
	below := []float64{-1, 0, -7, 0} // the same misses on the other side
	value(t, "interval score below", 2*half+10*((4-half)+(10-half))/4, 1e-12)(metric.IntervalScore(p, below, 0.8))
}

func TestWeightedParticles(t *testing.T) {
	p := regression([]float64{0.25, 0.75}, 1, []float64{1, 2}, []float64{5, -2})
	y := []float64{4, 1}
	// Predictive means 4 and -1; the particles' own errors -3, 1 and 1, -3.
	value(t, "RMSE", math.Sqrt((0+4)/2.0), 1e-14)(metric.RMSE(p, y))
	value(t, "particle RMSE", math.Sqrt(5), 1e-14)(metric.ParticleRMSE(p, y))
	// Particles that err differently: RMSEs 0 and 4, mean .75 x 4 = 3, where the root of the mean square would be 3.46.
	// Leaving out the first leaves 4, the second 0: SE^2 = 1/2 ((4-2)^2 + (0-2)^2) = 4.
	unequal := value(t, "particle RMSE of unequal particles", 3, 1e-14)(metric.ParticleRMSE(p, []float64{1, 2}))
	if math.Abs(unequal.StdErr-2) > 1e-13 {
		t.Errorf("standard error of the particle RMSE %v, want 2", unequal.StdErr)
	}
	normal := distuv.UnitNormal.Prob
	value(t, "NLPD", -(math.Log(0.25*normal(3)+0.75*normal(1))+math.Log(0.25*normal(1)+0.75*normal(3)))/2,
		1e-14)(metric.NLPD(p, y))

	// Two groups of one particle: leaving out the first leaves the second. theta_(1) = 25/2 and theta_(2) = 17/2 of
	// errors 1, -3 and -3, 1: both MSE 5, so use other targets: errors -1, 1 and 3, -3.
	e := value(t, "MSE", (4+4)/2.0, 1e-14)(metric.MSE(p, []float64{2, 1}))
	// theta_(1) = 9, theta_(2) = 1: SE^2 = 1/2 ((9-5)^2 + (1-5)^2) = 16.
	if math.Abs(e.StdErr-4) > 1e-13 {
		t.Errorf("standard error of the MSE %v, want 4", e.StdErr)
	}
}

// The mean over weighted particles of each one's own scores is that of predictions of a single particle, each scored by
// itself; the mixture's scores are others.
func TestParticleScores(t *testing.T) {
	p, y := draw(world{seed: 5, rows: 90, classes: 3, unequal: true}, 7, 0)
	var ece, accuracy float64
	for j, w := range p.Weights {
		own, err := p.Particle(j)
		if err != nil {
			t.Fatal(err)
		}
		ece += w * value(t, "ECE", 0, 1)(metric.ECE(own, y)).Value
		accuracy += w * value(t, "accuracy", 0, 1)(metric.Accuracy(own, y)).Value
	}
	of := value(t, "particle ECE", ece, 1e-13)(metric.ParticleECE(p, y))
	value(t, "particle accuracy", accuracy, 1e-13)(metric.ParticleAccuracy(p, y))
	if !(of.StdErr > 0) || math.Abs(ece-value(t, "ECE", 0, 1)(metric.ECE(p, y)).Value) < .01 {
		t.Errorf("particle ECE %v, want one with a standard error, away from that of the mixture", of)
	}
}

func TestClassificationByHand(t *testing.T) {
	p := classification([]float64{0.7, 0.2, 0.1}, []float64{0.14, 0.72, 0.14}, []float64{0.25, 0.25, 0.5},
		[]float64{0.05, 0.05, 0.9})
	y := []float64{0, 2, 2, 2}
	value(t, "accuracy", 0.75, 0)(metric.Accuracy(p, y))
	value(t, "NLPD", -math.Log(0.7*0.14*0.5*0.9)/4, 1e-14)(metric.NLPD(p, y))
	brier := (0.09 + 0.04 + 0.01) + (0.14*0.14 + 0.72*0.72 + 0.86*0.86) + (0.0625 + 0.0625 + 0.25) +
		(0.0025 + 0.0025 + 0.01)
	value(t, "Brier", brier/4, 1e-14)(metric.Brier(p, y))
	// Of 15 bins: 0.5 (right) in bin 7; 0.7 (right) and 0.72 (wrong) in bin 10; 0.9 (right) in bin 13.
	// Rows' weight x |accuracy - confidence|: 1/4 x 0.5, 2/4 x |0.5 - 0.71|, 1/4 x 0.1.
	value(t, "ECE", 0.125+0.105+0.025, 1e-14)(metric.ECE(p, y))

	diagram, err := metric.ReliabilityDiagram(p, y)
	if err != nil || len(diagram) != 15 {
		t.Fatal(diagram, err)
	}
	if b := diagram[10]; b.Count != 2 || math.Abs(b.Confidence-0.71) > 1e-14 || b.Accuracy != 0.5 || b.Lower != 10./15 ||
		b.Upper != 11./15 {
		t.Errorf("bin 10 is %+v", b)
	}
	if b := diagram[0]; b.Count != 0 || !math.IsNaN(b.Confidence) || !math.IsNaN(b.Accuracy) {
		t.Errorf("bin 0 is %+v, want it empty", b)
	}
	sure, err := metric.ReliabilityDiagram(classification([]float64{1, 1e-300}), []float64{0})
	if err != nil || sure[14].Count != 1 { // the end of the last bin belongs to it
		t.Errorf("the bins of a confidence of exactly 1 are %+v (%v)", sure, err)
	}
	border, err := metric.ReliabilityDiagram(classification([]float64{.2, .2, .2, .2, .2}), []float64{0})
	if err != nil || border[2].Count != 1 { // .2 = 3/15 ends bin 2
		t.Errorf("the bins of a confidence on a border are %+v (%v)", border, err)
	}
}

func TestBinary(t *testing.T) {
	p := bayes.Prediction{
		Likelihood: bayes.Bernoulli{}, Particles: 2, Rows: 2, Width: 1, Weights: []float64{0.5, 0.5},
		Outputs: []float64{0, -math.Log(4), math.Log(9), 0},
	}
	// p(1) = (0.5 + 0.9)/2 = 0.7 and (0.2 + 0.5)/2 = 0.35.
	y := []float64{1, 1}
	value(t, "NLPD", -math.Log(0.7*0.35)/2, 1e-14)(metric.NLPD(p, y))
	value(t, "accuracy", 0.5, 0)(metric.Accuracy(p, y))
	value(t, "Brier", (2*0.09+2*0.65*0.65)/2, 1e-14)(metric.Brier(p, y))
	value(t, "ECE", (0.3+0.65)/2, 1e-14)(metric.ECE(p, y)) // 0.7 and 0.65 lie in bins 11 and 10 of 15
}

// Targets at the quantiles (i + 1/2)/N of a normal are covered by its interval of each level to the share of the level,
// and the interval is as wide as the normal's.
func TestCoverageOfNormal(t *testing.T) {
	const rows, mean, stdDev = 1000, 3., .5
	outputs, y := make([]float64, rows), make([]float64, rows)
	for i := range y {
		outputs[i], y[i] = mean, mean+stdDev*distuv.UnitNormal.Quantile((float64(i)+.5)/rows)
	}
	p := regression([]float64{1}, stdDev, outputs)
	for level, quantile := range map[float64]float64{ // of a standard normal at (1 + level)/2
		.5: 0.6744897501960817, .8: 1.2815515655446004, .9: 1.6448536269514722, .95: 1.959963984540054,
	} {
		value(t, "coverage", level, 1e-15)(metric.Coverage(p, y, level))
		value(t, "width", 2*stdDev*quantile, 1e-9)(metric.Width(p, y, level))
	}
}

// What is censored at any quantile of a right prediction counts in the mean as what is seen does, at every level.
func TestCoverageOfCensored(t *testing.T) {
	const rows, mean, stdDev = 1000, 3., .5
	for _, above := range []float64{.1, .3, .5, .97} {
		outputs, y, censored := make([]float64, rows), make([]float64, rows), make([]bool, rows)
		for i := range y {
			u := (float64(i) + .5) / rows
			censored[i] = u > above
			outputs[i], y[i] = mean, mean+stdDev*distuv.UnitNormal.Quantile(min(u, above))
		}
		p := regression([]float64{1}, stdDev, outputs)
		p.Censored = censored
		for _, level := range []float64{.1, .5, .9} {
			value(t, "coverage", level, 1e-12)(metric.Coverage(p, y, level))
		}
		table, err := metric.Scores(p, y)
		if err != nil || len(table) != 2 || table[0].Name != "NLPD" {
			t.Errorf("scores of censored targets: %v, %v", table, err)
		}
	}
}

// Coverage is found from the distribution function at y. It must be the share of rows between the quantiles, at every
// level.
func TestCoverageAgainstIntervals(t *testing.T) {
	p, y := draw(world{seed: 5, rows: 200, unequal: true}, 60, 0)
	curve, err := metric.CalibrationCurve(p, y)
	if err != nil || len(curve) != 19 {
		t.Fatal(curve, err)
	}
	for _, point := range curve {
		lower, upper, err := p.Interval(point.Level)
		if err != nil {
			t.Fatal(err)
		}
		inside := 0.0
		for n := range y {
			if y[n] >= lower[n] && y[n] <= upper[n] {
				inside++
			}
		}
		value(t, "coverage", inside/200, 1e-15)(point.Coverage, nil)
	}
}

// Leaving groups out by one step must give what solving anew for each does: the standard errors of width and interval
// score are compared with those from predictions whose particles are removed by hand.
func TestIntervalStandardErrorAgainstRemoval(t *testing.T) {
	// 0: as the world has it; small: a mixture with bumps, where a step does not do
	for _, noise := range []float64{0, 0.02} {
		p, y := draw(world{seed: 6, rows: 15, unequal: true}, 200, 0)
		if noise > 0 {
			for j := range p.Own {
				p.Own[j] = math.Log(noise)
			}
		}
		for name, score := range map[string]func(bayes.Prediction, []float64, float64) (metric.Estimate, error){
			"width": metric.Width, "interval score": metric.IntervalScore,
		} {
			var values []float64
			for g := range 20 {
				without := p
				without.Weights = append([]float64(nil), p.Weights...)
				sum := 0.0
				for j := range without.Weights {
					if j/10 == g {
						without.Weights[j] = 0
					}
					sum += without.Weights[j]
				}
				for j := range without.Weights {
					without.Weights[j] /= sum
				}
				e, err := score(without, y, 0.9)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, e.Value)
			}
			mean, square := 0.0, 0.0
			for _, v := range values {
				mean += v / 20
			}
			for _, v := range values {
				square += (v - mean) * (v - mean)
			}
			want := math.Sqrt(19.0 / 20 * square)
			e, err := score(p, y, 0.9)
			if err != nil || math.Abs(e.StdErr-want) > 0.02*want {
				t.Errorf("%s, noise %v: %v, %v, want a standard error of %v", name, noise, e, err, want)
			}
		}
	}
}

// A share of rows has a sampling error at 0 and 1 as well, that of Beta(k + 1/2, n - k + 1/2), and where no particle
// matters a Monte Carlo error of 0 and not of rounding.
func TestStandardErrorOfShares(t *testing.T) {
	const rows = 30
	outputs := make([][]float64, 23) // particles that hardly differ, in 20 groups
	for j := range outputs {
		outputs[j] = make([]float64, rows)
		for n := range outputs[j] {
			outputs[j][n] = 1e-3 * float64(j)
		}
	}
	weights := make([]float64, len(outputs))
	for j := range weights {
		weights[j] = 1 / float64(len(outputs))
	}
	p := regression(weights, 1, outputs...)
	for _, inside := range []int{0, 7, rows} {
		y := make([]float64, rows)
		for n := inside; n < rows; n++ {
			y[n] = 50
		}
		e := value(t, "coverage", float64(inside)/rows, 0)(metric.Coverage(p, y, 0.95))
		want := distuv.Beta{Alpha: float64(inside) + 0.5, Beta: float64(rows-inside) + 0.5}.StdDev()
		if !(math.Abs(e.SamplingStdErr-want) <= 1e-15) || e.StdErr != 0 {
			t.Errorf("%d of %d rows inside: %+v, want a sampling standard error of %v and no other", inside, rows, e, want)
		}
	}
	even := classification([]float64{0.9, 0.1}, []float64{0.8, 0.2})
	e := value(t, "accuracy", 1, 0)(metric.Accuracy(even, []float64{0, 0}))
	if want := math.Sqrt(2.5 * 0.5 / (9 * 4)); !(math.Abs(e.SamplingStdErr-want) <= 1e-15) {
		t.Errorf("2 of 2 right: sampling standard error %v, want %v", e.SamplingStdErr, want)
	}
}
