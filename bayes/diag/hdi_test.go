package diag

import (
	"errors"
	"math"
	"testing"

	"gobnn/bayes"
)

func TestHDI(t *testing.T) {
	weigh := func(weights ...float64) bayes.LogWeights {
		for i, w := range weights {
			weights[i] = math.Log(w)
		}
		w, err := bayes.NewLogWeights(weights)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	exponential := make([]float64, 10000) // its quantiles: the density is highest at 0
	for i := range exponential {
		exponential[i] = -math.Log1p(-(float64(i) + .5) / 10000)
	}
	for _, c := range []struct {
		values       []float64
		w            bayes.LogWeights
		mass         float64
		lower, upper float64
		tolerance    float64
	}{
		{[]float64{0, 9, 1, 5, 2}, bayes.LogWeights{}, .6, 0, 2, 0},
		{[]float64{0, 9, 1, 5, 2}, bayes.LogWeights{}, .61, 0, 5, 0},
		{[]float64{0, 1, 2, 10, 11}, weigh(1, 1, 1, 4, 3), .7, 10, 11, 0}, // 7 of 10
		{[]float64{0, 1, 2, 10, math.NaN()}, weigh(1, 1, 1, 1, 0), .75, 0, 2, 0},
		{exponential, bayes.LogWeights{}, .9, 0, math.Log(10), 2e-3},
	} {
		lower, upper, err := HDI(c.values, c.w, c.mass)
		if err != nil || math.Abs(lower-c.lower) > c.tolerance || math.Abs(upper-c.upper) > c.tolerance {
			t.Errorf("%v %% of %d draws: from %v to %v, error %v, want from %v to %v", 100*c.mass, len(c.values), lower, upper,
				err, c.lower, c.upper)
		}
	}
	if _, _, err := HDI([]float64{1, math.Inf(1)}, bayes.LogWeights{}, .5); !errors.Is(err, ErrNonFinite) {
		t.Errorf("infinite draw: %v", err)
	}
	for _, mass := range []float64{0, 1, math.NaN()} {
		if _, _, err := HDI([]float64{1, 2}, bayes.LogWeights{}, mass); err == nil {
			t.Errorf("mass %v is taken", mass)
		}
	}
	if _, _, err := HDI([]float64{1, 2}, weigh(1, 1, 1), .5); err == nil {
		t.Error("3 weights of 2 draws are taken")
	}
}
