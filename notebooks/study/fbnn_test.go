package study

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/fbnn"

	"gonum.org/v1/gonum/mat"
)

// tinyCES is FBNN with far too few pairs.
func tinyCES() fbnn.CES {
	return fbnn.CES{Pairs: 20, PairsThin: 1, PairsWarmUp: 10, Draws: 20, Regressor: fbnn.RandomNetwork{Units: 20}}
}

// A repetition of each kind of row has the scores that its table prints, each within its bounds. The emulator's outputs
// and the network's own predictions are scored apart in paper mode, and Phi of a baseline is of the same likelihood as
// that of a chain.
func TestFBNNRepetition(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	paper := tinyCES()
	paper.PaperMode = true
	chain := fbnn.Chain{Draws: 20, Thin: 1, WarmUp: 10}
	scored := []string{"MSE", "coverage of f", "coverage of y", "NLPD"}
	for _, c := range []struct {
		set    string
		method fbnnMethod
		values []string
	}{
		{"wine", fbnnMethod{"FBNN (SGHMC-pCN)" + inPaper, paper}, slices.DeleteFunc(slices.Clone(regressionMetrics),
			func(s string) bool { return s == speedUp || s == "second stage" })},
		{"wine", fbnnMethod{fbnnBaseline, chain}, append(slices.Clone(scored), "Phi", "full evaluations")},
		{"wine", fbnnMethod{"DNN", baseline.MLE{}}, append(slices.Clone(scored), "Phi")},
		{"simulated regression" + inBlocks, fbnnMethod{priorRow, fbnn.Prior{Draws: 12}},
			append(slices.Clone(scored), "Phi")},
		{"simulated classification", fbnnMethod{fbnnBaseline, chain},
			[]string{"accuracy", "ECE", "gap to P(y = 1)", "NLPD", "Phi"}},
	} {
		t.Run(c.set+" "+c.method.name, func(t *testing.T) {
			d := fbnnSetOf(c.set)
			parts := must(d.parts(0, false))
			for _, part := range []**dataset.Dataset{&parts.Train, &parts.Test} {
				if *part != nil { // else in blocks
					*part = firstOf(*part, 100)
				}
			}
			r := fbnnRun{fbnnSet: d, method: c.method, epochs: 2, parts: parts, rows: 60, say: func(string, ...any) {}}
			out := must(r.repetition(t.Context()))
			for _, name := range c.values {
				v, ok := out.Values[name]
				if !ok {
					t.Errorf("there is no %q", name)
				}
				share := strings.HasPrefix(name, "coverage") || strings.HasPrefix(name, "accuracy")
				if math.IsNaN(v) || share && (v < 0 || v > 1) {
					t.Errorf("%s is %v", name, v)
				}
			}
			if ratio := out.Values["Phi of the prior"] / out.Values["Phi"]; c.method.name == fbnnBaseline && ratio < 1 {
				t.Errorf("Phi is %v, over the prior %v", out.Values["Phi"], out.Values["Phi of the prior"])
			}
			if c.method.name != fbnnBaseline {
				return
			}
			// The same Phi by the predictions of the training part, as of a baseline.
			f := must(r.fit(t.Context()))
			other := Result{Values: map[string]float64{}}
			r.potential(t.Context(), f, other)
			if a, b := out.Values["Phi"], other.Values["Phi"]; math.Abs(a-b) > .05*math.Abs(a) {
				t.Errorf("Phi is %v of the chain, %v of its predictions", a, b)
			}
		})
	}
}

