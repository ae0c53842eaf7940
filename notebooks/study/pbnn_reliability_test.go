package study

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/mnist"
)

// short is a line on some rows of each part, trained and sampled for much too short a time.
func (d reliabilityData) short(hidden int, parts func(seed uint64) (dataset.Parts, error)) reliabilityData {
	d.parts, d.network.Hidden = parts, []int{hidden}
	d.mode.Epochs, d.mode.BatchSize = 3, 20
	d.n, d.batches, d.chains, d.reps = 20, 10, 2, 1
	d.thin = map[string]int{lastLayerFull: 4, lastLayerPenalty: 8, wholePenalty: 8}
	return d
}

func shortWave(seed uint64) (parts dataset.Parts, err error) {
	if parts.Train, err = dataset.GappedWave(60, penaltyNoise, seed); err == nil {
		parts.Test, err = dataset.GappedWave(40, penaltyNoise, seed+1000)
	}
	return parts, err
}

func shortDigits(uint64) (parts dataset.Parts, err error) {
	all := must(mnist.Test())
	rows := func(from, to int) *dataset.Dataset {
		var some []int
		for i := from; i < to; i++ {
			some = append(some, i)
		}
		return must(all.Subset(some))
	}
	return dataset.Parts{Train: rows(0, 200), Validation: rows(200, 250), Test: rows(250, 350)}, nil
}

// The figure has a panel for each line and method, the numbers are within their bounds, and a second run finds
// everything kept.
func TestReliabilityFigure(t *testing.T) {
	if testing.Short() {
		t.Skip("six runs of chains")
	}
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	loads := 0
	digits := reliabilityDigits.short(4, func(seed uint64) (dataset.Parts, error) { loads++; return shortDigits(seed) })
	o := Options{Epochs: 4, CacheDir: t.TempDir()}
	draw := func(o Options) (string, []Cell) {
		t.Helper()
		wave := reliabilityWave.short(3, shortWave)
		fig, cells, err := Experiment{ID: "pbnn.fig3", trials: reliabilityTrials(wave, digits),
			draw: reliabilityFigure(wave, digits)}.Draw(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		svg := must(fig.SVG())
		return string(svg), cells
	}
	svg, cells := draw(o)
	for _, want := range []string{">BNN<", ">PBNN<", ">PBNN, all layers<", ">gapped wave<",
		">gapped wave in the gap<", ">MNIST<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("there is no panel or row %q", want)
		}
	}
	if n := strings.Count(svg, ">calibrated<"); n != 1 {
		t.Errorf("%d legends", n)
	}
	got := map[string]float64{}
	for _, c := range cells {
		got[c.Data+", "+c.Method+", "+c.Metric] = c.Ours
		if c.Paper != nil && (c.Metric != "accuracy" || c.Data != "mnist") {
			t.Errorf("%s, %s, %s has a number of the paper's", c.Data, c.Method, c.Metric)
		}
	}
	for _, method := range reliabilityMethods {
		if got["gapped_wave, "+method+", RMSE"] == got["gapped_wave, "+method+", RMSE in the gap"] {
			t.Errorf("%s: the errors in the gap are those on the test part", method)
		}
		for data, metrics := range map[string][]string{
			"gapped_wave": {"NLPD", "NLPD in the gap", "RMSE", "RMSE in the gap", "mean |coverage - level|",
				"mean |coverage - level| in the gap", "acceptance", "sigma^2", "skewness bias",
				"coverage of 50 % intervals", "coverage of 50 % intervals in the gap"},
			"mnist": {"NLPD", "accuracy", "ECE", "acceptance", "sigma^2", "skewness bias"},
		} {
			for _, metric := range metrics {
				v, ok := got[data+", "+method+", "+metric]
				noNoise := method == lastLayerFull && (metric == "sigma^2" || metric == "skewness bias")
				bounded := metric == "accuracy" || metric == "ECE" || metric == "acceptance"
				if !ok || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && !strings.HasPrefix(metric, "NLPD") ||
					(v == 0) != noNoise && metric != "skewness bias" && !strings.HasPrefix(metric, "coverage") || bounded && v > 1 {
					t.Errorf("%s, %s: %s is %v (there: %t)", data, method, metric, v, ok)
				}
			}
		}
	}
	if len(cells) != 3*(12+7) || loads != 1 {
		t.Errorf("%d cells, digits loaded %d times for three methods", len(cells), loads)
	}
	if again, same := draw(o); again != svg || !slices.EqualFunc(cells, same,
		func(a, b Cell) bool { return a.Ours == b.Ours && a.Method == b.Method }) || loads != 1 {
		t.Errorf("the second run is another one; digits loaded %d times", loads)
	}
}

// Methods of the last layer share a mode, whose other layer they share; a mode of all layers is another.
func TestReliabilityModes(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	r := &repetition{reliabilityData: reliabilityWave.short(3, shortWave), seed: 1}
	for method, dim := range map[string]int{lastLayerFull: 4, lastLayerPenalty: 4, wholePenalty: 10} {
		mode := must(r.mode(t.Context(), Options{}, method))
		if again, err := r.mode(t.Context(), Options{}, method); mode.Bound().D != dim || again != mode || err != nil {
			t.Errorf("%s: %d stochastic parameters, want %d, or another mode, %v", method, mode.Bound().D, dim, err)
		}
	}
	if len(r.modes) != 2 || r.modes[false] == r.modes[true] {
		t.Errorf("%d modes", len(r.modes))
	}
}

// A panel is of its own rows, those of all repetitions together.
func TestReliabilityPanel(t *testing.T) {
	repetition := func(rows, test, gap float64) Result {
		return Result{Series: map[string][]float64{
			"rows": {rows}, "level": {.5}, "coverage": {test}, "rows" + inGap: {rows}, "level" + inGap: {.5},
			"coverage" + inGap: {gap},
		}}
	}
	for ending, coverage := range map[string]float64{"": .5, inGap: .2} { // (10 x .2 + 30 x .6)/40, (10 x .8 + 30 x 0)/40
		panel := must(reliabilityPanel(ending, []Result{repetition(10, .2, .8), repetition(30, .6, 0)}))
		want := must((&pooled{levels: []float64{.5}, coverage: []float64{coverage}}).draw())
		got := must(panel.SVG())
		if exact, err := want.SVG(); err != nil || string(got) != string(exact) {
			t.Errorf("the panel%s is not of a coverage of %v, %v", ending, coverage, err)
		}
	}
}

// The rows in the gap are where the data have none, of the same distribution.
func TestGap(t *testing.T) {
	d := gap(1)
	failOn(d.Validate())
	square := 0.0
	for i := range d.Rows() {
		x := d.X.At(i, 0)
		if x < -1 || x > 1 {
			t.Errorf("row %d is at %v", i, x)
		}
		noise := (d.Y[i] - dataset.GappedWaveMean(x)) / penaltyNoise
		square += noise * noise / float64(d.Rows())
	}
	if math.Abs(square-1) > .2 { // 500 rows: a standard deviation of 0.063
		t.Errorf("the noise has %v times its variance", square)
	}
	if gap(1).Hash() != d.Hash() || gap(2).Hash() == d.Hash() {
		t.Error("the rows do not go by the seed")
	}
}
