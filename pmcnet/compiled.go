package pmcnet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// The names of entries of the state: the data, the means, [M, D], the draws of the last iteration, [M K, D], and the
// covariances as their family calls them.
const (
	dataPrefix = "data/"
	meanName   = "mean"
	phiName    = "phi"
	startName  = "start" // where the means begin, [M, D] or [1, D], for as long as they have not
)

// kind identifies compiled programs, together with the problem.
type kind struct {
	engine    *compute.Engine
	dtype     compute.DType
	algorithm string // as JSON
	starts    int    // rows of the tensor that the means begin at; 0: there is none
}

// programs holds the compiled programs for one kind of run.
type programs struct {
	PMC
	problem density.Problem
	dtype   compute.DType
	starts  int
	tried   string // the type of the target, if the start tries it

	start, step *compute.Program
	batch       *compute.Program // a mini-batch step of PMCnet-light; nil without
	batchSize   int
	rows        int // of a Batched target
}

// Close frees the programs.
func (p *programs) Close() {
	for _, program := range []*compute.Program{p.start, p.step, p.batch} {
		if program != nil {
			program.Close()
		}
	}
}

// compiled prepares the programs, or finds those of an earlier run of the same kind.
func (m *machine) compiled() (*programs, func(), error) {
	text, err := json.Marshal(m.PMC)
	if err != nil {
		return nil, nil, fmt.Errorf("pmcnet: %w", err)
	}
	starts := 0
	if m.startAt != nil {
		starts = m.startAt.Shape().Dim(0)
	}
	key := kind{engine: m.Engine, dtype: m.DType, algorithm: string(text), starts: starts}
	return Take(m.Job, key, func() (*programs, error) {
		p := &programs{PMC: m.PMC, problem: m.Problem, dtype: m.DType, starts: starts}
		return p, p.build(m.Engine)
	})
}

func (p *programs) build(engine *compute.Engine) error {
	if err := p.probe(engine); err != nil {
		return err
	}
	var begin []string
	data := dataNames(p.problem)
	if p.starts > 0 {
		begin = []string{startName}
	}
	own := p.entries()
	var err error
	if p.start, err = compute.NewProgram(engine, "pmcnet start", begin, own, p.startStep); err != nil {
		return err
	}
	proposals := own[:len(own)-1]
	reads := append(slices.Clone(proposals), data...)
	if p.step, err = compute.NewProgram(engine, "pmcnet iteration", reads, own, p.iterationStep); err != nil {
		return err
	}
	if p.Ascent == MiniBatchAscent {
		p.batch, err = compute.NewProgram(engine, "pmcnet mini-batch", reads, []string{meanName}, p.batchStep)
	}
	return err
}

// entries returns the names of the state's own entries: means, covariances, and the draws, last.
func (p *programs) entries() []string {
	return append(append([]string{meanName}, p.names()...), phiName)
}

// probe sees whether the target has mini-batches.
func (p *programs) probe(engine *compute.Engine) error {
	if p.Ascent != MiniBatchAscent {
		return nil
	}
	return probe(engine, p.problem, func(target density.Target) {
		p.rows = batched(target).Rows()
		if p.batchSize = min(50, p.rows); p.BatchSize > 0 {
			p.batchSize = p.BatchSize
		}
		if p.batchSize > p.rows {
			panic(fmt.Errorf("PMC.BatchSize is %d: there are %d rows", p.batchSize, p.rows))
		}
	})
}

// probe builds a problem's target in a graph that is thrown away, and looks at it.
func probe(engine *compute.Engine, problem density.Problem, look func(density.Target)) error {
	if err := compute.Try(func() {
		g := graph.NewGraph(engine.Backend(), "pmcnet probe")
		defer g.Finalize()
		nodes := compute.Nodes{}
		for name, t := range problem.Data {
			nodes[dataPrefix+name] = graph.Parameter(g, dataPrefix+name, t.Shape())
		}
		look(targetOf(problem, nodes))
	}); err != nil {
		return fmt.Errorf("pmcnet: %w", err)
	}
	return nil
}

// targetOf is a problem's, of the state's data.
func targetOf(problem density.Problem, nodes compute.Nodes) density.Target {
	data := compute.Nodes{}
	for name, node := range nodes {
		if bare, ok := strings.CutPrefix(name, dataPrefix); ok {
			data[bare] = node
		}
	}
	return problem.Target(data, nil)
}

// dataNames returns the names of a problem's data in the state, in order.
func dataNames(problem density.Problem) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(problem.Data)) {
		names = append(names, dataPrefix+name)
	}
	return names
}

// setData puts a problem's data into the state.
func setData(state *compute.State, problem density.Problem) error {
	for name, t := range problem.Data {
		local, err := t.LocalClone() // the state owns what it holds, and frees it
		if err != nil {
			return fmt.Errorf("pmcnet: Problem.Data[%q]: %w", name, err)
		}
		state.Set(dataPrefix+name, local)
	}
	return nil
}

// Probe builds the job's target in a graph that is thrown away, and looks at it.
func (j *Job) Probe(look func(density.Target)) error { return probe(j.Engine, j.Problem, look) }

// densityKind identifies a compiled log-density, together with the problem.
type densityKind struct {
	engine *compute.Engine
	dtype  compute.DType
	draws  int
}

