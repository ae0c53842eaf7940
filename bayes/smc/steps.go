package smc

import (
	"context"
	"iter"

	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
)

// Position is the progress of a run, as Steps yields it. It is valid until the next is yielded.
type Position struct {
	run.Progress
	StepRecord // of the last temperature, or block of rows; its LogEvidence is the increase there
	// Evidence is the log evidence of what is taken in so far, and EvidenceStdErr its standard error: with DataTempering
	// it is log p(y_1 .. y_n) of the first n rows, with LikelihoodTempering the log of the normalising constant of p(phi)
	// p(y | phi)^power.
	Evidence, EvidenceStdErr float64
	machine                  *machine
}

// Result is what Sample would return if the run ended here: particles of the distribution that is reached. Before the
// end its Status is empty, and its evidence NaN.
func (p *Position) Result() (*Result, error) { return p.machine.result() }

// Steps is Sample for a range loop of your own: it yields after each temperature, or block of rows, once the particles
// are weighed and, where that is due, resampled and moved. Leaving the loop ends the run as a cancelled context does,
// after the checkpoint is written, if one is set; Sample and Steps with the same settings go on from it, to the same
// bits. An error of Sample is yielded last, with a Position if there is a result beside it, and otherwise with nil.
func Steps(
	ctx context.Context, problem density.Problem, kernel mcmc.Kernel, settings Settings,
) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		sampler := Sampler{Problem: problem, Kernel: kernel}
		defer sampler.Close()
		sampler.Steps(ctx, settings)(yield)
	}
}

// Steps is the function Steps with the sampler's problem and kernel.
func (s *Sampler) Steps(ctx context.Context, settings Settings) iter.Seq2[*Position, error] {
	return func(yield func(*Position, error) bool) {
		m, err := s.newMachine(settings)
		if err != nil {
			yield(nil, err)
			return
		}
		defer m.close()
		run.StepsAs(ctx, m.session, m.here)(func(p *Position, err error) bool {
			onTheWay := err == nil && m.Next != toWeigh && m.Next != finished // scouts add nothing to a position
			return onTheWay || yield(p, err)
		})
	}
}

// here is the Position now.
func (m *machine) here(p run.Progress) *Position {
	out := &Position{Progress: p, machine: m}
	out.Evidence, out.EvidenceStdErr = m.evidence()
	if n := len(m.Trace); n > 0 {
		out.StepRecord = m.Trace[n-1]
	}
	return out
}
