package viz_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
)

func lattice(t *testing.T) viz.Field {
	t.Helper()
	f := computetest.Must(viz.NewLattice(0, 1, 3, 0, 2, 2))
	return f.Fill(func(x, y float64) float64 { return x })
}

// What cannot be drawn is an error that names the input and the fault.
func TestBadInput(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one, two, three := []float64{1}, []float64{1, 2}, []float64{1, 2, 3}
	field := lattice(t)
	change := func(f func(*viz.Field)) viz.Field {
		c := viz.Field{X: slices.Clone(field.X), Y: slices.Clone(field.Y), Values: slices.Clone(field.Values)}
		f(&c)
		return c
	}
	band := func(x, mean, stdDev []float64, opt viz.BandOptions) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.PredictiveBand(x, mean, stdDev, opt) }
	}
	decide := func(f viz.Field, opt viz.DecisionOptions) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.DecisionMap(f, opt) }
	}
	train := func(training, validation viz.Series) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.TrainingCurves(training, validation, viz.Frame{}) }
	}
	ess := func(values []float64, opt viz.ESSOptions) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.ESSCurve(viz.Series{Value: values}, opt) }
	}
	bin := func(b metric.Bin) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.Reliability([]metric.Bin{b}, viz.Frame{}) }
	}
	calibrate := func(nominal, observed []float64, rows int) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.CalibrationCurve(nominal, observed, rows, viz.Frame{}) }
	}
	scatter := func(x, y []float64, opt viz.ParticleOptions) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.ParticleScatter(x, y, opt) }
	}
	bars := func(names []string, values []float64, opt viz.BarOptions) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.Bars(names, values, opt) }
	}
	confusion := func(counts [][]float64, names ...string) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.Confusion(counts, names, viz.Frame{}) }
	}
	predicted := func(lower, upper []float64) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.PredictedVsTrue(two, two, lower, upper, viz.Frame{}) }
	}
	traces := func(opt viz.TraceOptions, all ...viz.Trace) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.Traces(all, opt) }
	}
	small := viz.Frame{Title: strings.Repeat("long title ", 40), Width: 240, Height: 240}
	a := viz.Trace{Name: "A", Series: viz.Series{Value: two}}
	with := func(f func(*viz.Trace)) viz.Trace {
		b := viz.Trace{Name: "B", Series: viz.Series{Value: slices.Clone(two)}}
		f(&b)
		return b
	}
	edged := func(lower, upper []float64) viz.Trace {
		return with(func(b *viz.Trace) { b.Lower, b.Upper = lower, upper })
	}
	shade := func(name string) viz.Trace {
		return viz.Trace{Name: name, Series: a.Series, Lower: two, Upper: two, NoLine: true}
	}
	grid := func(opt viz.GridOptions, figures ...*viz.Figure) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.Grid(opt, figures...) }
	}
	draw := func(make func() (*viz.Figure, error)) *viz.Figure {
		fig := computetest.Must(make())
		return fig
	}
	fig, log := draw(traces(viz.TraceOptions{}, a)), draw(traces(viz.TraceOptions{LogY: true}, a))
	both := draw(train(a.Series, a.Series))
	along := func(p *bayes.Posterior, feature string, opt viz.AlongOptions) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.Along(t.Context(), p, feature, opt) }
	}
	p, classes := linear(t, bayes.Gaussian{}, 2), linear(t, bayes.Bernoulli{}, 2)
	rows := &dataset.Dataset{X: mat.NewDense(2, 2, []float64{1, 2, 3, 4}), Y: two, Features: []string{"speed", "mass"}}
	narrow := &dataset.Dataset{X: mat.NewDense(1, 1, nil), Y: one, Features: []string{"a"}}
	for want, make := range map[string]func() (*viz.Figure, error){
		"x has 3 values, mean has 2":      band(three, two, three, viz.BandOptions{}),
		"x is empty":                      band(nil, nil, nil, viz.BandOptions{}),
		"stdDev[1] = -2":                  band(two, two, []float64{1, -2}, viz.BandOptions{}),
		"mean: all 2 values are non-fin":  band(two, []float64{nan, nan}, two, viz.BandOptions{}),
		"0 to 1 has finite values in all": band([]float64{nan, 1}, []float64{1, nan}, two, viz.BandOptions{}),
		"particle 1 has 3":                band(two, two, two, viz.BandOptions{}.Drawn(two, three)),
		"TrainX has 3 values, TrainY has": band(two, two, two, viz.BandOptions{TrainX: three, TrainY: two}),
		"True on [1, 2]":                  band(two, two, two, viz.BandOptions{True: func(float64) float64 { return nan }}),
		"20 x 420 pixels":                 band(two, two, two, viz.BandOptions{Frame: viz.Frame{Width: 20}}),
		"need a height of":                ess(two, viz.ESSOptions{Frame: small}),
		"2 values, the lattice 2 x 3 = 6": decide(change(func(f *viz.Field) { f.Values = two }), viz.DecisionOptions{}),
		"Values[4] = -3.5":                decide(change(func(f *viz.Field) { f.Values[4] = -3.5 }), viz.DecisionOptions{}),
		"probability.X[1] = 0.5:":         decide(change(func(f *viz.Field) { f.X[2] = 0.1 }), viz.DecisionOptions{}),
		"Values[2] = NaN":                 decide(change(func(f *viz.Field) { f.Values[2] = nan }), viz.DecisionOptions{}),
		"Classes[1] = 7":                  decide(field, viz.DecisionOptions{Classes: []int{0, 7}}),
		"PointsX has 2 values, Classes":   decide(field, viz.DecisionOptions{PointsX: two, PointsY: two, Classes: []int{0}}),
		"both empty":                      train(viz.Series{}, viz.Series{}),
		"training.Step has 2":             train(viz.Series{Step: two, Value: three}, viz.Series{}),
		"validation.Step falls from 2":    train(viz.Series{}, viz.Series{Step: []float64{2, 1}, Value: two}),
		"ess is empty":                    ess(nil, viz.ESSOptions{}),
		"UniqueAncestors has 3":           ess(two, viz.ESSOptions{UniqueAncestors: three}),
		"Particles = -1":                  ess(two, viz.ESSOptions{Particles: -1}),
		"ess.Value[1] = -2":               ess([]float64{3, -2}, viz.ESSOptions{}),
		"UniqueAncestors[0] = -1":         ess(two, viz.ESSOptions{UniqueAncestors: []float64{-1, 1}}),
		"result that is nil":              func() (*viz.Figure, error) { return viz.TrainingCurvesOf(nil, viz.Frame{}) },
		"truth has 2 values, upper has 3": predicted(two, three),
		"interval 1 is from 5 to 2":       predicted([]float64{0, 5}, two),
		"1 bins have no rows":             bin(metric.Bin{Upper: 1}),
		"bar or mark of -1 with Log":      bars([]string{"a", "b"}, []float64{1, -1}, viz.BarOptions{Log: true}),
		"with Log, and Most = 3":          bars([]string{"a", "b"}, two, viz.BarOptions{Log: true, Most: 3}),
		`"D" is one of more than 3`:       traces(viz.TraceOptions{}, shade("A"), shade("B"), shade("C"), shade("D")),
		"bins[0] is from 0.5 to 0.4":      bin(metric.Bin{Lower: 0.5, Upper: 0.4, Count: 1}),
		"bins[0] has accuracy NaN":        bin(metric.Bin{Upper: 1, Count: 1, Accuracy: nan}),
		"bins[0].Count = -1":              bin(metric.Bin{Upper: 1, Count: -1}),
		"nominal has 1 values, observed":  calibrate([]float64{0.5}, []float64{0.4, 0.5}, 0),
		"observed has 50":                 calibrate([]float64{0.5}, []float64{50}, 0),
		"calibration on -1 rows":          calibrate([]float64{0.5}, []float64{0.5}, -1),
		"x has 2 values, y has 3":         scatter(two, three, viz.ParticleOptions{}),
		"x has 2 values, Weights has 3":   scatter(two, two, viz.ParticleOptions{Weights: three}),
		"Weights has -1":                  scatter(two, two, viz.ParticleOptions{Weights: []float64{-1, -2}}),
		"all 2 Weights are 0":             scatter(two, two, viz.ParticleOptions{Weights: []float64{0, 0}}),
		"Masses has 95":                   scatter(two, two, viz.ParticleOptions{LogDensity: field, Masses: []float64{95}}),
		"0 names of 0 values":             bars(nil, nil, viz.BarOptions{}),
		"1 names of 2 values":             bars([]string{"a"}, two, viz.BarOptions{}),
		"no bar of 1 has a length":        bars([]string{"a"}, []float64{nan}, viz.BarOptions{}),
		"2 Marks of 1 bars":               bars([]string{"a"}, one, viz.BarOptions{Marks: two}),
		"Most = NaN":                      bars([]string{"a"}, one, viz.BarOptions{Most: nan}),
		"1 classes: there must be":        confusion([][]float64{{1}}),
		"counts[1] has 1 columns":         confusion([][]float64{{1, 2}, {3}}),
		"counts[1][1] = -4":               confusion([][]float64{{1, 2}, {3, -4}}),
		"all counts of 2 classes":         confusion([][]float64{{0, 0}, {0, 0}}),
		"2 classes with 1 names":          confusion([][]float64{{1, 2}, {3, 4}}, "a"),
		"0 traces":                        traces(viz.TraceOptions{}),
		"9 traces":                        traces(viz.TraceOptions{}, slices.Repeat([]viz.Trace{a}, 9)...),
		`"B" is empty`:                    traces(viz.TraceOptions{}, a, viz.Trace{Name: "B"}),
		"B.Step falls from 2 to 1":        traces(viz.TraceOptions{}, with(func(b *viz.Trace) { b.Step = []float64{2, 1} })),
		`"B" has -2, which LogY`:          traces(viz.TraceOptions{LogY: true}, with(func(b *viz.Trace) { b.Value[1] = -2 })),
		`"B" has 0, which LogX`: traces(viz.TraceOptions{LogX: true},
			with(func(b *viz.Trace) { b.Step = []float64{0, 1} })),
		"Truth = 0":                  traces(viz.TraceOptions{TruthName: "truth", LogY: true}, a),
		`"B" has 0 values of Upper`:  traces(viz.TraceOptions{}, edged(two, nil)),
		`"B" has +Inf in Upper`:      traces(viz.TraceOptions{}, edged(two, []float64{3, inf})),
		"a curve with Outlines":      traces(viz.TraceOptions{Outlines: true}, edged(two, two)),
		`"B": Style = 9`:             traces(viz.TraceOptions{}, with(func(b *viz.Trace) { b.Style = 9 })),
		`"A" and "B" both have Styl`: traces(viz.TraceOptions{}, a, with(func(b *viz.Trace) { b.Style = 1 })),
		"grid of 0 figures":          grid(viz.GridOptions{}),
		"-1 columns":                 grid(viz.GridOptions{Columns: -1}, fig),
		"figure 0 of the grid: viz":  grid(viz.GridOptions{}, nil),
		"3 ColumnNames":              grid(viz.GridOptions{Columns: 2, ColumnNames: []string{"a", "b", "c"}}, fig, fig),
		"1 RowNames":                 grid(viz.GridOptions{Columns: 1, RowNames: []string{"a"}}, fig, fig),
		"both logarithmic":           grid(viz.GridOptions{SharedY: true}, log, fig),
		"2 axes above":               grid(viz.GridOptions{SharedY: true}, both),
		"other names on its axis": grid(viz.GridOptions{SharedX: true}, draw(confusion([][]float64{{1, 2}, {3, 4}})),
			draw(confusion([][]float64{{1, 2}, {3, 4}}, "oak", "fir"))),
		"a grid in a grid":           grid(viz.GridOptions{SharedY: true}, draw(grid(viz.GridOptions{}, fig, fig))),
		`along "age" of a posterior`: along(nil, "age", viz.AlongOptions{}),
		`"": the posterior has the`:  along(p, "", viz.AlongOptions{}),
		`Class is "9", and the post`: along(classes, "mass", viz.AlongOptions{Data: rows, Class: "9"}),
		"Data is nil: set the train": along(p, "mass", viz.AlongOptions{From: 1, To: 2}),
		"single feature, set From":   along(linear(t, bayes.Gaussian{}, 1), "speed", viz.AlongOptions{}),
		"from 3 to 1":                along(p, "mass", viz.AlongOptions{Data: rows, From: 3, To: 1}),
		"1 rows of 1 features":       along(p, "mass", viz.AlongOptions{Data: narrow}),
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

func TestLattice(t *testing.T) {
	f := computetest.Must(viz.NewLattice(0, 1, 3, 10, 20, 2))
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
	for _, bad := range [][2]float64{{math.Inf(-1), 1}, {1, 0}} {
		if _, err := viz.NewLattice(bad[0], bad[1], 2, 0, 1, 2); err == nil {
			t.Errorf("a lattice from %v to %v: no error", bad[0], bad[1])
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
			f = f.Fill(func(_, _ float64) float64 { return 2 })
			return viz.ParticleScatter(one, one, viz.ParticleOptions{LogDensity: f})
		},
	} {
		t.Run(name, func(t *testing.T) {
			fig := computetest.Must(draw())
			svg := computetest.Must(fig.SVG())
			checkCoordinates(t, svg)
			if _, err := fig.PNG(); err != nil {
				t.Error(err)
			}
		})
	}
}
