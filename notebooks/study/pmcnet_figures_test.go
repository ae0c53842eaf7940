package study

import (
	"fmt"
	"strings"
	"testing"

	"gobnn/viz"
)

// The ROC curves of all methods, MLE among them, fit into two panels, which have the diagonal and one scale; of ours
// alone there is one.
func TestROCOfAll(t *testing.T) {
	var group []*trial
	good := falsePositives()
	for i, v := range good {
		good[i] = .5 + v/2
	}
	for _, m := range pmcRivals {
		group = append(group, &trial{Key: Key{Data: "ionosphere", Method: m},
			results: []Result{{Series: map[string][]float64{"ROC": good}}}})
	}
	var two, one panels
	drawROC(&two, group)
	if len(two.figures) != 2 {
		t.Fatalf("%d panels, %v", len(two.figures), two.err)
	}
	text := string(must(must(two.grid(viz.GridOptions{Columns: 2})).SVG()))
	for _, m := range pmcRivals {
		if !strings.Contains(text, ">"+m+"<") {
			t.Errorf("there is no %s", m)
		}
	}
	for shared, want := range map[string]int{"chance": 2, "0": 4, pmcPaper: 2} {
		if n := strings.Count(text, ">"+shared+"<"); n != want {
			t.Errorf("%q stands there %d times, want %d", shared, n, want)
		}
	}
	drawROC(&one, group[len(group)-1:])
	if one.err != nil || len(one.figures) != 1 {
		t.Errorf("of ours alone: %d panels, %v", len(one.figures), one.err)
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
