package viz_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/fit"
	"gobnn/bayes/metric"
	"gobnn/viz"
)

func lattice(t *testing.T) viz.Field {
	t.Helper()
	f, err := viz.NewLattice(0, 1, 3, 0, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	return f.Fill(func(x, y float64) float64 { return x })
}

func TestBadInput(t *testing.T) {
	nan := math.NaN()
	two, three := []float64{1, 2}, []float64{1, 2, 3}
	field := lattice(t)
	only := func(_ *viz.Figure, err error) error { return err }
	change := func(f func(*viz.Field)) viz.Field {
		c := viz.Field{X: append([]float64(nil), field.X...), Y: append([]float64(nil), field.Y...),
			Values: append([]float64(nil), field.Values...)}
		f(&c)
		return c
	}
	cases := []struct {
		name  string
		err   error
		wants []string
	}{
		{"band lengths", only(viz.PredictiveBand(three, two, three, viz.BandOptions{})), []string{"x has 3", "mean has 2"}},
		{"band empty", only(viz.PredictiveBand(nil, nil, nil, viz.BandOptions{})), []string{"x is empty"}},
		{"band negative sd", only(viz.PredictiveBand(two, two, []float64{1, -2}, viz.BandOptions{})),
			[]string{"stdDev[1] = -2"}},
		{"band all NaN", only(viz.PredictiveBand(two, []float64{nan, nan}, two, viz.BandOptions{})),
			[]string{"mean", "all 2", "NaN", "index 0"}},
		{"band no whole row", only(viz.PredictiveBand([]float64{nan, 1}, []float64{1, nan}, two, viz.BandOptions{})),
			[]string{"0 to 1", "x, mean, stdDev"}},
		{"band draws", only(viz.PredictiveBand(two, two, two, viz.BandOptions{}.Drawn(two, three))),
			[]string{"x has 2", "particle 1 has 3"}},
		{"band training data", only(viz.PredictiveBand(two, two, two, viz.BandOptions{TrainX: three, TrainY: two})),
			[]string{"TrainX has 3", "TrainY has 2"}},
		{"band truth", only(viz.PredictiveBand(two, two, two, viz.BandOptions{True: func(float64) float64 { return nan }})),
			[]string{"True on [1, 2]"}},
		{"size", only(viz.PredictiveBand(two, two, two, viz.BandOptions{Frame: viz.Frame{Width: 20}})),
			[]string{"20 x 420", "240"}},
		{"no room",
			only(viz.ESSCurve(viz.Series{Value: two}, viz.ESSOptions{Frame: viz.Frame{Title: strings.Repeat("long title ", 40),
				Width: 240, Height: 240}})), []string{"240 x 240", "need a height of"}},
		{"map values", only(viz.DecisionMap(change(func(f *viz.Field) { f.Values = two }), viz.DecisionOptions{})),
			[]string{"2 values", "2 x 3 = 6"}},
		{"map logit", only(viz.DecisionMap(change(func(f *viz.Field) { f.Values[4] = -3.5 }), viz.DecisionOptions{})),
			[]string{"Values[4] = -3.5", "sigmoid"}},
		{"map order", only(viz.DecisionMap(change(func(f *viz.Field) { f.X[2] = 0.1 }), viz.DecisionOptions{})),
			[]string{"probability.X[2] = 0.1", "ascending"}},
		{"map level", only(viz.DecisionMap(field, viz.DecisionOptions{Levels: []float64{0.5, 1}})), []string{"Levels has 1"}},
		{"map class", only(viz.DecisionMap(field, viz.DecisionOptions{PointsX: two, PointsY: two, Classes: []int{0, 7}})),
			[]string{"Classes[1] = 7"}},
		{"map classes", only(viz.DecisionMap(field, viz.DecisionOptions{PointsX: two, PointsY: two, Classes: []int{0}})),
			[]string{"PointsX has 2", "Classes has 1"}},
		{"training empty", only(viz.TrainingCurves(viz.Series{}, viz.Series{}, viz.Frame{})),
			[]string{"both empty"}},
		{"training steps", only(viz.TrainingCurves(viz.Series{Step: two, Value: three}, viz.Series{}, viz.Frame{})),
			[]string{"training.Step has 2", "training.Value has 3"}},
		{"validation order", only(viz.TrainingCurves(viz.Series{}, viz.Series{Step: []float64{2, 1}, Value: two},
			viz.Frame{})), []string{"validation.Step", "from 2 to 1"}},
		{"ess empty", only(viz.ESSCurve(viz.Series{}, viz.ESSOptions{})), []string{"ess is empty"}},
		{"ess ancestors", only(viz.ESSCurve(viz.Series{Value: two}, viz.ESSOptions{UniqueAncestors: three})),
			[]string{"ess has 2", "UniqueAncestors has 3"}},
		{"ess particles", only(viz.ESSCurve(viz.Series{Value: two}, viz.ESSOptions{Particles: -1})),
			[]string{"Particles = -1"}},
		{"ess negative", only(viz.ESSCurve(viz.Series{Value: []float64{3, -2}}, viz.ESSOptions{})),
			[]string{"ess.Value[1] = -2"}},
		{"ancestors negative", only(viz.ESSCurve(viz.Series{Value: two}, viz.ESSOptions{UniqueAncestors: []float64{-1, 1}})),
			[]string{"UniqueAncestors[0] = -1"}},
		{"curves of nothing", only(viz.TrainingCurvesOf(nil, viz.Frame{})), []string{"result that is nil"}},
		{"curves of a nil result", only(viz.TrainingCurvesOf((*fit.Result)(nil), viz.Frame{})),
			[]string{"result that is nil"}},
		{"along nil", only(viz.Along(t.Context(), nil, "age", viz.AlongOptions{})), []string{`along "age"`, "nil"}},
		{"along nothing", only(viz.Along(t.Context(), &bayes.Posterior{}, "age", viz.AlongOptions{})),
			[]string{`along "age"`, "empty"}},
		{"predicted lengths", only(viz.PredictedVsTrue(two, two, two, three, viz.Frame{})),
			[]string{"truth has 2", "upper has 3"}},
		{"predicted interval", only(viz.PredictedVsTrue(two, two, []float64{0, 5}, two, viz.Frame{})),
			[]string{"interval 1", "from 5 to 2"}},
		{"reliability empty", only(viz.Reliability([]metric.Bin{{Upper: 1}}, viz.Frame{})),
			[]string{"1 bins have no rows"}},
		{"reliability range", only(viz.Reliability([]metric.Bin{{Lower: 0.5, Upper: 0.4, Count: 1}},
			viz.Frame{})), []string{"bins[0]", "0.5 to 0.4"}},
		{"reliability accuracy", only(viz.Reliability([]metric.Bin{{Upper: 1, Count: 1, Accuracy: nan}},
			viz.Frame{})), []string{"bins[0]", "NaN"}},
		{"reliability count", only(viz.Reliability([]metric.Bin{{Upper: 1, Count: -1}}, viz.Frame{})),
			[]string{"bins[0].Count = -1"}},
		{"calibration lengths", only(viz.CalibrationCurve([]float64{0.5}, []float64{0.4, 0.5}, 0, viz.Frame{})),
			[]string{"nominal has 1", "observed has 2"}},
		{"calibration percent", only(viz.CalibrationCurve([]float64{0.5}, []float64{50}, 0, viz.Frame{})),
			[]string{"observed has 50"}},
		{"calibration rows", only(viz.CalibrationCurve([]float64{0.5}, []float64{0.5}, -1, viz.Frame{})),
			[]string{"-1 rows"}},
		{"particles lengths", only(viz.ParticleScatter(two, three, viz.ParticleOptions{})), []string{"x has 2", "y has 3"}},
		{"particles weights", only(viz.ParticleScatter(two, two, viz.ParticleOptions{Weights: three})),
			[]string{"x has 2", "Weights has 3"}},
		{"particles log-weight", only(viz.ParticleScatter(two, two, viz.ParticleOptions{Weights: []float64{-1, -2}})),
			[]string{"-1", "log-weight"}},
		{"particles zero weights", only(viz.ParticleScatter(two, two, viz.ParticleOptions{Weights: []float64{0, 0}})),
			[]string{"all 2 Weights are 0"}},
		{"particles log-density", only(viz.ParticleScatter(two, two,
			viz.ParticleOptions{Density: change(func(f *viz.Field) { f.Values[1] = -1 })})),
			[]string{"Density.Values[1] = -1", "LogDensity"}},
		{"particles mass", only(viz.ParticleScatter(two, two, viz.ParticleOptions{Density: field, Masses: []float64{95}})),
			[]string{"Masses has 95"}},
		{"grid of none", only(viz.Grid(viz.GridOptions{})), []string{"0 figures"}},
		{"grid columns", only(viz.Grid(viz.GridOptions{Columns: -1}, &viz.Figure{})), []string{"-1 columns"}},
		{"grid nil", only(viz.Grid(viz.GridOptions{}, nil)), []string{"figure 0", "nil"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.wants {
				if !strings.Contains(c.err.Error(), want) {
					t.Errorf("error %q does not say %q", c.err, want)
				}
			}
		})
	}
}

func TestLattice(t *testing.T) {
	f, err := viz.NewLattice(0, 1, 3, 10, 20, 2)
	if err != nil {
		t.Fatal(err)
	}
	pts := f.Points()
	f = f.Fill(func(x, y float64) float64 { return 100*x + y })
	if len(pts) != 2*len(f.Values) || len(f.Values) != 6 {
		t.Fatalf("%d coordinates and %d values: want 12 and 6", len(pts), len(f.Values))
	}
	for i, v := range f.Values {
		if want := 100*pts[2*i] + pts[2*i+1]; v != want {
			t.Errorf("Values[%d] = %v, Points has (%v, %v) there: want %v", i, v, pts[2*i], pts[2*i+1], want)
		}
	}
	for name, bad := range map[string]error{
		"infinite": func() error { _, err := viz.NewLattice(math.Inf(-1), 1, 2, 0, 1, 2); return err }(),
		"reversed": func() error { _, err := viz.NewLattice(1, 0, 2, 0, 1, 2); return err }(),
		"one row":  func() error { _, err := viz.NewLattice(0, 1, 2, 0, 1, 1); return err }(),
	} {
		if bad == nil {
			t.Errorf("%s lattice: no error", name)
		}
	}
}

// TestDegenerate draws input without extent: one point, constant curves, huge and tiny numbers.
func TestDegenerate(t *testing.T) {
	one := []float64{7}
	for name, draw := range map[string]func() (*viz.Figure, error){
		"one point": func() (*viz.Figure, error) { return viz.PredictiveBand(one, one, []float64{0}, viz.BandOptions{}) },
		"one step": func() (*viz.Figure, error) {
			return viz.TrainingCurves(viz.Series{Value: one}, viz.Series{}, viz.Frame{})
		},
		"one row": func() (*viz.Figure, error) {
			return viz.PredictedVsTrue(one, one, one, one,
				viz.Frame{})
		},
		"one particle": func() (*viz.Figure, error) { return viz.ParticleScatter(one, one, viz.ParticleOptions{}) },
		"constant ESS": func() (*viz.Figure, error) {
			return viz.ESSCurve(viz.Series{Value: []float64{3, 3, 3}}, viz.ESSOptions{})
		},
		"huge": func() (*viz.Figure, error) {
			return viz.Traces([]viz.Trace{{Name: "a", Series: viz.Series{Value: []float64{-1e99, 1e99}}}}, viz.TraceOptions{})
		},
		"tiny": func() (*viz.Figure, error) {
			return viz.PredictedVsTrue([]float64{1e-30, 2e-30}, []float64{1e-30, 3e-30}, []float64{0, 0},
				[]float64{4e-30, 4e-30}, viz.Frame{})
		},
		"large offset": func() (*viz.Figure, error) {
			return viz.PredictiveBand([]float64{1e15, 1e15 + 1}, []float64{1e15, 1e15 + 1}, []float64{0, 0}, viz.BandOptions{})
		},
		"small figure": func() (*viz.Figure, error) {
			return viz.ESSCurve(viz.Series{Value: one}, viz.ESSOptions{Frame: viz.Frame{Title: strings.Repeat("long title ", 6),
				Width: 240, Height: 240}, Particles: 10})
		},
		"uniform field": func() (*viz.Figure, error) {
			f, err := viz.NewLattice(0, 1, 2, 0, 1, 2)
			if err != nil {
				return nil, err
			}
			return viz.ParticleScatter(one, one, viz.ParticleOptions{Density: f.Fill(func(_, _ float64) float64 { return 2 })})
		},
	} {
		t.Run(name, func(t *testing.T) {
			fig, err := draw()
			if err != nil {
				t.Fatal(err)
			}
			svg, err := fig.SVG()
			if err != nil {
				t.Fatal(err)
			}
			checkCoordinates(t, svg)
			if _, err := fig.PNG(); err != nil {
				t.Error(err)
			}
		})
	}
}
