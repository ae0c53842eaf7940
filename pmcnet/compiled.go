package pmcnet

import (
	"fmt"
	"maps"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// The names of entries of the state, beside the data: the means, [M, D], the covariances as their family calls them,
// and of the last iteration the draws, [M K, D], and their log-weights, float64 [M K].
const (
	meanName   = "mean"
	phiName    = "phi"
	outputName = "output"
	startName  = "start" // where the means begin, [M, D] or [1, D], for as long as they have not
)

// programs holds the compiled programs for one kind of run.
type programs struct {
	PMC
	problem density.Problem
	dtype   compute.DType
	starts  int          // rows of the tensor that the means begin at; 0: there is none
	tried   tryout.Trial // of the target, by the start

	start, step *compute.Program
	batch       *compute.Program // a mini-batch step of PMCnet-light; nil without
	batchSize   int
	rows        int // of a target with mini-batches
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
func (r *running) compiled(startAt *tensors.Tensor) (*programs, func(), error) {
	p := &programs{PMC: r.PMC, problem: r.problem, dtype: r.DType}
	if startAt != nil {
		p.starts = startAt.Shape().Dim(0)
	}
	key := r.problem.ProgramKey()
	if key != "" {
		key = compute.KeyOf("pmcnet", key, p.PMC, p.dtype, p.starts)
	}
	return compute.Keep(r.Engine, key, func() (*programs, error) { return p, p.build(r.Engine) })
}

func (p *programs) build(engine *compute.Engine) error {
	if err := p.sizeBatches(engine); err != nil {
		return err
	}
	var begin []string
	if p.starts > 0 {
		begin = []string{startName}
	}
	proposals := append([]string{meanName}, p.names()...)
	own := append(slices.Clone(proposals), phiName, outputName)
	var err error
	if p.start, err = compute.NewProgram(engine, "pmcnet start", begin, own, p.startStep); err != nil {
		return err
	}
	reads := append(slices.Clone(proposals), p.problem.Entries()...)
	if p.step, err = compute.NewProgram(engine, "pmcnet iteration", reads, own, p.iterationStep); err != nil {
		return err
	}
	if p.Ascent == MiniBatchAscent {
		p.batch, err = compute.NewProgram(engine, "pmcnet mini-batch", reads, []string{meanName}, p.batchStep)
	}
	return err
}

// sizeBatches finds the number of rows of a target with mini-batches, and of those of a batch.
func (p *programs) sizeBatches(engine *compute.Engine) error {
	if p.Ascent != MiniBatchAscent {
		return nil
	}
	if err := p.problem.Look(engine, func(target density.Target) {
		p.rows = batched(target).Rows()
		if p.batchSize = min(50, p.rows); p.BatchSize > 0 {
			p.batchSize = p.BatchSize
		}
		if p.batchSize > p.rows {
			panic(fmt.Errorf("PMC.BatchSize is %d: there are %d rows", p.batchSize, p.rows))
		}
	}); err != nil {
		return fmt.Errorf("pmcnet: %w", err)
	}
	return nil
}

func batched(target density.Target) ofBatches {
	b, ok := target.(ofBatches)
	if !ok {
		panic(fmt.Errorf("Problem.Target gives a %T, without mini-batches of rows, which PMC.Ascent takes: take the "+
			"posterior of a network, or another PMC.Ascent", target))
	}
	return b
}

// ofBatches is a target that can be evaluated on batches of its rows, which MiniBatchAscent needs: the posteriors of
// networks, of package density.
type ofBatches interface {
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

// startStep puts the means where they begin, and tries a user's target there. Input: its key. It returns the numbers of
// the trial, if there is one.
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
	next[outputName] = Zeros(g, shapes.Make(compute.Float64, m*p.Draws))
	target := p.problem.In(nodes, nil)
	p.tried = tryout.Trial{}
	p.tried.Target(rng, target, q.mean)
	if numbers := p.tried.Numbers(); numbers != nil {
		return next, numbers
	}
	return next, ConstAs(q.mean, []float64{0})
}

// The numbers of an iteration's record that come before the log-weights of the draws.
const (
	inDistinct = iota
	inReplaced
	inExponent
	inNonFinite
	inWrong
	recordHead
)

// iterationStep is an iteration. Inputs: beta, eta and whether it resamples globally, [3]; its key. The record is
// recordHead numbers, and the honest log-weights of the draws.
func (p *programs) iterationStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	input := func(i int) *Node { return Reshape(Slice(inputs[0], AxisElem(i))) }
	n := now{
		rng:    random.FromKey(inputs[1]),
		beta:   ConvertDType(input(0), p.dtype),
		eta:    ConvertDType(input(1), p.dtype),
		global: GreaterThan(input(2), ConstAs(inputs[0], 0.5)),

		shrinkage: p.shrinkage(p.problem.Dim),
	}
	next, w := p.iteration(p.proposals(nodes), p.problem.In(nodes, nil), n)
	entries := next.entriesOf()
	draws := p.Proposals * p.Draws
	entries[phiName] = Reshape(w.theta, draws, p.problem.Dim)
	record := make([]*Node, recordHead)
	record[inDistinct], record[inReplaced], record[inExponent] = next.distinct, next.replaced, w.exponent
	record[inNonFinite] = ReduceAllSum(ConvertDType(LogicalNot(IsFinite(w.logPi)), p.dtype))
	record[inWrong] = w.wrong
	for i, v := range record {
		record[i] = Reshape(wide(v), 1)
	}
	entries[outputName] = Reshape(w.weights, draws)
	return entries, Concatenate(append(record, Reshape(w.honest, draws)), 0)
}

// batchStep is a step of PMCnet-light on a mini-batch: mu' = mu + (gamma/2) Sigma grad log pi_b(mu), where pi_b is the
// prior to the power 1/B times the batch's likelihood, and Batch is B log pi_b. Input: the batch's first row.
func (p *programs) batchStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	target := batched(p.problem.In(nodes, nil))
	scale := 1 / (2 * float64(target.Batches(p.batchSize)))
	mean := p.ascend(p.proposals(nodes), target.Batch(Reshape(inputs[0]), p.batchSize), scale)
	return compute.Nodes{meanName: mean}, ConstAs(mean, []float64{0})
}
