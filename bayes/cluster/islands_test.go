package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/cluster"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"gonum.org/v1/gonum/floats"
)

// fixed is tempered SMC whose kernel depends on nothing that the particles do, with so few of these that the islands'
// weights differ much.
var fixed = smc.Tempered{Kernel: mcmc.PreconditionedCrankNicolson{Beta: .2}, Particles: 10, Moves: 7,
	Ladder: []float64{.005, .05, .3, 1}}

const seedThatMeets = 5 // at power .3

// meeting are islands that are resampled on the way.
func meeting(ctx context.Context, t *testing.T, folder string, settings run.Settings) (*fit.Result, error) {
	t.Helper()
	model, parts := line()
	settings.Engine = computetest.Go(t)
	return cluster.Fit(ctx, cluster.Options{Folder: folder}, 4, model, fixed, parts, settings)
}

// bits are the particles, weights and evidence of a result.
func bits(t *testing.T, result *fit.Result) string {
	t.Helper()
	draws := computetest.Must(result.Posterior.Draws())
	phi := computetest.Must(compute.Float64s(draws.Phi))
	return fmt.Sprint(phi, draws.LogWeights, draws.Evidence, fit.Details[[]cluster.Meeting](result))
}

// Islands whose call ends every eleven steps, within a stage or between two, give in the end the bits of a call that
// did not end; so does a call that finds them done.
func TestIslandsGoOn(t *testing.T) {
	settings := run.Settings{Seed: seedThatMeets}
	whole, err := meeting(t.Context(), t, t.TempDir(), settings)
	if err != nil {
		t.Fatal(err)
	}
	folder, calls := t.TempDir(), 0
	for done := false; !done && calls < 50; calls++ {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		result, err := meeting(run.Watched(ctx, func(run.Progress, run.Machine) {
			if steps++; steps == 11 {
				cancel()
			}
		}), t, folder, settings)
		if done = err == nil; done && bits(t, result) != bits(t, whole) {
			t.Error("other bits after interruptions")
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	again, err := meeting(t.Context(), t, folder, settings)
	if err != nil || bits(t, again) != bits(t, whole) {
		t.Errorf("other bits when all are done, or %v", err)
	}
	if calls < 5 || calls == 50 {
		t.Errorf("%d calls: too few to be interrupted anywhere, or too many to go on each time", calls)
	}
}

// Islands that were resampled are those of the families that the meetings tell of, and do not stay copies: they have
// random numbers of their own. Islands that were not weigh as at the last meeting.
func TestIslandsMeet(t *testing.T) {
	for _, seed := range []uint64{1, seedThatMeets} {
		folder := t.TempDir()
		result := computetest.Must(meeting(t.Context(), t, folder, run.Settings{Seed: seed}))
		meetings := fit.Details[[]cluster.Meeting](result)
		if len(meetings) != 4 || meetings[2].Resampled != (seed == seedThatMeets) || meetings[3].Resampled {
			t.Fatalf("seed %d: they met as %+v", seed, meetings)
		}
		values := computetest.Must(result.Posterior.Coordinate(0))
		of, copies, sums, families := map[float64]int{}, 0, make([]float64, 4), map[float64]int{}
		for j, w := range result.Posterior.LogWeights().Weights() {
			island := j / fixed.Particles
			sums[island] += w
			if other, ok := of[values[j]]; ok && other != island {
				copies++
			}
			of[values[j]] = island
		}
		if copies > len(values)/4 {
			t.Errorf("seed %d: %d of %d particles are copies of particles on other islands", seed, copies, len(values))
		}
		ess := 1 / floats.Dot(sums, sums)
		if told := result.Posterior.Diagnostics()[bayes.IslandsESS]; math.Abs(ess-meetings[3].ESS) > 1e-9 ||
			math.Abs(ess-told) > 1e-9 {
			t.Errorf("seed %d: the weights are of %v islands, told are %v, and met have %v", seed, ess, told, meetings[3].ESS)
		}
		for k := range sums {
			file, err := tensorfile.Read(filepath.Join(folder, fmt.Sprintf("stage 5 island %d", k+1), "checkpoint"))
			if err != nil {
				t.Fatal(err)
			}
			trace := computetest.Must(compute.Float64s(file.Tensors["trace"]))
			families[trace[1]]++ // the first increment of the log evidence tells first islands apart
		}
		if want := int(math.Ceil(meetings[3].First)); seed == seedThatMeets && len(families) != want {
			t.Errorf("%d first islands have descendants, %d by the meeting", len(families), want)
		}
	}
}

// Islands that are of another fit are refused, and not joined in silence: of other settings, another seed, or another
// number of islands, whose random numbers are others.
func TestIslandsOfAnotherFolder(t *testing.T) {
	model, parts := line()
	o := cluster.Options{Folder: filepath.Join(t.TempDir(), "islands")}
	fitted := func(islands, particles int, seed uint64) error {
		method := smc.Tempered{Particles: particles, Ladder: []float64{.1, 1}, Moves: 1}
		_, err := cluster.Fit(t.Context(), o, islands, model, method, parts, run.Settings{Seed: seed})
		return err
	}
	computetest.NoError(t, fitted(2, 50, 1))
	for _, err := range []error{fitted(3, 50, 1), fitted(2, 60, 1), fitted(2, 50, 2)} {
		if !errors.Is(err, run.ErrOtherRun) {
			t.Errorf("islands of another fit: %v", err)
		}
	}
	if err := fitted(2, 50, 1); err != nil {
		t.Error(err)
	}
}
