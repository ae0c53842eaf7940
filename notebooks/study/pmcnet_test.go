package study

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/baseline"
	"gobnn/bayes/nn"
	"gobnn/pmcnet"
)

// set is the paper's data set of that name.
func set(t *testing.T, name string) pmcnetData {
	t.Helper()
	all := pmcnetSets()
	i := slices.IndexFunc(all, func(d pmcnetData) bool { return d.name == name })
	if i < 0 {
		t.Fatalf("no data set %q", name)
	}
	return all[i]
}

// A repetition of each kind of data, with proposals that are far too few, has the scores that its tables print and the
// series that its figures draw, each within its bounds.
func TestPMCnetRepetition(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	tiny := pmcnet.PMC{Proposals: 3, Draws: 8, Iterations: 2, Start: pmcnet.FromPrior,
		Covariance: pmcnet.DiagonalCovariance}
	for _, c := range []struct {
		name             string
		method           pmcnetMethod
		classes          int
		values, byRepeat []string
	}{
		{"control 50", pmcnetMethod{pmcPaper, tiny}, 2, controlMetrics,
			[]string{"AUC by iteration", "accuracy by iteration"}},
		{"wine", pmcnetMethod{pmcPaper, tiny}, 3, severalMetrics, []string{"AUC by iteration"}},
		{"MNIST-C", pmcnetMethod{pmcLight, tiny}, 10, append(timeMetrics, severalMetrics...), nil},
		{"ionosphere", pmcnetMethod{"SAE", baseline.SAE{Chains: 2, Members: 2}}, 2, controlMetrics[:9], nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := set(t, c.name)
			if d.load != nil {
				d.network = nn.CNN{Height: 28, Width: 28, Convolutions: []nn.Conv{{Filters: 1, Pool: 14}}}
				d.reduced = pictureSize{200, 5, 100, extent{}}
				d = d.sized(Options{})
			}
			r := pmcnetRun{pmcnetData: d, seed: 1, epochs: 2, say: func(string, ...any) {}}
			out := must(r.repetition(t.Context(), c.method, 1))
			for _, name := range c.values {
				if v, ok := out.Values[name]; !ok {
					t.Errorf("there is no %q", name)
				} else if share := strings.Contains(name, "AUC") || strings.Contains(name, "acc"); share && !(v >= 0 && v <= 1) {
					t.Errorf("%s is %v", name, v)
				}
			}
			for _, name := range c.byRepeat {
				if len(out.Series[name]) != 2 {
					t.Errorf("%s: %v, want two values", name, out.Series[name])
				}
			}
			parts := must(d.parts(1))
			total := 0.
			for _, v := range out.Series["confusion"] {
				total += v
			}
			if len(out.Series["confusion"]) != c.classes*c.classes || int(total) != parts.Test.Rows() {
				t.Errorf("confusion of %d cells and %v rows", len(out.Series["confusion"]), total)
			}
			if c.classes == 2 {
				group := []*trial{{Key: Key{Data: c.name, Method: c.method.name}, results: []Result{out}}}
				for name, draw := range map[string]func(*panels, []*trial){
					"envelopes": drawEnvelopes, "ROC": drawROC, "outputs": drawOutputs, "confusion": drawConfusion,
				} {
					var all panels
					if draw(&all, group); all.err != nil || len(all.figures) != 1 {
						t.Errorf("%s: %d figures, %v", name, len(all.figures), all.err)
					}
				}
			}
		})
	}
}

// A beta distribution has the mean and variance that it is asked for; there is none for draws that are all the same.
func TestBetaOf(t *testing.T) {
	for _, c := range [][2]float64{{.5, .01}, {.9, .004}, {.03, .0001}} {
		b, ok := betaOf(c[0], c[1])
		if !ok || math.Abs(b.Mean()-c[0]) > 1e-12 || math.Abs(b.Variance()-c[1]) > 1e-12 {
			t.Errorf("mean %v and variance %v: %+v", c[0], c[1], b)
		}
	}
	for _, c := range [][2]float64{{.5, 0}, {.5, .3}} {
		if _, ok := betaOf(c[0], c[1]); ok {
			t.Errorf("there is a beta distribution of mean %v and variance %v", c[0], c[1])
		}
	}
	if _, err := outputPanel("all the same", []float64{1, 1, 1}); err != nil {
		t.Error(err)
	}
}

