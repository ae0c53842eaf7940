package mcmc

import (
	"fmt"
	"math"
)

// maxRejections is the number of transitions of all chains after which a run without any accepted transition is ended.
const maxRejections = 1000

// stuck returns an error if no transition of any chain after the warm-up was accepted, or all of them diverged. Kernels
// that always move, and do not report divergences, are never stuck.
func (r *sampling) stuck() error {
	transitions, moved, divergences, nonFinite := 0, 0, 0, 0
	for _, t := range r.Tallies {
		transitions += t.Transitions
		moved += t.Accepted
		divergences += t.Divergences
		nonFinite += t.NonFinite
	}
	if r.reports(infoAccepted) && moved == 0 || r.reports(infoDivergent) && divergences == transitions {
		noise, noises := 0.0, 0
		for _, t := range r.Tallies {
			noise += t.SumNoise
			noises += t.Noises
		}
		stuck := &StuckError{
			Transitions: transitions, Accepted: moved, Divergences: divergences, NonFinite: nonFinite,
			StepSize: r.position.Tuned.StepSize, Noise: noise / math.Max(1, float64(noises)), rounded: r.rounded(),
		}
		if k, ok := r.kernel.(explainsStuck); ok {
			stuck.Why = k.stuckBy(r.stats())
		}
		return stuck
	}
	return nil
}

// explainsStuck is a kernel that can say more about why its chains do not move.
type explainsStuck interface {
	stuckBy(stats []ChainStats) string
}

// StuckError is the error of a run whose chains do not move, with the counts that tell why; it wraps ErrStuck.
type StuckError struct {
	Transitions, Accepted, Divergences, NonFinite int     // of all chains, after the warm-up
	StepSize                                      float64 // 0 for kernels that are not Tunable
	// Noise is the mean estimated variance of the log-ratio that accepts or rejects; 0 if the kernel knows the ratio.
	// Above 1 the noise of the mini-batches alone can be the cause.
	Noise float64
	Why   string // the kernel's explanation, with numbers; empty for most kernels

	rounded string // by float32: see sampling.rounded
}

// Error implements error.
func (e *StuckError) Error() string {
	text := fmt.Sprintf("%v: of %d transitions %d were accepted, %d diverged, and %d proposals were not finite; ",
		ErrStuck, e.Transitions, e.Accepted, e.Divergences, e.NonFinite)
	if e.Noise > 0 {
		text += fmt.Sprintf("the log-ratio has an estimated variance of %.3g; ", e.Noise)
	}
	why := e.Why
	if why == "" {
		why = fmt.Sprintf("the step size is %.3g: use a smaller one or a warm-up, and check the target for NaN and its "+
			"gradient for a wrong sign", e.StepSize)
	}
	if e.rounded != "" {
		why += "; " + e.rounded
	}
	return text + why
}

// Unwrap is ErrStuck.
func (e *StuckError) Unwrap() error { return ErrStuck }
