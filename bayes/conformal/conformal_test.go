package conformal_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/conformal"

	"gonum.org/v1/gonum/stat/distuv"
)

// wrong is a prediction of so many rows, two particles with different weights, that knows nothing of the targets.
func wrong(likelihood bayes.Likelihood, rows, width int, seed uint64) bayes.Prediction {
	rng := rand.New(rand.NewPCG(seed, 5))
	p := bayes.Prediction{Likelihood: likelihood, Particles: 2, Rows: rows, Width: width, Weights: []float64{.3, .7}}
	for range 2 * rows * width {
		p.Outputs = append(p.Outputs, rng.NormFloat64())
	}
	return p
}

// rowsOf are some rows of a prediction.
func rowsOf(p bayes.Prediction, rows []int) bayes.Prediction {
	some := p
	some.Outputs, some.Rows = nil, len(rows)
	for j := range p.Particles {
		for _, i := range rows {
			at := (j*p.Rows + i) * p.Width
			some.Outputs = append(some.Outputs, p.Outputs[at:at+p.Width]...)
		}
	}
	return some
}

func of[T any](values []T, rows []int) (some []T) {
	for _, i := range rows {
		some = append(some, values[i])
	}
	return some
}

// Of n+1 rows whose prediction does not depend on which calibrate, each in turn is the new one: the number of those
// that are held is exactly the smallest whole number not below level (n+1), whatever is wrong with the prediction.
func TestExactByRanks(t *testing.T) {
	const n = 40
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		likelihood bayes.Likelihood
		width      int
		draw       func() float64
		levels     []float64
	}{
		{bayes.Gaussian{StdDev: .2}, 1, func() float64 { return 3 + 5*rng.ExpFloat64() }, []float64{.3, .5, .9}},
		{bayes.Gaussian{StdDev: 9}, 1, rng.NormFloat64, []float64{.3, .5, .9}},
		// At a lower level some sets would be empty, and get a class.
		{bayes.Categorical{}, 3, func() float64 { return float64(rng.IntN(3)) }, []float64{.9, .95}},
	} {
		p := wrong(c.likelihood, n+1, c.width, 7)
		var y []float64
		for range n + 1 {
			y = append(y, c.draw())
		}
		for _, level := range c.levels {
			held := 0
			for left := range n + 1 {
				var others []int
				for i := range n + 1 {
					if i != left {
						others = append(others, i)
					}
				}
				cal, err := conformal.Calibrate(conformal.Part{Prediction: rowsOf(p, others), Y: of(y, others)})
				if err != nil {
					t.Fatal(err)
				}
				fresh := rowsOf(p, []int{left})
				if c.width > 1 {
					sets, err := cal.Sets(level, nil, fresh)
					if err != nil {
						t.Fatal(err)
					}
					if slices.Contains(sets[0], int(y[left])) {
						held++
					}
					continue
				}
				lower, upper, err := cal.Interval(level, nil, fresh)
				if err != nil {
					t.Fatal(err)
				}
				if lower[0] <= y[left] && y[left] <= upper[0] {
					held++
				}
			}
			if want := int(math.Ceil(level * (n + 1))); held != want {
				t.Errorf("%T at %v: %d of %d are held, want %d", c.likelihood, level, held, n+1, want)
			}
		}
	}
}

// Of counts, whose typicality has ties, no fewer are held, and the ends are counts.
func TestCounts(t *testing.T) {
	const n = 60
	p := wrong(bayes.Poisson{}, n+1, 1, 3)
	rng := rand.New(rand.NewPCG(4, 4))
	var y []float64
	var all []int
	for i := range n + 1 {
		y, all = append(y, float64(rng.IntN(6))), append(all, i)
	}
	held := 0
	for left := range n + 1 {
		others := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return i == left })
		cal, err := conformal.Calibrate(conformal.Part{Prediction: rowsOf(p, others), Y: of(y, others)})
		if err != nil {
			t.Fatal(err)
		}
		lower, upper, err := cal.Interval(.8, nil, rowsOf(p, []int{left}))
		if err != nil {
			t.Fatal(err)
		}
		if lower[0] != math.Trunc(lower[0]) || upper[0] != math.Trunc(upper[0]) {
			t.Errorf("an interval of counts from %v to %v", lower[0], upper[0])
		}
		if lower[0] <= y[left] && y[left] <= upper[0] {
			held++
		}
	}
	if least := int(math.Ceil(.8 * (n + 1))); held < least || held > n {
		t.Errorf("%d of %d are held, want at least %d and not all", held, n+1, least)
	}
}

