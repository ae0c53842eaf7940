package diag

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"gobnn/bayes"
)

// number is a float that JSON may hold as text: "nan", "inf" or "-inf".
type number float64

func (n *number) UnmarshalJSON(text []byte) error {
	if unquoted, err := strconv.Unquote(string(text)); err == nil {
		text = []byte(unquoted)
	}
	v, err := strconv.ParseFloat(string(text), 64)
	*n = number(v)
	return err
}

// reference is testdata/arviz.json.gz, which testdata/arviz.py makes.
type reference struct {
	Versions string
	Chains   []chainsCase
	PSIS     []psisCase
	LOO      []looCase

	Comparison []struct {
		Name                              string
		ELPD, SE, Difference, DSE, Weight number
	}
}

type looCase struct {
	Name          string
	Rows          int
	REff          float64  `json:"r_eff"`
	LogLikelihood []number `json:"log_likelihood"`
	ELPD, SE, P   number
	Each          []number `json:"elpd_i"`
	KHat          []number
}

type chainsCase struct {
	Name          string
	Chains, Draws int
	Values        []float64
	Mean, SD      number
	Bulk          number `json:"ess_bulk"`
	Tail          number `json:"ess_tail"`
	ESSMean       number `json:"ess_mean"`
	RHat          number
	RHatBulk      number `json:"rhat_bulk"`
	RHatFolded    number `json:"rhat_folded"`
	MCSEMean      number `json:"mcse_mean"`
	Quantiles     []struct {
		Prob float64
		ESS  number
	}
}

type psisCase struct {
	Name       string
	REff       float64  `json:"r_eff"`
	LogWeights []number `json:"log_weights"`
	KHat       number
	Smoothed   []number
}

func load(t testing.TB) reference {
	t.Helper()
	file, err := os.Open("testdata/arviz.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.NewDecoder(text).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if len(r.Chains) < 20 || len(r.PSIS) < 10 || len(r.LOO) < 4 || len(r.Comparison) < 3 {
		t.Fatalf("the test data holds %d sets of chains, %d of log-weights, %d of log-likelihoods and %d models",
			len(r.Chains), len(r.PSIS), len(r.LOO), len(r.Comparison))
	}
	return r
}

// near says whether got is want to a relative 1e-6, or both are NaN, or the same infinity. ArviZ's R-hat of chains that
// are each constant is rounding error over rounding error: anything from 1e6 on counts as infinite.
func near(got float64, want number) bool {
	w := float64(want)
	if math.IsNaN(w) || math.IsNaN(got) {
		return math.IsNaN(w) && math.IsNaN(got)
	}
	if w > 1e6 && math.IsInf(got, 1) {
		return true
	}
	return got == w || math.Abs(got-w) <= 1e-6*math.Abs(w)
}

func TestChainsAgreeWithArviZ(t *testing.T) {
	for _, c := range load(t).Chains {
		t.Run(c.Name, func(t *testing.T) {
			sample := Sample{Values: make([]float64, 3*len(c.Values)), Chains: c.Chains, Draws: c.Draws, Parameters: 3}
			for i, v := range c.Values { // the case is the middle one of three parameters
				sample.Values[3*i+1] = v
			}
			chains, err := chainsIn(sample)
			if err != nil {
				t.Fatal(err)
			}
			compareChains(t, chains, c)
		})
	}
}

func compareChains(t *testing.T, chains *chains, c chainsCase) {
	t.Helper()
	w := newWorkspace(chains)
	if err := w.load(1); err != nil {
		t.Fatal(err)
	}
	rHat, bulk, folded := w.rhat()
	for what, v := range map[string]struct {
		got  float64
		want number
	}{
		"bulk ESS": {w.bulkESS(), c.Bulk}, "tail ESS": {w.tailESS(), c.Tail}, "ESS of the mean": {w.meanESS(), c.ESSMean},
		"MCSE of the mean": {w.row("").mcseMean, c.MCSEMean}, "R-hat": {rHat, c.RHat},
		"bulk R-hat": {bulk, c.RHatBulk}, "folded R-hat": {folded, c.RHatFolded},
	} {
		if !near(v.got, v.want) {
			t.Errorf("%s is %.10g, ArviZ says %.10g", what, v.got, float64(v.want))
		}
	}
	for _, q := range c.Quantiles {
		if got := w.quantileESS(q.Prob); !near(got, q.ESS) {
			t.Errorf("ESS of the quantile at %v is %.10g, ArviZ says %.10g", q.Prob, got, float64(q.ESS))
		}
	}
}

func TestPSISAgreesWithArviZ(t *testing.T) {
	for _, c := range load(t).PSIS {
		t.Run(c.Name, func(t *testing.T) {
			logWeights := floats64(c.LogWeights)
			w, err := bayes.NewLogWeights(logWeights)
			if err != nil {
				t.Fatal(err)
			}
			got, err := PSIS(w, c.REff)
			if math.IsNaN(float64(c.KHat)) {
				if !errors.Is(err, ErrNoTail) {
					t.Errorf("%v is not %v", err, ErrNoTail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !near(got.KHat, c.KHat) {
				t.Errorf("k-hat is %.10g, ArviZ says %.10g", got.KHat, float64(c.KHat))
			}
			smoothed, want := make([]float64, len(logWeights)), floats64(c.Smoothed)
			for j := range smoothed {
				smoothed[j] = got.LogWeights[j]
			}
			if distinct(logWeights) != len(logWeights) { // which of equal weights takes which quantile is open
				slices.Sort(smoothed)
				slices.Sort(want)
			}
			for j, g := range smoothed {
				if g != want[j] && !(math.Abs(g-want[j]) <= 1e-6) { // in logs: relative to the weight
					t.Fatalf("log-weight %d is %.10g, ArviZ says %.10g", j, g, want[j])
				}
			}
		})
	}
}

func floats64(x []number) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func distinct(x []float64) int {
	sorted := slices.Clone(x)
	slices.Sort(sorted)
	return len(slices.Compact(sorted))
}
