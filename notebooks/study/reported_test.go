package study

import (
	"math"
	"reflect"
	"testing"
)

// Each number of the papers' tables stands beside ours: its method is one of a study, on that data set.
func TestReported(t *testing.T) {
	shown := map[uintptr]bool{}
	for _, e := range All() {
		all := must(e.trials(Options{}))
		for _, one := range all {
			shown[reflect.ValueOf(one.paper).Pointer()] = true
		}
	}
	for table, methods := range reported {
		for method, numbers := range methods {
			if !shown[reflect.ValueOf(numbers).Pointer()] || len(numbers) == 0 {
				t.Errorf("%v: no study shows the numbers of %q, %v", table, method, numbers)
			}
		}
	}
	read := readReported("# a\n\ns | d | NLPD; share [%]; none | ± over 4 runs\nm: 1.5±.2 50±10 -\n\n" +
		"s | e | x | ± over draws\nm: 2±3")
	for data, want := range map[string]map[string]Reported{
		"d": {"NLPD": {1.5, .1}, "share": {.5, .05}}, "e": {"x": {2, 0}, "x std": {3, 0}},
	} {
		if got := read[[2]string{"s", data}]["m"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", data, got, want)
		}
	}
	glass := reportedIn("ohsmc.table8", "glass")["VB"]["particle ECE"]
	if glass.Value != .22 || math.Abs(glass.SE-.09/math.Sqrt(10)) > 1e-9 {
		t.Errorf("%v", glass)
	}
}
