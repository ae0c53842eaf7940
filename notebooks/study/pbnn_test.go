package study

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc/check"

	"gonum.org/v1/gonum/mat"
)

// A study of the paper is run, the others by TestPenaltyFiguresLong, by chains that are too short.
func TestPenaltyFigures(t *testing.T) {
	penaltyFigures(t, map[string][]string{"pbnn.fig1": {"with penalty", "without penalty"}})
}

// penaltyFigures runs studies: each method is in the figure and has finite cells. What is kept is enough for a second
// run that is stopped, and nothing for another.
func penaltyFigures(t *testing.T, figures map[string][]string) {
	t.Helper()
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more"))
	for id, methods := range figures {
		s := must(Find(id))
		o := Options{Epochs: 4, Reps: 1, CacheDir: t.TempDir()}
		fig, cells, err := s.Draw(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		svg := string(must(fig.SVG()))
		noise := map[float64]string{}
		for _, method := range methods {
			i := slices.IndexFunc(cells, func(c Cell) bool { return c.Method == method && c.Metric == "epistemic std" })
			if i < 0 || !(cells[i].Ours > 0) || math.IsInf(cells[i].Ours, 0) || !strings.Contains(svg, shown(method)) {
				t.Errorf("%s: %q is not in the figure, or not among the cells %+v", id, method, cells)
			}
		}
		for _, c := range cells {
			if other := noise[c.Ours]; c.Metric == "sigma^2" && c.Ours > 0 && other != "" {
				t.Errorf("%s: %s and %s have the same sigma^2, %g", id, c.Method, other, c.Ours)
			} else if c.Metric == "sigma^2" {
				noise[c.Ours] = c.Method
			}
		}
		if _, again, err := s.Draw(stopped, o); err != nil || len(again) != len(cells) {
			t.Errorf("%s: what is kept is not enough for the figure: %v", id, err)
		}
		o.CacheDir = t.TempDir()
		if _, _, err := s.Draw(stopped, o); err == nil || !strings.Contains(err.Error(), "no more") {
			t.Errorf("%s: stopped before it began: %v", id, err)
		}
	}
}

// The exact band is that of an implementation apart.
func TestExactLine(t *testing.T) {
	data := must(dataset.NoisyLine(20, .5, 1))
	x := []float64{-3, .7}
	center, spread := exactLine(data, x)
	l := check.Linear{Y: data.Y, NoiseStdDev: lineNoise}
	for i := range data.Rows() {
		l.X = append(l.X, []float64{data.X.At(i, 0), 1})
	}
	mean, covariance, _ := l.Posterior()
	for i, at := range x {
		row := mat.NewVecDense(2, []float64{at, 1})
		wantCenter := mat.Dot(row, mat.NewVecDense(2, mean))
		wantSpread := math.Sqrt(mat.Inner(row, covariance, row))
		if math.Abs(center[i]-wantCenter) > 1e-9 || math.Abs(spread[i]-wantSpread) > 1e-9 {
			t.Errorf("at %g it is %g, %g, want %g, %g", at, center[i], spread[i], wantCenter, wantSpread)
		}
	}
}
