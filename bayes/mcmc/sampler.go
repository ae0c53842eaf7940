package mcmc

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/run"
)

// Sampler samples again and again, with other seeds and settings, and with other Problem.Data and Problem.Start of the
// same names and shapes, and compiles only once for each number of chains and devices. Nothing else of the problem may
// change after the first run. It is for one goroutine at a time; close it at the end.
type Sampler struct {
	Problem Problem
	Kernel  Kernel

	compiled run.Cache[programsKey, *moves]
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

// programsKey is what a sampler's programs depend on, beside what all problems of a sampler have in common.
type programsKey struct {
	engine           *compute.Engine
	chains, devices  int
	dtype            compute.DType
	scaled, hasStart bool
	data             string // names of Problem.Data
}

// moves prepares the programs, or finds those of an earlier run of the same kind.
func (s *Sampler) moves(engine *compute.Engine, settings Settings) (m *moves, giveBack func(), err error) {
	key := programsKey{
		engine: engine, chains: settings.Chains, devices: settings.Devices, dtype: settings.DType,
		scaled: settings.scales(s.Kernel), hasStart: s.Problem.Start != nil,
		data: fmt.Sprintf("%q", slices.Sorted(maps.Keys(s.Problem.Data))),
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
// close it at the end.
type Samplers struct{ byKind map[string]*Sampler }

// For is the Sampler of the problem's kind and the kernel, set to this problem. kind names all that the problem depends
// on beside Data and Start.
func (s *Samplers) For(kind string, problem Problem, kernel Kernel) *Sampler {
	kind += fmt.Sprintf(", %T %+v", kernel, kernel)
	sampler := s.byKind[kind]
	if sampler == nil {
		if s.byKind == nil {
			s.byKind = map[string]*Sampler{}
		}
		sampler = &Sampler{Kernel: kernel}
		s.byKind[kind] = sampler
	}
	sampler.Problem = problem
	return sampler
}

// Len is how many kinds there are.
func (s *Samplers) Len() int { return len(s.byKind) }

// Close frees what was compiled.
func (s *Samplers) Close() {
	for _, sampler := range s.byKind {
		sampler.Close()
	}
	clear(s.byKind)
}
