package tryout_test

import (
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"
	"gobnn/pmcnet"
	"gobnn/viz"

	"gonum.org/v1/gonum/mat"
)

type own struct{}

// Parts of the library's packages need no trial; all others do, those of the module's other folders and of tests too.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		part    any
		foreign bool
	}{
		{bayes.Normal{}, false}, {&bayes.Normal{}, false}, {density.Func(nil), false}, {pmcnet.PMC{}, false},
		{own{}, true}, {&own{}, true}, {viz.Frame{}, true}, {mat.Dense{}, true},
	} {
		if got := tryout.Foreign(c.part); got != c.foreign {
			t.Errorf("%T: foreign is %v", c.part, got)
		}
	}
}
