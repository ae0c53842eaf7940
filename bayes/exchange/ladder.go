package exchange

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"gonum.org/v1/gonum/interp"
)

// ladder returns the ladder of the settings. If they have none, it takes the powers of a short SMC run, with 0 before
// them.
func (m *machine) ladder(ctx context.Context) ([]float64, error) {
	ladder := m.Ladder
	if len(ladder) == 0 {
		found, err := m.RunStage(ctx, fit.Stage{
			Name: "ladder", Method: smc.Tempered{Kernel: m.Kernel, Particles: 300, Moves: 5}, Problem: m.problem, Inner: true,
		})
		if err == nil && found.Status != run.Completed {
			err = cmp.Or(context.Cause(ctx), found.Status.Err())
		}
		if err != nil {
			return nil, fmt.Errorf("exchange: looking for a ladder of powers (or set Replicas.Ladder): %w", err)
		}
		details := fit.Details[*smc.Details](found)
		m.Search, ladder = details.Evaluations, LadderOf(details.Trace)
	}
	return append([]float64{0}, ladder...), nil
}

// atOnce: the number of steps of a found ladder is a multiple of it.
const atOnce = 4

// stretch is the largest length of a step of the new ladder, in steps of the found one. SMC needs more overlap between
// neighbouring powers than exchanges do: replicas come down soonest when about a fourth of the exchanges is accepted
// (Atchade, Roberts and Rosenthal 2011).
const stretch = 1.5

// LadderOf converts the ladder of powers that a run of smc.Tempered found, as its trace has it, to one for
// Replicas.Ladder. The number of steps becomes a multiple of four, and none is more than one and a half times as long
// as the found steps in its place; a ladder of at most four steps stays as it is. The last step of SMC is only as long
// as what was left, and all the new steps share that. Ladders of about the same length, such as those of several splits
// of the data, then need one compilation. Where a power would be over 500 times the one before it, half of what
// Replicas refuses, further powers are inserted.
func LadderOf(trace []smc.StepRecord) []float64 {
	var powers []float64
	for _, r := range trace {
		powers = append(powers, r.Place)
	}
	return ladderOf(powers)
}

func ladderOf(found []float64) []float64 {
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
