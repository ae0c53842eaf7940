package smc_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/gomlx/core/tensors"
)

// normals are draws of the prior of check.Line made on the host, [J, 3].
func normals(seed uint64, particles int) *tensors.Tensor {
	r := rand.New(rand.NewPCG(seed, 7))
	flat := make([]float64, 3*particles)
	for i := range flat {
		flat[i] = r.NormFloat64()
	}
	return compute.Floats(compute.Float64, flat, particles, 3)
}

// Particles that begin at Problem.Start, given draws of the prior, have the exact posterior and evidence; all programs
// are compiled once, and a kernel that carries the log-density begins with that of these draws.
func TestStart(t *testing.T) {
	startsAreExact(t, exactSampler{name: "all", s: smc.Settings{Particles: 400}, stdDev: .3})
}

// startsAreExact calls the harness for each sampler.
func startsAreExact(t *testing.T, samplers ...exactSampler) {
	for _, c := range samplers {
		t.Run(c.name, func(t *testing.T) {
			line := check.Line()
			problem := linear(line)
			problem.Initial = nil
			sampler := smc.Sampler{Problem: problem, Kernel: mcmc.RandomWalkMetropolis{}}
			defer sampler.Close()
			s := c.s
			s.Engine, s.DType = computetest.Go(t), compute.Float64
			check.Sequential(t, func(seed uint64) (check.SequentialRun, error) {
				s.Seed = seed
				sampler.Problem.Start = normals(seed, s.Particles)
				r, err := sampler.Sample(t.Context(), s)
				if err != nil {
					return check.SequentialRun{}, err
				}
				phi, err := compute.Float64s(r.Phi)
				out := check.SequentialRun{Phi: phi, LogEvidence: r.LogEvidence, StdErr: r.LogEvidenceStdErr}
				for j := range r.LogWeights.Len() {
					out.LogWeights = append(out.LogWeights, r.LogWeights.At(j))
				}
				return out, err
			}, check.SequentialOptions{Problem: &line, Runs: 40, StdDev: c.stdDev})
		})
	}
}

// A run goes on from its checkpoint with the draws that it began at, and with no others; draws of another number are
// refused.
func TestStartResume(t *testing.T) {
	problem := linear(check.Line())
	problem.Initial, problem.Start = nil, normals(1, 50)
	s := smc.Settings{
		Particles: 50, Moves: 1, Engine: computetest.Go(t), DType: compute.Float64,
		Checkpoint: filepath.Join(t.TempDir(), "run"),
	}
	first, err := smc.Sample(t.Context(), problem, mcmc.RandomWalkMetropolis{}, s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := smc.Sample(t.Context(), problem, mcmc.RandomWalkMetropolis{}, s)
	if err != nil || again.LogEvidence != first.LogEvidence {
		t.Errorf("resumed: %v, log evidence %v and %v", err, again, first.LogEvidence)
	}
	problem.Start = normals(2, 50)
	if _, err = smc.Sample(t.Context(), problem, mcmc.RandomWalkMetropolis{}, s); !errors.Is(err, run.ErrOtherRun) {
		t.Errorf("with another start: %v", err)
	}
}
