package baseline

import (
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/optim"
	"gobnn/bayes/target"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// learner is what is trained by gradient ascent: theta, [J, Q], J members of Q numbers each that do not see one another. Its methods but size build graph.
type learner interface {
	// kind names what its graphs depend on, beside the model, the data's size and the settings.
	kind() string
	size() (members, width int)
	// initial draws where theta starts.
	initial(rng random.Stream) *Node
	// objective estimates from a batch what is to be maximised, [J], in the scale of all rows, and its gradient, [J, Q].
	objective(theta *Node, batch target.Batch, rng random.Stream) (value, gradient *Node)
	// nlpd is that of each member's prediction, [J].
	nlpd(theta *Node, batch target.Batch, rng random.Stream) *Node
}

// collector is a learner that takes something in at the end of each epoch, SWAG.
type collector interface {
	learner
	// collected names the entries of state, and gives their values at the start.
	collected(dtype compute.DType) map[string]*tensors.Tensor
	// collect takes theta in; count is the number of epochs that have ended, a scalar.
	collect(s compute.Nodes, count *Node) compute.Nodes
}

// stage is one training: what is learnt, for how long, and from where.
type stage struct {
	learner
	name     string // "training" or "collecting"
	epochs   int
	schedule optim.Schedule
	start    []float64 // theta, flat [J, Q]; nil: as initial draws it
	validate bool
}

// programs are what is compiled for one kind of stage.
type programs struct {
	learner
	optimiser optim.Adam

	initial, step    *compute.Program
	validate, gather *compute.Program // nil where there is none
}

func (p *programs) close() {
	for _, program := range []*compute.Program{p.initial, p.step, p.validate, p.gather} {
		if program != nil {
			program.Close()
		}
	}
}

// compiled prepares the programs of a stage, or finds those of an earlier one of the same kind. The learning rate and the seed are inputs.
func (j *job) compiled(s stage) (*programs, error) {
	optimiser := j.Optimiser
	optimiser.Schedule = optim.Schedule{}
	key := fmt.Sprint(j.engine, j.parts.Train.Rows(), j.bound.Inputs, j.bound.Outputs, j.BatchSize, j.DType, s.validate, string(text(optimiser)), s.kind())
	if s.validate {
		key += fmt.Sprint(j.parts.Validation.Rows())
	}
	if p, ok := j.trainer.programs[key]; ok {
		return p, nil
	}
	p := &programs{learner: s.learner, optimiser: j.Optimiser}
	carried := []string{"theta", "mean", "square"}
	var err error
	add := func(to **compute.Program, name string, reads, updates []string, step compute.Step) {
		if err == nil {
			*to, err = compute.NewProgram(j.engine, "baseline "+name, reads, updates, step)
		}
	}
	add(&p.initial, "initial state", []string{"train_y"}, carried, p.initialStep)
	add(&p.step, "step", append(carried, "train_x", "train_y"), carried, p.trainStep)
	if s.validate {
		add(&p.validate, "validation", []string{"theta", "best_theta", "best_nlpd", "valid_x", "valid_y"}, []string{"best_theta", "best_nlpd"}, p.validateStep)
	}
	if c, ok := s.learner.(collector); ok {
		var entries []string
		for name := range c.collected(j.DType) {
			entries = append(entries, name)
		}
		add(&p.gather, "collection", append(entries, "theta"), entries, func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			return c.collect(s, ConvertDType(inputs[0], s["theta"].DType())), ConstAs(s["theta"], []float64{0})
		})
	}
	if err != nil {
		p.close()
		return nil, err
	}
	j.trainer.programs[key] = p
	return p, nil
}

// initialStep draws theta; moments are 0. Input: the seed.
func (p *programs) initialStep(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	theta := p.learner.initial(random.FromSeed(inputs[0]).Named("initial"))
	return compute.Nodes{"theta": theta, "mean": ZerosLike(theta), "square": ZerosLike(theta)}, ConstAs(theta, []float64{0})
}

// trainStep is one step of Adam for every member. A member whose objective or gradient is not finite stays. Inputs: rows of the batch, int32 [B]; the step's
// number, the learning rate and how many rows are real; the seed. The record: the objective of each member, and 1 for each that stayed, [2 J].
func (p *programs) trainStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	theta := s["theta"]
	as := func(i int) *Node { return ConvertDType(element(inputs[1], i), theta.DType()) }
	rows := ExpandAxes(inputs[0], -1)
	batch := target.Batch{X: Gather(s["train_x"], rows), Y: Gather(s["train_y"], rows), Count: as(2)}
	rng := random.FromSeed(inputs[2]).Named("step").At(ConvertDType(element(inputs[1], 0), dtypes.Uint32))

	value, gradient := p.objective(theta, batch, rng)
	usable := And(IsFinite(value), LogicalAll(IsFinite(gradient), 1)) // [J]
	moved, moments := p.optimiser.Ascend(theta, gradient, optim.Moments{Mean: s["mean"], Square: s["square"]}, as(0), as(1))
	usable = And(usable, LogicalAll(IsFinite(moved), 1))
	keep := func(new, old *Node) *Node {
		return Where(BroadcastToDims(ExpandAxes(usable, 1), old.Shape().Dimensions...), new, old)
	}
	return compute.Nodes{"theta": keep(moved, theta), "mean": keep(moments.Mean, s["mean"]), "square": keep(moments.Square, s["square"])},
		Concatenate([]*Node{value, ConvertDType(Not(usable), value.DType())}, 0)
}

// validateStep scores every member and keeps theta in "best_theta" where it is better than before. Inputs: 1 for each member that is still in training,
// [J]; the seed. The record: the NLPDs and 1 for each that is better, [2 J]. The draws that a score needs are the same each time, so that
// scores differ by theta alone.
func (p *programs) validateStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	nlpd := ConvertDType(p.nlpd(s["theta"], target.Batch{X: s["valid_x"], Y: s["valid_y"]}, random.FromSeed(inputs[1]).Named("validation")), compute.Float64)
	better := And(LessThan(nlpd, s["best_nlpd"]), GreaterThan(inputs[0], ZerosLike(inputs[0])))
	return compute.Nodes{
		"best_nlpd":  Where(better, nlpd, s["best_nlpd"]),
		"best_theta": Where(BroadcastToDims(ExpandAxes(better, 1), s["theta"].Shape().Dimensions...), s["theta"], s["best_theta"]),
	}, Concatenate([]*Node{nlpd, ConvertDType(better, compute.Float64)}, 0)
}

// element is one of a vector's elements, a scalar.
func element(v *Node, i int) *Node { return Reshape(Slice(v, AxisElem(i))) }
