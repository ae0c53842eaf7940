package train_test

import (
	"context"
	"encoding/json"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
)

// alone is a method that trains a task without a model: what an emulator's training is, in small.
type alone struct {
	train.Training
	task    train.Task
	unit    float64 // of the target; 0: 1
	observe func(step int, theta []float64) error
}

func (alone) Title() string                  { return "a task alone" }
func (alone) Takes() fit.Takes               { return fit.Takes{Density: true} }
func (a alone) MarshalJSON() ([]byte, error) { return json.Marshal(a.Training) }

func (a alone) Prepare(j *fit.Job) (m fit.Method, err error) {
	a.Training, err = a.Training.Prepared("mine", a.task.Train.Count)
	return a, err
}

func (a alone) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	data, stage, theta := *j.Data, *j, []float64(nil)
	if stage.Data = &data; a.unit != 0 {
		data.Target.StdDev = []float64{a.unit}
	}
	a.task.Posterior = func(_ run.Status, now []float64) (*bayes.Posterior, error) {
		theta = now
		return &bayes.Posterior{}, nil
	}
	if a.observe != nil {
		stage.Observe = func(step int, _ *bayes.Posterior) error { return a.observe(step, theta) }
	}
	return train.Run(ctx, &stage, a.Training, a.task)
}

// trained is a result with what the tests look at.
type trained struct {
	*fit.Result
	*train.Details
}

// runs trains by the method.
func runs(ctx context.Context, a alone, s run.Settings) (trained, error) {
	s.DType = compute.Float64
	nowhere := density.Problem{Dim: 1, Target: func(compute.Nodes, []*graph.Node) density.Target { return nil }}
	r, err := fit.Sample(ctx, nowhere, a, s)
	return trained{r, fit.Details[*train.Details](r)}, err
}
