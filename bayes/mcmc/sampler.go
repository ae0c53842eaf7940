package mcmc

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
)

// Sampler samples repeatedly, with different seeds and settings, and different Problem.Data and Problem.Start of the
// same names and shapes, and compiles only once for each number of chains and devices and each Thin. Nothing else of
// the problem may change after the first run. It is for one goroutine at a time; close it at the end.
type Sampler struct {
	Problem density.Problem
	Kernel  Kernel

	compiled compute.Cache[programsKey, *moves]
}

// Close frees what was compiled.
func (s *Sampler) Close() { s.compiled.Close() }

// Sample is the function Sample with the sampler's problem and kernel.
func (s *Sampler) Sample(ctx context.Context, settings Settings) (*Result, error) {
	r, err := s.newSampling(settings)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.session.Loop(ctx); r.session.Status() == "" {
		return nil, err
	}
	return r.result(), r.session.Err()
}

// programsKey identifies what a sampler's programs depend on besides its problem and kernel.
type programsKey struct {
	engine           *compute.Engine
	chains, devices  int
	thin             int
	dtype            compute.DType
	scaled, hasStart bool
	climbs           bool
	data             string // names of Problem.Data
}

// moves prepares the programs, or takes those of an earlier run of the same kind.
func (s *Sampler) moves(engine *compute.Engine, settings Settings) (m *moves, giveBack func(), err error) {
	key := programsKey{
		engine: engine, chains: settings.Chains, devices: settings.Devices, thin: settings.Thin, dtype: settings.DType,
		scaled: settings.scales(s.Kernel), hasStart: s.Problem.Start != nil,
		climbs: s.Problem.ClimbSteps() > 0,
		data:   fmt.Sprintf("%q", slices.Sorted(maps.Keys(s.Problem.Data))),
	}
	m, giveBack, err = s.compiled.Take(
		key, func() (*moves, error) { return newMoves(engine, s.Problem, s.Kernel, settings) },
	)
	if err == nil {
		m.problem = s.Problem
	}
	return m, giveBack, err
}

// Samplers keeps a Sampler for each kind of problem, so that a program that samples problems of several kinds in turn
// compiles each kind once. Problems are of one kind if they differ in Data and Start alone. The zero value is ready;
// close it at the end. It may be used by several goroutines, each kind by one at a time.
type Samplers struct {
	byKind compute.Cache[samplersKey, *Sampler]
}

// samplersKey identifies what a Sampler cannot change.
type samplersKey struct {
	kind   any
	kernel string
}

// Sample is the function Sample for a problem of a kind: a comparable value, such as a struct, of everything that the
// problem depends on besides Data and Start. The kernel is added to it; for one that holds a function, which cannot be
// compared, each call compiles anew.
func (s *Samplers) Sample(
	ctx context.Context, kind any, problem density.Problem, kernel Kernel, settings Settings,
) (*Result, error) {
	key := samplersKey{kind, compute.CacheKey(kernel)}
	sampler, giveBack, err := s.byKind.Take(key, func() (*Sampler, error) { return &Sampler{Kernel: kernel}, nil })
	if err != nil {
		return nil, err
	}
	defer giveBack()
	sampler.Problem = problem
	return sampler.Sample(ctx, settings)
}

// Kinds is the number of kinds so far.
func (s *Samplers) Kinds() int { return s.byKind.Made() }

// Close frees what was compiled.
func (s *Samplers) Close() { s.byKind.Close() }
