package mcmc

import (
	"fmt"
	"math"
)

// maxRejections is how many transitions all chains together may make before a run in which none of them moved is given
// up.
const maxRejections = 1000

// stuck is an error if no transition after the warm-up was accepted, or all diverged.
func (r *sampling) stuck() error {
	transitions, moved, divergences, nonFinite := 0, 0, 0, 0
	for _, t := range r.Tallies {
		transitions += t.Transitions
		moved += t.Accepted
		divergences += t.Divergences
		nonFinite += t.NonFinite
	}
	if r.tells(infoAccepted) && moved == 0 || r.tells(infoDivergent) && divergences == transitions {
		noise, noises := 0.0, 0
		for _, t := range r.Tallies {
			noise += t.SumNoise
			noises += t.Noises
		}
		return &StuckError{
			Transitions: transitions, Accepted: moved, Divergences: divergences, NonFinite: nonFinite,
			StepSize: r.position.Tuned.StepSize, Noise: noise / math.Max(1, float64(noises)),
		}
	}
	return nil
}

// StuckError is what a run that does not move saw; it wraps ErrStuck.
type StuckError struct {
	Transitions, Accepted, Divergences, NonFinite int     // of all chains, after the warm-up
	StepSize                                      float64 // 0 for kernels that are not Tunable
	// Noise is the mean estimated variance of the log-ratio; 0 if the kernel knows the ratio.
	Noise float64
}

// Error implements error.
func (e *StuckError) Error() string {
	text := fmt.Sprintf("%v: of %d transitions %d were accepted, %d diverged, and %d proposals were not finite; ",
		ErrStuck, e.Transitions, e.Accepted, e.Divergences, e.NonFinite)
	if e.Noise > 0 {
		text += fmt.Sprintf("the log-ratio has an estimated variance of %.3g; ", e.Noise)
	}
	return text + fmt.Sprintf("the step size is %.3g: use a smaller one or a warm-up, and check the target for NaN and "+
		"its gradient for a wrong sign", e.StepSize)
}

// Unwrap is ErrStuck.
func (e *StuckError) Unwrap() error { return ErrStuck }
