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
		// Weights 3/4 and 1/4 of draws 0 and 4: mean 1, ESS 16/10; 0 alone holds three quarters. The draw of weight 0 is
		// NaN and does not count.
		{"weighted marginal", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{0, 4, math.NaN()}, viz.MarginalOptions{Weights: w, Mass: .7})
		}, []string{"2 draws, ESS 1.6", "mean 1<", "70 % HDI: 0 to 0<"}},
		{"marginal", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{0, 1, 2, 9, 5}, viz.MarginalOptions{Mass: .6})
		}, []string{"5 draws<", "mean 3.4", "60 % HDI: 0 to 2"}},
		{"ends of an interval that look alike in four digits", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{1000.01, 1000.02, 1000.03}, viz.MarginalOptions{Mass: .9})
		}, []string{"HDI: 1000.01 to 1000.03"}},
		{"forest of a mean beside its interval", func() (*viz.Figure, error) {
			return viz.Forest([]viz.ForestRow{{Name: "heavy tail", Mean: 30, Upper: 2}}, viz.ForestOptions{})
		}, []string{">30<"}},
		// A third of 3, three times, is a little more than 3 in floating point.
		{"constant", func() (*viz.Figure, error) {
			return viz.Marginal([]float64{3, 3, 3, 3, 3}, viz.MarginalOptions{})
		}, []string{"mean 3<", "HDI: 3 to 3<"}},
		// Energies 0, 1, 3, 2: changes 1, 2, -1, mean square 2; variance 5/3.
		{"energy", func() (*viz.Figure, error) {
			return viz.Energy([][]float64{{0, 1, 3, 2}}, [][]bool{{false, true, false, false}}, viz.Frame{})
		}, []string{"least E-BFMI 1.2<", "1 divergent transitions"}},
		// Four values at 0.2, 0.4, 0.6, 0.8: after the last the share below is 1, 0.2 more than uniform.
		{"PIT", func() (*viz.Figure, error) { return viz.PIT([]float64{.8, .2, .6, .4}, viz.Frame{}) },
			[]string{"4 rows, at most 0.2 from", "±0.6791"}}, // sqrt(log 40 / 8)
		{"LOO-PIT", func() (*viz.Figure, error) {
			return viz.LOOPIT(diag.LOO{Rows: []diag.LOORow{{PIT: []float64{.5}}}}, viz.Frame{})
		}, []string{"Leave-one-out PIT", "1 rows, at most 0.5 from"}},
		{"k-hat", func() (*viz.Figure, error) {
			return viz.KHats(diag.LOO{Draws: 100, Rows: []diag.LOORow{{KHat: .4}, {KHat: .6}, {KHat: math.NaN()},
				{KHat: math.Inf(1)}}}, viz.Frame{})
		}, []string{"threshold 0.5<", "1 rows<", "2 rows above", "1 of 4 rows have no k-hat",
			"1 of 4 rows have an infinite"}},
		// The one particle of weight has the noise 1e-6: all drawn sets have y's own spread within it, and means above it.
		{"predictive check", func() (*viz.Figure, error) {
			return viz.PredictiveCheck(pair, []float64{-1, 0, 1, 2}, viz.PredictiveCheckOptions{Draws: 10})
		}, []string{"10 data sets drawn", "4 rows: P(smaller mean) = 0, "}},
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
	rows := []viz.ForestRow{{Name: "fine", RHat: 1.001, ESS: 900}, {Name: "worst", RHat: 1.3, ESS: 20},
		{Name: "bad", RHat: 1.1, ESS: 90}}
	for i := range rows {
		rows[i].Lower, rows[i].Upper = -1, 1
	}
	fig, err := viz.Forest(rows, viz.ForestOptions{MaxRows: 2})
	svg := svgOf(t, fig, err)
	if strings.Contains(svg, "fine") || !strings.Contains(svg, "worst") || !strings.Contains(svg, "2 of 3 rows") {
		t.Error("the forest does not show the two rows with the largest R-hat")
	}
}

// What a row of a forest does not say is not drawn: a narrow interval, R-hat, ESS.
func TestForestOfLittle(t *testing.T) {
	rows := []viz.ForestRow{{Name: "little", Mean: 2, Lower: 1, Upper: 3}, {Name: "much", Mean: 2, Lower: 1, Upper: 3,
		LowerHalf: 1.5, UpperHalf: 2.5, RHat: 1.3, ESS: 20}}
	for n, says := range map[int]bool{1: false, 2: true} {
		fig, err := viz.Forest(rows[:n], viz.ForestOptions{})
		svg := svgOf(t, fig, err)
		for _, text := range []string{">47 %<", ">R-hat<", ">1.300<", ">20<", ">–<"} {
			if strings.Contains(svg, text) != says {
				t.Errorf("%d rows: the text %q is there: %v, want %v", n, text, !says, says)
			}
		}
		if strings.Contains(svg, ">0.000<") || strings.Contains(svg, ">0<") {
			t.Errorf("%d rows: an R-hat or ESS of 0", n)
		}
	}
}