// The mean of Z over splits, and its error, are those of the splits' own; a split without a value leaves none.
func TestMeanEvidence(t *testing.T) {
	got := meanEvidence([]estimate{{-300, .1}, {-300 + math.Log(3), .2}})
	want := math.Sqrt(.25*.25*.01 + .75*.75*.04)
	if math.Abs(got.value-(-300+math.Log(2))) > 1e-12 || math.Abs(got.se-want) > 1e-12 {
		t.Errorf("%+v, want %v and %v", got, -300+math.Log(2), want)
	}
	if e := meanEvidence([]estimate{{-300, .1}, {math.NaN(), math.NaN()}}); !math.IsNaN(e.value) {
		t.Errorf("%+v, want none", e)
	}
}

// The exact log evidence of the linear row is the analytic one of the benchmark's files, -294.1646, and with learnt
// precisions that of a quadrature on another grid, by the marginal covariance's determinant, which is within one error
// of the published one.
func TestExactEvidence(t *testing.T) {
	for _, r := range evidenceRows {
		if len(r.network.Hidden) > 0 {
			continue
		}
		want := -294.1646
		if r.learnt {
			want = -202.2180
		}
		got := r.exact()
		if math.Abs(got.value-want) > 1e-3 || math.Abs(got.value-r.logZ.Value) > r.logZ.SE {
			t.Errorf("%s: %+v; want %.4f", r.name, got, want)
		}
	}
}

// A row's estimate is the mean of Z of all runs, each split's first. The next run is on a split that may count and has
// no whole run, and then where it lowers the error most, until SMC's is small enough.
func TestEvidenceRuns(t *testing.T) {
	one := func(value, se float64) Result {
		return Result{Values: map[string]float64{byTempering: value, byTempering + " error": se}}
	}
	runs := &evidenceRuns{}
	for k := range runs.quick {
		runs.quick[k] = one(-1000, 5)
	}
	runs.quick[1] = one(-304, .5)
	runs.quick[3] = one(-300, .5)
	runs.quick[7] = one(-299, .5)
	for _, want := range []int{7, 3, 1} { // the last has a share of .005, which might be .022
		if split, _, more := runs.next(.15); split != want || !more {
			t.Fatalf("the next run is on split %d, %v; want %d", split, more, want)
		}
		runs.whole[want] = []Result{one(-1000, .1)}
	}
	runs.whole[3] = []Result{one(-300, .3), one(-300+math.Log(3), .3)} // mean exp(-300) 2
	runs.whole[7] = []Result{one(-300+math.Log(6), .1)}
	got, gain := runs.of(byTempering)
	want := math.Sqrt(.25*.25*.09/2 + .75*.75*.01) // .0919
	if math.Abs(got.value-(-300+math.Log(.8))) > 1e-12 || math.Abs(got.se-want) > 1e-12 {
		t.Errorf("%+v, want %v and %v", got, -300+math.Log(.8), want)
	}
	if math.Abs(gain[7]-.75*.75*.01/2) > 1e-12 || math.Abs(gain[3]-.25*.25*.045/3) > 1e-12 {
		t.Errorf("another run would gain %v", gain)
	}
	for _, c := range []struct {
		within float64
		split  int
		more   bool
	}{{.15, 0, false}, {.09, 7, true}} {
		split, se, more := runs.next(c.within)
		if split != c.split || more != c.more || more && math.Abs(se-want) > 1e-12 {
			t.Errorf("within %v: split %d, error %v, %v", c.within, split, se, more)
		}
	}
	quick := runs.quick[9]
	runs.quick[9] = one(math.NaN(), math.NaN())
	if _, se, more := runs.next(.15); !math.IsNaN(se) || !more {
		t.Errorf("with a split that has no estimate: error %v, %v", se, more)
	}
	runs.quick[9] = quick
	for range mostEvidenceRuns {
		runs.whole[1] = append(runs.whole[1], one(-1000, .1))
	}
	if _, se, more := runs.next(.09); more || math.Abs(se-want) > 1e-12 {
		t.Errorf("after %d runs: %v, error %v", mostEvidenceRuns, more, se)
	}
}

