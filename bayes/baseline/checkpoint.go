package baseline

import (
	"encoding/json"
	"fmt"
	"time"

	"gobnn/bayes/compute/checkpoint"
)

const checkpointFormat = "gobnn.baseline/1"

// position is the part of a checkpoint that is no tensor.
type position struct {
	Step    int           `json:"step"`
	Status  Status        `json:"status"`
	Elapsed time.Duration `json:"elapsed"`
}

// file is the stage's checkpoint; "" for none.
func (r *run) file() string {
	if r.Checkpoint == "" || r.stage.name == training {
		return r.Checkpoint
	}
	return r.Checkpoint + "." + r.stage.name
}

// blankCheckpoint is what a checkpoint of this stage is recognised by, without what it holds.
func (r *run) blankCheckpoint() (checkpoint.Run[position], error) {
	model, err := json.Marshal(r.bound.Model)
	data, method := r.parts.Train.Hash(), r.kind()
	if r.stage.validate {
		data += ", validation " + r.parts.Validation.Hash()
	}
	if r.stage.name != training { // what is trained first is the same for several methods
		method = string(text(r.method.describe()))
	}
	return checkpoint.Run[position]{Format: checkpointFormat, Identity: []checkpoint.Part{
		{Name: "data", Value: data},
		{Name: "model", Value: string(model)},
		{Name: "seed", Value: fmt.Sprint(r.Seed)},
		{Name: "method", Value: method},
		{Name: "settings", Value: string(text(r.record()))},
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
		return fmt.Errorf("baseline: checkpoint: %w", err)
	}
	status := r.status
	if status == Cancelled {
		status = "" // it goes on
	}
	kept.Head = position{r.step, status, r.elapsed()}
	if kept.Tensors, err = r.state.Host(r.own()...); err != nil {
		return fmt.Errorf("baseline: checkpoint: %w", err)
	}
	var trace, validated []float64
	for _, t := range r.trace {
		trace = append(trace, t.Loss, float64(t.Rejected))
	}
	for _, v := range r.validated {
		validated = append(append(validated, float64(v.Step)), v.NLPD...)
	}
	kept.Tensors["trace"], kept.Tensors["validated"] = checkpoint.Table(trace, 2), checkpoint.Table(validated, 1+r.members)
	if err := kept.Write(r.file()); err != nil {
		return fmt.Errorf("baseline: checkpoint: %w", err)
	}
	r.saved = time.Now()
	return nil
}

// restore goes on from the checkpoint if there is one.
func (r *run) restore() error {
	if r.Checkpoint == "" {
		return nil
	}
	kept, err := r.blankCheckpoint()
	if err != nil {
		return fmt.Errorf("baseline: checkpoint: %w", err)
	}
	found, err := kept.Resume(r.file(), r.Replace)
	if err != nil {
		return fmt.Errorf("baseline: resuming: %w", err)
	}
	if !found {
		return r.checkpoint() // an unwritable folder shows now, not after hours
	}
	if err := r.adopt(kept); err != nil {
		return fmt.Errorf("baseline: resuming from %s (delete the file to start anew): %w", r.file(), err)
	}
	return nil
}

func (r *run) adopt(kept checkpoint.Run[position]) error {
	if err := kept.Into(r.state, r.own()); err != nil {
		return err
	}
	r.step, r.status, r.before = kept.Head.Step, kept.Head.Status, kept.Head.Elapsed
	trace, err := checkpoint.Rows(kept.Tensors["trace"], 2)
	if err != nil {
		return err
	}
	for _, v := range trace {
		r.trace = append(r.trace, StepRecord{Loss: v[0], Rejected: int(v[1])})
	}
	validated, err := checkpoint.Rows(kept.Tensors["validated"], 1+r.members)
	if err != nil {
		return err
	}
	for _, v := range validated {
		validation := Validation{Step: int(v[0]), NLPD: v[1:]}
		r.validated = append(r.validated, validation)
		open := r.open()
		r.rank(validation, func(m int) bool { // as the device did
			return open != nil && open[m] != 0 && (r.best[m].Step == 0 && v[1+m] < inf || v[1+m] < r.best[m].NLPD)
		})
	}
	return nil
}
