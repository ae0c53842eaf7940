package study

import (
	"fmt"
	"strings"
	"testing"

	"gobnn/viz"
)

// The ROC curves of all methods have a panel each on one scale, with one legend, MLE's curve in each; one that diverged
// has none.
func TestROCOfAll(t *testing.T) {
	group := []*trial{{Key: Key{Data: "ionosphere", Method: "diverged"}, results: []Result{diverged()}}}
	good, low := falsePositives(), falsePositives()
	for i, v := range good {
		good[i] = .5 + v/2
	}
	for _, m := range pmcRivals {
		group = append(group, &trial{Key: Key{Data: "ionosphere", Method: m}, results: []Result{{Series: map[string][]float64{
			"ROC": good, "ROC 95 % low": low, "ROC 95 % high": good}}}})
	}
	var all panels
	drawROC(&all, group)
	text := string(must(must(all.grid(viz.GridOptions{Columns: 1})).SVG()))
	for _, m := range pmcRivals[1:] {
		if n := strings.Count(text, ">"+m+"<"); n != 1 {
			t.Errorf("%s stands there %d times", m, n)
		}
	}
	for shared, want := range map[string]int{"MLE": 2, "diverged": 0, "their mean": 1, "fill:#DDF0FB": 10} {
		if n := strings.Count(text, shared); n != want {
			t.Errorf("%q stands there %d times, want %d", shared, n, want)
		}
	}
}

// Against iterations each score has a row with a panel for each method: PMCnet's mean, the paper's number, and a band
// where there are several repetitions. Classes are counted from 1, digits from 0.
func TestIterationsAndConfusion(t *testing.T) {
	var group []*trial
	for i, m := range []string{pmcPaper, pmcLight, "diverged"} {
		one := &trial{Key: Key{Data: "wine", Method: m}, paper: map[string]Reported{"AUC": {.99, 0}, "accuracy": {.98, 0}}}
		for r := range 2 - i {
			one.results = append(one.results, Result{Series: map[string][]float64{
				"AUC by iteration": {.5, .6 + float64(r)/10}, "accuracy by iteration": {.4, .5}}})
		}
		if len(one.results) == 0 {
			one.results = []Result{diverged()}
		}
		group = append(group, one)
	}
	var curves, cells panels
	drawIterations(&curves, group)
	text := string(must(must(curves.grid(viz.GridOptions{Columns: 1})).SVG()))
	for shared, want := range map[string]int{">PMCnet<": 4, ">" + pmcLight + "<": 2, "fill-opacity:0.16": 2,
		"diverged": 0} {
		if n := strings.Count(text, shared); n != want {
			t.Errorf("%q stands there %d times, want %d", shared, n, want)
		}
	}
	for _, classes := range []int{3, 10} {
		counts := make([]float64, classes*classes)
		for k := range classes {
			counts[k*classes+k] = 7
		}
		drawConfusion(&cells, []*trial{{Key: Key{Data: "glass", Method: "MLE"},
			results: []Result{{Series: map[string][]float64{"confusion": counts}}}}})
	}
	text = string(must(must(cells.grid(viz.GridOptions{Columns: 1})).SVG()))
	for name, want := range map[string]int{"1": 4, "3": 4, "9": 2} {
		if n := strings.Count(text, ">"+name+"<"); n != want {
			t.Errorf("class %s stands there %d times, want %d", name, n, want)
		}
	}
}

// The outputs have a column for each method that did not diverge, a row for each mean, and one legend.
func TestOutputsInColumns(t *testing.T) {
	var group []*trial
	methods := []string{pmcPaper, pmcTempered, pmcAnnealed}
	for i, m := range methods {
		series := map[string][]float64{}
		for k := range 4 * min(i, 1) { // the first has none
			series[fmt.Sprintf("outputs %d", k)] = []float64{.1, .3, .35, .6}
		}
		group = append(group, &trial{Key: Key{Data: "ionosphere", Method: m}, results: []Result{{Series: series}}})
	}
	var some, none panels
	drawOutputs(&some, group)
	if some.err != nil || len(some.figures) != 1 {
		t.Fatalf("%d figures, %v", len(some.figures), some.err)
	}
	text := string(must(some.figures[0].SVG()))
	if n := strings.Count(text, ", mean near "); n != 2*4 || strings.Count(text, ">beta density<") != 1 ||
		strings.Contains(text, ">"+pmcPaper+", mean") {
		t.Errorf("%d panels of two methods, want four each, one legend, and none of a method without outputs", n)
	}
	if drawOutputs(&none, group[:1]); none.err != nil || len(none.figures) != 0 {
		t.Errorf("no method with outputs: %d figures, %v", len(none.figures), none.err)
	}
}
