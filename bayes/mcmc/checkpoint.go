package mcmc

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

const checkpointFormat = "gobnn.mcmc/10"

// Identity implements run.Machine.
func (r *sampling) Identity() ([]run.Part, error) { return r.job.Identity() }

// Keep implements run.Machine: the device's state, the draws so far and the position, which first takes in what the
// device has made already. It does not call Observe, whose error may be why the run ends: the next step does.
func (r *sampling) Keep() (any, map[string]*tensors.Tensor, error) {
	for len(r.pending) > 0 {
		if err := r.hear(); err != nil {
			return nil, nil, err
		}
	}
	kept, err := r.state.Host(r.carrier.Names()...)
	if err != nil {
		return nil, nil, err
	}
	if most := r.mostKept(); most > 0 {
		draws := r.draws.first(most)
		kept[drawsName] = draws.Tensor()
		if draws.divergent != nil {
			kept[divergentName] = run.Table(draws.divergent, most)
		}
	}
	return r.position, kept, nil
}

// The names in a checkpoint of the draws, and of which of their transitions diverged.
const (
	drawsName     = "draws"
	divergentName = "drawsDivergent"
)

// mostKept is the largest number of draws of any chain so far.
func (r *sampling) mostKept() int {
	most := 0
	for _, t := range r.Tallies {
		most = max(most, t.Kept)
	}
	return most
}

// Adopt implements run.Machine: it restores the draws and the position; the chains' state stays on the host until
// Begin.
func (r *sampling) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	if err := r.checkPosition(at); err != nil {
		return err
	}
	r.position = at
	if most := r.mostKept(); most > 0 {
		draws, err := run.Tensor(kept, drawsName, shapes.Make(r.DType, r.Chains*most, r.problem.Dim))
		if err != nil {
			return err
		}
		if err := r.draws.adopt(draws); err != nil {
			return err
		}
		draws.FinalizeAll() //nolint:errcheck // freeing a copy
		if r.reports(infoDivergent) {
			divergent, err := run.Rows(kept, divergentName, r.Chains, most)
			if err != nil {
				return err
			}
			for chain, values := range divergent {
				for draw, v := range values {
					r.draws.diverges(chain, draw, v)
				}
			}
		}
	}
	r.adopted = kept
	return nil
}

// checkPosition is an error if no run with these settings can have this position.
func (r *sampling) checkPosition(at position) error {
	if at.Move < 0 || at.WarmUpMoves < 0 || at.WarmUpMoves > at.Move || at.WarmUpTime < 0 {
		return fmt.Errorf("it stands at move %d, after %d moves of the warm-up in %v", at.Move, at.WarmUpMoves, at.WarmUpTime)
	}
	if len(at.Tallies) != r.Chains {
		return fmt.Errorf("it has tallies of %d chains, not %d", len(at.Tallies), r.Chains)
	}
	for chain, t := range at.Tallies {
		counts := []int{
			t.Transitions, t.Kept, t.Accepted, t.Divergences, t.NonFinite, t.Gradients, t.Full, t.FullGradients, t.Partial,
			t.PartialGradients, t.Noises, t.Errors, t.Energies, t.Standing,
			t.Standstill - t.Standing, t.Transitions - t.Standstill,
		}
		for _, sum := range t.Extra {
			counts = append(counts, sum.Count)
		}
		drawn := min(t.Transitions/r.Thin, r.Draws)
		if slices.Min(counts) < 0 || t.Transitions > at.Move-at.WarmUpMoves || t.Kept != drawn ||
			t.Closed != (t.Kept == r.Draws) {
			return fmt.Errorf("chain %d has %d transitions and %d draws after %d moves",
				chain, t.Transitions, t.Kept, at.Move-at.WarmUpMoves)
		}
	}
	scale, step := at.Tuned.Scale, at.Tuned.StepSize
	wrong := func(v float64) bool { return !(v > 0) || math.IsInf(v, 1) }
	if step != 0 && wrong(step) || slices.ContainsFunc(scale, wrong) {
		return fmt.Errorf("it has a step size of %v and scales of %v", step, scale)
	}
	if len(scale) != 0 && len(scale) != r.problem.Dim {
		return fmt.Errorf("it has scales of %d coordinates, not %d", len(scale), r.problem.Dim)
	}
	for _, name := range at.Reported {
		if !slices.Contains(infoNames[:], name) && !strings.HasPrefix(name, extraPrefix) {
			return fmt.Errorf("its kernel reports a field %q, which Info does not have", name)
		}
	}
	if w := at.Warming; w != nil {
		dims := len(w.Window.Mean)
		if w.Done < 0 || w.Done >= r.WarmUp || len(w.Waiting) != r.Chains ||
			len(w.Window.Squares) != dims || dims != 0 && dims != r.problem.Dim {
			return fmt.Errorf("its warm-up has made %d of %d transitions of %d chains, with a window of %d and %d coordinates",
				w.Done, r.WarmUp, len(w.Waiting), dims, len(w.Window.Squares))
		}
		if len(w.Last) != r.Chains || len(w.Own) != 0 && len(w.Own) != r.Chains {
			return fmt.Errorf("its warm-up has acceptances of %d chains and step sizes of %d, not %d", len(w.Last), len(w.Own),
				r.Chains)
		}
		if w.Tunes != r.tunes(r.kernel) || w.Tunes && dims != r.problem.Dim {
			return fmt.Errorf("its warm-up tunes: %v, with a window of %d coordinates", w.Tunes, dims)
		}
	}
	return nil
}

// resume restores the chains' state from the checkpoint.
func (r *sampling) resume() error {
	if fields := r.carrier.reportedFields(); !slices.Equal(r.Reported, fields) {
		return fmt.Errorf("its kernel reports the fields %q of Info, but %T reports %q", r.Reported, r.kernel, fields)
	}
	for name, want := range r.carrier.entryShapes() {
		t, err := run.Tensor(r.adopted, name, want)
		if err != nil {
			return err
		}
		r.state.Set(name, t)
	}
	r.adopted = nil
	return nil
}
