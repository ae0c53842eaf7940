package study

import (
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/mnist"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
)

// small is a picture set that trains in a moment, in rows and network.
func (s pictureSet) small() pictureSet {
	s.model = firstStochastic(nn.CNN{Height: mnist.Side, Width: mnist.Side, Activation: nn.Tanh,
		Convolutions: []nn.Conv{{Filters: 1, Kernel: 1, Pool: 14}}})
	s.batches, s.particles = []int{10, 20}, 3
	s.reduced = pictureSize{20, 10, 20, extent{reps: 1, epochs: 3}}
	return s
}

// Tables on pictures have the paper's methods at each batch size, and what was interrupted goes on where it stopped:
// with the same numbers as a run that was not.
func TestPictures(t *testing.T) {
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	s := guidedDigits.small()
	all := Experiment{ID: "gohsmc.table2", trials: pictureTrials(s)}
	one := []string{"Random Walk", "SGHMC"} // of the two kinds of curves
	want := must(all.Run(t.Context(), Options{CacheDir: t.TempDir(), Methods: one}))
	var cells []Cell
	var err error
	interrupted := Options{CacheDir: t.TempDir(), Methods: one}
	stops := 0
	for ; ; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		interrupted.Progress = func(line string) { // a fit's first: the next run is past it, or does not begin anew
			if stops < 2 && strings.Contains(line, "attempt 1 of 1, ") {
				cancel()
			}
		}
		cells, err = all.Run(ctx, interrupted)
		cancel()
		if !errors.Is(err, context.Canceled) {
			break
		}
	}
	if err != nil || stops != 2 {
		t.Fatalf("after %d interruptions: %v", stops, err)
	}
	values := func(cells []Cell) map[string]float64 {
		of := map[string]float64{}
		for _, c := range cells {
			if c.Metric != "seconds" {
				of[c.Data+", "+c.Method+", "+c.Metric] = c.Ours
			}
		}
		return of
	}
	if got := values(cells); !reflect.DeepEqual(got, values(want)) {
		t.Errorf("after interruptions %v, want %v", got, values(want))
	}
	names := strings.Join(slices.Sorted(maps.Keys(values(want))), "\n")
	for _, name := range []string{"mnist, batch 10, Random Walk, test loss", "mnist, batch 20, Random Walk, ESS",
		"mnist, batch 10, SGHMC, accuracy"} {
		if v, ok := values(want)[name]; !ok || math.IsNaN(v) {
			t.Errorf("%s is %v; there are\n%s", name, v, names)
		}
	}
	for _, method := range one { // SGHMC's training and chains together too
		if v := values(want)["mnist, batch 20, "+method+", epochs"]; v != 3 {
			t.Errorf("%s made %v epochs, want 3", method, v)
		}
	}
	figure, _, err := Experiment{ID: "gohsmc.fig2", trials: pictureTrials(s), draw: picturePanels("epoch")}.Draw(
		t.Context(), interrupted)
	if err != nil || figure == nil {
		t.Errorf("figure 2: %v", err)
	}
	s.batches, interrupted.Methods = s.batches[:1], nil
	equal := must(Experiment{ID: "gohsmc.table10", trials: equalPictureTrials(s)}.Run(t.Context(), interrupted))
	for _, c := range equal {
		if c.Method != "Random Walk" && c.Method != "Langevin" {
			t.Errorf("%+v", c)
		}
	}
}

// A training and chains on mini-batches share the epochs, to the last move.
func TestHalves(t *testing.T) {
	for _, c := range []struct{ epochs, perEpoch, training, warmUp, draws, thin int }{
		{200, 48, 100, 2400, 10, 240}, {6, 3, 3, 4, 5, 1}, {4, 2, 2, 2, 2, 1}, {3, 7, 1, 7, 7, 1}, {1, 9, 1, 1, 1, 1},
		{30, 499, 15, 3745, 10, 374},
	} {
		training, chains := halves(c.epochs, c.perEpoch)
		want := mcmc.Chains{WarmUp: c.warmUp, Draws: c.draws, Thin: c.thin}
		if training != c.training || !reflect.DeepEqual(chains, want) {
			t.Errorf("%d epochs of %d: %d of training, %+v", c.epochs, c.perEpoch, training, chains)
		}
	}
}

// A network's posterior is scored as a detector of other pictures by each of the scores, with a curve of Figure 5.
func TestDetected(t *testing.T) {
	s := guidedDigits.small()
	parts := must(s.reduced.parts(digits, 1))
	noise := make([]byte, 40*mnist.Side*mnist.Side)
	for i := range noise {
		noise[i] = byte(i * i * 37)
	}
	outside := *parts.Test
	outside.X = dataset.NewPixels(noise, mnist.Side*mnist.Side)
	result := must(fit.Fit(t.Context(), s.model, baseline.MAP{Training: baseline.Training{Epochs: 30, BatchSize: 10}},
		dataset.Parts{Train: parts.Train}, run.Settings{Engine: computetest.Go(t)}))
	r := detected(t.Context(), result.Posterior, parts, &outside)
	for _, name := range detectionMetrics {
		if v, ok := r.Values[name]; !ok || !(v >= 0 && v <= 1) {
			t.Errorf("%s is %v, %v", name, v, ok)
		}
	}
	if v := r.Values["specificity"]; v < .3 {
		t.Errorf("specificity %v, where 95 %% of other rows of the same kind stay under the threshold", v)
	}
	false1, true1 := r.Series["false positive rate"], r.Series["true positive rate"]
	sorted := slices.IsSorted(false1) && slices.IsSorted(true1)
	if n := len(false1); n < 2 || false1[0] != 0 || false1[n-1] != 1 || !sorted {
		t.Errorf("the curve has %d points, sorted %v", n, sorted)
	}
	done := []*trial{{Key: Key{Method: "VI"}, results: []Result{r, r}}}
	if figure, err := drawDetection(t.Context(), Options{}, done); err != nil || figure == nil {
		t.Error(err)
	}
}
