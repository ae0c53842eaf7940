package study

import "testing"

// The distance of an emulated posterior is that of the theorem's figure: between 0 and 1, and for the emulator's error
// that is known about its standard deviation over the root of 8.
func TestTheorems(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	before := theoremPairs
	theoremPairs = []int{10, 160}
	t.Cleanup(func() { theoremPairs = before })
	e := must(Find("fbnn.theorems"))
	figure, cells, err := e.Draw(t.Context(), Options{CacheDir: t.TempDir(), Reps: 1})
	if err != nil || figure == nil {
		t.Fatal(err)
	}
	of := map[string]float64{}
	for _, c := range cells {
		of[c.Method+", "+c.Metric] = c.Ours
	}
	few, many := of["10 pairs, Hellinger distance"], of["160 pairs, Hellinger distance"]
	std := of["160 pairs, std of the error of Phi"]
	if !(many > 0 && many < few && few < 1) || many < std/6 || many > std {
		t.Errorf("distances %v and %v, the second with an error of %v", few, many, std)
	}
}
