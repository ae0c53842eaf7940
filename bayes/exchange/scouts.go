package exchange

import (
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/internal/tempering"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// The scouts of a replica exchange, whose replicas are few, come in as many rounds as it takes, but at most one for so
// many sweeps that rounds cost a tenth of the sweeps.
const (
	mostScouts     = 4000
	sweepsPerRound = 32
)

// scoutRounds is the number of rounds, of a scout for each replica.
func (m *machine) scoutRounds() int {
	if _, adapts := tempering.Adapts(m.Kernel); !adapts || !tempering.Steers(m.Kernel) {
		return 0
	}
	each := (len(m.Powers) - 1) * m.Sets
	rounds := func(n, of int) int { return (n + of - 1) / of }
	return min(rounds(mostScouts, each), rounds(m.WarmUp+m.Sweeps, sweepsPerRound))
}

// scout makes a round of scouts: replicas that all stand at the posterior, without exchanges. The replicas of the run
// are put aside meanwhile.
func (m *machine) scout() error {
	kept, err := m.state.Host(m.sweeps.entries()...)
	if err != nil {
		return err
	}
	settled, err := m.settled(kept)
	if err != nil {
		return err
	}
	var draws []float64
	var sets []int32
	for _, row := range m.draws {
		for set, v := range row[m.Sets : 2*m.Sets] {
			draws, sets = append(draws, v), append(sets, int32(set))
		}
	}
	m.Scouts.Add(draws, sets, settled)
	for name, t := range kept {
		m.state.Set(name, t)
	}
	m.state.Set(powersName, compute.Floats(m.DType, m.Powers, len(m.Powers)))
	return nil
}

// settled draws scouts, moves them with the posterior's step size and scales, and returns the highest log-density of
// each at the last looks.
func (m *machine) settled(kept map[string]*tensors.Tensor) ([]float64, error) {
	sweeps, dim := m.sweeps, m.problem.Dim
	pairs := len(m.Powers) - 1
	key := random.KeyOf(m.Seed).Named("scouts").At(uint32(m.Scouts.Rounds))
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	last := func(name string, width int, times float64) ([]float64, error) { // of the posterior, for all
		v, err := compute.Float64s(kept[name])
		if err != nil {
			return nil, err
		}
		v = slices.Clone(v[len(v)-width:])
		floats.Scale(times, v)
		return slices.Repeat(v, pairs), nil
	}
	stepSizes, err := last(stepsName, 1, tempering.ScoutShare)
	if err != nil {
		return nil, err
	}
	scales, err := last(scalesName, dim, 1)
	if err != nil {
		return nil, err
	}
	m.state.Set(powersName, compute.Floats(m.DType, ones(pairs+1), pairs+1))
	if _, err := sweeps.begin.Run(m.state, key.Words()); err != nil {
		return nil, err
	}
	m.state.Set(stepsName, compute.Floats(m.DType, stepSizes, pairs))
	m.state.Set(scalesName, compute.Floats(m.DType, scales, pairs, dim))
	if _, err := sweeps.start.Run(m.state, key.Named("transition").Words()); err != nil {
		return nil, err
	}
	m.Moves += sweeps.replicas()
	highest := slices.Repeat([]float64{math.Inf(-1)}, sweeps.replicas())
	for transition := range uint32(tempering.ScoutTransitions) {
		at := key.Named("move").At(transition)
		shares := key.Named("step sizes").At(transition).Words()
		m.state.Set(unfinishedName, compute.Floats(m.DType, ones(sweeps.replicas()), sweeps.replicas()))
		for call := uint32(0); ; call++ {
			left, err := sweeps.move.Run(m.state, at.At(call).Words(), float64(tempering.ScoutSteps), shares,
				float64(transition%2))
			if err != nil {
				return nil, err
			}
			m.Moves += sweeps.replicas()
			if left[0] == 0 {
				break
			}
		}
		if transition < tempering.ScoutTransitions-tempering.ScoutLooks {
			continue
		}
		host, err := m.state.Host(sweeps.carrier.LogDensity())
		if err != nil {
			return nil, err
		}
		now, err := compute.Float64s(host[sweeps.carrier.LogDensity()])
		if err != nil {
			return nil, err
		}
		for i, v := range now {
			highest[i] = math.Max(highest[i], v)
		}
	}
	return highest, nil
}
