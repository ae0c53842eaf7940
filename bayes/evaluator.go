package bayes

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"gobnn/bayes/compute"
	"gobnn/bayes/internal/plugin"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// evaluators keep a posterior's compiled programs and its parameters on the device, so that only the first prediction
// of a shape compiles. They are freed with the last posterior that uses them, and where it predicts on another engine.
type evaluators struct{ last *lastEvaluator }

// lastEvaluator is the evaluator of the engine that was used last; nil: none was.
type lastEvaluator struct {
	mu sync.Mutex // held for a moment, not while a program is compiled or runs
	of *evaluator
	// Turns of light evaluations, of which as many run at a time as there are processors, and of others, which use all
	// processors one after another: a single row does not wait for many.
	light, heavy chan struct{}
}

// lightWork is the number of multiplications and activations up to which an evaluation on a CPU is light: of a
// millisecond on XLA. Two threads hardly shorten it, and to wait for the second takes long where other requests keep
// it busy. Rows of several requests are not put together: in GoMLX's Go backend two rows take twice the time of one, on
// XLA three times, and the last digits would depend on who else asks.
const lightWork = 1 << 22

// keptPrograms is the largest number of programs that are kept, one for each number of rows: before another one all are
// closed.
const keptPrograms = 16

func newEvaluators() *evaluators {
	e := &evaluators{&lastEvaluator{
		light: make(chan struct{}, runtime.GOMAXPROCS(0)), heavy: make(chan struct{}, 1),
	}}
	runtime.AddCleanup(e, (*lastEvaluator).close, e.last)
	return e
}

// close frees the evaluator when its last evaluation has ended.
func (l *lastEvaluator) close() {
	if old := l.of; old != nil {
		l.of = nil
		go func() {
			old.users.Wait()
			old.close()
		}()
	}
}

// use returns the evaluator for an engine and its program for a shape. Call Done of its users after the evaluation.
func (l *lastEvaluator) use(p *Posterior, engine *compute.Engine, shape input, light bool) (
	e *evaluator, program *graph.Exec, err error,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e = l.of; e == nil || e.engine != engine || e.programs[shape] == nil && len(e.programs) == keptPrograms {
		if e, err = newEvaluator(p, engine); err != nil {
			return nil, nil, err
		}
		l.close()
		l.of = e
	}
	if program = e.programs[shape]; program == nil {
		if program, err = e.program(shape.rows, light); err != nil {
			return nil, nil, err
		}
		e.programs[shape] = program
	}
	e.users.Add(1)
	return e, program, nil
}

// predict evaluates standardised rows on an engine when it is their turn, see evaluator.predict.
func (l *lastEvaluator) predict(
	ctx context.Context, p *Posterior, engine *compute.Engine, x *tensors.Tensor, count int,
) (Prediction, error) {
	shape := input{x.DType(), x.Shape().Dim(0)}
	work := (p.bound.D + p.bound.W + p.bound.SuffixWidth()) * p.Particles() * shape.rows
	light, turns := engine.OnCPU() && work <= lightWork, l.heavy
	if light {
		turns = l.light
	}
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
	case <-ctx.Done():
		return Prediction{}, ctx.Err()
	}
	e, program, err := l.use(p, engine, shape, light)
	if err != nil {
		return Prediction{}, err
	}
	defer e.users.Done()
	return e.predict(program, x, count)
}

// evaluator evaluates a posterior's particles of positive weight on one engine. It has no pointer to the posterior,
// which would keep it from being freed.
type evaluator struct {
	engine *compute.Engine
	bound  *BoundModel
	dtype  compute.DType
	// The parameters of phi, each with its columns, [A, size], or phi, [A, D], where there is a point of linearisation;
	// psi, [W], and that point, [D], if any.
	parameters []*tensors.Tensor
	linearised bool
	like       Prediction // a template of the predictions, without outputs and rows
	programs   map[input]*graph.Exec
	users      sync.WaitGroup // evaluations that run
}

