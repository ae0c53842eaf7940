package diag_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/tensors"
)

// numbers are n values that differ.
func numbers(n int) []float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

func summaryOf(t *testing.T, s diag.Sample) diag.Summary {
	t.Helper()
	summary, err := diag.OfSample(s)
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

func TestSampleErrors(t *testing.T) {
	good := func(change func(*diag.Sample)) diag.Sample {
		s := diag.Sample{Values: numbers(2 * 5 * 3), Chains: 2, Draws: 5, Parameters: 3}
		change(&s)
		return s
	}
	for _, c := range []struct {
		name   string
		sample diag.Sample
		says   []string
		is     error
	}{
		{"nothing", diag.Sample{}, []string{"Chains is 0", "Parameters 0"}, nil},
		{"three draws", diag.Sample{Values: numbers(12), Chains: 2, Draws: 3, Parameters: 2},
			[]string{"3 draws a chain", "at least 4"}, nil},
		{"too few values", good(func(s *diag.Sample) { s.Values = s.Values[1:] }),
			[]string{"29 values", "2 x 5 x 3 = 30"}, nil},
		{"names", good(func(s *diag.Sample) { s.Names = []string{"a"} }), []string{"1 names for 3 parameters"}, nil},
		{"named, several", good(func(s *diag.Sample) {
			s.Names = []string{"a", "b", "c"}
			s.Values[(0*5+4)*3+1], s.Values[29] = math.Inf(-1), math.NaN()
		}), []string{"1 of 10 draws of b", "-Inf at chain 0, draw 4"}, diag.ErrNonFinite},
	} {
		_, err := diag.OfSample(c.sample)
		fittest.Refused(t, c.name, err, c.says...)
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v is not %v", c.name, err, c.is)
		}
	}
}

func TestKHatErrors(t *testing.T) {
	for _, c := range []struct {
		name       string
		logWeights []float64
		is         error
		says       []string
	}{
		{"none", nil, bayes.ErrZeroWeights, nil},
		{"29 weights", numbers(29), diag.ErrNoTail, []string{"of 29 weights", "holds 5", "at least 30 draws"}},
		{"equal in the tail", append(slices.Repeat([]float64{-1}, 95), numbers(5)...), diag.ErrNoTail,
			[]string{"5 of the 20 largest of 100 weights are equal"}},
		{"equal", make([]float64, 100), diag.ErrNoTail, []string{"the 20 largest of 100 weights are equal"}},
	} {
		_, err := diag.KHat(c.logWeights)
		fittest.Refused(t, c.name, err, c.says...)
		if !errors.Is(err, c.is) {
			t.Errorf("%s: %v is not %v", c.name, err, c.is)
		}
	}
	if k, err := diag.KHat(numbers(30)); err != nil || math.IsNaN(k) {
		t.Errorf("of 30 weights k-hat is %v, %v", k, err)
	}
	w, err := bayes.NewLogWeights(numbers(100))
	if err != nil {
		t.Fatal(err)
	}
	_, err = diag.PSIS(w, 0)
	fittest.Refused(t, "efficiency", err, "relative efficiency")
	_, err = diag.PSIS(w, 1e-4) // a tail of 3 sqrt(J/efficiency) would apply only beyond 225 effective draws
	if err != nil {
		t.Errorf("low efficiency: %v", err)
	}
	_, err = diag.PSIS(bayes.LogWeights{}, 1)
	fittest.Refused(t, "no weights", err, "of 0 weights")
}

// Of 1000 draws the tail holds 94. k-hat is +Inf if more than 23 of these weigh nothing beside the largest weight, and
// large if they weigh very little, since it grows as the smallest quarter of the tail shrinks.
func TestKHatOfFewDraws(t *testing.T) {
	for heavy, all := range map[int]bool{1: true, 2: true, 70: true, 71: false} {
		for _, low := range []float64{math.Inf(-1), -1e5, -800, -700, -100} {
			logWeights := make([]float64, 1000)
			for j := range logWeights {
				switch {
				case j < heavy:
					logWeights[j] = -float64(j)
				case low == -700: // exp is a number, another one for each
					logWeights[j] = low - 1e-3*float64(j)
				default:
					logWeights[j] = low
				}
			}
			k, err := diag.KHat(logWeights)
			if want := all && low != -700; err != nil || math.IsInf(k, 1) != want || !(k > 2) {
				t.Errorf("of %d draws that weigh more than exp(%v) k-hat is %v, %v", heavy, low, k, err)
			}
		}
	}
}

