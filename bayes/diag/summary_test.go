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
	return newChains(t, diag.WithGroups(s, "a", "a", "b", "b", "b", "c"))
}

func TestSummaryRows(t *testing.T) {
	c := mixed(t)
	s := c.Summary()
	if s.Chains != 4 || s.Draws != 500 || len(s.Rows) != 6 || c.Chains() != 4 || c.Draws() != 500 || c.Parameters() != 6 {
		t.Fatalf("%+v", s)
	}
	for i, r := range s.Rows {
		if r.Name != c.Name(i) || r.Group != r.Name[:1] {
			t.Errorf("row %d is %s of %s", i, r.Name, r.Group)
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

func TestSummaryGroups(t *testing.T) {
	s := mixed(t).Summary()
	of := func(rows []int, get func(diag.Row) float64) []float64 {
		var values []float64
		for _, i := range rows {
			values = append(values, get(s.Rows[i]))
		}
		slices.Sort(values)
		return values
	}
	rhat := func(r diag.Row) float64 { return r.RHat }
	bulk := func(r diag.Row) float64 { return r.BulkESS }
	a, b, c := s.Groups[0], s.Groups[1], s.Groups[2]
	if v := of([]int{2, 3, 4}, rhat); b.Name != "b" || b.Parameters != 3 ||
		b.RHat != (diag.Spread{Worst: v[2], Median: v[1], At: 3}) {
		t.Errorf("R-hat of b is %+v, of its parameters %v", b.RHat, v)
	}
	if v := of([]int{2, 3, 4}, bulk); b.BulkESS.Worst != v[0] || b.BulkESS.Median != v[1] ||
		s.Rows[b.BulkESS.At].BulkESS != v[0] {
		t.Errorf("bulk ESS of b is %+v, of its parameters %v", b.BulkESS, v)
	}
	if v := of([]int{0, 1}, rhat); math.Abs(a.RHat.Median-(v[0]+v[1])/2) > 1e-15 || a.RHat.Worst != v[1] {
		t.Errorf("R-hat of a is %+v, of its parameters %v", a.RHat, v)
	}
	if !math.IsNaN(c.RHat.Worst) || c.RHat.At != -1 || c.BulkESS.Worst != 2000 {
		t.Errorf("c is %+v", c)
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
	for _, want := range []string{"4 chains, 500 draws each, 6 parameters", "a0 ", "worst (median)", problems} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary does not say %q:\n%s", want, text)
		}
	}
	groups := s.GroupTable()
	if len(groups) != 4 || groups[2][0] != "b" || groups[2][1] != "3" || groups[2][6] != "b1" || groups[3][6] != "-" {
		t.Errorf("%q", groups)
	}

	good := newChains(t, diag.Sample{Values: numbers(40 * 4000), Chains: 4, Draws: 1000, Parameters: 40}).Summary()
	good.Rows = slices.DeleteFunc(good.Rows, func(r diag.Row) bool { return r.RHat > diag.MaxRHat })
	if p := good.Problems(); len(p) != 0 {
		t.Errorf("independent draws: %v", p)
	}
	if text := good.String(); strings.Contains(text, "parameter 7 ") || !strings.Contains(text, "all ") ||
		!strings.Contains(text, "within their thresholds") {
		t.Errorf("40 parameters are summarised as\n%s", text)
	}
	one := newChains(t, diag.Sample{Values: numbers(4000), Chains: 1, Draws: 4000, Parameters: 1}).Summary()
	if p := strings.Join(one.Problems(), "\n"); !strings.Contains(p, "there is 1 chain") {
		t.Errorf("one chain: %q", p)
	}
}
