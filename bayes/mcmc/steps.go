package mcmc

import (
	"context"
	"iter"

	"gobnn/bayes/density"
	"gobnn/bayes/run"
)

// Position is the progress of the chains after a move, as Steps yields it. It is valid until the next move.
type Position struct {
	run.Progress
	Draws  int // number of draws that all chains have; 0 in the warm-up
	chains *sampling
}

// Result is what Sample would return if the run ended here: the draws that all chains have, with their statistics. Its
// Status is empty before the end.
func (p *Position) Result() *Result { return p.chains.result() }

// Steps is Sample for a range loop of your own: it yields after each move of the chains, in the warm-up too, where it
// may be after a transition. A transition of HMC and NUTS takes several moves (but see HMC.AtOnce). Moves that the
// device has made ahead (see Sample) count at once when a checkpoint is written. Leaving the loop ends the run as a
// cancelled context does, after the checkpoint is written, if one is set; Sample and Steps with the same settings
// resume from it, bit for bit. An error of Sample is yielded last, with a Position if there is a result beside it, and
// otherwise with nil.
func Steps(ctx context.Context, problem density.Problem, kernel Kernel, settings Settings) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		sampler := Sampler{Problem: problem, Kernel: kernel}
		defer sampler.Close()
		sampler.Steps(ctx, settings)(yield)
	}
}

// Steps is the function Steps with the sampler's problem and kernel.
func (s *Sampler) Steps(ctx context.Context, settings Settings) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		r, err := s.newSampling(settings)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.close()
		run.StepsAs(ctx, r.session, func(p run.Progress) *Position { return &Position{p, r.drawn(), r} })(yield)
	}
}

// drawn returns the number of draws that every chain has by now; 0 in the warm-up.
func (r *sampling) drawn() int {
	if r.Warming != nil {
		return 0
	}
	return r.common()
}
