package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// islands is the island particle model (Vergé, Dubarry, Del Moral and Moulines 2015: the double bootstrap with adaptive
// selection of islands) of tempered SMC with a given ladder, as a method. An island is a particle of an SMC sampler
// whose particles are whole runs:
//
//	move:      each island goes on to the stage's last power, a task each
//	weigh:     island m weighs by what its estimate of the evidence was multiplied by since the islands were resampled
//	           last, W_m
//	resample:  if the effective number of islands is below half of them, draw ancestors by the W_m, multiply Z by their
//	           mean, and begin with weights of 1 again
//
// In the end Z is multiplied by the mean of the W_m, and the particles of all islands, each with its weight within the
// island times W_m, are the posterior. E[W_m f(island)] is what a single run gives, whatever the islands were chosen by
// at the stages before. So Z is unbiased where it is for a single run.
//
// The variance of Z is estimated as for particles (smc.Genealogy): islands are independent but for their common
// ancestors. It includes what varies within islands, of which nothing need be known.
type islands struct {
	smc.Tempered
	number int
	on     Options
}

// mostStages bounds the number of stages, between which islands may meet. On a cluster a stage costs each task about a
// second, and all islands wait for the slowest. If the logarithms of the weights are normal, half of the islands count
// at a variance of log 2. So eight stages keep the islands alive up to a standard deviation of 2.2 of an island's log
// evidence, which is far beyond what a run should have.
const mostStages = 8

// stages cuts a ladder of n powers into parts of equal length. It gives the number of powers that are weighed before
// the end of each stage; 0 for the last, which goes to the posterior. Islands meet where the next power has just been
// weighed and particles have not been moved: so they are chosen by all that is known of them, and copies go apart at
// once. In the paper they may meet at every step; here at most seven times.
func stages(n int) (ends []int) {
	meetings := min(n, mostStages-1)
	for s := range meetings {
		ends = append(ends, (s+1)*n/meetings)
	}
	return append(ends, 0)
}

// Title implements fit.Method.
func (m islands) Title() string {
	return "island particle model (Vergé, Dubarry, Del Moral and Moulines 2015) of " + m.Tempered.Title()
}

// MarshalJSON writes the settings, by which the islands' checkpoints know them: not where they run.
func (m islands) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"islands": m.number, "of": m.Tempered})
}

// Prepare implements fit.Method.
func (m islands) Prepare(j *fit.Job) (fit.Method, error) {
	prepared, err := m.Tempered.Prepare(j)
	if err != nil {
		return nil, err
	}
	if err := run.CheckWritten(prepared); err != nil {
		return nil, fmt.Errorf("cluster: islands keep checkpoints: %w", err)
	}
	m.Tempered = prepared.(smc.Tempered)
	return m, nil
}

// Run implements fit.Method. What islands do when they meet follows from their checkpoints, so that a call after an
// interruption does the same.
func (m islands) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	ends := stages(len(m.Ladder))
	var tasks [][]Task // of each stage
	for stage := range ends {
		tasks = append(tasks, m.tasks(j, stage, ends[stage]))
	}
	if OnNode() {
		return nil, Run(ctx, m.on, slices.Concat(tasks...))
	}
	m.on.driver = &driver{}
	defer m.on.driver.end()
	now := newArchipelago(m.number)
	var meetings []Meeting
	var all []*fit.Result
	for stage, end := range ends {
		if err := Run(ctx, m.on, tasks[stage]); err != nil {
			return nil, err
		}
		all = nil
		evidences := make([]float64, m.number)
		for k, t := range tasks[stage] { // from the finished checkpoints, which are refused if they are of another fit
			result, err := m.goOn(ctx, j, stage, k, end, filepath.Join(m.on.Folder, t.Name))
			if err := whole(result, err); err != nil {
				return nil, fmt.Errorf("cluster: %s in %s: %w", t.Name, m.on.Folder, err)
			}
			all, evidences[k] = append(all, result), result.Draws.Evidence.Value
		}
		if end == 0 {
			break
		}
		at, ancestors, err := now.meet(evidences, rand.NewPCG(j.Seed, uint64(stage)))
		if err != nil {
			return nil, fmt.Errorf("cluster: islands at power %.4g: %w", m.Ladder[end-1], err)
		}
		at.Power = m.Ladder[end-1]
		meetings = append(meetings, at)
		for k, t := range tasks[stage+1] {
			if err := m.begin(t, tasks[stage][ancestors[k]]); err != nil {
				return nil, fmt.Errorf("cluster: the beginning of %s: %w", t.Name, err)
			}
		}
	}
	return m.joined(now, meetings, all, tasks[len(ends)-1])
}

// tasks are the islands of a stage.
func (m islands) tasks(j *fit.Job, stage, end int) (tasks []Task) {
	for k := range m.number {
		name := fmt.Sprintf("stage %d island %d", stage+1, k+1)
		do := func(ctx context.Context, folder string) error {
			own := *j
			own.Progress = m.on.lines(name)
			return whole(m.goOn(ctx, &own, stage, k, end, folder))
		}
		tasks = append(tasks, Task{Name: name, Do: do})
	}
	return tasks
}

