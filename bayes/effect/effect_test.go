package effect_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/effect"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/mat"
)

// linear is a posterior of linear functions of the features, one for each row of weights, whose last is the bias.
func linear(t *testing.T, likelihood bayes.Likelihood, features []string, weights ...[]float64) *bayes.Posterior {
	t.Helper()
	model := bayes.Model{Network: nn.MLP{}, Likelihood: likelihood, Stochastic: bayes.All()}
	bound, err := model.Bind(len(features), 1)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Open(compute.GoBackend)
	if err != nil {
		t.Fatal(err)
	}
	var phi []float64
	for _, w := range weights {
		phi = append(phi, w...)
	}
	p, err := bayes.NewPosterior(bound, bayes.Draws{
		Phi: compute.Floats(compute.Float64, phi, len(weights), bound.D), LogWeights: bayes.EqualLogWeights(len(weights)),
	}, bayes.Origin{FeatureNames: features, TargetNames: []string{"y"}, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rows has an x of 0 to 100, a town, a constant and two flags that are no category.
func rows() *dataset.Dataset {
	d := &dataset.Dataset{Name: "rows", Target: "y",
		Features: []string{"x", "town=a", "town=b", "town=c", "constant", "flag=1", "flag=2"}}
	x := mat.NewDense(101, 7, nil)
	for i := range 101 {
		x.SetRow(i, []float64{float64(i), 0, 0, 0, 5, float64(i % 2), float64(i % 2)})
		x.Set(i, 1+i%3, 1)
		d.Y = append(d.Y, 0)
	}
	d.X = x
	return d
}

// Of a linear function an effect is the weight times the move, and of a category its weight less the mean of the
// others' at their rows; the standard deviation is that over the particles.
func TestLinear(t *testing.T) {
	data := rows()
	p := linear(t, bayes.Gaussian{StdDev: 1}, data.Features,
		[]float64{2, 10, 20, 40, 7, 1, 1, 3}, []float64{4, 10, 20, 40, 7, 1, 1, 3})
	all, err := effect.Of(t.Context(), p, data, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Of rows 0 to 99 there are 34 of town a, 33 of b and 33 of c.
	b := 20 - (34*10+33*40)/67.
	want := []effect.Effect{
		{Feature: "x", From: 5, To: 95, Change: 3 * 90, StdDev: 90},
		{Feature: "town=c", To: 1, Change: 40 - (34*10+33*20)/67.},
		{Feature: "town=a", To: 1, Change: 10 - 30},
		{Feature: "town=b", To: 1, Change: b},
		{Feature: "flag=1", To: 1, Change: 1},
		{Feature: "flag=2", To: 1, Change: 1},
	}
	if len(all) != len(want) {
		t.Fatalf("%d effects, want %d: %v", len(all), len(want), all)
	}
	for i, e := range all {
		w := want[i]
		if e.Feature != w.Feature || e.From != w.From || e.To != w.To || math.Abs(e.Change-w.Change) > 1e-9 ||
			math.Abs(e.StdDev-w.StdDev) > 1e-9 {
			t.Errorf("%+v, want %+v", e, w)
		}
	}
	if spread := all[1].OverRows; !(spread > 4) { // 20 or 30 by the row's own town
		t.Errorf("town=c changes by %v over rows", spread)
	}
	if all[0].OverRows > 1e-9 {
		t.Errorf("x changes by %v over rows", all[0].OverRows)
	}
	if got, want := all[0].String(), "x, from 5 to 95: +270 ± 90"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	far := effect.Effect{Feature: "time", From: 1.7e9, To: 1.7e9 + .5, Change: -1234.56, StdDev: .2}
	if got, want := far.String(), "time, from 1700000000 to 1700000000.5: -1234.56 ± 0.2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Change and both of its spreads are those of the particles by their weights: 9 to 1 here, for functions whose changes
// from row to row have opposite signs.
func TestWeights(t *testing.T) {
	data := rows()
	p := linear(t, bayes.Gaussian{StdDev: 1}, data.Features,
		[]float64{0, 10, 20, 40, 0, 0, 0, 0}, []float64{0, 40, 20, 10, 0, 0, 0, 0})
	draws, err := p.Draws()
	if err != nil {
		t.Fatal(err)
	}
	draws.LogWeights = []float64{math.Log(.9), math.Log(.1)}
	if p, err = bayes.NewPosterior(p.Bound(), draws, p.Origin()); err != nil {
		t.Fatal(err)
	}
	all, err := effect.Of(t.Context(), p, data, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Feature != "town=c" { // the change is 30 or -30 from each of 34 rows of town a, 20 or -10 from 33 of b
			continue
		}
		first, second := (34*30+33*20)/67., -(34*30+33*10)/67.
		want := effect.Effect{Change: .9*first + .1*second, StdDev: .3 * (first - second),
			OverRows: (24. - 17) * math.Sqrt(34*33) / 67}
		if math.Abs(e.Change-want.Change) > 1e-9 || math.Abs(e.StdDev-want.StdDev) > 1e-9 ||
			math.Abs(e.OverRows-want.OverRows) > 1e-9 {
			t.Errorf("%+v, want %+v", e, want)
		}
		return
	}
	t.Errorf("there is no town=c among %v", all)
}

// Of a classification it is the change of the probability, and that of the two classes has opposite signs.
func TestProbability(t *testing.T) {
	data := rows()
	p := linear(t, bayes.Bernoulli{}, data.Features, []float64{.1, 0, 0, 0, 0, 0, 0, -5})
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	want := sigmoid(4.5) - sigmoid(-4.5)
	for class, sign := range []float64{-1, 1} {
		all, err := effect.Of(t.Context(), p, data, class)
		if err != nil {
			t.Fatal(err)
		}
		if e := all[0]; e.Feature != "x" || math.Abs(e.Change-sign*want) > 1e-9 {
			t.Errorf("class %d: %+v, want %v", class, e, sign*want)
		}
	}
}

func TestRefuses(t *testing.T) {
	data := rows()
	p := linear(t, bayes.Gaussian{StdDev: 1}, data.Features, make([]float64, 8))
	other := rows()
	other.Features[0], other.Features[4] = other.Features[4], other.Features[0]
	pixels := dataset.NewPixels(make([]byte, 7), 7)
	for _, c := range []struct {
		want   string
		p      *bayes.Posterior
		data   *dataset.Dataset
		output int
	}{
		{"the posterior is nil", nil, data, 0},
		{"no rows to move", p, nil, 0},
		{"order", p, other, 0},
		{"pixels are no features", p, &dataset.Dataset{X: pixels, Y: []float64{1}, Features: data.Features, Target: "y"}, 0},
		{"there is no target 1", p, data, 1},
		{"there is no class 2", linear(t, bayes.Bernoulli{}, data.Features, make([]float64, 8)), data, 2},
	} {
		if _, err := effect.Of(context.Background(), c.p, c.data, c.output); err == nil ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v does not say %q", err, c.want)
		}
	}
}
