package ohsmc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gobnn/bayes/compute"
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
		{Name: "data", Value: r.data.Hash()},
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
func (r *run) own() []string {
	var names []string
	for _, name := range r.state.Names() {
		if !strings.HasPrefix(name, "train_") && !strings.HasPrefix(name, "valid_") {
			names = append(names, name)
		}
	}
	return names
}

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
	for _, name := range r.own() {
		if kept.Tensors[name] == nil {
			return fmt.Errorf("it has no tensor %q", name)
		}
		r.state.Set(name, kept.Tensors[name])
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
	return matrix(rows, recordWidth)
}

func traceOf(t *tensors.Tensor) ([]StepRecord, error) {
	rows, err := rowsOf(t, recordWidth)
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
	return matrix(rows, 2)
}

func validatedOf(t *tensors.Tensor) ([]Validation, error) {
	rows, err := rowsOf(t, 2)
	var validated []Validation
	for _, v := range rows {
		validated = append(validated, Validation{int(v[0]), v[1]})
	}
	return validated, err
}

func matrix(rows []float64, width int) *tensors.Tensor {
	if len(rows) == 0 {
		rows = make([]float64, width) // tensors of size 0 are not portable: a row of zeros stands for none
	}
	return tensors.FromFlatDataAndDimensions(rows, len(rows)/width, width)
}

func rowsOf(t *tensors.Tensor, width int) ([][]float64, error) {
	if t == nil {
		return nil, errors.New("its records are missing")
	}
	flat, err := compute.Float64s(t)
	if err != nil || len(flat)%width != 0 {
		return nil, fmt.Errorf("its records cannot be read (%d numbers in rows of %d): %w", len(flat), width, err)
	}
	var rows [][]float64
	for i := 0; i < len(flat); i += width {
		rows = append(rows, flat[i:i+width])
	}
	if len(rows) == 1 && allZero(rows[0]) {
		return nil, nil
	}
	return rows, nil
}

func allZero(values []float64) bool {
	for _, v := range values {
		if v != 0 {
			return false
		}
	}
	return true
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
