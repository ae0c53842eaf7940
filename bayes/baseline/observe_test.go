package baseline

import (
	"errors"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
)

// Observe sees psi after each epoch of the training, and in the end that of the posterior; an error of its ends the run.
func TestObserve(t *testing.T) {
	parts := dataset.Parts{Train: line(40)}
	for _, method := range []Method{MAP{}, VI{}, Ensemble{Members: 2}, SWAG{Collect: 2}} {
		var epochs []int
		var last []float64
		settings := Settings{Epochs: 3, BatchSize: 8, Engine: goEngine(t), Observe: func(epoch int, psi []float64) error {
			epochs, last = append(epochs, epoch), psi
			return nil
		}}
		result := fitted(t, small, method, parts, settings)
		if !slices.Equal(epochs, []int{1, 2, 3}) {
			t.Errorf("%s: saw the epochs %v, want 1, 2, 3", method.Name(), epochs)
		}
		if want := result.Posterior.Bound().W; want > 0 && len(last) != want {
			t.Errorf("%s: psi has %d numbers, want %d", method.Name(), len(last), want)
		}
		if _, ensemble := method.(Ensemble); !ensemble && len(result.Best) == 0 {
			if _, swag := method.(SWAG); swag {
				continue // its psi is the mean of what came after
			}
			draws, err := result.Posterior.Draws()
			if err != nil {
				t.Fatal(err)
			}
			if psi, err := compute.Float64s(draws.Psi); err != nil || !slices.Equal(psi, last) {
				t.Errorf("%s: the last psi seen differs from the posterior's (%v)", method.Name(), err)
			}
		}
	}
	stop := errors.New("enough")
	_, err := Fit(t.Context(), small, MAP{}, parts, Settings{Epochs: 2, Engine: goEngine(t), Observe: func(int, []float64) error { return stop }})
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want Observe's", err)
	}
}
