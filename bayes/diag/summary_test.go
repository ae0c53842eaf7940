package diag

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// mixed has good parameters, one whose chains disagree, one that hardly moves and one that is constant.
func mixed(t *testing.T) Summary {
	t.Helper()
	s := Sample{Chains: 4, Draws: 500, Parameters: 6, Names: []string{"a0", "a1", "b0", "b1", "b2", "c"}}
	s.Values = normals(4 * 500 * 6)
	for at := range 4 * 500 {
		row := s.Values[6*at : 6*at+6]
		row[3] += float64(at / 500)
		if at%500 > 0 {
			row[4] = 0.95*s.Values[6*(at-1)+4] + 0.3*row[4]
		}
		row[5] = 1.5
	}
	return summaryOf(t, s)
}

func TestSummaryText(t *testing.T) {
	s := mixed(t)
	problems := strings.Join(s.problems(), "\n")
	for _, text := range []string{
		"R-hat is above 1.01 for 2 of 6 parameters, worst 1.", " for b1\n", "bulk ESS is below 400 for 2 of 6",
		"R-hat is undefined for 1 of 6 parameters, the first c",
	} {
		if !strings.Contains(problems, text) {
			t.Errorf("problems do not say %q:\n%s", text, problems)
		}
	}
	text := s.String()
	for _, want := range []string{"4 chains, 500 draws each, 6 parameters", "a0 ", problems} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary does not say %q:\n%s", want, text)
		}
	}

	good := summaryOf(t, Sample{Values: normals(40 * 4000), Chains: 4, Draws: 1000, Parameters: 40})
	good.Rows = slices.DeleteFunc(good.Rows, func(r Row) bool { return r.RHat > mostRHat })
	if p := good.problems(); len(p) != 0 {
		t.Errorf("independent draws: %v", p)
	}
	if text := good.String(); !strings.Contains(text, "the 30 with the largest R-hat") ||
		strings.Count(text, "parameter ") != 31 || !strings.Contains(text, "within their thresholds") {
		t.Errorf("%d parameters are summarised as\n%s", len(good.Rows), text)
	}
	one := summaryOf(t, Sample{Values: normals(4000), Chains: 1, Draws: 4000, Parameters: 1})
	if p := strings.Join(one.problems(), "\n"); !strings.Contains(p, "there is 1 chain") {
		t.Errorf("one chain: %q", p)
	}
}

func summaryOf(t *testing.T, s Sample) Summary {
	t.Helper()
	summary, err := OfSample(s)
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

// normals are n draws.
func normals(n int) []float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}