// The networks have as many weights as the paper's, or as the tables' notes say; Adult has the 14 columns of the
// original, of which a category's is its number; what a user would have to bring is refused with where to put it.
func TestFBNNSets(t *testing.T) {
	for name, want := range map[string]int{"wine": 241, "boston": 3009, "adult": 2761, "simulated regression": 20_241,
		"simulated classification": 20_241} {
		d := fbnnSetOf(name)
		parts := must(d.parts(0, false))
		bound, err := d.model().Bind(parts.Train.Dims(), 1)
		if err != nil || bound.D != want {
			t.Errorf("%s: %d weights of %d features, want %d: %v", name, bound.D, parts.Train.Dims(), want, err)
		}
	}
	for name, c := range map[string]struct{ features, targets, want int }{
		"simulated regression" + inBlocks: {simulatedFeatures, 1, 20_241}, "NACC": {56, 1, 5761},
		"YearPredictionMSD": {90, 1, 7937}, "MNIST": {784, 10, 3985}, "NACC diagnosis": {56, 1, 5761},
		"CelebA": {39, 1, 4673}, "SVHN": {3072, 10, 199_082},
	} {
		bound, err := fbnnSetOf(name).model().Bind(c.features, c.targets)
		if err != nil || bound.D != c.want {
			t.Errorf("%s: %d weights, want %d: %v", name, bound.D, c.want, err)
		}
	}
	adult := must(dataset.MustLoad("adult").Subset([]int{0, 1, 2, 3, 4, 5}))
	short := numbered(adult)
	k := slices.Index(adult.Features, "workclass=Private")
	for i := range adult.Rows() {
		if age := adult.X.At(i, 0); short.X.At(i, 0) != age {
			t.Errorf("age of row %d: %v, want %v", i, short.X.At(i, 0), age)
		}
		if private := adult.X.At(i, k) == 1; private != (short.X.At(i, 1) == float64(k-1)) {
			t.Errorf("row %d: workclass %v", i, short.X.At(i, 1))
		}
	}
	t.Setenv("GOBNN_DATA", t.TempDir())
	t.Setenv("GOBNN_CACHE", t.TempDir())
	for name, file := range map[string]string{"CelebA": "list_attr_celeba.txt", "SVHN": "train_32x32.mat"} {
		if _, err := fbnnSetOf(name).parts(0, false); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := ran(t, "fbnn.tableA1", Options{Data: []string{"YearPredictionMSD"}, CacheDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "year.csv") {
		t.Errorf("a set that is not part of the project: %v", err)
	}
}

// The paper's percentages are shares; a speed-up is a ratio to BNN-SGHMC's.
func TestFBNNPaper(t *testing.T) {
	boston := reportedIn("fbnn", "boston")["FBNN (SGHMC-pCN)"+inPaper]
	adult := reportedIn("fbnn", "adult")[fbnnBaseline]
	for _, c := range []struct{ got, want float64 }{
		{boston["MSE"].Value, 3.82}, {boston["coverage of f"].Value, .811}, {boston[speedUp].Value, 11.94},
		{adult["accuracy"].Value, .83}, {adult["ECE"].Value, .574}, {adult["ESS, median"].Value, 202},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	of := func(method string, all ...float64) *trial {
		one := &trial{Key: Key{Data: "boston", Method: method}}
		for _, v := range all {
			one.results = append(one.results, Result{Values: map[string]float64{essOfSeconds: v}})
		}
		return one
	}
	cells := fbnnCells("x", []string{speedUp})([]*trial{of("DNN", math.NaN()), of(fbnnBaseline, .4, .6),
		of("BNN-pCN", 1, 3)})
	if len(cells) != 2 || cells[1].Method != "BNN-pCN" || cells[1].Ours != 4 || !math.IsNaN(cells[0].SE) ||
		math.Abs(cells[1].SE-4*math.Hypot(1/2., .1/.5)) > 1e-12 {
		t.Errorf("speed-ups %+v, want 1 and 4, with the error of the second", cells)
	}
}

// Two rows of class 0 that are sure of it are at a gap of .95 to their P(y = 1) = .05, two of class 1 at one of .05:
// that is what makes an ECE large that takes P(y = 1) for the confidence.
func TestGapToProbability(t *testing.T) {
	probability, y := []float64{.05, .05, .95, .95}, []float64{0, 0, 1, 1}
	if got := gapToProbability(probability, y); math.Abs(got-(.95+.05)/2) > 1e-12 {
		t.Errorf("%v, want .5", got)
	}
}

// Along the first component the targets and f have a band each, and the plane's panels are four, also where a draw fits
// better than the plane does anywhere.
func TestFBNNFigures(t *testing.T) {
	const rows = 80
	x, y := mat.NewDense(rows, 2, nil), make([]float64, rows)
	r := Result{Series: map[string][]float64{}}
	for i := range rows {
		x.SetRow(i, []float64{float64(i), float64(i % 3)})
		y[i] = 100 * float64(2*(i%2)-1) // the mean of ten rows is near 0, its standard error 33
		for name, v := range map[string]float64{"mean": 0, "lower": -20, "upper": 20} {
			r.Series[name] = append(r.Series[name], v)
		}
	}
	svg := string(must(must(drawAlong("t", x, y, r)).SVG()))
	if n := strings.Count(svg, "fill-opacity:0.16"); n != 2 || strings.Contains(svg, ">100<") {
		t.Errorf("%d bands, want one of the targets' mean and one of f: %s", n, svg)
	}
	plane := Result{Values: map[string]float64{"Phi of the prior": 900}, Series: map[string][]float64{
		"x": {0, 1}, "y": {0, 1}, "u1": {.5}, "u2": {.5}, "true": {1, 2, 3, 400}, "emulated": {2, 3, 4, 5},
	}}
	for _, suffix := range []string{inPaper, byLibrary} {
		plane.Series["true Phi"+suffix], plane.Series["emulated Phi"+suffix] = []float64{5, -30, 7}, []float64{2, 3, 4}
	}
	var all panels
	if drawPlane(&all, "boston", plane); all.err != nil || len(all.figures) != 4 {
		t.Errorf("%d panels, %v", len(all.figures), all.err)
	}
}

// Bins have all rows, also where many have the same confidence, at the end or everywhere.
func TestEqualBins(t *testing.T) {
	for _, c := range []struct {
		probability []float64
		counts      []int
	}{
		{[]float64{.6, .7, .8, .1}, []int{1, 1, 1, 1}}, {[]float64{.4, 1, 0, 1}, []int{1, 3}},
		{[]float64{1, 1, 0, 1}, []int{4}},
	} {
		var counts []int
		for _, b := range equalBins(c.probability, []float64{1, 1, 0, 0}, 4) {
			counts = append(counts, b.Count)
		}
		if !slices.Equal(counts, c.counts) {
			t.Errorf("%v: bins of %v, want %v", c.probability, counts, c.counts)
		}
	}
}
