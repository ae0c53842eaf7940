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
			noise += t.Noise
			noises += t.Noises
		}
		noise /= math.Max(1, float64(noises))
		stuck := &StuckError{StepSize: r.position.Tuned.StepSize, Noise: noise}
		stuck.text = fmt.Sprintf("%v: of %d transitions %d were accepted, %d diverged, and %d proposals were not finite; ",
			ErrStuck, transitions, moved, divergences, nonFinite)
		if noise > 0 {
			stuck.text += fmt.Sprintf("the log-ratio has an estimated variance of %.3g; ", noise)
		}
		if k, ok := r.Kernel.(DelayedAcceptance); ok {
			stuck.text += k.stuckBy(r.stats())
		} else {
			stuck.text += fmt.Sprintf("the step size is %.3g: use a smaller one or a warm-up, and check the target for NaN and "+
				"its gradient for a wrong sign", stuck.StepSize)
		}
		if rounded := r.rounded(); rounded != "" {
			stuck.text += "; " + rounded
		}
		return stuck
	}
	return nil
}

// StuckError is the error of a run whose chains do not move; its text has the counts that tell why. It wraps ErrStuck.
type StuckError struct {
	StepSize float64 // 0 for kernels that are not Tunable
	// Noise is the mean estimated variance of the log-ratio that accepts or rejects; 0 if the kernel knows the ratio.
	// Above 1 the noise of the mini-batches alone can be the cause.
	Noise float64

	text string
}

// Error implements error.
func (e *StuckError) Error() string { return e.text }

// Unwrap is ErrStuck.
func (e *StuckError) Unwrap() error { return ErrStuck }
