package study

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	all, err := two.grid(viz.GridOptions{Columns: 2})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roc.svg")
	if err := all.Save(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range pmcRivals {
		if !strings.Contains(string(text), ">"+m+"<") {
			t.Errorf("there is no %s", m)
		}
	}
	if n := strings.Count(string(text), ">chance<"); n != 2 {
		t.Errorf("%d of the two panels have the diagonal", n)
	}
	if n := strings.Count(string(text), ">0<"); n != 4 {
		t.Errorf("%d of the four axes begin at 0", n)
	}
	if n := strings.Count(string(text), ">"+pmcPaper+"<"); n != 2 {
		t.Errorf("%s is in %d panels, want both", pmcPaper, n)
	}
	for _, title := range []string{"ionosphere: the paper&#39;s methods", "ionosphere: PMCnet and ours"} {
		if !strings.Contains(strings.ReplaceAll(string(text), "'", "&#39;"), title) {
			t.Errorf("no panel is titled %q", title)
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
	svg, err := some.figures[0].SVG()
	if err != nil {
		t.Fatal(err)
	}
	text := string(svg)
	heights := map[string]bool{} // of the titles
	for _, m := range methods[1:] {
		for _, mean := range []string{"0.1", "0.4", "0.6", "0.9"} {
			title := regexp.MustCompile(`y="([-\d.]+)"[^>]*>` + m + ", mean near " + mean + "<").FindStringSubmatch(text)
			if title == nil {
				t.Fatalf("%s has no panel of the mean %s", m, mean)
			}
			heights[title[1]] = true
		}
	}
	if len(heights) != 4 {
		t.Errorf("the panels stand at %d heights, want 4: one for each mean", len(heights))
	}
	if n := strings.Count(text, ">beta density<"); n != 1 {
		t.Errorf("%d legends, want one", n)
	}
	if strings.Contains(text, ">"+pmcPaper+", mean") {
		t.Error("a method without outputs has a panel")
	}
	if drawOutputs(&none, group[:1]); none.err != nil || len(none.figures) != 0 {
		t.Errorf("no method with outputs: %d figures, %v", len(none.figures), none.err)
	}
}