// Folds whose posteriors differ hold at least 1 - 2 (1 - level), here near the level: in 4000 draws at 99.9 %. Groups
// of unlike noise are each held with the level, which all rows together are not.
func TestFoldsAndGroups(t *testing.T) {
	const folds, perFold, level, draws = 4, 10, .8, 4000
	rng := rand.New(rand.NewPCG(6, 6))
	normal := func(mean float64, rows int) bayes.Prediction {
		p := bayes.Prediction{Likelihood: bayes.Gaussian{StdDev: 1}, Particles: 1, Rows: rows, Width: 1,
			Weights: []float64{1}}
		for range rows {
			p.Outputs = append(p.Outputs, mean)
		}
		return p
	}
	held, quiet, loud := 0., 0., 0.
	for range draws {
		var parts []conformal.Part
		var fresh []bayes.Prediction
		for range folds {
			mean := .3 * rng.NormFloat64()
			part := conformal.Part{Prediction: normal(mean, perFold)}
			for range perFold {
				part.Y = append(part.Y, 2*rng.NormFloat64())
			}
			parts, fresh = append(parts, part), append(fresh, normal(mean, 1))
		}
		c, err := conformal.Calibrate(parts...)
		if err != nil {
			t.Fatal(err)
		}
		lower, upper, err := c.Interval(level, nil, fresh...)
		if err != nil {
			t.Fatal(err)
		}
		if y := 2 * rng.NormFloat64(); lower[0] <= y && y <= upper[0] {
			held++
		}

		// The second half has ten times the noise of the first.
		group, two := []string{}, conformal.Part{Prediction: normal(0, 2*19)}
		for i := range 2 * 19 {
			group = append(group, []string{"quiet", "loud"}[i/19])
			two.Y = append(two.Y, []float64{1, 10}[i/19]*rng.NormFloat64())
		}
		two.Group = group
		if c, err = conformal.Calibrate(two); err != nil {
			t.Fatal(err)
		}
		lower, upper, err = c.Interval(level, []string{"quiet", "loud"}, normal(0, 2))
		if err != nil {
			t.Fatal(err)
		}
		for k, count := range []*float64{&quiet, &loud} {
			if y := []float64{1, 10}[k] * rng.NormFloat64(); lower[k] <= y && y <= upper[k] {
				*count++
			}
		}
	}
	exact := distuv.Binomial{N: draws, P: 16. / 20} // ceil(.8 * 20) of 20
	for name, count := range map[string]float64{"quiet": quiet, "loud": loud} {
		if p := exact.CDF(count); p < .0005 || p > .9995 {
			t.Errorf("%s: %v of %v are held, want %v", name, count, draws, exact.Mean())
		}
	}
	if share := held / draws; share < level-.02 || share > level+.06 {
		t.Errorf("folds: %v are held, want about %v", share, level)
	}
}

func TestRefuses(t *testing.T) {
	p := wrong(bayes.Gaussian{StdDev: 1}, 3, 1, 1)
	y := []float64{1, 2, 3}
	classes := wrong(bayes.Categorical{}, 3, 3, 1)
	ofClasses := conformal.Part{Prediction: classes, Y: []float64{0, 1, 2}}
	calibrated := func(parts ...conformal.Part) *conformal.Calibration {
		c, err := conformal.Calibrate(parts...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := calibrated(conformal.Part{Prediction: p, Y: y})
	grouped := calibrated(conformal.Part{Prediction: p, Y: y, Group: []string{"a", "a", "b"}})
	say := func(_ any, err error) error { return err }
	interval := func(c *conformal.Calibration, level float64, group []string, p ...bayes.Prediction) error {
		_, _, err := c.Interval(level, group, p...)
		return err
	}
	for want, err := range map[string]error{
		"there is no part":        say(conformal.Calibrate()),
		"part 0":                  say(conformal.Calibrate(conformal.Part{Prediction: p, Y: y[:2]})),
		"of a classification":     say(conformal.Calibrate(conformal.Part{Prediction: p, Y: y}, ofClasses)),
		"and others none":         interval(c, .9, []string{"a", "a", "b"}, p),
		"the level is 90":         interval(c, 90, nil, p),
		"0 predictions":           interval(c, .9, nil),
		`the group "z"`:           interval(grouped, .9, []string{"a", "z", "b"}, p),
		"3 rows and 1 groups":     interval(grouped, .9, []string{"a"}, p),
		"sets of a regression":    say(c.Sets(.9, nil, p)),
		"an interval of a classi": interval(calibrated(ofClasses), .9, nil, classes),
	} {
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if lower, upper, err := c.Interval(.9, nil, p); err != nil || !math.IsInf(lower[0], -1) || !math.IsInf(upper[0], 1) {
		t.Errorf("3 rows cannot say 90 %%: %v, %v, %v", lower, upper, err)
	}
}
