package study

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/pbnn"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Studies of the paper are run, the others by TestPenaltyFiguresLong, by chains that are too short: each method is in
// the figure's legend or titles and has finite cells. A second run takes what is kept. Unknown methods and data are
// refused.
func TestPenaltyFigures(t *testing.T) {
	penaltyFigures(t, map[string]penaltyFigure{
		"pbnn.fig1": {names: []string{"with penalty", "without penalty"},
			metrics: []string{"epistemic std", "sigma^2"}, short: true},
		"pbnn.bias": {names: []string{"naive", "penalty", "penalty, corrected"},
			metrics: []string{"acceptance", "sigma^2"}, short: true},
	})
}

type penaltyFigure struct {
	methods, datas []string // to run
	names          []string // in the picture, with a cell each
	metrics        []string
	short          bool
}

func penaltyFigures(t *testing.T, figures map[string]penaltyFigure) {
	t.Helper()
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	for id, c := range figures {
		t.Run(id, func(t *testing.T) {
			if testing.Short() && !c.short {
				t.Skip("long")
			}
			s, err := Find(id)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Epochs: 4, Reps: 1, CacheDir: t.TempDir(), Data: c.datas, Methods: c.methods}
			fig, cells, err := s.Draw(t.Context(), o)
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			svg, err := fig.SVG()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.names {
				if !strings.Contains(string(svg), shown(name)) {
					t.Errorf("%s: %q is not in the figure", id, shown(name))
				}
				for _, metric := range c.metrics {
					found := false
					for _, cell := range cells {
						if cell.Method == name && cell.Metric == metric && cell.Study == id {
							found = true
							if !(cell.Ours > 0) && !strings.Contains(metric, "^2") || math.IsInf(cell.Ours, 0) || cell.Ours < 0 {
								t.Errorf("%s: %+v", id, cell)
							}
						}
					}
					if !found {
						t.Errorf("%s: no %s of %q", id, metric, name)
					}
				}
			}
			for i, cell := range cells {
				for _, other := range cells[:i] {
					if cell.Data == other.Data && cell.Metric == other.Metric && cell.Metric == "sigma^2" && cell.Ours > 0 &&
						cell.Ours == other.Ours {
						t.Errorf("%s: %s and %s have the same sigma^2, %g", id, cell.Method, other.Method, cell.Ours)
					}
				}
			}
			stopped, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("no more"))
			if _, again, err := s.Draw(stopped, o); err != nil || len(again) != len(cells) {
				t.Errorf("%s: what is kept is not enough for the figure: %v", id, err)
			}
			o.CacheDir = t.TempDir()
			if _, _, err := s.Draw(stopped, o); err == nil || !strings.Contains(err.Error(), "no more") {
				t.Errorf("%s: stopped before it began: %v", id, err)
			}
			for _, o := range []Options{{Methods: []string{"none"}}, {Data: []string{"none"}}} {
				if _, _, err := s.Draw(t.Context(), o); err == nil || !strings.Contains(err.Error(), `"none"`) {
					t.Errorf("%s: %+v: %v", id, o, err)
				}
			}
		})
	}
}

func testPlane() plane {
	return newPlane("plane", 40, 2, .5, func(rng *rand.Rand) float64 { return .5 * rng.NormFloat64() })
}

