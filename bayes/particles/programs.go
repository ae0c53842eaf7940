package particles

import (
	"fmt"
	"reflect"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	. "github.com/gomlx/gomlx/core/graph"
)

// programs are the compiled programs of one kind of run.
type programs struct {
	core       Core
	stepper    Stepper
	initial    []*compute.Program // draw phi, and psi
	validation *validation        // nil without a validation part
}

// Close frees the programs.
func (p *programs) Close() {
	for _, program := range p.initial {
		program.Close()
	}
	if p.stepper != nil {
		p.stepper.Close()
	}
	if p.validation != nil {
		p.validation.program.Close()
	}
}

// key names what the programs of a run depend on.
func (r *training) key() string {
	t := r.Training // without what is an input of the programs, or decides when they run
	t.Epochs, t.ValidateEvery, t.Patience, t.Optimiser.Schedule = 0, 0, 0, train.Schedule{}
	validated := 0
	if part := r.Parts.Validation; part != nil {
		validated = part.Rows()
	}
	return compute.KeyOf("particles", r.Bound.ProgramKey(), r.Rows(), validated, t, r.Devices,
		r.DType, fmt.Sprintf("%T", r.algorithm), settingsOf(r.algorithm))
}

// settingsOf returns the fields of an algorithm without its Training.
func settingsOf(a Algorithm) (fields []any) {
	v := reflect.Indirect(reflect.ValueOf(a))
	if v.Kind() != reflect.Struct {
		return []any{a}
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Type != reflect.TypeFor[Training]() {
			fields = append(fields, f.Name, v.Field(i))
		}
	}
	return fields
}

func newPrograms(r *training) (*programs, error) {
	plan, err := planOf(r.Bound, r.Training, r.Settings, r.BatchSize, false)
	if err != nil {
		return nil, err
	}
	p := &programs{core: Core{
		Training: r.Training, Settings: r.Settings, Bound: r.Bound,
		Target: density.MiniBatch{Likelihood: density.Likelihood{Model: r.Bound, Plan: plan}, Rows: r.Rows()},
	}}
	if err = p.newInitial(); err == nil {
		p.stepper, err = r.algorithm.Compile(&p.core)
	}
	if err == nil && p.stepper == nil {
		err = fmt.Errorf("particles: Compile of %T gives no Stepper", r.algorithm)
	}
	if part := r.Parts.Validation; err == nil && part != nil {
		p.validation, err = newValidation(&p.core, part.Rows())
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// planOf is the plan of chunks for particles that are evaluated on the given number of rows at once.
func planOf(bound *bayes.BoundModel, t Training, s run.Settings, rows int, forward bool) (compute.Plan, error) {
	work := density.Workload{Particles: t.Particles, Rows: rows, Forward: forward, Devices: s.Devices, Chunk: t.Chunk}
	return density.NewPlan(bound, s.DType, work)
}

// newInitial prepares the programs that draw phi from the prior, with equal weights, and psi from its initialisers, by
// the seed. There are two programs because compute.NewInitial chooses the backend by how many numbers are drawn, which
// may be few for psi and many for phi.
func (p *programs) newInitial() error {
	add := func(name string, numbers int, makes []string, step compute.Step) error {
		program, err := compute.NewInitial(p.core.Engine, name, numbers, makes, step)
		if err == nil {
			p.initial = append(p.initial, program)
		}
		return err
	}
	nothing := func(like *Node) *Node { return ConstAs(like, []float64{0}) }
	particles := func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		phi := p.core.Bound.SamplePrior(random.FromKey(inputs[0]).Named("prior"), p.core.DType, p.core.Particles)
		return compute.Nodes{phiName: phi, weightsName: p.core.EqualWeights(phi)}, nothing(phi)
	}
	err := add("particles first particles", p.core.Particles*p.core.Bound.D, []string{phiName, weightsName}, particles)
	if err != nil || p.core.Bound.W == 0 {
		return err
	}
	return add("particles first psi", p.core.Bound.W, []string{psiName},
		func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			psi := p.core.Bound.InitShared(random.FromKey(inputs[0]).Named("shared"), p.core.DType, inputs[0].Graph())
			return compute.Nodes{psiName: psi}, nothing(psi)
		})
}
