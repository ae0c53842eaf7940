package mcmc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"gobnn/bayes/compute/checkpoint"
)

const checkpointFormat = "gobnn.mcmc/2"

// blankCheckpoint is what a checkpoint of this run is recognised by, without what it holds.
func (r *run) blankCheckpoint() (kept checkpoint.Run[position], err error) {
	kernel, err := json.Marshal(map[string]any{"type": fmt.Sprintf("%T", r.kernel), "settings": r.kernel})
	if err != nil {
		return kept, fmt.Errorf("%T cannot be written as JSON: %w", r.kernel, err)
	}
	settings, err := r.Settings.record()
	if err != nil {
		return kept, err
	}
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r.problem.Data)) {
		t := r.problem.Data[name]
		fmt.Fprintf(digest, "%q %s ", name, t.Shape())
		if err := t.ConstBytes(func(raw []byte) { digest.Write(raw) }); err != nil {
			return kept, fmt.Errorf("Problem.Data[%q]: %w", name, err)
		}
	}
	return checkpoint.Run[position]{Format: checkpointFormat, Identity: []checkpoint.Part{
		{Name: "problem", Value: fmt.Sprintf("%q of dimension %d", r.problem.Name, r.problem.Dim)},
		{Name: "data", Value: hex.EncodeToString(digest.Sum(nil))},
		{Name: "kernel", Value: string(kernel)},
		{Name: "seed", Value: fmt.Sprint(r.Seed)},
		{Name: "settings", Value: settings},
		{Name: "backend", Value: r.engine.Name()},
	}}, nil
}

func (r *run) checkpointIfDue() error {
	if r.Checkpoint == "" || time.Since(r.saved) < r.CheckpointEvery {
		return nil
	}
	return r.checkpoint()
}

// checkpoint writes the state of the device, the draws so far and where the run stands.
func (r *run) checkpoint() error {
	if r.Checkpoint == "" {
		return nil
	}
	kept, err := r.blankCheckpoint()
	if err != nil {
		return fmt.Errorf("mcmc: checkpoint: %w", err)
	}
	kept.Head = r.position
	kept.Head.Before = r.elapsed()
	if kept.Tensors, err = r.state.Host(r.carrier.Names()...); err != nil {
		return fmt.Errorf("mcmc: checkpoint: %w", err)
	}
	most := 0
	for _, t := range r.Tallies {
		most = max(most, t.Kept)
	}
	if most > 0 {
		kept.Tensors["draws"] = r.draws.first(most).Tensor()
	}
	if err := kept.Write(r.Checkpoint); err != nil {
		return fmt.Errorf("mcmc: checkpoint: %w", err)
	}
	r.saved = time.Now()
	return nil
}

// restore goes on from the checkpoint if there is one, and says whether there is.
func (r *run) restore() (resumed bool, err error) {
	if r.Checkpoint == "" {
		return false, nil
	}
	kept, err := r.blankCheckpoint()
	if err != nil {
		return false, fmt.Errorf("mcmc: checkpoint: %w", err)
	}
	resumed, err = kept.Resume(r.Checkpoint, r.Replace)
	if err != nil {
		return false, fmt.Errorf("mcmc: resuming: %w", err)
	}
	if !resumed {
		return false, nil
	}
	if err := r.adopt(kept); err != nil {
		return false, fmt.Errorf("mcmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
	}
	return true, nil
}

func (r *run) adopt(kept checkpoint.Run[position]) error {
	if err := kept.Into(r.state, r.carrier.Names()); err != nil {
		return err
	}
	if draws := kept.Tensors["draws"]; draws != nil {
		if err := r.draws.adopt(draws); err != nil {
			return err
		}
		draws.FinalizeAll() //nolint:errcheck // freeing a copy
	}
	if len(kept.Head.Tallies) != r.Chains {
		return fmt.Errorf("it has tallies of %d chains, not %d", len(kept.Head.Tallies), r.Chains)
	}
	r.position = kept.Head
	return nil
}