// The forest of a posterior has R-hat and ESS as package diag has them, of weighted particles the ESS of the weights,
// and of a layer the worst.
func TestForestOf(t *testing.T) {
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
		fig, err := viz.ForestOf(c.p, viz.ForestOptions{Layers: c.layers})
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
	nan := math.NaN()
	for _, c := range []struct {
		make func() (*viz.Figure, error)
		says string
	}{
		{func() (*viz.Figure, error) { return viz.Marginal(nil, viz.MarginalOptions{}) }, "no draws"},
		{func() (*viz.Figure, error) { return viz.Marginal([]float64{nan}, viz.MarginalOptions{}) }, "none of 1 draws"},
		{func() (*viz.Figure, error) { return viz.Marginal([]float64{1, 2}, viz.MarginalOptions{Mass: 2}) }, "mass 2"},
		{func() (*viz.Figure, error) { return viz.Marginal([]float64{1, 2}, viz.MarginalOptions{Bins: -1}) }, "Bins = -1"},
		{func() (*viz.Figure, error) { return viz.Forest(nil, viz.ForestOptions{}) }, "forest of 0 rows"},
		{func() (*viz.Figure, error) {
			return viz.Forest([]viz.ForestRow{{Name: "a", Lower: 1}}, viz.ForestOptions{})
		}, "from 1 to 0"},
		{func() (*viz.Figure, error) {
			return viz.Forest([]viz.ForestRow{{Name: "a", Lower: 1, Upper: 2, UpperHalf: 3}}, viz.ForestOptions{})
		}, "must hold"},
		{func() (*viz.Figure, error) { return viz.Marginal([]float64{1e200}, viz.MarginalOptions{}) }, "within ±1e+100"},
		{func() (*viz.Figure, error) {
			return viz.Pairs([]string{"a", "b"}, [][]float64{{1}, {-1e200}}, viz.PairsOptions{})
		}, "beyond ±1e+100, the first, -1e+200"},
		{func() (*viz.Figure, error) { return viz.TraceRank([][]float64{{1, 2, 3, 4}, {1, 2, 3}}, viz.Frame{}) },
			"chain 1 has 3 draws"},
		{func() (*viz.Figure, error) { return viz.ESSEvolution([][]float64{{1, 2, nan, 4}}, viz.Frame{}) },
			"draw 2 of chain 0"},
		{func() (*viz.Figure, error) { return viz.Energy([][]float64{{1, 1, 1, 1}}, nil, viz.Frame{}) }, "are 1"},
		{func() (*viz.Figure, error) { return viz.PIT([]float64{1.5}, viz.Frame{}) }, "row 0 is 1.5"},
		{func() (*viz.Figure, error) { return viz.LOOPIT(diag.LOO{Rows: make([]diag.LOORow, 1)}, viz.Frame{}) }, "no PIT"},
		{func() (*viz.Figure, error) {
			return viz.LOOPIT(diag.LOO{Rows: []diag.LOORow{{PIT: []float64{.2, .3}}}}, viz.Frame{})
		}, "of 2 targets"},
		{func() (*viz.Figure, error) { return viz.KHats(diag.LOO{}, viz.Frame{}) }, "without rows"},
		{func() (*viz.Figure, error) {
			return viz.KHats(diag.LOO{Rows: []diag.LOORow{{KHat: nan}}}, viz.Frame{})
		}, "none of 1 rows has a k-hat"},
		{func() (*viz.Figure, error) { return viz.ForestOf(nil, viz.ForestOptions{}) }, "nil"},
		{func() (*viz.Figure, error) { return viz.ForestOf(&bayes.Posterior{}, viz.ForestOptions{}) }, "empty"},
		{func() (*viz.Figure, error) {
			return viz.Forest([]viz.ForestRow{{Name: "a", ESS: -3}}, viz.ForestOptions{})
		}, "ESS -3"},
		{func() (*viz.Figure, error) {
			one := bayes.Prediction{Likelihood: bayes.Gaussian{StdDev: 1}, Particles: 1, Rows: 1, Width: 1,
				Outputs: []float64{0}, Weights: []float64{1}}
			return viz.PredictiveCheck(one, []float64{1}, viz.PredictiveCheckOptions{})
		}, "check of 1 row"},
	} {
		if _, err := c.make(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v does not say %q", err, c.says)
		}
	}
}
