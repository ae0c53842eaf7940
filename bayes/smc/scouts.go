package smc

import (
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/gomlx/core/tensors"
)

// scoutRounds is the number of rounds of as many scouts as particles.
const scoutRounds = 2

// scouts says whether scouts are sent out at the end: they need a gradient to find a mode by, and make many short
// trajectories.
func (m *machine) scouts() bool {
	_, adapts := m.adapts()
	return adapts && m.steers()
}

// scout makes a round of scouts, with the particles put aside meanwhile.
func (m *machine) scout(state *compute.State) error {
	particles, err := m.logDensities(state)
	if err != nil {
		return err
	}
	kept, err := state.Host(m.stages.Entries()...)
	if err != nil {
		return err
	}
	settled, err := m.settled(state, kept[m.stages.scale()])
	if err != nil {
		return err
	}
	eve, err := tensors.CopyFlatData[int32](kept[m.stages.eve()])
	if err != nil {
		return err
	}
	m.Scouts.add(particles, eve, settled)
	for name, t := range kept {
		state.Set(name, t)
	}
	if m.Scouts.Rounds == scoutRounds {
		m.Next = finished
	}
	return nil
}

// settled draws scouts, moves them, and returns the highest log-density of each at the last looks.
func (m *machine) settled(state *compute.State, scale *tensors.Tensor) ([]float64, error) {
	key := random.KeyOf(m.seed).Named("scouts").At(uint32(m.Scouts.Rounds))
	if _, err := m.stages.start.Run(state, key.Words()); err != nil {
		return nil, err
	}
	if m.stages.wasteFree() {
		phi, err := float64s(state, m.stages.phi())
		if err != nil {
			return nil, err
		}
		dim := m.problem.Dim
		state.Set(m.stages.carrier.Phi(), compute.Floats(m.DType, phi[:m.chains()*dim], m.chains(), dim))
	}
	if err := m.stages.Restart(state, m.Place, m.counter(1), m.seed); err != nil {
		return nil, err
	}
	local, err := scale.LocalClone() // of the posterior, not of where scouts begin
	if err != nil {
		return nil, err
	}
	state.Set(m.stages.scale(), local)
	m.Evaluations += m.chains()
	highest := slices.Repeat([]float64{math.Inf(-1)}, m.chains())
	for transition := range scoutTransitions {
		for begin := true; ; begin = false {
			moved, err := m.stages.Move(state, Moves{
				Place: m.Place, Begin: begin, number: m.Transitions, first: begin && transition == 0, slot: 1,
				stepSize: scoutShare * m.position.StepSize, steps: scoutSteps,
			}, m.counter(m.stages.PerCall), m.seed)
			if err != nil {
				return nil, err
			}
			m.Evaluations += m.chains() * m.stages.PerCall
			if moved.Unfinished == 0 {
				break
			}
		}
		m.Transitions += m.stages.PerCall
		if transition < scoutTransitions-scoutLooks {
			continue
		}
		now, err := m.logDensities(state)
		if err != nil {
			return nil, err
		}
		for i, v := range now {
			highest[i] = math.Max(highest[i], v)
		}
	}
	return highest, nil
}

// logDensities returns the log-densities of the particles, or of waste-free chains, under the distribution of their
// moves.
func (m *machine) logDensities(state *compute.State) ([]float64, error) {
	return float64s(state, m.stages.carrier.LogDensity())
}

// float64s is an entry of the state.
func float64s(state *compute.State, name string) ([]float64, error) {
	host, err := state.Host(name)
	if err != nil {
		return nil, err
	}
	return compute.Float64s(host[name])
}
