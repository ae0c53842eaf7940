package smc

import (
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// A narrow mode can be lost on the way from the prior. While the likelihood's power is low, the mode's share is in
// proportion to its volume, far below its share of the posterior. If no particle is there when the power rises, the
// mode is missing from the particles, the evidence and its stated error alike. Scouts look for it. They are new draws
// of the prior that move under the posterior at once, so each goes to the mode in whose basin it lies. A narrow mode's
// basin is far larger than its share at low powers. A mode that is narrow and has a share nevertheless has a higher
// density than all others: a scout that settles above all particles has found one.

const (
	scoutRounds      = 2    // of as many scouts as particles, after Sample
	mostScouts       = 4000 // after ReplicaExchange, whose replicas are few: in as many rounds as it takes,
	sweepsPerRound   = 32   // but at most one round for 32 sweeps, so that rounds cost a tenth of the sweeps
	scoutTransitions = 20   // of each scout under the posterior
	scoutLooks       = 4    // at its log-density, after the last of them
	scoutSteps       = 4    // of a trajectory: momentum that is drawn often slows a scout down soonest
	// scoutShare is the share of the adapted step size that scouts take, or less of it: a longer step leaves the basin of
	// a mode that is much narrower than others.
	scoutShare = 1. / 8
	fewScouted = 20 // first particles from which those in a region descend, below which it counts as lost
)

// outlook holds the scouts' findings. A run's checkpoint has it.
type outlook struct {
	Rounds  int     `json:"rounds"`  // that are made
	Above   int     `json:"above"`   // scouts that settled clearly above nearly all particles
	Highest float64 `json:"highest"` // by how much the highest of them did, in nats
	Known   int     `json:"known"`   // first particles from which those descend that are as high
}

// scouts says whether scouts are sent out at the end: they need a gradient to find a mode by, and make many short
// trajectories.
func (m *machine) scouts() bool { return m.adapts() && m.steers() }

// scout makes a round of scouts, with the particles put aside meanwhile.
func (m *machine) scout() error {
	particles, err := m.logDensities()
	if err != nil {
		return err
	}
	kept, err := m.state.Host(m.stages.Entries()...)
	if err != nil {
		return err
	}
	settled, err := m.settled(kept[m.stages.scale()])
	if err != nil {
		return err
	}
	eve, err := tensors.CopyFlatData[int32](kept[m.stages.eve()])
	if err != nil {
		return err
	}
	m.Scouts.add(particles, eve, settled)
	for name, t := range kept {
		m.state.Set(name, t)
	}
	if m.Scouts.Rounds == scoutRounds {
		m.Next = finished
	}
	return nil
}

// settled draws scouts, moves them, and returns the highest log-density of each at the last looks.
func (m *machine) settled(scale *tensors.Tensor) ([]float64, error) {
	key := random.KeyOf(m.Seed).Named("scouts").At(uint32(m.Scouts.Rounds))
	if _, err := m.stages.start.Run(m.state, key.Words()); err != nil {
		return nil, err
	}
	if m.stages.wasteFree() {
		phi, err := m.float64s(m.stages.phi())
		if err != nil {
			return nil, err
		}
		dim := m.problem.Dim
		m.state.Set(m.stages.carrier.Phi(), compute.Floats(m.DType, phi[:m.chains()*dim], m.chains(), dim))
	}
	if err := m.stages.Restart(m.state, m.Place, m.counter(1), m.Seed); err != nil {
		return nil, err
	}
	local, err := scale.LocalClone() // of the posterior, not of where scouts begin
	if err != nil {
		return nil, err
	}
	m.state.Set(m.stages.scale(), local)
	m.Evaluations += m.chains()
	highest := slices.Repeat([]float64{math.Inf(-1)}, m.chains())
	for transition := range scoutTransitions {
		for begin := true; ; begin = false {
			moved, err := m.stages.Move(m.state, Moves{
				Place: m.Place, Number: m.Transitions, Begin: begin, First: begin && transition == 0, Slot: 1,
				StepSize: scoutShare * m.position.StepSize, Steps: scoutSteps,
			}, m.counter(m.stages.PerCall), m.Seed)
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
		now, err := m.logDensities()
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
func (m *machine) logDensities() ([]float64, error) { return m.float64s(m.stages.carrier.LogDensity()) }

// float64s is an entry of the state.
func (m *machine) float64s(name string) ([]float64, error) {
	host, err := m.state.Host(name)
	if err != nil {
		return nil, err
	}
	return compute.Float64s(host[name])
}

// add takes in a round: the log-densities at which scouts have settled, the particles' log-densities, and the numbers
// of the particles' first ancestors. A scout is clearly above nearly all particles if it exceeds their .95 quantile by
// four times the distance from the upper quartile to that quantile. For a normal distribution the bound is 5.5 standard
// deviations above the mean. The log-density of particles in one mode has a shorter tail, since it is bounded above.
func (o *outlook) add(particles []float64, eve []int32, settled []float64) {
	finite := slices.DeleteFunc(slices.Clone(particles), func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) })
	o.Rounds++
	if len(finite) == 0 {
		return
	}
	slices.Sort(finite)
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, finite, nil) }
	most := quantile(.95)
	clearly := most + 4*(most-quantile(.75))
	for _, v := range settled {
		if v > clearly {
			o.Above, o.Highest = o.Above+1, math.Max(o.Highest, v-most)
		}
	}
	known := map[int32]bool{}
	for i, v := range particles {
		if v > clearly {
			known[eve[i]] = true
		}
	}
	o.Known = len(known)
}

