package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"github.com/google/renameio/v2"
)

// Fit is fit.Fit as a number of runs, which differ by their seeds, each of them a task; its posterior is theirs joined
// (see bayes.Join): 16 runs of four chains are 64 chains, and 8 of tempered SMC are 8 islands, each weighed by its own
// evidence. Chains are judged for mixing over all runs together. Of run 0 the seed is settings.Seed. Each run keeps a
// checkpoint. Settings.Checkpoint and Observe are of one process: leave them out, and Progress is Options.Progress.
func Fit(ctx context.Context, o Options, runs int, model bayes.Model, method fit.Method, parts dataset.Parts,
	settings run.Settings) (*fit.Result, error) {
	if runs < 1 {
		return nil, fmt.Errorf("cluster: %d runs: it must be at least 1", runs)
	}
	if settings.Checkpoint != "" || settings.Observe != nil || settings.Progress != nil {
		return nil, errors.New("cluster: Settings.Checkpoint, Observe and Progress are of one process: leave them out; " +
			"each run keeps a checkpoint in its folder")
	}
	var tasks []Task
	for k := range runs {
		tasks = append(tasks, Task{Name: fmt.Sprintf("run %d", k+1), Do: func(ctx context.Context, folder string) error {
			own := settings
			own.Seed, own.Checkpoint = seedOf(settings.Seed, k), filepath.Join(folder, "checkpoint")
			own.CheckpointEvery = 10 * time.Second
			result, err := fit.Fit(ctx, model, method, parts, own)
			if err != nil {
				return err
			}
			return save(result, folder)
		}})
	}
	if err := Run(ctx, o, tasks); err != nil {
		return nil, err
	}
	return joined(ctx, o, tasks, parts.Train)
}

// seedOf is the seed of a run: far from those of other runs, also of a Fit with the next seed.
func seedOf(seed uint64, number int) uint64 { return seed + uint64(number)*0x9e3779b97f4a7c15 }

// saved is what a run keeps beside its posterior.
type saved struct {
	Status   run.Status    `json:"status"`
	Elapsed  time.Duration `json:"elapsed"`
	Warnings []string      `json:"warnings"`
}

func save(result *fit.Result, folder string) error {
	if result.Posterior == nil {
		return errors.New("cluster: the run has no posterior")
	}
	if err := result.Posterior.Save(filepath.Join(folder, "posterior")); err != nil {
		return err
	}
	text, err := json.Marshal(saved{result.Status, result.Elapsed, result.Warnings})
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(folder, "result.json"), text, 0o644)
}

// joined reads the runs' posteriors and joins them.
func joined(ctx context.Context, o Options, tasks []Task, train *dataset.Dataset) (*fit.Result, error) {
	all := make([]*bayes.Posterior, len(tasks))
	out := &fit.Result{Status: run.Completed}
	for k, t := range tasks {
		folder := filepath.Join(o.Folder, t.Name)
		var err error
		if all[k], err = bayes.Load(filepath.Join(folder, "posterior")); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(folder, "result.json"))
		if err != nil {
			return nil, fmt.Errorf("cluster: %s: %w", t.Name, err)
		}
		var one saved
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("cluster: %s: result.json: %w", t.Name, err)
		}
		if one.Status != run.Completed {
			out.Status = one.Status
		}
		out.Elapsed = max(out.Elapsed, one.Elapsed)
		for _, w := range one.Warnings {
			out.Warnings = append(out.Warnings, t.Name+": "+w)
		}
	}
	if train != nil {
		for k, p := range all {
			if there, here := p.Provenance().DataHash, train.Hash(); there != here {
				return nil, fmt.Errorf("cluster: %s: it was trained on other rows (hash %.12s) than there are here (%.12s): what "+
					"the program reads must be the same on every machine (Options.Files); Options.Forget removes the run",
					tasks[k].Name, there, here)
			}
		}
	}
	var err error
	if out.Posterior, err = bayes.Join(all...); err != nil {
		return nil, err
	}
	out.Warnings = append(slices.Clip(out.Warnings), diag.Mixing(ctx, out.Posterior, train)...)
	if alive, ok := out.Posterior.Diagnostics()[bayes.IslandsESS]; ok && len(tasks) > 1 && alive < float64(len(tasks))/2 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the evidences of the %d runs are so far apart that %.1f of them "+
			"have the weight: take more particles in each, or smaller steps of the ladder", len(tasks), alive))
	}
	return out, nil
}
