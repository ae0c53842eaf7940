package fbnn

import (
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"

	"github.com/gomlx/gomlx/core/graph"
)

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
		r := fitted(t, model, ces, parts, run.Settings{Engine: computetest.Go(t)})
		all := strings.Join(r.Warnings, "\n")
		if strings.Contains(all, "calibration: ") != c.warns || c.warns && !strings.Contains(all, "50 transitions diverged") {
			t.Errorf("%T: warnings %q", c.kernel, r.Warnings)
		}
	}
}
