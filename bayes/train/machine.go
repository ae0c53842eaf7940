package train

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/floats"
)

// training is a run of a task: its compiled programs, which exist from begin on, and what they are run with.
type training struct {
	*fit.Job
	Training
	Task
	compiled       *programs
	members, width int
	perEpoch       int                    // steps
	batches        *dataset.Batches       // of rows in memory
	streamed       *density.SourceBatches // of a Source
}

func newTraining(j *fit.Job, t Training, task Task) (*training, error) {
	r := &training{Job: j, Training: t, Task: task}
	r.members, r.width = task.Size()
	if n := len(task.Start); n > 0 && n != r.members*r.width {
		return nil, fmt.Errorf("%s: Task.Start has %d numbers: %d members of %d each are to be trained",
			r.Owner, n, r.members, r.width)
	}
	var err error
	if task.Train.Streamed {
		r.streamed = t.SourceBatches(j)
		r.perEpoch = r.streamed.PerEpoch()
	} else if r.batches, err = dataset.NewBatches(task.Train.Count, r.BatchSize, r.Seed); err == nil {
		r.perEpoch = r.batches.PerEpoch()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Owner, err)
	}
	r.ValidateEvery = cmp.Or(r.ValidateEvery, r.perEpoch)
	return r, nil
}

// batch is the mini-batch of a step. Of a Source it becomes all rows of the state.
func (r *training) batch(ctx context.Context, state *compute.State, made int) (dataset.Batch, error) {
	if r.streamed == nil {
		return r.batches.At(made), nil
	}
	x, y, count, err := r.streamed.At(ctx, made)
	if err != nil {
		return dataset.Batch{}, err
	}
	state.Set("train_x", x)
	state.Set("train_y", y)
	batch := dataset.Batch{Rows: make([]int32, r.BatchSize), Count: count}
	for i := range batch.Rows {
		batch.Rows[i] = int32(i)
	}
	return batch, nil
}

// loop declares the run's steps.
func (r *training) loop() *fit.Loop[StepRecord] {
	l := &fit.Loop[StepRecord]{
		Format: "gobnn.ascent/3", Steps: r.Epochs * r.perEpoch, Identity: r.identity(),
		Begin: r.begin, Data: []string{"train_", "valid_"},
		Step: r.advance,
		Progress: func(at *fit.Trail[StepRecord]) run.Progress {
			p := run.Progress{Stage: cmp.Or(r.Name, "training")}
			if n := len(at.Records); n > 0 {
				p.Scores = []run.Score{{Name: fit.LossCurve, Value: at.Records[n-1].Loss + r.LogScale()}}
			}
			return p
		},
		ObserveEvery: r.perEpoch, Result: r.result,
	}
	if r.validates() {
		l.Validation = &fit.Validation{
			Score: func(state *compute.State, open []float64) ([]float64, error) {
				return r.compiled.validate.Run(state, open, random.KeyOf(r.Seed).Named("validation").Words())
			},
			Members: r.members, Every: r.ValidateEvery, Patience: r.Patience,
		}
	}
	return l
}

// validates says whether there are validation rows.
func (r *training) validates() bool { return r.Validation.Count > 0 }

// identity is what a checkpoint must agree in besides the job's.
func (r *training) identity() []run.Part {
	parts := append(slices.Clone(r.Task.Identity),
		run.Part{Name: "training", Value: fmt.Sprintf("%s %+v", r.Name, r.Training)})
	if r.Start != nil {
		parts = append(parts, run.Part{Name: "training's start", Value: fmt.Sprint(r.Start)})
	}
	return parts
}

// begin compiles the programs unless they are compiled, and puts the data and the starting values on the device.
func (r *training) begin(ctx context.Context) (state *compute.State, release func(), err error) {
	optimiser := r.Optimiser
	optimiser.Schedule = Schedule{} // the learning rate is an input of a program
	key := compute.KeyOf("train", r.Learner, r.DType, r.Train.Count, r.Validation.Count, r.BatchSize, optimiser,
		r.streamed != nil)
	if r.compiled, release, err = compute.Keep(r.Engine, key, func() (*programs, error) {
		return newPrograms(r.Engine, r.DType, r.Learner, optimiser, r.validates(), r.streamed != nil)
	}); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.Owner, err)
	}
	state = compute.NewState(r.Engine)
	if err := r.fill(ctx, state); err != nil {
		return state, release, fmt.Errorf("%s: initial state: %w", r.Owner, err)
	}
	return state, release, nil
}