// LogDensities is a compiled function that evaluates the job's target at the given number of draws, [draws, D], at
// once. end frees what it holds.
func (j *Job) LogDensities(draws int) (of func(phi *tensors.Tensor) ([]float64, error), end func(), err error) {
	program, giveBack, err := Take(j, densityKind{j.Engine, j.DType, draws}, func() (*compute.Program, error) {
		problem := j.Problem
		return compute.NewProgram(j.Engine, "pmcnet log-density", dataNames(problem), nil,
			func(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
				return nil, targetOf(problem, nodes).LogDensity(inputs[0])
			})
	})
	if err != nil {
		return nil, nil, err
	}
	state := compute.NewState(j.Engine)
	end = func() {
		state.Close()
		giveBack()
	}
	if err := setData(state, j.Problem); err != nil {
		end()
		return nil, nil, err
	}
	return func(phi *tensors.Tensor) ([]float64, error) { return program.Run(state, phi) }, end, nil
}

func batched(target density.Target) Batched {
	b, ok := target.(Batched)
	if !ok {
		panic(fmt.Errorf("Problem.Target gives a %T, which is not pmcnet.Batched: PMC.Ascent takes mini-batches of rows",
			target))
	}
	return b
}

// Batched is a target that can be evaluated on batches of its rows, which MiniBatchAscent needs. The posteriors of
// networks, of package target, are Batched.
type Batched interface {
	density.Target
	Rows() int // N, the number of rows
	// Batches is B, the number of batches of the given number of rows that cover all rows.
	Batches(rows int) int
	// Batch is the log-density log p(phi) + B log p(y_from .. y_(from+rows-1) | phi). from is an int32 scalar; rows past
	// the end are left out.
	Batch(from *graph.Node, rows int) density.Target
}

// proposals returns the proposals in the state.
func (p *programs) proposals(nodes compute.Nodes) proposals {
	q := proposals{mean: nodes[meanName], covariance: compute.Nodes{}, family: p.family()}
	for _, name := range p.names() {
		q.covariance[name] = nodes[name]
	}
	return q
}

// entriesOf returns the state's entries of the proposals.
func (q proposals) entriesOf() compute.Nodes {
	next := compute.Nodes{meanName: q.mean}
	maps.Copy(next, q.covariance)
	return next
}

// startStep puts the means where they begin, and tries a user's target there. Input: its key. It returns the record of
// mcmc.TryTarget, if there is a trial.
func (p *programs) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromKey(inputs[0])
	m, d := p.Proposals, p.problem.Dim
	q := proposals{family: p.family()}
	switch start := nodes[startName]; {
	case start == nil:
		q.mean = p.problem.Initial(rng, p.dtype, m)
		if want := shapes.Make(p.dtype, m, d); !q.mean.Shape().Equal(want) {
			panic(fmt.Errorf("what Problem.Initial draws has shape %s: it must be %s", q.mean.Shape(), want))
		}
	case p.Start == FromPrior:
		q.mean = start
	default:
		noise := MulScalar(rng.Normal(p.dtype, m, d), p.Noise)
		q.mean = Add(BroadcastToDims(start, m, d), noise)
	}
	g := inputs[0].Graph()
	q.covariance = q.family.initial(g, p.dtype, m, d, p.StdDev)
	next := q.entriesOf()
	next[phiName] = Zeros(g, shapes.Make(p.dtype, m*p.Draws, d))
	target := targetOf(p.problem, nodes)
	if trial := mcmc.TryTarget(rng, target, q.mean); trial != nil {
		p.tried = fmt.Sprintf("%T", target)
		return next, trial
	}
	return next, ConstAs(q.mean, []float64{0})
}

// The numbers of an iteration's record that come before the log-weights of the draws.
const (
	inDistinct = iota
	inReplaced
	inStalled
	inHalvings
	inStayed
	inExponent
	inNonFinite
	inWrong
	recordHead
)

// iterationStep is an iteration. Inputs: beta, eta and whether it resamples globally, [3]; its key. The record is
// recordHead numbers, the log-weights of the draws, honest ones, and those of the result.
func (p *programs) iterationStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	input := func(i int) *Node { return Reshape(Slice(inputs[0], AxisElem(i))) }
	n := now{
		rng:    random.FromKey(inputs[1]),
		beta:   ConvertDType(input(0), p.dtype),
		eta:    ConvertDType(input(1), p.dtype),
		global: GreaterThan(input(2), ConstAs(inputs[0], 0.5)),
	}
	if p.Shrinkage > 0 {
		n.shrinkage = p.Shrinkage
	}
	next, w := p.iteration(p.proposals(nodes), targetOf(p.problem, nodes), n)
	entries := next.entriesOf()
	draws := p.Proposals * p.Draws
	entries[phiName] = Reshape(w.theta, draws, p.problem.Dim)
	record := make([]*Node, recordHead)
	record[inDistinct], record[inReplaced], record[inStalled] = next.distinct, next.replaced, next.stalled
	record[inHalvings], record[inStayed], record[inExponent] = next.halvings, next.stayed, w.exponent
	record[inNonFinite] = ReduceAllSum(ConvertDType(LogicalNot(IsFinite(w.logPi)), p.dtype))
	record[inWrong] = w.wrong
	for i, v := range record {
		record[i] = Reshape(wide(v), 1)
	}
	record = append(record, Reshape(w.honest, draws), Reshape(w.output, draws))
	return entries, Concatenate(record, 0)
}

// batchStep is a step of PMCnet-light on a mini-batch: mu' = mu + (gamma/2) Sigma grad log pi_b(mu), where pi_b is the
// prior to the power 1/B times the batch's likelihood, and Batch is B log pi_b. Input: the batch's first row.
func (p *programs) batchStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	target := batched(targetOf(p.problem, nodes))
	scale := 1 / (2 * float64(target.Batches(p.batchSize)))
	mean, c := p.ascend(p.proposals(nodes), target.Batch(Reshape(inputs[0]), p.batchSize), scale)
	return compute.Nodes{meanName: mean}, Stack([]*Node{c.halvings, c.stayed}, 0)
}
