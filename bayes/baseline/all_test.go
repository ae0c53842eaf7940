package baseline

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	for _, m := range Methods() {
		t.Run(m.Name(), func(t *testing.T) {
			r := fit(t, small, m, split3(t, line(60)), Settings{Epochs: 4, BatchSize: 8, Engine: goEngine(t)})
			t.Log(r.Status, r.Steps, r.Posterior.Particles(), r.Best, r.Elapsed, r.Trace[max(0,len(r.Trace)-1):])
		})
	}
}
