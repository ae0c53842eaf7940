package ohsmc

import (
	"encoding/json"
	"fmt"
	"time"

	"gobnn/bayes/compute/checkpoint"

	"github.com/gomlx/gomlx/core/tensors"
)

const checkpointFormat = "gobnn.ohsmc/3"

// position is the part of a checkpoint that is no tensor.
type position struct {
	Step      int           `json:"step"`
	Best      int           `json:"best_step"`
	SinceBest int           `json:"since_best"`
	Status    Status        `json:"status"`
	Elapsed   time.Duration `json:"elapsed"`
}

// blankCheckpoint is what a checkpoint of this run is recognised by, without what it holds.
func (r *run) blankCheckpoint() (checkpoint.Run[position], error) {
	model, err := json.Marshal(r.bound.Model)
	return checkpoint.Run[position]{Format: checkpointFormat, Identity: []checkpoint.Part{
		{Name: "data", Value: r.data.Parts.Train.Hash()},
		{Name: "model", Value: string(model)},
		{Name: "seed", Value: fmt.Sprint(r.Seed)},
		{Name: "settings", Value: string(r.Settings.record())},
		{Name: "backend", Value: r.engine.Name()},
	}}, err
}

func (r *run) checkpointIfDue() error {
	if r.Checkpoint == "" || time.Since(r.saved) < r.CheckpointEvery {
		return nil
	}
	return r.checkpoint()
}

// checkpoint writes the state of the device and the records of the host.
func (r *run) checkpoint() error {
	if r.Checkpoint == "" {
		return nil
	}
	kept, err := r.blankCheckpoint()
	if err != nil {
		return fmt.Errorf("ohsmc: checkpoint: %w", err)
	}
	status := r.status
	if status == Cancelled {
		status = "" // it goes on
	}
	kept.Head = position{r.step, r.best.Step, r.sinceBest, status, r.elapsed()}
	if kept.Tensors, err = r.state.Host(r.own()...); err != nil {
		return fmt.Errorf("ohsmc: checkpoint: %w", err)
	}
	kept.Tensors["trace"] = traceTensor(r.trace)
	kept.Tensors["validated"] = validatedTensor(r.validated)
	if err := kept.Write(r.Checkpoint); err != nil {
		return fmt.Errorf("ohsmc: checkpoint: %w", err)
	}
	r.saved = time.Now()
	return nil
}

// own names the tensors that are the run's state, not its data.
func (r *run) own() []string { return r.state.NamesWithout("train_", "valid_") }

// restore goes on from the checkpoint if there is one.
func (r *run) restore() error {
	if r.Checkpoint == "" {
		return nil
	}
	kept, err := r.blankCheckpoint()
	if err != nil {
		return fmt.Errorf("ohsmc: checkpoint: %w", err)
	}
	found, err := kept.Resume(r.Checkpoint, r.Replace)
	if err != nil {
		return fmt.Errorf("ohsmc: resuming: %w", err)
	}
	if !found {
		return r.checkpoint() // an unwritable folder shows now, not after hours
	}
	if err := r.adopt(kept); err != nil {
		return fmt.Errorf("ohsmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
	}
	return nil
}

func (r *run) adopt(kept checkpoint.Run[position]) (err error) {
	if err := kept.Into(r.state, r.own()); err != nil {
		return err
	}
	r.step, r.sinceBest, r.status, r.before = kept.Head.Step, kept.Head.SinceBest, kept.Head.Status, kept.Head.Elapsed
	if r.trace, err = traceOf(kept.Tensors["trace"]); err != nil {
		return err
	}
	if r.validated, err = validatedOf(kept.Tensors["validated"]); err != nil {
		return err
	}
	for _, v := range r.validated {
		if v.Step == kept.Head.Best {
			r.best = v
		}
	}
	return nil
}

// The records as matrices of float64, a row each.

func traceTensor(trace []StepRecord) *tensors.Tensor {
	var rows []float64
	for _, t := range trace {
		rows = append(rows, t.values()...)
	}
	return checkpoint.Table(rows, recordWidth)
}

func traceOf(t *tensors.Tensor) ([]StepRecord, error) {
	rows, err := checkpoint.Rows(t, recordWidth)
	var trace []StepRecord
	for _, v := range rows {
		trace = append(trace, recordOf(v))
	}
	return trace, err
}

func validatedTensor(validated []Validation) *tensors.Tensor {
	var rows []float64
	for _, v := range validated {
		rows = append(rows, float64(v.Step), v.NLPD)
	}
	return checkpoint.Table(rows, 2)
}

func validatedOf(t *tensors.Tensor) ([]Validation, error) {
	rows, err := checkpoint.Rows(t, 2)
	var validated []Validation
	for _, v := range rows {
		validated = append(validated, Validation{int(v[0]), v[1]})
	}
	return validated, err
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
