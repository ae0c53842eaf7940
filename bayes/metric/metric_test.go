package metric_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/metric"
)

// rowsOf is the prediction of some rows.
func rowsOf(p bayes.Prediction, from, to int) bayes.Prediction {
	part := p
	part.Rows, part.Outputs = to-from, nil
	for j := range p.Particles {
		part.Outputs = append(part.Outputs, p.Outputs[(j*p.Rows+from)*p.Width:(j*p.Rows+to)*p.Width]...)
	}
	return part
}

func TestBatchingDoesNotMatter(t *testing.T) {
	for _, w := range []world{{seed: 1, rows: 50, unequal: true}, {seed: 2, rows: 50, classes: 4, unequal: true}} {
		p, y := draw(w, 70, 0)
		whole, err := metric.Scores(p, y)
		if err != nil {
			t.Fatal(err)
		}
		for _, sizes := range [][]int{{1, 2, 3}, {49}, {10, 10, 10, 10, 10}} {
			metrics, from := metric.Usual(p.Task(), p.Columns(), false), 0
			for _, size := range append(sizes, p.Rows) { // the last takes what is left
				to := min(from+size, p.Rows)
				if from == to {
					break
				}
				if err := metric.Add(rowsOf(p, from, to), y[from:to], metrics); err != nil {
					t.Fatal(err)
				}
				from = to
			}
			parts, err := metric.TableOf(metrics)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range parts {
				want := whole[i]
				if s.Name != want.Name || s.Value != want.Value || s.StdErr != want.StdErr ||
					math.Float64bits(s.SamplingStdErr) != math.Float64bits(want.SamplingStdErr) {
					t.Errorf("batches of %v: %+v, want %+v", sizes, s, want)
				}
			}
		}
		// Metrics that share what they compute must give what each gives alone.
		for i, m := range metric.Usual(p.Task(), p.Columns(), false) {
			e, err := metric.One(m, p, y)
			if err != nil || e.Value != whole[i].Value || e.StdErr != whole[i].StdErr {
				t.Errorf("%s alone %v, %v, together %v", whole[i].Name, e, err, whole[i].Estimate)
			}
		}
	}
}

// Copies of a particle that lie side by side hold no more information than one, and the standard error must not think
// so: 20 particles, ten times each, are as good as 20.
func TestCopiesAreOneParticle(t *testing.T) {
	p, y := draw(world{seed: 3, rows: 30, unequal: true}, 20, 0)
	copies := p
	copies.Particles, copies.Outputs, copies.Weights, copies.Own = 200, nil, nil, nil
	for j := range 200 {
		copies.Weights = append(copies.Weights, p.Weights[j/10]/10)
		copies.Own = append(copies.Own, p.Own[j/10])
		copies.Outputs = append(copies.Outputs, p.Outputs[j/10*30:(j/10+1)*30]...)
	}
	want, err := metric.Scores(p, y)
	if err != nil {
		t.Fatal(err)
	}
	got, err := metric.Scores(copies, y)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if math.Abs(got[i].Value-want[i].Value) > 1e-9 || math.Abs(got[i].StdErr-want[i].StdErr) > 1e-9 ||
			!(got[i].StdErr >= 0) {
			t.Errorf("%s: %v with copies, %v without", got[i].Name, got[i].Estimate, want[i].Estimate)
		}
	}
}

func TestDeadParticlesDoNotMatter(t *testing.T) {
	for _, w := range []world{{seed: 1, rows: 9}, {seed: 2, rows: 9, classes: 3}} {
		p, y := draw(w, 30, 0)
		want, err := metric.Scores(p, y)
		if err != nil {
			t.Fatal(err)
		}
		p.Particles++
		p.Weights = append(p.Weights, 0)
		if len(p.Own) > 0 {
			p.Own = append(p.Own, math.NaN())
		}
		for range p.Rows * p.Width {
			p.Outputs = append(p.Outputs, math.NaN())
		}
		got, err := metric.Scores(p, y)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i].Value != want[i].Value || got[i].StdErr != want[i].StdErr {
				t.Errorf("%s: %v, want %v", got[i].Name, got[i].Estimate, want[i].Estimate)
			}
		}
	}
}

