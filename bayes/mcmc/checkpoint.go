package mcmc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"gobnn/bayes/compute/tensorfile"
)

const checkpointFormat = "gobnn.mcmc/1"

// checkpointHead is the part of a checkpoint that is no tensor. What must agree for a run to go on stands in Identity.
type checkpointHead struct {
	Format   string            `json:"format"`
	Identity map[string]string `json:"identity"`
	Position position          `json:"position"`
}

// identity is what a checkpoint must share with the run that resumes it, by the name that a message gives it.
func (r *run) identity() (map[string]string, error) {
	kernel, err := json.Marshal(map[string]any{"type": fmt.Sprintf("%T", r.kernel), "settings": r.kernel})
	if err != nil {
		return nil, fmt.Errorf("%T cannot be written as JSON: %w", r.kernel, err)
	}
	settings, err := r.Settings.record()
	if err != nil {
		return nil, err
	}
	digest := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r.problem.Data)) {
		t := r.problem.Data[name]
		fmt.Fprintf(digest, "%q %s ", name, t.Shape())
		if err := t.ConstBytes(func(raw []byte) { digest.Write(raw) }); err != nil {
			return nil, fmt.Errorf("Problem.Data[%q]: %w", name, err)
		}
	}
	return map[string]string{
		"problem":  fmt.Sprintf("%q of dimension %d", r.problem.Name, r.problem.Dim),
		"data":     hex.EncodeToString(digest.Sum(nil)),
		"kernel":   string(kernel),
		"seed":     fmt.Sprint(r.Seed),
		"settings": settings,
		"backend":  r.engine.Name(),
	}, nil
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
	identity, err := r.identity()
	if err != nil {
		return fmt.Errorf("mcmc: checkpoint: %w", err)
	}
	at := r.position
	at.Before = r.elapsed()
	head, err := json.Marshal(checkpointHead{checkpointFormat, identity, at})
	if err != nil {
		return fmt.Errorf("mcmc: checkpoint: %w", err)
	}
	file := tensorfile.File{Metadata: map[string]string{"gobnn": string(head)}}
	if file.Tensors, err = r.state.Host(r.carried()...); err != nil {
		return fmt.Errorf("mcmc: checkpoint: %w", err)
	}
	most := 0
	for _, t := range r.Tallies {
		most = max(most, t.Kept)
	}
	if most > 0 {
		file.Tensors["draws"] = r.draws.first(most).Tensor()
	}
	if err := tensorfile.Write(r.Checkpoint, file); err != nil {
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
	file, err := tensorfile.Read(r.Checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("mcmc: resuming (delete the file to start anew): %w", err)
	}
	if err := r.adopt(file); err != nil {
		return false, fmt.Errorf("mcmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
	}
	return true, nil
}

func (r *run) adopt(file tensorfile.File) error {
	var head checkpointHead
	if err := json.Unmarshal([]byte(file.Metadata["gobnn"]), &head); err != nil {
		return fmt.Errorf("it is no checkpoint: %w", err)
	}
	if head.Format != checkpointFormat {
		return fmt.Errorf("its format is %q, not %q", head.Format, checkpointFormat)
	}
	identity, err := r.identity()
	if err != nil {
		return err
	}
	for _, what := range []string{"problem", "data", "kernel", "seed", "settings", "backend"} {
		if identity[what] != head.Identity[what] {
			return fmt.Errorf("it belongs to a run with another %s: there %s, here %s", what, head.Identity[what], identity[what])
		}
	}
	for _, name := range r.carried() {
		if file.Tensors[name] == nil {
			return fmt.Errorf("it has no tensor %q", name)
		}
		r.state.Set(name, file.Tensors[name])
	}
	if draws := file.Tensors["draws"]; draws != nil {
		if err := r.draws.adopt(draws); err != nil {
			return err
		}
		draws.FinalizeAll() //nolint:errcheck // freeing a copy
	}
	if len(head.Position.Tallies) != r.Chains {
		return fmt.Errorf("it has tallies of %d chains, not %d", len(head.Position.Tallies), r.Chains)
	}
	r.position = head.Position
	return nil
}
