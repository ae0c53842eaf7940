package train

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
)

// programs are the compiled programs of one kind of training.
type programs struct {
	Learner
	optimiser Adam

	initial          *compute.Program
	step             *compute.Repeated
	validate, gather *compute.Program // nil without validation rows
}

// Close frees them.
func (p *programs) Close() {
	for _, program := range []*compute.Program{p.initial, p.validate, p.gather} {
		if program != nil {
			program.Close()
		}
	}
	p.step.Close()
}

// newPrograms prepares the programs of a learner.
func newPrograms(
	engine *compute.Engine, dtype compute.DType, learner Learner, optimiser Adam, validates, streamed bool,
) (*programs, error) {
	p := &programs{Learner: learner, optimiser: optimiser}
	carried := []string{"theta", "mean", "square"}
	var err error
	add := func(to **compute.Program, name string, reads, updates []string, step compute.Step) {
		if err == nil {
			*to, err = compute.NewProgram(engine, "train "+name, reads, updates, step)
		}
	}
	add(&p.initial, "initial state", []string{"train_y"}, carried, p.initialStep)
	batches := density.TrainBatches()
	batches.Alone = streamed
	p.step = compute.NewRepeated(engine, "train step", carried, carried, batches, p.trainStep)
	if validates {
		best := run.BestEntries("theta")
		add(&p.validate, "validation", append(best, "theta", "valid_x", "valid_y"), best, p.validateStep)
	}
	if c, ok := learner.(Collector); ok {
		var entries []string
		for name := range c.Collected(dtype) {
			entries = append(entries, name)
		}
		collect := func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
			return c.Collect(s, ConvertDType(inputs[0], s["theta"].DType())), ConstAs(s["theta"], []float64{0})
		}
		add(&p.gather, "collection", append(entries, "theta"), entries, collect)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// initialStep draws theta; moments are 0. Input: its key.
func (p *programs) initialStep(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	theta := p.Initial(random.FromKey(inputs[0]))
	moments := compute.Nodes{"theta": theta, "mean": ZerosLike(theta), "square": ZerosLike(theta)}
	return moments, ConstAs(theta, []float64{0})
}

// trainStep is one step of Adam for every member. A member whose objective or gradient is not finite stays the same.
// Inputs: the batch; the step's number, the learning rate and how many rows are real; its key. The record: each
// member's objective, and 1 for each that stayed, [2 J].
func (p *programs) trainStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	theta := s["theta"]
	as := func(i int) *Node { return ConvertDType(compute.Element(inputs[2], i), theta.DType()) }
	rng := random.FromKey(inputs[3])
	batch := density.Batch{X: inputs[0], Y: inputs[1], Count: as(2)}
	value, gradient := p.Objective(theta, batch, rng)
	before := Moments{Mean: s["mean"], Square: s["square"]}
	moved, moments, usable := p.optimiser.AscendFinite(IsFinite(value), theta, gradient, before, as(0), as(1))
	next := compute.Nodes{"theta": moved, "mean": moments.Mean, "square": moments.Square}
	return next, Concatenate([]*Node{value, ConvertDType(Not(usable), value.DType())}, 0)
}

// validateStep scores every member and keeps theta where the score is the best so far. Inputs: 1 for each member that
// is still in training, [J]; its key. The record: the scores, [J]. Random draws in a score are the same each time, so
// that scores differ by theta alone.
func (p *programs) validateStep(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	batch := density.Batch{X: s["valid_x"], Y: s["valid_y"]}
	score := p.Score(s["theta"], batch, random.FromKey(inputs[1]))
	score = ConvertDType(score, compute.Float64)
	return run.KeepBest(s, score, inputs[0], "theta"), score
}