// fill puts the data and the starting values into the state.
func (r *training) fill(ctx context.Context, state *compute.State) error {
	if r.streamed != nil {
		if _, err := r.batch(ctx, state, 0); err != nil {
			return err
		}
	}
	for name, rows := range map[string]Rows{"train": r.Train, "valid": r.Validation} {
		if rows.Tensors == nil {
			continue
		}
		x, y, err := rows.Tensors()
		if err != nil {
			return err
		}
		state.Set(name+"_x", x)
		state.Set(name+"_y", y)
	}
	if _, err := r.compiled.initial.Run(state, random.KeyOf(r.Seed).Named("initial").Words()); err != nil {
		return err
	}
	if r.Start != nil {
		state.Set("theta", compute.Floats(r.DType, r.Start, r.members, r.width))
	}
	if c, ok := r.Learner.(Collector); ok {
		for name, t := range c.Collected(r.DType) {
			state.Set(name, t)
		}
	}
	if !r.validates() {
		return nil
	}
	return run.BeginBest(state, []string{"theta"}, r.members)
}

// advance makes the steps of a call, and a collection when they end an epoch.
func (r *training) advance(ctx context.Context, at *fit.Trail[StepRecord]) error {
	made, ahead := at.Step, at.Ahead()
	first, err := r.batch(ctx, at.State(), made)
	if err != nil {
		return at.Record(StepRecord{}, err)
	}
	if r.streamed != nil { // the state has the rows of this batch
		ahead = 1
	}
	if r.compiled.gather != nil {
		ahead = min(ahead, r.perEpoch-made%r.perEpoch)
	}
	batch := func(i int) dataset.Batch {
		if i == 0 {
			return first
		}
		return r.batches.At(made + i)
	}
	outcomes, err := r.compiled.step.Run(at.State(), ahead, func(i int) []any {
		b, step := batch(i), made+i
		numbers := []float64{float64(step + 1), r.Optimiser.Schedule.At(step), float64(b.Count)}
		return []any{b.Rows, numbers, random.KeyOf(r.Seed).Named("step").At(uint32(step + 1)).Words()}
	})
	if err != nil {
		return at.Record(StepRecord{}, err)
	}
	for i, outcome := range outcomes {
		if err := at.Record(r.record(outcome, made+i, batch(i).Count)); err != nil {
			return err
		}
	}
	if r.compiled.gather != nil && at.Step%r.perEpoch == 0 {
		if _, err := r.compiled.gather.Run(at.State(), float64(at.Step/r.perEpoch)); err != nil {
			return fmt.Errorf("%s: collecting after step %d: %w", r.Owner, at.Step, err)
		}
	}
	return nil
}

// record is the record of a step, given its outcome and how many rows its batch has.
func (r *training) record(outcome []float64, made, count int) (record StepRecord, err error) {
	finite := 0
	for i, value := range outcome[:r.members] {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			record.Loss -= value / float64(r.Train.Count)
			finite++
		}
		record.Rejected += int(outcome[r.members+i])
	}
	record.Loss /= float64(finite)
	if r.Source != nil { // each batch stands for as many rows as the others, and the last may have fewer
		record.Loss *= float64(r.Train.Count) / float64(r.perEpoch*count)
	}
	if record.Rejected == r.members {
		return record, fmt.Errorf("%w: of %d members %d have a gradient that is not finite: take a smaller learning rate "+
			"than %.3g, and check the data for outliers", ErrDiverged, r.members, record.Rejected,
			r.Optimiser.Schedule.At(made))
	}
	return record, nil
}

// result has theta at each member's best validation at the end of a run, and after the last step on its way.
func (r *training) result(at *fit.Trail[StepRecord]) (*fit.Result, error) {
	names := []string{"theta"}
	if c, ok := r.Learner.(Collector); ok {
		names = slices.AppendSeq(names, maps.Keys(c.Collected(r.DType)))
	}
	if r.validates() {
		names = append(names, run.BestPrefix+"theta")
	}
	host, err := at.Host(names...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Owner, err)
	}
	d := &Details{Collected: host, Steps: at.Step, PerEpoch: r.perEpoch, patience: r.Patience}
	if d.Theta, err = compute.Float64s(host["theta"]); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Owner, err)
	}
	for _, t := range at.Records {
		t.Loss += r.LogScale()
		d.Trace = append(d.Trace, t)
	}
	for _, v := range at.Validated {
		scores := slices.Clone(v.Scores)
		floats.AddConst(r.LogScale(), scores)
		d.Validated = append(d.Validated, fit.Validated{Step: v.Step, Scores: scores})
	}
	if r.validates() {
		best, err := compute.Float64s(host[run.BestPrefix+"theta"])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Owner, err)
		}
		for i, b := range at.Best {
			if at.Status != "" && b.Step > 0 { // otherwise the best is still where the training began
				copy(d.Theta[i*r.width:(i+1)*r.width], best[i*r.width:])
			}
			d.Best = append(d.Best, run.Best{Step: b.Step, NLPD: b.NLPD + r.LogScale()})
		}
	}
	result := d.Result(at.Status)
	if r.Posterior != nil {
		result.Posterior, err = r.Posterior(at.Status, d.Theta)
	}
	return result, err
}
