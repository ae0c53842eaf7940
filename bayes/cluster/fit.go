package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
)

// Fit is fit.Fit as a number of runs, which differ by their seeds, each of them a task; its posterior is theirs joined
// (see bayes.Join): 16 runs of four chains are 64 chains, and 8 of tempered SMC are 8 islands, each weighed by its own
// evidence. Chains are judged for mixing over all runs together. Of run 0 the seed is settings.Seed. Each run keeps a
// checkpoint. Settings.Checkpoint and Observe are of one process: leave them out. Options.Progress gets a line of each
// run's progress every ten seconds. A node with another engine, or whose rows in memory are not those at home, does not
// begin; of a Source, which each node reads itself, set Parts.TrainHash for that.
//
// Runs of smc.Tempered with a Ladder are islands that meet (Vergé, Dubarry, Del Moral and Moulines 2015). The ladder is
// cut into at most eight stages, with a task for each island and stage. An island weighs by what its estimate of the
// evidence was multiplied by since the islands were resampled last. If a stage leaves fewer than half of them by their
// effective number, whole islands are drawn by their weights, and go on as copies with random numbers of their own. The
// evidence is unbiased as that of a single run is: exactly if the kernel is fixed too, as pCN is with given Moves;
// scales or step sizes from an island's particles add a bias of order 1/J. Its standard error is by the spread of the
// islands and by their first ancestors. It covers what varies by chance within islands and between them, and is rough
// if they are few. Details are a []Meeting. On Slurm each stage is submitted by itself.
func Fit(ctx context.Context, o Options, runs int, model bayes.Model, method fit.Method, parts dataset.Parts,
	settings run.Settings) (*fit.Result, error) {
	if runs < 1 {
		return nil, fmt.Errorf("cluster: %d runs: it must be at least 1", runs)
	}
	if settings.Checkpoint != "" || settings.Observe != nil || settings.Progress != nil {
		return nil, errors.New("cluster: Settings.Checkpoint, Observe and Progress are of one process: leave them out; " +
			"each run keeps a checkpoint in its folder")
	}
	if err := o.otherList(); err != nil { // before the data are looked at
		return nil, err
	}
	switch {
	case OnNode():
		parts.TrainHash = cmp.Or(parts.TrainHash, os.Getenv(rowsEntry))
	case o.On != "" && parts.TrainHash == "" && parts.Train != nil:
		o.rows = parts.Train.Hash()
	}
	var err error
	if o.engine, err = settings.Engine.Or(); err != nil {
		return nil, err
	}
	if t, ok := method.(smc.Tempered); ok && len(t.Ladder) > 0 && runs > 1 {
		return fit.Fit(ctx, model, islands{Tempered: t, number: runs, on: o}, parts, settings)
	}
	one := func(ctx context.Context, k int, folder string, report func(run.Progress)) (*fit.Result, error) {
		own := settings
		own.Seed, own.Checkpoint = seedOf(settings.Seed, k), filepath.Join(folder, checkpointName)
		own.CheckpointEvery, own.Progress = checkpointEvery, report
		return fit.Fit(ctx, model, method, parts, own)
	}
	var tasks []Task
	for k := range runs {
		name := fmt.Sprintf("run %d", k+1)
		tasks = append(tasks, Task{Name: name, Do: func(ctx context.Context, folder string) error {
			return whole(one(ctx, k, folder, o.lines(name)))
		}})
	}
	if err := Run(ctx, o, tasks); err != nil {
		return nil, err
	}
	all := make([]*bayes.Posterior, runs)
	out := &fit.Result{Status: run.Completed}
	for k, t := range tasks { // read from the finished checkpoints, which are refused if they are of another fit
		result, err := one(ctx, k, filepath.Join(o.Folder, t.Name), nil)
		if err != nil {
			return nil, fmt.Errorf("cluster: %s in %s: %w", t.Name, o.Folder, err)
		}
		all[k], out.Elapsed = result.Posterior, max(out.Elapsed, result.Elapsed)
		if result.Status != run.Completed {
			out.Status = result.Status
		}
		for _, w := range result.Warnings {
			out.Warnings = append(out.Warnings, t.Name+": "+w)
		}
	}
	if out.Posterior, err = bayes.Join(all...); err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, diag.Mixing(ctx, out.Posterior, parts.Train).Sentences()...)
	if alive, ok := out.Posterior.Diagnostics()[bayes.IslandsESS]; ok && runs > 1 && alive < float64(runs)/2 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the evidences of the %d runs are so far apart that %.1f of them "+
			"have the weight: take more particles in each, or smaller steps of the ladder", runs, alive))
	}
	out.Posterior = out.Posterior.WithDoubts(string(out.Status), out.Warnings)
	return out, nil
}

// whole is an error also for a run that was cut, as by a signal: it goes on in another try.
func whole(result *fit.Result, err error) error {
	if err != nil {
		return err
	}
	return result.Status.Err()
}

// lines gives the progress of a task's run as lines, at most one in ten seconds: on a node they go home by stderr.
func (o Options) lines(task string) func(run.Progress) {
	var last time.Time
	return func(p run.Progress) {
		if time.Since(last) < linesEvery {
			return
		}
		last = time.Now()
		line := strings.TrimSpace(fmt.Sprintf("%s step %d", p.Stage, p.Step))
		if p.Steps > 0 {
			line += fmt.Sprintf(" of %d", p.Steps)
		}
		if p.Remaining > 0 {
			line += fmt.Sprintf(", %v left", p.Remaining.Round(time.Second))
		}
		if OnNode() {
			fmt.Fprintln(os.Stderr, line)
			return
		}
		o.report(task, line)
	}
}

const linesEvery = 10 * time.Second

// The checkpoint of a run, in its task's folder.
const (
	checkpointName  = "checkpoint"
	checkpointEvery = 10 * time.Second
)

// seedOf is the seed of a run: far from those of other runs, also of a Fit with the next seed.
func seedOf(seed uint64, number int) uint64 { return seed + uint64(number)*0x9e3779b97f4a7c15 }