// input is what a program is compiled for.
type input struct {
	dtype compute.DType
	rows  int
}

func newEvaluator(p *Posterior, engine *compute.Engine) (*evaluator, error) {
	alive, err := p.alive()
	if err != nil {
		return nil, err
	}
	own, err := alive.own()
	if err != nil {
		return nil, err
	}
	phi, err := alive.columns()
	if err != nil {
		return nil, err
	}
	shared, err := clones(alive.psi, alive.expansionPoint)
	if err != nil {
		return nil, err
	}
	parameters := slices.DeleteFunc(append(phi, shared...), func(t *tensors.Tensor) bool { return t == nil })
	for _, t := range parameters { // while nobody else has them: evaluations at a time may only read a tensor
		if err := t.MaterializeOnDevice(engine.Backend(), true, 0); err != nil {
			return nil, err
		}
	}
	return &evaluator{
		engine: engine, bound: p.bound, dtype: p.phi.DType(), linearised: p.expansionPoint != nil, parameters: parameters,
		like: Prediction{
			Likelihood: p.bound.Model.Likelihood, Particles: alive.Particles(), Width: p.bound.Width,
			Size: p.bound.Outputs, Chains: alive.chains, Weights: alive.logWeights.Weights(), Own: own,
			Target:  p.origin.Target.Clone(),
			overOne: p.origin.Provenance.Extras.Exposure,
		},
		programs: map[input]*graph.Exec{},
	}, nil
}

// columns are copies of the stochastic parameters, each [J, size]; of a linearised posterior phi. To cut them out of
// phi in each prediction takes longer than to evaluate a small network for one row.
func (p *Posterior) columns() (all []*tensors.Tensor, err error) {
	if p.expansionPoint != nil {
		return clones(p.phi)
	}
	for _, slot := range p.bound.stochasticSlots() {
		own := tensors.FromShape(shapeOf(p.phi, []int{p.Particles(), slot.Size()}))
		err := copyColumns(own, slot.Size(), 0, p.phi, p.bound.D, slot.Offset, p.Particles(), slot.Size())
		if err != nil {
			return nil, err
		}
		all = append(all, own)
	}
	return all, nil
}

// alive is the posterior without its particles of weight 0. Markov chains stay chains if all their draws are left; else
// the draws count as independent.
func (p *Posterior) alive() (*Posterior, error) {
	var kept []int
	var logWeights []float64
	for j, w := range p.logWeights.Weights() {
		if w > 0 {
			kept, logWeights = append(kept, j), append(logWeights, p.logWeights[j])
		}
	}
	if len(kept) == p.Particles() {
		return p, nil
	}
	copied, err := clones(p.psi, p.expansionPoint)
	if err != nil {
		return nil, err
	}
	phi := tensors.FromShape(shapeOf(p.phi, []int{len(kept), p.bound.D}))
	if err := copyRows(phi, p.phi, kept, p.bound.D); err != nil {
		return nil, err
	}
	return NewPosterior(p.bound, Draws{Phi: phi, Psi: copied[0], LinearisedAt: copied[1], LogWeights: logWeights},
		p.origin)
}

// close frees programs and parameters.
func (e *evaluator) close() {
	if e.engine.Backend().IsFinalized() { // its programs and tensors are freed already
		return
	}
	for _, program := range e.programs {
		program.Finalize()
	}
	for _, t := range e.parameters {
		t.FinalizeAll() //nolint:errcheck // freeing
	}
}

