package study

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc/check"

	"gonum.org/v1/gonum/mat"
)

// Studies of the paper are run, the others by TestPenaltyFiguresLong, by chains that are too short: each method is in
// the figure's legend or titles and has finite cells. A second run takes what is kept. Unknown methods and data are
// refused.
func TestPenaltyFigures(t *testing.T) {
	penaltyFigures(t, map[string]penaltyFigure{
		"pbnn.fig1": {names: []string{"with penalty", "without penalty"},
			metrics: []string{"epistemic std", "sigma^2"}, short: true},
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

// The exact band is that of an implementation apart.
func TestExactLine(t *testing.T) {
	data, err := dataset.NoisyLine(20, .5, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{-3, .7}
	center, spread, err := exactLine(data, .5, x)
	if err != nil {
		t.Fatal(err)
	}
	l := check.Linear{Y: data.Y, NoiseStdDev: .5}
	for i := range data.Rows() {
		l.X = append(l.X, []float64{data.X.At(i, 0), 1})
	}
	mean, covariance, _ := l.Posterior()
	for i, at := range x {
		row := mat.NewVecDense(2, []float64{at, 1})
		wantCenter := mat.Dot(row, mat.NewVecDense(2, mean))
		wantSpread := math.Sqrt(.25 + mat.Inner(row, covariance, row))
		if math.Abs(center[i]-wantCenter) > 1e-9 || math.Abs(spread[i]-wantSpread) > 1e-9 {
			t.Errorf("at %g it is %g, %g, want %g, %g", at, center[i], spread[i], wantCenter, wantSpread)
		}
	}
}
