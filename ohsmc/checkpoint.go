package ohsmc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"

	"github.com/gomlx/gomlx/core/tensors"
)

const checkpointFormat = "gobnn.ohsmc/2"

// checkpointHead is the part of a checkpoint that is no tensor. What must agree for a run to go on stands in Identity.
type checkpointHead struct {
	Format    string            `json:"format"`
	Identity  map[string]string `json:"identity"`
	Step      int               `json:"step"`
	Best      int               `json:"best_step"`
	SinceBest int               `json:"since_best"`
	Status    Status            `json:"status"`
	Elapsed   time.Duration     `json:"elapsed"`
}

// identity is what a checkpoint must share with the run that resumes it, by the name that a message gives it.
func (r *run) identity() (map[string]string, error) {
	model, err := json.Marshal(r.bound.Model)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"model":    string(model),
		"data":     r.data.Hash(),
		"seed":     fmt.Sprint(r.Seed),
		"settings": string(r.Settings.record()),
		"backend":  r.engine.Name(),
	}, nil
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
	identity, err := r.identity()
	if err != nil {
		return fmt.Errorf("ohsmc: checkpoint: %w", err)
	}
	status := r.status
	if status == Cancelled {
		status = "" // it goes on
	}
	head, err := json.Marshal(checkpointHead{checkpointFormat, identity, r.step, r.best.Step, r.sinceBest, status, r.elapsed()})
	if err != nil {
		return fmt.Errorf("ohsmc: checkpoint: %w", err)
	}
	file := tensorfile.File{Metadata: map[string]string{"gobnn": string(head)}}
	if file.Tensors, err = r.state.Host(r.own()...); err != nil {
		return fmt.Errorf("ohsmc: checkpoint: %w", err)
	}
	file.Tensors["trace"] = traceTensor(r.trace)
	file.Tensors["validated"] = validatedTensor(r.validated)
	if err := tensorfile.Write(r.Checkpoint, file); err != nil {
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
	file, err := tensorfile.Read(r.Checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return r.checkpoint() // an unwritable folder shows now, not after hours
	}
	if err != nil {
		return fmt.Errorf("ohsmc: resuming (delete the file to start anew): %w", err)
	}
	if err := r.adopt(file); err != nil {
		return fmt.Errorf("ohsmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
	}
	return nil
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
	for _, what := range []string{"data", "model", "seed", "settings", "backend"} {
		if identity[what] != head.Identity[what] {
			return fmt.Errorf("it belongs to a run with another %s: there %s, here %s", what, head.Identity[what], identity[what])
		}
	}
	for _, name := range r.own() {
		if file.Tensors[name] == nil {
			return fmt.Errorf("it has no tensor %q", name)
		}
		r.state.Set(name, file.Tensors[name])
	}
	r.step, r.sinceBest, r.status, r.before = head.Step, head.SinceBest, head.Status, head.Elapsed
	if r.trace, err = traceOf(file.Tensors["trace"]); err != nil {
		return err
	}
	if r.validated, err = validatedOf(file.Tensors["validated"]); err != nil {
		return err
	}
	for _, v := range r.validated {
		if v.Step == head.Best {
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
