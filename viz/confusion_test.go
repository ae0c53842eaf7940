package viz_test

import (
	"strings"
	"testing"

	"gobnn/viz"
)

// Classes are called by their names, beside the rows and below the columns, also long ones.
func TestConfusionNames(t *testing.T) {
	for _, names := range [][]string{{"no", "yes"}, {"Iris versicolor", "Iris virginica"}} {
		f, err := viz.Confusion([][]float64{{3, 1}, {0, 4}}, names, viz.Frame{})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if got := strings.Count(string(svg), ">"+name); got != 2 {
				t.Errorf("%q is written %d times", name, got)
			}
		}
	}
}