// The distribution of all rows is that of an implementation apart, and so are the predictions; of fewer points it is
// that of more noise. Exact draws are white, and have the distribution's moments to 4 standard errors.
func TestPlane(t *testing.T) {
	p := testPlane()
	for _, points := range []float64{40, 10} {
		distribution, err := p.distribution(points)
		if err != nil {
			t.Fatal(err)
		}
		l := check.Linear{Y: p.data.Y, NoiseStdDev: .5 * math.Sqrt(40/points)}
		for i := range p.data.Rows() {
			l.X = append(l.X, append(mat.Row(nil, i, p.data.X), 1))
		}
		mean, covariance, _ := l.Posterior()
		at := mat.NewVecDense(3, []float64{.7, -2, 1})
		center, spread, err := distribution.prediction([]float64{.7, -2})
		if err != nil {
			t.Fatal(err)
		}
		wantCenter, wantSpread := mat.Dot(at, mat.NewVecDense(3, mean)), math.Sqrt(mat.Inner(at, covariance, at))
		if math.Abs(center-wantCenter) > 1e-9 || math.Abs(spread-wantSpread) > 1e-9 {
			t.Errorf("%g points: the prediction is %g, %g, want %g, %g", points, center, spread, wantCenter, wantSpread)
		}
		const draws = 4000
		posterior, err := p.start(distribution, draws, 3)
		if err != nil {
			t.Fatal(err)
		}
		prediction, err := posterior.Predict(t.Context(), mat.NewDense(1, 2, []float64{.7, -2}))
		if err != nil {
			t.Fatal(err)
		}
		m, sd := stat.MeanStdDev(prediction.Outputs, nil)
		if math.Abs(m-center) > 4*spread/math.Sqrt(draws) || math.Abs(sd/spread-1) > 4/math.Sqrt(2*draws) {
			t.Errorf("%g points: draws predict %g, %g, want %g, %g", points, m, sd, center, spread)
		}
	}
}

// By the study's own measure the naive sampler's variance is too large, and the penalty's is not; the unadjusted
// sampler's spread grows with the step. The noise is 1.9, by which naive is off by 0.6.
func TestPenaltyMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	p := newPlane("plane", 200, 2, .6, func(rng *rand.Rand) float64 { return .6 * rng.NormFloat64() })
	s := mcmc.Settings{Chains: 16, Draws: 500, Thin: 4, WarmUp: 50}
	for rule, within := range map[pbnn.Rule][2]float64{pbnn.Naive: {.35, 1}, pbnn.Corrected: {-.25, .3}} {
		r, err := p.bias(t.Context(), pbnn.Metropolis{Target: pbnn.TargetFull{}, BatchSize: 8, Batches: 10,
			StepSize: .5 * p.width(200), Rule: rule}, s, 0)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Values["error of the variance"]; v < within[0] || v > within[1] ||
			math.Abs(r.Values["error of the mean"]) > .25 || math.Abs(r.Values["sigma^2"]-1.9) > .4 {
			t.Errorf("%s: %v", rule, r.Values)
		}
	}
	// The standard deviations are those of a Gaussian (Roberts and Tweedie 1996, section 1.4.1), posterior width by width
	// only.
	for widths, want := range map[float64]float64{.4: 1 / math.Sqrt(1-.04), 1.2: 1 / math.Sqrt(1-.36)} {
		h := widths * p.width(200)
		result, distribution, err := p.sample(t.Context(),
			pbnn.AllRows{Target: pbnn.TargetFullData{}, Kernel: mcmc.ULA{StepSize: h}}, s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.predicted(result, distribution)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Values["ratio of std"]; math.Abs(v-want) > .12*want || r.Values["distance of means"] > .3 {
			t.Errorf("Langevin with steps of %g widths: %v, want a ratio of %.3f", widths, r.Values, want)
		}
	}
}

// A repetition at equal passes ends at the budget, its curve rises to it, and its effective sample size is no more than
// its draws.
func TestAtPasses(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	p := testPlane()
	r, err := p.atPasses(t.Context(),
		pbnn.Barker{Target: pbnn.TargetFull{}, BatchSize: 5, Batches: 4, StepSize: .3 * p.width(40)}, 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	passes := r.Series["passes"]
	if spent := r.Values["passes"]; spent > 40 || spent < 30 || len(passes) < 5 || !slices.IsSorted(passes) ||
		len(passes) != len(r.Series["error"]) || passes[len(passes)-1] > 40 {
		t.Errorf("%v, %v", r.Values, r.Series)
	}
}