// predict evaluates standardised features, or pictures' bytes, [rows, d], of which the first count are asked for. The
// program is compiled by its first call, which others of the same shape wait for.
func (e *evaluator) predict(program *graph.Exec, x *tensors.Tensor, count int) (Prediction, error) {
	rows := x.Shape().Dim(0)
	args := []any{x}
	for _, t := range e.parameters {
		args = append(args, t)
	}
	results, err := program.Call(args...)
	if err != nil {
		return Prediction{}, err
	}
	defer results[0].FinalizeAll()           //nolint:errcheck // freeing a tensor that was read
	raw, err := compute.Float64s(results[0]) // [Particles, Width, rows]
	if err != nil {
		return Prediction{}, err
	}
	p := e.like
	p.Weights, p.Own, p.Target = slices.Clone(p.Weights), slices.Clone(p.Own), p.Target.Clone()
	p.Rows, p.Outputs = count, make([]float64, p.Particles*count*p.Width)
	for j := range p.Particles {
		for c := range p.Width {
			for n, v := range raw[(j*p.Width+c)*rows:][:count] {
				p.Outputs[(j*count+n)*p.Width+c] = v
			}
		}
	}
	return p, nil
}

// program is that from x, [rows, d], and the parameters to outputs, [Particles, Width, rows].
func (e *evaluator) program(rows int, light bool) (*graph.Exec, error) {
	bytes := int64(2*e.bound.SuffixWidth()*rows) * int64(e.dtype.Size())
	plan := compute.NewPlan(e.like.Particles, bytes, 0)
	exec, err := graph.NewExec(e.engine.Backend(), func(args []*graph.Node) *graph.Node {
		x, own := Numbers(args[0], e.dtype), args[1:]
		var at, psi *graph.Node
		if e.linearised {
			at, own = own[len(own)-1], own[:len(own)-1]
		}
		if e.bound.W > 0 {
			psi, own = own[len(own)-1], own[:len(own)-1]
		}
		if e.linearised {
			return linearisedOutputs(e.bound, x, own[0], psi, at)
		}
		return e.bound.outputs(plan, x, own, psi)
	})
	if err == nil && light {
		exec.WithName(plugin.OneProcessor)
	}
	return exec, err
}

// NetworkOutputs evaluates the network at standardised x, [rows, d], for each particle of phi, [A, D], in the plan's
// chunks of particles: [A, Width, rows]. The layers before the first stochastic one are evaluated once for all.
func (b *BoundModel) NetworkOutputs(plan compute.Plan, x, phi, psi *graph.Node) *graph.Node {
	var own []*graph.Node
	for _, slot := range b.stochasticSlots() {
		own = append(own, slot.of(phi))
	}
	return b.outputs(plan, x, own, psi)
}

// outputs is NetworkOutputs of the stochastic parameters, each [A, size].
func (b *BoundModel) outputs(plan compute.Plan, x *graph.Node, own []*graph.Node, psi *graph.Node) *graph.Node {
	features := b.Prefix(b.Unpack(nil, psi, func(s Slot) bool { return s.InPrefix }), x)
	shared := b.Unpack(nil, psi, func(s Slot) bool { return !s.InPrefix && !s.Stochastic })
	outputs, _ := plan.Over(own[0], compute.Pass{
		Outer: slices.Concat([]*graph.Node{features.Node}, own[1:], shared.Nodes()),
		Rows:  [][]int{{b.Width, x.Shape().Dim(0)}},
		Chunk: func(s compute.Span, first *graph.Node, outer []*graph.Node) (rows, _ []*graph.Node) {
			features := features
			features.Node = outer[0]
			params := shared.With(outer[len(own):])
			for i, slot := range b.stochasticSlots() {
				columns := first
				if i > 0 {
					columns = s.Of(outer[i])
				}
				shape := slices.Concat([]int{s.Count}, slot.Shape, []int{1})
				params[slot.Name] = nn.Value{Node: graph.Reshape(columns, shape...), PerParticle: true}
			}
			out := b.Suffix(params, features)
			if out.PerParticle {
				return []*graph.Node{graph.Squeeze(out.Node, -1)}, nil
			}
			return []*graph.Node{graph.BroadcastPrefix(out.Node, s.Count)}, nil
		},
	})
	return outputs[0]
}
