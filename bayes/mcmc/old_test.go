package mcmc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"gobnn/bayes/density"
	"gobnn/bayes/fit"
)

// Sampler samples one problem repeatedly, and compiles it once.
type Sampler struct {
	Problem density.Problem
	Kernel  Kernel
	number  uint64
}

var samplers atomic.Uint64

// keyed is the sampler's problem, told apart from those of others.
func (s *Sampler) keyed() density.Problem {
	if s.number == 0 {
		s.number = samplers.Add(1)
	}
	return s.Problem.Keyed("test", s.number)
}

func (s *Sampler) Sample(ctx context.Context, settings Settings) (*Result, error) {
	return Sample(ctx, s.keyed(), s.Kernel, settings)
}

// held is Chains that hand over their run before its first step.
type held struct {
	Chains
	run **sampling
}

var errHeld = errors.New("held")

func (h held) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := h.Chains.Prepare(j)
	if err == nil {
		h.Chains = prepared.(Chains)
	}
	return h, err
}

func (h held) Run(_ context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := j.Density(h.Chains.Chains)
	if err != nil {
		return nil, err
	}
	*h.run = newSampling(j, h.Chains, problem)
	return nil, errHeld
}

// newSampling is a run before its first step.
func (s *Sampler) newSampling(t testing.TB, settings Settings) *sampling {
	t.Helper()
	var r *sampling
	chains, of := settings.apart(s.Kernel)
	if _, err := fit.Sample(t.Context(), s.keyed(), held{chains, &r}, of); !errors.Is(err, errHeld) {
		t.Fatal(fmt.Errorf("a run before its first step: %w", err))
	}
	return r
}
