package ohsmc

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
)

// The result does not depend on how many devices share the particles, beyond rounding: it is that of the Go backend, so
// that this test also compares what XLA makes of each algorithm with what other tests find right; each device holds its
// part of the particles; and a run on several devices that was cancelled goes on to the same bits. There are as many
// particles as rows in a batch, so that only the names of what is shared tell the two apart.
func TestDevices(t *testing.T) {
	engine := computetest.Several(t)
	training := particles.Training{Particles: 8, BatchSize: 8, Epochs: 1, Threshold: .9} // so that some step resamples
	all := training
	all.Threshold = 1
	for _, c := range []struct {
		algorithm fit.Method
		devices   int
		shared    []string
	}{
		{OpenHorizon{Training: all}, 4, []string{"phi", "best_phi"}},
		{Guided{Training: training, Proposal: Langevin{}, Adapt: .574}, 2, []string{"phi", "best_phi", "log_density"}},
		{SMC{Training: training, Kernel: mcmc.HMC{StepSize: .1, Steps: 2}, Moves: 1, Precondition: true}, 2, []string{
			"phi", "best_phi", moving + "phi", moving + "log_density", moving + "gradient", moving + "eve",
			moving + "unfinished", moving + "own/momentum", // and more of its own
		}},
	} {
		t.Run(fmt.Sprintf("%T", c.algorithm), func(t *testing.T) {
			if _, first := c.algorithm.(OpenHorizon); !first && testing.Short() {
				t.Skip("compiles long")
			}
			settings := run.Settings{Seed: 3, DType: compute.Float64, Engine: computetest.Go(t)}
			result, details := fitted(t, fittest.Small, c.algorithm, fittest.Parts(t, 60), settings)
			want := all64(t, result, details)
			if !slices.ContainsFunc(details.Trace, func(r particles.StepRecord) bool { return r.Resamplings > 0 }) {
				t.Error("nothing was resampled")
			}
			settings.Engine, settings.Devices = engine, c.devices
			result, details = fitted(t, fittest.Small, c.algorithm, fittest.Parts(t, 60), settings)
			got := all64(t, result, details)
			computetest.Near(t, fmt.Sprint(c.devices, " devices"), got, want, 1e-9)

			settings.Checkpoint = filepath.Join(t.TempDir(), "run")
			ctx, cancel := context.WithCancel(t.Context())
			ctx = with(ctx, func(s *particles.Session, made *particles.StepRecord) {
				if made != nil {
					holds(t, s, c.shared)
					cancel()
				}
			})
			part, err := fit.Fit(ctx, fittest.Small, watched{c.algorithm}, fittest.Parts(t, 60), settings)
			if err != nil || part.Status != run.Cancelled {
				t.Fatalf("%+v, %v", part, err)
			}
			ctx = with(t.Context(), func(*particles.Session, *particles.StepRecord) {})
			if part, err = fit.Fit(ctx, fittest.Small, watched{c.algorithm}, fittest.Parts(t, 60), settings); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(all64(t, part, fit.Details[*particles.Details](part)), got) {
				t.Error("the resumed run ends elsewhere")
			}
		})
	}
}

// all64 are the numbers of a result, with -1 for NaN.
func all64(t *testing.T, result *fit.Result, details *particles.Details) []float64 {
	all := fittest.Numbers(t, result.Posterior)
	for _, r := range details.Trace {
		values, err := compute.Float64s(run.Records([]particles.StepRecord{r}))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, values...)
	}
	for _, v := range details.Validated {
		all = append(all, v.NLPD)
	}
	for i, v := range all {
		if math.IsNaN(v) {
			all[i] = -1
		}
	}
	return all
}

// holds checks that each of several devices has its part of what is shared, and all of the rest.
func holds(t *testing.T, s *particles.Session, shared []string) {
	t.Helper()
	for _, name := range shared {
		if !slices.Contains(s.State.Names(), name) {
			t.Errorf("the state has no %q, only %q", name, s.State.Names())
		}
	}
	for _, name := range s.State.Names() {
		whole, err := s.State.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		want := whole[name].Shape().Clone()
		if slices.Contains(shared, name) || strings.HasPrefix(name, moving+"own/") {
			want.Dimensions[0] = s.Particles / s.Devices
		}
		shards, err := s.State.Shards(name)
		if err != nil {
			t.Fatal(err)
		}
		for device, shard := range shards {
			if !shard.Shape().Equal(want) {
				t.Errorf("device %d of %d holds %q of shape %s, want %s", device, len(shards), name, shard.Shape(), want)
			}
		}
	}
}