// Rows are chosen by name, also by one with a comma, at which the command cuts it.
func TestEvidenceAsked(t *testing.T) {
	evidence := must(Find("pmcnet.evidence"))
	for want, o := range map[string]Options{
		"ReLU 8": {Data: []string{"ReLU 8"}}, "tanh 4, learnt": {Data: []string{"tanh 4", "learnt"}},
	} {
		done, _, err := evidence.asked(o)
		if got := strings.Join(distinct(done, (*trial).dataSet), "; "); got != want || err != nil {
			t.Errorf("%+v: %s (%v), want %s", o, got, err, want)
		}
	}
	for full, want := range map[bool]int{false: 13, true: 19} {
		if all, _, err := evidence.asked(Options{Full: full}); err != nil || len(all) != want {
			t.Errorf("-full %v: %d rows, want %d: %v", full, len(all), want, err)
		}
	}
}

// The estimates stand beside the published value with their distance in combined errors; one that is not known has no
// cell. Of repetitions the table has what they state and how they differ.
func TestEvidenceCells(t *testing.T) {
	r := evidenceRow{name: "tanh 2", logZ: Reported{-286.75, .12}, loss: .27}
	of := func(found map[string]estimate, loss, khat float64) Result {
		values := map[string]float64{"loss": loss, "k-hat": khat, "seconds": 7}
		for method, e := range found {
			values[method], values[method+" error"] = e.value, e.se
		}
		return Result{Values: values}
	}
	found := map[string]estimate{byTempering: {-287.25, .05}, byImportance: {math.NaN(), math.NaN()},
		byBridge: {-287, .12}}
	got := map[string]Cell{}
	for _, c := range r.cells([]Result{of(found, .28, 1.2)}) {
		got[c.Method+" "+c.Metric] = c
	}
	for name, want := range map[string]float64{
		"SMC log Z": -287.25, "bridge log Z": -287,
		"SMC difference to the published log Z [combined errors]":    -.5 / .13,
		"bridge difference to the published log Z [combined errors]": -.25 / math.Hypot(.12, .12),
		"bridge difference to SMC [combined errors]":                 .25 / .13,
		"SMC loss": .28,
		"importance sampling k-hat, largest of the splits": 1.2,
	} {
		if c, ok := got[name]; !ok || math.Abs(c.Ours-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, c.Ours, want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("cells that should not be: %v", got)
	}
	for _, c := range r.cells([]Result{of(map[string]estimate{byTempering: {-288, .01}}, .27, 1),
		of(map[string]estimate{byTempering: {-288.02, .03}}, .27, 1)}) {
		got[c.Method+" "+c.Metric] = c
	}
	for name, want := range map[string]float64{
		"SMC log Z": -288.01,
		"SMC standard deviation of log Z over the repetitions": .02 / math.Sqrt2,
		"SMC standard error of log Z that a repetition states": math.Sqrt(.0005),
	} {
		if c, ok := got[name]; !ok || math.Abs(c.Ours-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, c.Ours, want)
		}
	}
}

// A violin stays within its half width about its place, and within the quantiles.
func TestViolin(t *testing.T) {
	var q []float64
	for k := range 101 {
		q = append(q, math.Sqrt(float64(k))-5)
	}
	s := violin(3, q)
	if len(s.Step) != len(s.Value) || slices.Min(s.Step) < 2.6-1e-9 || slices.Max(s.Step) > 3.4+1e-9 ||
		slices.Min(s.Value) < q[0] || slices.Max(s.Value) > q[100]+1e-9 {
		t.Errorf("from %v to %v, %v to %v", slices.Min(s.Step), slices.Max(s.Step), slices.Min(s.Value), slices.Max(s.Value))
	}
}