// warning says what the scouts have found that the particles hardly know, or is empty. kind names what independent
// particles descend from, such as "sets"; of is the number of these.
func (o outlook) warning(of int, kind string) string {
	if o.Above == 0 || o.Known >= min(fewScouted, of/2) {
		return ""
	}
	return fmt.Sprintf("a narrow region, with a log-density of up to %.1f above nearly all particles, is known to %d of "+
		"%d %s only; %d new draws of the prior came to it when they were moved under the posterior: the region was lost, or "+
		"nearly so, while the likelihood's power was low, and no step size helps; the log evidence, its standard error and "+
		"the shares of modes are not to be trusted; take many more particles", o.Highest, o.Known, of, kind, o.Above)
}

// The scouts of a replica exchange.

// scoutRounds is the number of rounds, of a scout for each replica.
func (m *exchange) scoutRounds() int {
	if !m.own().scouts() {
		return 0
	}
	each := (len(m.Powers) - 1) * m.Sets
	rounds := func(n, of int) int { return (n + of - 1) / of }
	return min(rounds(mostScouts, each), rounds(m.WarmUp+m.Sweeps, sweepsPerRound))
}

// scout makes a round of scouts: replicas that all stand at the posterior, without exchanges. The replicas of the run
// are put aside meanwhile.
func (m *exchange) scout() error {
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
	m.Scouts.add(draws, sets, settled)
	for name, t := range kept {
		m.state.Set(name, t)
	}
	m.state.Set(powersName, compute.Floats(m.DType, m.Powers, len(m.Powers)))
	return nil
}

// settled draws scouts, moves them with the posterior's step size and scales, and returns the highest log-density of
// each at the last looks.
func (m *exchange) settled(kept map[string]*tensors.Tensor) ([]float64, error) {
	sweeps, dim := m.sweeps, m.owner.Problem.Dim
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
	stepSizes, err := last(stepsName, 1, scoutShare)
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
	for transition := range uint32(scoutTransitions) {
		at := key.Named("move").At(transition)
		shares := key.Named("step sizes").At(transition).Words()
		m.state.Set(unfinishedName, compute.Floats(m.DType, ones(sweeps.replicas()), sweeps.replicas()))
		for call := uint32(0); ; call++ {
			left, err := sweeps.move.Run(m.state, at.At(call).Words(), float64(scoutSteps), shares, float64(transition%2))
			if err != nil {
				return nil, err
			}
			m.Moves += sweeps.replicas()
			if left[0] == 0 {
				break
			}
		}
		if transition < scoutTransitions-scoutLooks {
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
