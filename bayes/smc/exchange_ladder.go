package smc

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes/run"

	"gonum.org/v1/gonum/interp"
)

// This file is the ladder of powers of a replica exchange.

// ladder returns the ladder of the settings. If they have none, it takes the powers of a short SMC run, with 0 before
// them.
func (m *exchange) ladder(ctx context.Context) ([]float64, error) {
	ladder := m.Ladder
	if len(ladder) == 0 {
		search := &m.owner.searcher
		search.Problem, search.Kernel = m.owner.Problem, m.owner.Kernel
		found, err := search.Sample(ctx, Settings{
			Particles: 300, Moves: 5, Seed: m.Seed, DType: m.DType, Engine: m.Engine,
		})
		if err != nil {
			return nil, fmt.Errorf("smc: looking for a ladder of powers (or set ExchangeSettings.Ladder): %w", err)
		}
		if found.Status != run.Completed {
			return nil, fmt.Errorf("smc: looking for a ladder of powers: %w", context.Cause(ctx))
		}
		for _, r := range found.Trace {
			ladder = append(ladder, r.Place)
		}
		m.Search = found.Evaluations
		ladder = ExchangeLadder(ladder)
	}
	return append([]float64{0}, ladder...), nil
}

// atOnce: the number of steps of a found ladder is a multiple of it.
const atOnce = 4

// stretch is the largest length of a step of the new ladder, in steps of Sample. Sample needs more overlap between
// neighbouring powers than exchanges do: replicas come down soonest when about a fourth of the exchanges is accepted
// (Atchade, Roberts and Rosenthal 2011).
const stretch = 1.5

// ExchangeLadder converts a ladder of powers that a run of Sample found, ascending and the last 1, to one for
// ExchangeSettings.Ladder. The number of steps becomes a multiple of four, and none is more than one and a half times
// as long as the found steps in its place; a ladder of at most four steps stays as it is. The last step of Sample is
// only as long as what was left, and all the new steps share that. Ladders of about the same length, such as those of
// several splits of the data, then need one compilation. Where a power would be over 500 times the one before it, half
// of what ExchangeSettings refuses, further powers are inserted.
func ExchangeLadder(found []float64) []float64 {
	ladder := found
	if len(found) > atOnce {
		ladder = evenLadder(found)
	}
	var all []float64
	for i, power := range ladder {
		if i > 0 {
			between := math.Ceil(math.Log(power/ladder[i-1]) / math.Log(mostRatio/2))
			for k := 1.; k < between; k++ {
				all = append(all, ladder[i-1]*math.Pow(power/ladder[i-1], k/between))
			}
		}
		all = append(all, power)
	}
	return all
}

// evenLadder divides a ladder of more than four powers into steps of one length.
func evenLadder(found []float64) []float64 {
	n := len(found)
	last := (found[n-1] - found[n-2]) / (found[n-2] - found[n-3]) // length of the last step, in units of the one before it
	length := float64(n-1) + min(1, last)
	steps := atOnce * int(math.Ceil(length/(stretch*atOnce)))
	places := make([]float64, n+1)
	for i := range n {
		places[i] = float64(i)
	}
	places[n] = length
	var powerAt interp.PiecewiseLinear
	if err := powerAt.Fit(places, append([]float64{0}, found...)); err != nil {
		panic(err) // both ascend
	}
	ladder := make([]float64, steps)
	for k := range ladder {
		ladder[k] = powerAt.Predict(length * float64(k+1) / float64(steps))
	}
	ladder[steps-1] = found[n-1]
	return ladder
}
