package viz_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/diag"
	"gobnn/bayes/nn"
	"gobnn/viz"
)

// Numbers in the legends of figures of draws are those worked out by hand.
func TestDrawsLegends(t *testing.T) {
	w, err := bayes.NewLogWeights([]float64{math.Log(3), 0, math.Inf(-1)})
	if err != nil {
		t.Fatal(err)
	}
	pair := bayes.Prediction{Likelihood: bayes.Gaussian{StdDev: 1e-6}, Particles: 2, Rows: 4, Width: 1,
		Outputs: []float64{0, 1, 2, 3, 9, 9, 9, 9}, Weights: []float64{1, 0}} // the second particle has no weight
	for _, c := range []struct {
		what string
		make func() (*viz.Figure, error)
		says []string
	}{
		// Weights 3/4 and 1/4 of draws 0 and 4: mean 1, ESS 16/10. The draw of weight 0 is
		// NaN and does not count.
		{"weighted marginal", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{0, 4, math.NaN()}, w, viz.Frame{})
		}, []string{"2 draws, ESS 1.6", "mean 1<", "94 % HDI: 0 to 4<"}},
		{"marginal", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{0, 1, 2, 9, 5}, bayes.LogWeights{}, viz.Frame{})
		}, []string{"5 draws<", "mean 3.4", "94 % HDI: 0 to 9"}},
		{"ends of an interval that look alike in four digits", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{1000.01, 1000.02, 1000.03}, bayes.LogWeights{}, viz.Frame{})
		}, []string{"HDI: 1000.01 to 1000.03"}},
		{"forest of a mean beside its interval", func() (*viz.Figure, error) {
			return viz.Estimates(viz.Frame{}, viz.Estimate{Name: "heavy tail", Mean: 30, Upper: 2})
		}, []string{">30<"}},
		// A third of 3, three times, is a little more than 3 in floating point.
		{"constant", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{3, 3, 3, 3, 3}, bayes.LogWeights{}, viz.Frame{})
		}, []string{"mean 3<", "HDI: 3 to 3<"}},
		// The one particle of weight has the noise 1e-6: all drawn sets have y's own spread within it, and means above it.
		{"predictive check", func() (*viz.Figure, error) {
			return viz.PredictiveCheck(pair, []float64{-1, 0, 1, 2}, 0, viz.Frame{})
		}, []string{"50 data sets drawn", "4 rows: P(smaller mean) = 0, "}},
	} {
		fig, err := c.make()
		svg := svgOf(t, fig, err)
		for _, want := range c.says {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no text %q", c.what, want)
			}
		}
	}
}

// Of more rows than are drawn the forest has those with the largest R-hat.
func TestForestChoosesWorst(t *testing.T) {
	rows := []viz.Estimate{{Name: "fine", RHat: 1.001, ESS: 900}, {Name: "worst", RHat: 1.3, ESS: 20}}
	for i := range 39 {
		rows = append(rows, viz.Estimate{Name: fmt.Sprint("bad ", i), RHat: 1.1, ESS: 90})
	}
	for i := range rows {
		rows[i].Lower, rows[i].Upper = -1, 1
	}
	fig, err := viz.Estimates(viz.Frame{}, rows...)
	svg := svgOf(t, fig, err)
	if strings.Contains(svg, "fine") || !strings.Contains(svg, "worst") || !strings.Contains(svg, "40 of 41 rows") {
		t.Error("the forest does not show the 40 rows with the largest R-hat")
	}
}

// The forest of a posterior has R-hat and ESS as package diag has them, of weighted particles the ESS of the weights,
// and of a layer the worst.
func TestForest(t *testing.T) {
	const chains, draws = 4, 100
	rng := rand.New(rand.NewPCG(1, 2))
	phi := make([]float64, 2*chains*draws)
	for i := range phi {
		phi[i] = rng.NormFloat64()
		if i%2 == 1 && i < 2*draws {
			phi[i] += 3 // the first chain, elsewhere in the second weight
		}
	}
	posterior := func(phi, logWeights []float64, chains int) *bayes.Posterior {
		bound, err := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{}, Stochastic: bayes.Weights(1)}.Bind(2, 1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := bayes.NewPosterior(bound, bayes.Draws{
			Phi: compute.Floats(compute.Float64, phi, len(logWeights), 2), Psi: compute.Floats(compute.Float64, []float64{0}, 1),
			LogWeights: logWeights, Chains: chains,
		}, bayes.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ofChains := posterior(phi, bayes.EqualLogWeights(chains*draws), chains)
	by, err := diag.NewForPosterior(ofChains)
	if err != nil {
		t.Fatal(err)
	}
	rows := by.Summary().Rows
	worst := fmt.Sprintf(">%.3f<", rows[1].RHat)
	if rows[0].RHat > 1.1 || rows[1].RHat < 1.3 {
		t.Fatalf("R-hats %v and %v", rows[0].RHat, rows[1].RHat)
	}
	weighted := posterior([]float64{0, 10, 4, 20}, []float64{math.Log(3), 0}, 0) // ESS 1.6
	for _, c := range []struct {
		what         string
		p            *bayes.Posterior
		layers       bool
		says, denies []string
	}{
		{"chains", ofChains, false, []string{"weights[0,0]", "weights[0,1]", fmt.Sprintf(">%.3f<", rows[0].RHat), worst,
			fmt.Sprintf(">%.0f<", min(rows[1].BulkESS, rows[1].TailESS))}, nil},
		{"layers", ofChains, true, []string{">layer1<", worst}, []string{"weights[", fmt.Sprintf(">%.3f<", rows[0].RHat)}},
		{"weighted", weighted, false, []string{">–<", ">2<"}, []string{">1.000<"}},
	} {
		fig, err := viz.Forest(c.p, c.layers, viz.Frame{})
		svg := svgOf(t, fig, err)
		for _, want := range c.says {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no text %q", c.what, want)
			}
		}
		for _, no := range c.denies {
			if strings.Contains(svg, no) {
				t.Errorf("%s: there is the text %q", c.what, no)
			}
		}
	}
}

func TestDrawsFaults(t *testing.T) {
	marginal := func(values ...float64) func() (*viz.Figure, error) {
		return func() (*viz.Figure, error) { return viz.Marginal(values, bayes.LogWeights{}, viz.Frame{}) }
	}
	for _, c := range []struct {
		make func() (*viz.Figure, error)
		says string
	}{
		{marginal(), "no draws"},
		{marginal(math.NaN()), "none of 1 draws"},
		{marginal(1e200), "within ±1e+100"},
		{func() (*viz.Figure, error) { return viz.TraceRank([][]float64{{1, 2, 3, 4}, {1, 2, 3}}, viz.Frame{}) },
			"chain 1 has 3 draws"},
		{func() (*viz.Figure, error) { return viz.Forest(nil, false, viz.Frame{}) }, "nil"},
		{func() (*viz.Figure, error) { return viz.Forest(&bayes.Posterior{}, false, viz.Frame{}) }, "empty"},
		{func() (*viz.Figure, error) {
			one := bayes.Prediction{Likelihood: bayes.Gaussian{StdDev: 1}, Particles: 1, Rows: 1, Width: 1,
				Outputs: []float64{0}, Weights: []float64{1}}
			return viz.PredictiveCheck(one, []float64{1}, 0, viz.Frame{})
		}, "check of 1 row"},
	} {
		if _, err := c.make(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v does not say %q", err, c.says)
		}
	}
}
