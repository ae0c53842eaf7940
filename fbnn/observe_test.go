package fbnn

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

// Elapsed is the time of all steps, also of those that an earlier session has made.
func TestElapsed(t *testing.T) {
	model, parts, _ := regression()
	ces := quick(CES{Regressor: Network{Activations: []nn.Activation{nn.ReLU}, Epochs: 200}, Draws: 20})
	spent := map[string]time.Duration{} // by step
	settings := run.Settings{Engine: computetest.Go(t), Checkpoint: t.TempDir() + "/run"}
	settings.Progress = func(p run.Progress) {
		if step, _, _ := strings.Cut(p.Stage, ":"); p.Status == "" { // else it is the end of all
			spent[step] = max(spent[step], p.Elapsed)
		}
	}
	for _, session := range []string{"first", "second"} {
		r, err := fitted(t.Context(), model, ces, parts, settings)
		if err != nil {
			t.Fatal(err)
		}
		least := spent["calibration"] + spent["emulation"] + spent["sampling"]
		if settings.Progress = nil; len(spent) != 3 || r.Elapsed < least {
			t.Errorf("after the %s session: %v, and the steps took %v", session, r.Elapsed, spent)
		}
	}
}

// The scores of an emulator's training are squared errors, and are not called NLPD.
func TestEmulatorScores(t *testing.T) {
	model, parts, _ := regression()
	ces := quick(CES{Regressor: Network{Activations: []nn.Activation{nn.ReLU}, Epochs: 200}, Draws: 20})
	var names []string
	settings := run.Settings{Engine: computetest.Go(t), Progress: func(p run.Progress) {
		if strings.HasPrefix(p.Stage, "emulation") {
			names = nil
			for _, s := range p.Scores {
				names = append(names, s.Name)
			}
		}
	}}
	if _, err := fitted(t.Context(), model, ces, parts, settings); err != nil {
		t.Fatal(err)
	}
	if want := []string{"training loss", "validation squared error", "best validation squared error"}; !slices.Equal(names,
		want) {
		t.Errorf("scores %q, want %q", names, want)
	}
}

// divergent is an HMC that calls the trajectories that it rejects divergent.
type divergent struct{ mcmc.HMC }

func (k divergent) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	next, info := k.HMC.Move(rng, s, target, tuning)
	info.Divergent = graph.OneMinus(info.Accepted)
	return next, info
}

// What makes the pairs doubtful, such as transitions of the calibration that diverged, is among the result's warnings.
func TestWarnsOfCalibration(t *testing.T) {
	model, parts, _ := regression()
	kernel := mcmc.HMC{StepSize: .12, Steps: 5}
	for _, c := range []struct {
		kernel mcmc.Kernel
		warns  bool
	}{{kernel, false}, {divergent{kernel}, true}} {
		ces := quick(CES{Calibration: c.kernel, Draws: 40})
		r, err := fitted(t.Context(), model, ces, parts, run.Settings{Engine: computetest.Go(t)})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(r.Warnings, "\n")
		if strings.Contains(all, "calibration: ") != c.warns || c.warns && !strings.Contains(all, "50 transitions diverged") {
			t.Errorf("%T: warnings %q", c.kernel, r.Warnings)
		}
	}
}
