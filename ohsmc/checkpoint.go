package ohsmc

import (
	"encoding/json"
	"fmt"

	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

const checkpointFormat = "gobnn.ohsmc/5"

// position is the part of a checkpoint that is not tensors.
type position struct {
	Step int `json:"step"`
}

// The records' tensors in a checkpoint.
const (
	traceName     = "trace"
	validatedName = "validated"
)

// Identity implements run.Machine.
func (r *training) Identity() ([]run.Part, error) {
	if err := run.CheckWritten(described(r.algorithm)); err != nil {
		return nil, err
	}
	model, err := json.Marshal(r.data.Bound.Model)
	if err != nil {
		return nil, err
	}
	settings, err := r.record()
	if err != nil {
		return nil, err
	}
	data := r.data.Parts.Train.Hash()
	if part := r.data.Parts.Validation; part != nil {
		data += ", validation " + part.Hash()
	}
	return []run.Part{
		{Name: "data", Value: data},
		{Name: "model", Value: string(model)},
		{Name: "seed", Value: fmt.Sprint(r.Seed)},
		{Name: "settings", Value: string(settings)},
		{Name: "backend", Value: r.Engine.Name()},
	}, nil
}

// Keep implements run.Machine: the state of the device and the records of the host.
func (r *training) Keep() (any, map[string]*tensors.Tensor, error) {
	kept, err := r.state.Host(r.own()...)
	if err != nil {
		return nil, nil, err
	}
	var trace, validated []float64
	for _, t := range r.trace {
		trace = append(trace, t.values()...)
	}
	for _, v := range r.validated {
		validated = append(validated, float64(v.Step), v.NLPD)
	}
	kept[traceName], kept[validatedName] = run.Table(trace, recordWidth), run.Table(validated, 2)
	return position{r.step}, kept, nil
}

// own are the names of the tensors of the run's state, without its data.
func (r *training) own() []string { return r.state.NamesWithout("train_", "valid_") }

// keptShapes are the shapes of the tensors that make a posterior, by name.
func (r *training) keptShapes() map[string]shapes.Shape {
	bound := r.data.Bound
	all := map[string]shapes.Shape{
		phiName: shapes.Make(r.DType, r.Particles, bound.D), weightsName: shapes.Make(r.DType, r.Particles),
	}
	if bound.W > 0 {
		all[psiName] = shapes.Make(r.DType, bound.W)
	}
	return all
}

// Adopt implements run.Machine: it restores the records, and checks the tensors that a posterior is made of. The other
// tensors are checked when the run resumes.
func (r *training) Adopt(head json.RawMessage, kept map[string]*tensors.Tensor) error {
	var at position
	if err := run.Decode(head, &at); err != nil {
		return err
	}
	if at.Step < 0 || at.Step > r.steps {
		return fmt.Errorf("it stands at step %d of %d", at.Step, r.steps)
	}
	prefixes := []string{""}
	validations := 0
	if r.data.Parts.Validation != nil {
		prefixes = append(prefixes, run.BestPrefix)
		for step := 1; step <= at.Step; step++ {
			if r.validates(step) {
				validations++
			}
		}
	}
	for _, prefix := range prefixes {
		for name, want := range r.keptShapes() {
			if _, err := run.Tensor(kept, prefix+name, want); err != nil {
				return err
			}
		}
	}
	if err := r.adoptRecords(at.Step, validations, kept); err != nil {
		return err
	}
	r.step, r.adopted = at.Step, kept
	return nil
}

// adoptRecords restores the trace and the validations; it returns an error if their numbers are not the expected ones.
func (r *training) adoptRecords(steps, validations int, kept map[string]*tensors.Tensor) error {
	trace, err := run.Rows(kept, traceName, steps, recordWidth)
	if err != nil {
		return err
	}
	for _, v := range trace {
		r.trace = append(r.trace, recordOf(v))
	}
	validated, err := run.Rows(kept, validatedName, validations, 2)
	if err != nil {
		return err
	}
	last := 0
	for _, v := range validated {
		step := int(v[0])
		if step <= last || step > steps || !r.validates(step) {
			return fmt.Errorf("it has a validation after step %v of %d, which follows step %d", v[0], steps, last)
		}
		r.rank(Validation{step, v[1]})
		last = step
	}
	return nil
}

// resume replaces the initial state by the checkpoint's, if there is one.
func (r *training) resume() error {
	if r.adopted == nil {
		return nil
	}
	for _, name := range r.own() {
		initial, err := r.state.Host(name)
		if err != nil {
			return fmt.Errorf("ohsmc: %w", err)
		}
		t, err := run.Tensor(r.adopted, name, initial[name].Shape())
		if err != nil {
			return fmt.Errorf("ohsmc: resuming from %s (delete the file to start anew): %w", r.Checkpoint, err)
		}
		r.state.Set(name, t)
	}
	r.adopted = nil
	return nil
}