// A group that holds nearly all the weight must neither lose the digits of the others nor make NaN.
func TestDominantParticle(t *testing.T) {
	p := regression([]float64{1, 1e-18, 1e-18}, 1, []float64{0, 0}, []float64{3, 3}, []float64{3, 3})
	e, err := metric.MSE(p, []float64{0, 0})
	// Without the first the mean is 3, without another 0: theta = 9, 0, 0; SE^2 = 2/3 (36 + 9 + 9).
	if err != nil || math.Abs(e.StdErr-6) > 1e-12 {
		t.Errorf("%v, %v, want a standard error of 6", e, err)
	}
	far := regression([]float64{0.5, 0.5}, 1, []float64{0}, []float64{100})
	// Without the first particle log N(0; 100, 1) remains, whose density underflows.
	nlpd, err := metric.NLPD(far, []float64{0})
	if err != nil || math.Abs(nlpd.StdErr-2500) > 1e-9 { // theta = 5000 + c and c: SE^2 = 1/2 2 (2500)^2
		t.Errorf("%v, %v, want a standard error of 2500", nlpd, err)
	}
}

func TestEstimateString(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		value, se float64
		want      string
	}{
		{0.11234, 0.0031, "0.112 ± 0.003"},
		{0.11234, 0.0013, "0.1123 ± 0.0013"},
		{0.11234, 0.00199, "0.112 ± 0.002"},
		{1234.56, 7.8, "1235 ± 8"},
		{1234.56, 789, "1235 ± 789"},
		{-3.2, 12, "-3 ± 12"},
		{0.9189386, 3e-9, "0.918939 ± 3e-09"},
		{4.321e-7, 2.2e-9, "(4.32 ± 0.02)e-07"},
		{0.91894, 0, "0.9189 ± 0"},
		{4.321e-7, 1.3e-9, "(4.321 ± 0.013)e-07"},
		{0.91894, nan, "0.9189 ± NaN"},
		{nan, nan, "NaN ± NaN"},
	} {
		if got := (metric.Estimate{Value: c.value, StdErr: c.se}).String(); got != c.want {
			t.Errorf("%v ± %v prints %q, want %q", c.value, c.se, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	table := metric.Table{
		{Name: "NLPD", Estimate: metric.Estimate{Value: 0.9234, StdErr: 0.0031, SamplingStdErr: 0.0234}},
		{Name: "particle RMSE", Estimate: metric.Estimate{Value: 0.1, StdErr: 0.02, SamplingStdErr: math.NaN()}},
	}
	text := "score          value ± Monte Carlo s.e.  sampling s.e.\n" +
		"NLPD           0.923 ± 0.003             0.023\n" +
		"particle RMSE  0.10 ± 0.02               -\n"
	if got := table.String(); got != text {
		t.Errorf("text\n%s, want\n%s", got, text)
	}
	markdown := "| score | value ± Monte Carlo s.e. | sampling s.e. |\n|---|---|---|\n" +
		"| NLPD | 0.923 ± 0.003 | 0.023 |\n| particle RMSE | 0.10 ± 0.02 | - |\n"
	if got := table.Markdown(); got != markdown {
		t.Errorf("Markdown\n%s, want\n%s", got, markdown)
	}
}

func TestErrors(t *testing.T) {
	r := regression([]float64{0.5, 0.5}, 1, []float64{1, 2}, []float64{3, 4})
	c := classification([]float64{0.5, 0.5}, []float64{0.1, 0.9})
	y := []float64{0, 1}
	broken := regression([]float64{0.5, 0.5}, 1, []float64{1, math.NaN()}, []float64{math.Inf(1), 4})
	only := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{only(metric.NLPD(broken, y)), "2 of 4 outputs are not finite, the first NaN at particle 0, row 1"},
		{only(metric.Scores(r, y[:1])), "y has 1 values, but the prediction has 2 rows"},
		{only(metric.Brier(c, []float64{0, 2})), "y of row 1 is 2"},
		{only(metric.Coverage(r, y, 1)), "level of coverage is 1:"},
		{only(metric.CalibrationCurve(c, y)), "coverage 5% is for regression"},
		{only(metric.RMSE(c, y)), "RMSE is for regression"},
		{only(metric.Accuracy(r, y)), "accuracy is for classification"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want %q in it", c.err, c.want)
		}
	}
}
