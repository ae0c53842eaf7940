package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/viz"
)

// The ROC curves of all methods, MLE among them, fit into two panels; of ours alone there is one.
func TestROCOfAll(t *testing.T) {
	results := map[string][]Result{}
	for _, m := range pmcRivals {
		results[m] = []Result{{Series: map[string][]float64{"ROC": falsePositives()}}}
	}
	panels, err := drawROC(pmcnetData{name: "ionosphere"}, pmcRivals, results)
	if err != nil || len(panels) != 2 {
		t.Fatalf("%d panels, %v", len(panels), err)
	}
	all, err := viz.Grid(viz.GridOptions{Columns: 2}, panels...)
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
	panels, err = drawROC(pmcnetData{name: "ionosphere"}, []string{pmcAnnealed}, results)
	if err != nil || len(panels) != 1 {
		t.Errorf("of ours alone: %d panels, %v", len(panels), err)
	}
}