// goOn makes island k's steps of a stage. Its random numbers are of the stage and the number k, not of its ancestor,
// from which other islands may descend too.
func (m islands) goOn(ctx context.Context, j *fit.Job, stage, k, end int, folder string) (*fit.Result, error) {
	own := *j
	own.Checkpoint, own.CheckpointEvery = filepath.Join(folder, checkpointName), checkpointEvery
	return m.RunTo(ctx, &own, end, seedOf(j.Seed, stage*m.number+k))
}

// begin copies the ancestor's checkpoint for a task that has not begun.
func (m islands) begin(task, ancestor Task) error {
	from, to := filepath.Join(m.on.Folder, ancestor.Name), filepath.Join(m.on.Folder, task.Name)
	if _, err := os.Stat(filepath.Join(to, checkpointName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return copied(filepath.Join(from, checkpointName), filepath.Join(to, checkpointName), 0o644)
}

// Meeting is where islands meet between two stages, and may be resampled; see Fit. fit.Details[[]Meeting](result) has
// all.
type Meeting struct {
	Power     float64 // of the likelihood
	ESS       float64 // effective number of islands by their weights, before resampling
	First     float64 // effective number of first islands that they descend from
	Resampled bool
}

// archipelago is what is known of islands where they meet.
type archipelago struct {
	before    []float64 // log evidence of each island's ancestor where they were resampled last
	eve       []int     // the first island that each descends from
	entered   float64   // sum of the logs of the mean weights with which they were resampled
	genealogy smc.Genealogy

	logWeights bayes.LogWeights // after the last meeting
	evidence   bayes.Evidence   // at the last meeting
}

func newArchipelago(islands int) *archipelago {
	a := &archipelago{before: make([]float64, islands)}
	for k := range islands {
		a.eve = append(a.eve, k)
	}
	return a
}

// meet weighs the islands, whose estimates of the log evidence are given, and resamples them if it must. It gives each
// island's ancestor.
func (a *archipelago) meet(evidences []float64, source rand.Source) (at Meeting, ancestors []int, err error) {
	n := len(evidences)
	logs := make([]float64, n)
	floats.SubTo(logs, evidences, a.before)
	if a.logWeights, err = bayes.NewLogWeights(logs); err != nil {
		return at, nil, err
	}
	weights, families := a.logWeights.Weights(), make([]float64, n)
	for k, w := range weights {
		families[a.eve[k]] += w
		ancestors = append(ancestors, k)
	}
	squares, count := floats.Dot(weights, weights), float64(n)
	a.genealogy.Squares, a.genealogy.Since = floats.Dot(families, families), (count*squares-1)/(count-1)
	mean := floats.LogSumExp(logs) - math.Log(count)
	a.evidence = bayes.Evidence{Value: a.entered + mean, StdErr: a.genealogy.StdErr(smc.Multinomial, n)}
	at = Meeting{ESS: 1 / squares, First: 1 / a.genealogy.Squares, Resampled: 1/squares < count/2}
	if !at.Resampled {
		return at, ancestors, nil
	}
	a.entered += mean
	a.genealogy.Before++
	a.genealogy.Sum += a.genealogy.Since
	by, eve := distuv.NewCategorical(weights, source), make([]int, n)
	for k := range ancestors {
		ancestors[k] = int(by.Rand())
		eve[k], a.before[k] = a.eve[ancestors[k]], evidences[ancestors[k]]
	}
	a.eve = eve
	a.logWeights, err = bayes.NewLogWeights(make([]float64, n))
	return at, ancestors, err
}

// joined is the result of islands at their last meeting.
func (m islands) joined(a *archipelago, meetings []Meeting, all []*fit.Result, tasks []Task) (*fit.Result, error) {
	first := all[0].Draws.Phi.Shape()
	draws := bayes.Draws{Evidence: a.evidence, Phi: tensors.FromShape(shapes.Make(first.DType, m.number*first.Dim(0),
		first.Dim(1))), Diagnostics: map[string]float64{bayes.IslandsESS: a.logWeights.EffectiveSampleSize()}}
	out := &fit.Result{Status: run.Completed, Details: []any{meetings}}
	filled := 0
	for k, result := range all {
		for _, w := range result.Draws.LogWeights {
			draws.LogWeights = append(draws.LogWeights, a.logWeights[k]+w)
		}
		var failed error
		err := draws.Phi.MutableBytes(func(to []byte) {
			failed = result.Draws.Phi.ConstBytes(func(from []byte) { filled += copy(to[filled:], from) })
		})
		if err := errors.Join(err, failed); err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		for _, w := range result.Warnings {
			out.Warnings = append(out.Warnings, fmt.Sprintf("island %d: %s", k+1, w))
		}
		path := filepath.Join(m.on.Folder, tasks[k].Name, checkpointName)
		out.Elapsed = max(out.Elapsed, run.Spent(path)) // with its ancestors' time
	}
	out.Draws = draws
	if last := meetings[len(meetings)-1]; last.First < float64(m.number)/2 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the evidences of the %d islands are so far apart that they descend "+
			"from few of the first ones (effectively from %.1f): the standard error of the log evidence is rough; take more "+
			"particles in each, or smaller steps of the ladder", m.number, last.First))
	}
	return out, nil
}
