package diag_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/diag"
)

// mixed has good parameters, one whose chains disagree, one that hardly moves and one that is constant.
func mixed(t *testing.T) *diag.Chains {
	t.Helper()
	s := diag.Sample{Chains: 4, Draws: 500, Parameters: 6, Names: []string{"a0", "a1", "b0", "b1", "b2", "c"}}
	s.Values = numbers(4 * 500 * 6)
	for at := range 4 * 500 {
		row := s.Values[6*at : 6*at+6]
		row[3] += float64(at / 500)
		if at%500 > 0 {
			row[4] = 0.95*s.Values[6*(at-1)+4] + 0.3*row[4]
		}
		row[5] = 1.5
	}
	return newChains(t, s)
}

func TestSummaryRows(t *testing.T) {
	c := mixed(t)
	s := c.Summary()
	if s.Chains != 4 || s.Draws != 500 || len(s.Rows) != 6 || c.Chains() != 4 || c.Draws() != 500 || c.Parameters() != 6 {
		t.Fatalf("%+v", s)
	}
	for i, r := range s.Rows {
		if r.Name != c.Name(i) {
			t.Errorf("row %d is %s", i, r.Name)
		}
		ess := func(of diag.Estimand) float64 { v, _ := c.ESS(i, of); return v }
		mcse := func(of diag.Estimand) float64 { v, _ := c.MCSE(i, of); return v }
		rhat, _ := c.RHat(i)
		left, right := c.KHatParts(i)
		khat := max(left, right)
		got := []float64{r.BulkESS, r.TailESS, r.MCSEMean, r.MCSESD, r.RHat, r.KHat}
		want := []float64{ess(diag.Bulk), ess(diag.Tail), mcse(diag.Mean), mcse(diag.SD), rhat, khat}
		for k := range got {
			if got[k] != want[k] && !(math.IsNaN(got[k]) && math.IsNaN(want[k])) {
				t.Errorf("%s: number %d of the row is %v, by itself %v", r.Name, k, got[k], want[k])
			}
		}
	}
	if r := s.Rows[5]; r.Mean != 1.5 || r.SD != 0 || r.MCSEMean != 0 || r.BulkESS != 2000 || !math.IsNaN(r.RHat) ||
		!math.IsNaN(r.KHat) {
		t.Errorf("the constant is %+v", r)
	}
}

func TestSummaryText(t *testing.T) {
	s := mixed(t).Summary()
	problems := strings.Join(s.Problems(), "\n")
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

	good := newChains(t, diag.Sample{Values: numbers(40 * 4000), Chains: 4, Draws: 1000, Parameters: 40}).Summary()
	good.Rows = slices.DeleteFunc(good.Rows, func(r diag.Row) bool { return r.RHat > diag.MaxRHat })
	if p := good.Problems(); len(p) != 0 {
		t.Errorf("independent draws: %v", p)
	}
	if text := good.String(); !strings.Contains(text, "the 30 with the largest R-hat") ||
		strings.Count(text, "parameter ") != 31 || !strings.Contains(text, "within their thresholds") {
		t.Errorf("%d parameters are summarised as\n%s", len(good.Rows), text)
	}
	one := newChains(t, diag.Sample{Values: numbers(4000), Chains: 1, Draws: 4000, Parameters: 1}).Summary()
	if p := strings.Join(one.Problems(), "\n"); !strings.Contains(p, "there is 1 chain") {
		t.Errorf("one chain: %q", p)
	}
}