func TestOfPosterior(t *testing.T) {
	const chains, draws = 2, 6
	model := bayes.Model{Network: nn.MLP{Hidden: []int{2}, Activation: nn.Tanh}, Likelihood: bayes.Gaussian{Learn: true},
		Stochastic: bayes.Names("layer1/weights", "layer2/biases", "noise/log_scale")}
	bound, err := model.Bind(3, 1) // 2x3 weights, 1 bias and the noise are stochastic
	if err != nil {
		t.Fatal(err)
	}
	phi, psi := numbers(chains*draws*bound.D), numbers(bound.W)
	logWeights := make([]float64, chains*draws)
	posterior := func(chains int) *bayes.Posterior {
		p, err := bayes.NewPosterior(bound, bayes.Draws{
			Phi:        tensors.FromFlatDataAndDimensions(phi, len(logWeights), bound.D),
			Psi:        tensors.FromFlatDataAndDimensions(psi, bound.W),
			LogWeights: logWeights, Chains: chains,
		}, bayes.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	summary, err := diag.OfPosterior(posterior(chains))
	if err != nil {
		t.Fatal(err)
	}
	want := summaryOf(t, diag.Sample{Values: phi, Chains: chains, Draws: draws, Parameters: bound.D})
	for i, name := range []string{"layer1/weights[0,0]", "layer1/weights[0,1]", "layer1/weights[0,2]",
		"layer1/weights[1,0]",
		"layer1/weights[1,1]", "layer1/weights[1,2]", "layer2/biases[0]", "noise/log_scale[0]"} {
		if r := summary.Rows[i]; r.Name != name || r.RHat != want.Rows[i].RHat || r.Mean != want.Rows[i].Mean {
			t.Errorf("row %d is %+v, want %s, %+v", i, r, name, want.Rows[i])
		}
	}
	_, err = diag.OfPosterior(posterior(0))
	fittest.Refused(t, "no chains", err, "12 particles", "no Markov chains", "PSIS")
	_, err = diag.OfPosterior(posterior(4))
	fittest.Refused(t, "short chains", err, "3 draws a chain")
	logWeights[7] = 0.1
	_, err = diag.OfPosterior(posterior(chains))
	fittest.Refused(t, "weights", err, "particle 0 has weight", "PSIS")
}

func TestOfPrediction(t *testing.T) {
	const chains, draws, rows = 2, 5, 3
	prediction := func(task dataset.Task, width int) bayes.Prediction {
		likelihoods := map[dataset.Task]bayes.Likelihood{
			dataset.Regression: bayes.Gaussian{}, dataset.BinaryClassification: bayes.Bernoulli{},
			dataset.Classification: bayes.Categorical{},
		}
		p := bayes.Prediction{Likelihood: likelihoods[task], Particles: chains * draws, Chains: chains, Rows: rows,
			Width: width, Outputs: numbers(chains * draws * rows * width)}
		for range p.Particles {
			p.Weights = append(p.Weights, 1./(chains*draws))
		}
		return p
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		task  dataset.Task
		width int
		value func(logits []float64, at int) float64
		names []string // of row 1
	}{
		{dataset.Regression, 1, func(f []float64, at int) float64 { return f[0] }, []string{"f, row 1"}},
		{dataset.BinaryClassification, 1, func(f []float64, at int) float64 { return sigmoid(f[0]) },
			[]string{"class 1, row 1"}},
		{dataset.Classification, 3, func(f []float64, at int) float64 {
			return math.Exp(f[at]) / (math.Exp(f[0]) + math.Exp(f[1]) + math.Exp(f[2]))
		}, []string{"class 0, row 1", "class 1, row 1", "class 2, row 1"}},
	} {
		p := prediction(c.task, c.width)
		got, err := diag.OfPrediction(p)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, len(p.Outputs))
		for i := range values {
			own := i / c.width * c.width
			values[i] = c.value(p.Outputs[own:own+c.width], i-own)
		}
		want := summaryOf(t, diag.Sample{Values: values, Chains: chains, Draws: draws, Parameters: rows * c.width})
		for i, r := range got.Rows {
			// R-hat would not do: the two draws in the middle are equally far from the median but for rounding.
			if w := want.Rows[i]; math.Abs(r.BulkESS-w.BulkESS) > 1e-9 || math.Abs(r.SD-w.SD) > 1e-12 ||
				math.Abs(r.Mean-w.Mean) > 1e-12 {
				t.Errorf("%v: row %d is %+v, want %+v", c.task, i, r, w)
			}
		}
		for k, name := range c.names {
			if got := got.Rows[c.width+k].Name; got != name {
				t.Errorf("%v: parameter %d is %q, want %q", c.task, c.width+k, got, name)
			}
		}
	}
	unequal := prediction(dataset.Regression, 1)
	unequal.Chains = 3
	_, err := diag.OfPrediction(unequal)
	fittest.Refused(t, "chains", err, "10 particles", "3 chains")
	weighted := prediction(dataset.Regression, 1)
	weighted.Weights[0], weighted.Weights[9] = 0.15, 0.05
	_, err = diag.OfPrediction(weighted)
	fittest.Refused(t, "weights", err, "particle 0 has weight 0.15")
}

// The mean of n equal numbers is rarely that number exactly: where draws stand still that must not look like variance.
func TestConstantDraws(t *testing.T) {
	for _, draws := range []int{4, 21, 50, 333} {
		s := diag.Sample{Values: make([]float64, 3*draws*2), Chains: 3, Draws: draws, Parameters: 2}
		for at := range 3 * draws {
			s.Values[2*at] = 0.1
			s.Values[2*at+1] = 0.1 * float64(1+at/draws)
		}
		rows := summaryOf(t, s).Rows
		size := float64(3 * (draws / 2 * 2))
		if r := rows[0]; r.SD != 0 || !math.IsNaN(r.RHat) || r.BulkESS != size ||
			r.TailESS != size {
			t.Errorf("%d draws at 0.1: %+v", draws, r)
		}
		if r := rows[1]; !math.IsInf(r.RHat, 1) || r.BulkESS > 13 { // 12 log10(12) is the bound for 4 draws
			t.Errorf("%d draws a chain at 0.1, 0.2 and 0.3: %+v", draws, r)
		}
	}
}
