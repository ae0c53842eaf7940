package pbnn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Confidence is the confidence sampler (Bardenet, Doucet and Holmes 2014; 2017). Its Metropolis-Hastings step evaluates
// rows only until it knows, up to a given probability of error, how a step on all rows would decide. With u uniform,
// drawn first, the step on all rows accepts if
//
//	Lambda = log p(theta') - log p(theta) + points mean_{i <= N} l_i + log q(theta | theta') - log q(theta' | theta)
//	         - log u > 0
//	l_i    = log p(y_i | x_i, theta') - log p(y_i | x_i, theta)
//
// where points is Target.EffectivePoints: N for TargetFull. Rows are drawn without replacement, BatchSize at a time.
// After t rows the mean of the l_i is known to within c_t. The step looks at t = BatchSize, 2 BatchSize, 4 BatchSize
// and so on. At a look the sign of the estimate of Lambda decides, if its absolute value is at least points c_t. The
// last look has all rows and decides in any case. c_t is the empirical Bernstein-Serfling bound (Bardenet and Maillard
// 2015, theorem 4.3), which holds with probability 1 - delta,
//
//	c_t   = sd_t sqrt(2 rho_t log(5/delta) / t) + kappa R log(5/delta) / t,   kappa = 7/3 + 3/sqrt(2)
//	rho_t = 1 - (t-1)/N, or (1 - t/N) (1 + 1/t) for t > N/2
//
// where sd_t is the standard deviation of the l_i so far and R their range over all rows. A one-sided bound is enough:
// the sign of Lambda on all rows is fixed before rows are drawn, so that an estimate can be wrong in one direction
// only. delta is Error divided by the number of looks before the last (the authors give early looks more). So a step is
// decided wrongly with probability at most Error, whatever the distribution of the l_i. In total variation the
// distribution of the next state is within Error of the one after a step on all rows. Unlike the penalty and Barker's
// test this does not assume Gaussian noise.
//
// R must bound the range, and for a network no cheap bound is known. So the range of the rows so far is taken: c_t is
// then no strict bound, and a step may be decided before rare rows with large differences are seen.
//
// How many rows a step takes depends on the size of Lambda in units of points sd/sqrt(t), the standard error of its
// estimate. For TargetFull this unit falls to about 1, the typical size of Lambda, only at t about N: nearly all rows
// are used, as the authors found. Their remedy, Taylor expansions of the l_i about a mode, is not implemented here. For
// TargetExpected a part of the rows is enough, the smaller the fewer its points (BenchmarkRowsPerStep measures it).
//
// All chains use the same rows and step together. A chain that has decided waits for the others, so a step takes as
// long as the slowest chain's. Details.RowsPerStep counts the rows that chains needed, Details.Passes those that were
// evaluated, also while waiting.
type Confidence struct {
	Sampling
	Target    FromMiniBatches `json:"target,omitempty"` // default TargetFull{}
	BatchSize int             `json:"batch_size"`       // n of a round, at least 2; default 100, or all rows if fewer
	Error     float64         `json:"error"`            // in (0, 1): largest probability of a wrong decision; default 0.05
	Proposal  Proposal        `json:"proposal"`         // default RandomWalk; Langevin's gradient is of n other rows
	StepSize  float64         `json:"step_size"`        // h = sqrt(2 eta); 0: a warm-up chooses
}

var _ Sampler = Confidence{}

// Title implements fit.Method.
func (c Confidence) Title() string { return title(c, c.Target) }

// Prepare implements fit.Method.
func (c Confidence) Prepare(j *fit.Job) (fit.Method, error) {
	if c.Target == nil {
		c.Target = TargetFull{}
	}
	if err := limits.Fill("pbnn: Confidence",
		batchSize(&c.BatchSize, 2, j.Rows()),
		limits.Float("Error", &c.Error, .05).Inside(0, 1),
		limits.Choice("Proposal", &c.Proposal, RandomWalk, proposals()...),
		stepSize(&c.StepSize),
	); err != nil {
		return nil, err
	}
	c.Target = c.Target.ForBatchSize(c.BatchSize)
	var err error
	c.Sampling, err = c.Sampling.Prepared(j, c.Target)
	return c, err
}

// Run implements fit.Method.
func (c Confidence) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return Run(ctx, j, c, c.Target)
}

func (c Confidence) kernel(rows int) confident {
	return confident{
		kernel: kernel{Proposal: c.Proposal, Estimate: MeanOfBatches, Rule: Naive, StepSize: c.StepSize},
		Rows:   rows, BatchSize: c.BatchSize, Error: c.Error,
	}
}

// Problem implements Sampler.
func (c Confidence) Problem(d *Data) (density.Problem, mcmc.Kernel, error) {
	problem, err := d.MiniBatches(c.Target, c.BatchSize, 1)
	if err != nil {
		return problem, nil, err
	}
	byMiniBatch, key := problem.Target, problem.ProgramKey()
	problem.Target = func(data compute.Nodes, inputs []*graph.Node) density.Target {
		return rowByRow{byMiniBatch(data, inputs).(miniBatches), inputs[0]}
	}
	order := &rowOrder{seed: d.Seed, rows: d.Rows(), size: c.BatchSize}
	problem.HostInputs = &density.HostInputs{Blank: []any{order.of(0, 0)}, Inputs: order.next}
	if key != "" {
		problem = problem.Keyed("row by row", key)
	}
	return problem, c.kernel(d.Rows()), nil
}

// rowByRow is a target whose Differences treat each of n given rows as a mini-batch of one row.
type rowByRow struct {
	miniBatches
	numbers *graph.Node // int32 [n, 1]
}

var _ density.MiniBatchTarget = rowByRow{}

// Differences implements density.MiniBatchTarget: log p(to) - log p(from) + points l_i, [J, n].
func (t rowByRow) Differences(
	_ random.Stream, from, to *graph.Node,
) (estimates, variance *graph.Node, degrees float64) {
	byRow := t.differences(density.BatchOf(t.data, t.numbers), from, to)
	prior := graph.Sub(t.likelihood.Model.LogPrior(to), t.likelihood.Model.LogPrior(from)) // [J]
	return graph.Add(graph.MulScalar(byRow, t.points), graph.BroadcastToShape(graph.ExpandAxes(prior, 1), byRow.Shape())),
		nil, 0
}

// rowOrder gives each round of a transition its rows: the next ones of a permutation of all rows. Each transition has a
// new permutation, drawn by the seed and the number of its first move.
type rowOrder struct {
	seed       uint64
	rows, size int

	first int     // move at which the transition of this order began
	order []int32 // nil before the first
}

// next implements density.HostInputs. Chains step together: either all begin a transition, or all that have not decided
// yet have had the same number of rounds.
func (o *rowOrder) next(_ context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error) {
	rounds, err := compute.Float64s(carried["rounds"])
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	round := int(slices.Max(rounds))
	return []any{o.of(move-round, round)}, nil
}

// of returns the row numbers, int32 [n, 1], for a round of the transition that began at move first. A last round with
// fewer rows is padded with zeros, which the kernel masks.
func (o *rowOrder) of(first, round int) *tensors.Tensor {
	if o.order == nil || o.first != first {
		o.first, o.order = first, make([]int32, o.rows)
		for i := range o.order {
			o.order[i] = int32(i)
		}
		rng := rand.New(rand.NewPCG(o.seed, uint64(first)))
		rng.Shuffle(o.rows, func(i, j int) { o.order[i], o.order[j] = o.order[j], o.order[i] })
	}
	rows := make([]int32, o.size)
	copy(rows, o.order[round*o.size:])
	return tensors.FromFlatDataAndDimensions(rows, o.size, 1)
}

// confident is the kernel of Confidence: a move is one round for all chains. For each chain it carries the proposal;
// the log-ratio of the proposal densities minus log u; the number of rounds so far, 0 when the chain has decided; and
// the mean, sum of squared deviations and extremes of the rows' differences so far.
type confident struct {
	kernel
	Rows      int     `json:"rows"` // N
	BatchSize int     `json:"batch_size"`
	Error     float64 `json:"error"`
}

var (
	_ mcmc.Stateful = confident{}
	_ mcmc.Tunable  = confident{}
)

// Start implements mcmc.Stateful.
func (k confident) Start(_ random.Stream, s mcmc.State) mcmc.State {
	s.Auxiliary = map[string]*graph.Node{"proposal": s.Phi}
	for _, name := range []string{"level", "rounds", "mean", "squares", "low", "high"} {
		s.Auxiliary[name] = graph.Zeros(s.Phi.Graph(), s.PerParticle())
	}
	return s
}

// growth is gamma: by which the rows grow from look to look.
const growth = 2

// looks marks the rounds after which a step may be decided before all rows are used, and counts them.
func (k confident) looks() (after []bool, count int) {
	after = make([]bool, (k.Rows+k.BatchSize-1)/k.BatchSize)
	for t := 1; t < len(after); t *= growth {
		after[t-1] = true
		count++
	}
	return after, count
}

// bernsteinSerfling returns the factors of the standard deviation and of the range in c_t, scalars. t, a scalar, is the
// number of rows so far, and logarithm is log(5/delta).
func bernsteinSerfling(t *graph.Node, rows int, logarithm float64) (ofStdDev, ofRange *graph.Node) {
	n := float64(rows)
	early := graph.OneMinus(graph.DivScalar(graph.AddScalar(t, -1), n))
	late := graph.Mul(graph.OneMinus(graph.DivScalar(t, n)), graph.AddScalar(graph.Reciprocal(t), 1))
	rho := graph.Where(graph.LessOrEqual(t, graph.ConstAs(t, n/2)), early, late)
	kappa := 7./3 + 3/math.Sqrt2
	return graph.Sqrt(graph.Div(graph.MulScalar(rho, 2*logarithm), t)),
		graph.MulScalar(graph.Reciprocal(t), kappa*logarithm)
}

// moments holds the mean, the sum of squared deviations and the extremes of the rows' differences so far, [J] each.
type moments struct{ mean, squares, low, high *graph.Node }

// include updates the moments by a round's differences, [J, n] (Chan, Golub and LeVeque 1983). The first m columns are
// rows, the others padding. before, a scalar, is the number of rows of the earlier rounds, and total is before + m.
// own(name, anew) returns the value that each chain carries under that name, or anew in the first round of a
// transition.
func include(
	differences, before, m, total *graph.Node, own func(name string, anew *graph.Node) *graph.Node,
) (now moments) {
	g, dtype, shape := differences.Graph(), differences.DType(), differences.Shape()
	real := graph.LessThan(graph.Iota(g, shapes.Make(dtype, shape.Dimensions...), 1), graph.BroadcastToShape(m, shape))
	only := func(x *graph.Node, otherwise float64) *graph.Node {
		return graph.Where(real, x, graph.BroadcastToShape(graph.Scalar(g, dtype, otherwise), shape))
	}
	mean := graph.Div(compute.RowSums(only(differences, 0)), m)
	zero := graph.ZerosLike(mean)
	deviations := graph.Sub(differences, graph.BroadcastToShape(graph.ExpandAxes(mean, 1), shape))
	squares := compute.RowSums(only(graph.Square(deviations), 0))
	low, high := graph.ReduceMin(only(differences, math.Inf(1)), 1), graph.ReduceMax(only(differences, math.Inf(-1)), 1)
	now.low, now.high = graph.Min(low, own("low", low)), graph.Max(high, own("high", high))
	apart := graph.Sub(mean, own("mean", zero))
	now.squares = graph.Add(graph.Add(squares, own("squares", zero)),
		graph.Mul(graph.Square(apart), graph.Div(graph.Mul(before, m), total)))
	now.mean = graph.Add(own("mean", zero), graph.Mul(apart, graph.Div(m, total)))
	return now
}

// Move implements mcmc.Kernel.
func (k confident) Move(
	rng random.Stream, s mcmc.State, target density.Target, tuning mcmc.Tuning,
) (mcmc.State, mcmc.Info) {
	rows := byMiniBatches(target)
	g, dtype, chains := s.Phi.Graph(), s.Phi.DType(), s.Phi.Shape().Dim(0)
	zero := graph.Zeros(g, s.PerParticle())
	spread := func(x *graph.Node) *graph.Node { return graph.BroadcastToDims(x, chains) }
	round := graph.ReduceAllMax(s.Auxiliary["rounds"]) // the same for all that have not decided
	begins := graph.Equal(round, graph.ZerosLike(round))
	fresh := spread(begins)
	open := graph.Or(fresh, graph.GreaterThan(s.Auxiliary["rounds"], zero))

	proposal, ratio := k.propose(rng, s.Phi, rows, tuning)
	proposal = mcmc.Choose(fresh, proposal, s.Auxiliary["proposal"])
	level := graph.Sub(ratio, graph.Log(rng.Named("accept").Uniform(dtype, chains)))
	own := func(name string, anew *graph.Node) *graph.Node { return graph.Where(fresh, anew, s.Auxiliary[name]) }
	level = own("level", level)

	// What is known of the l_i after this round's rows, and the bound.
	differences, _, _ := rows.Differences(rng.Named("differences"), s.Phi, proposal) // [J, n]
	before := graph.MulScalar(round, float64(k.BatchSize))
	m := graph.MinScalar(graph.AddScalar(graph.Neg(before), float64(k.Rows)), float64(k.BatchSize))
	total := graph.Add(before, m)
	now := include(differences, before, m, total, own)
	after, looks := k.looks()
	width := graph.Sub(now.high, now.low)
	ofStdDev, ofRange := bernsteinSerfling(total, k.Rows, math.Log(5*float64(max(1, looks))/k.Error))
	deviation := graph.Sqrt(graph.Div(now.squares, total))
	bound := graph.Add(graph.Mul(deviation, ofStdDev), graph.Mul(width, ofRange)) // points c_t

	// The decision.
	lambda := graph.Add(now.mean, level)
	finite := graph.And(graph.IsFinite(lambda), compute.RowsAll(graph.IsFinite(proposal), dtype))
	look := graph.Gather(graph.Const(g, after), graph.Reshape(graph.ConvertDType(round, dtypes.Int32), 1))
	last := graph.GreaterOrEqual(total, graph.ConstAs(total, float64(k.Rows)))
	decided := graph.Or(spread(last), graph.And(spread(look), graph.GreaterOrEqual(graph.Abs(lambda), bound)))
	done := graph.And(open, graph.Or(graph.Not(finite), decided))
	accepted := graph.And(graph.And(done, finite), graph.GreaterThan(lambda, zero))

	next := s
	next.Phi = mcmc.Choose(accepted, proposal, s.Phi)
	rounds := spread(graph.AddScalar(round, 1))
	next.Auxiliary = map[string]*graph.Node{
		"proposal": proposal, "level": level,
		"mean": now.mean, "squares": now.squares, "low": now.low, "high": now.high,
		"rounds": graph.Where(graph.And(open, graph.Not(done)), rounds, zero),
	}
	moved := graph.ConvertDType(accepted, dtype)
	return next, k.gradients(mcmc.Info{
		Complete:   graph.ConvertDType(done, dtype),
		Acceptance: moved, // the probability itself would need all rows
		Accepted:   moved,
		NonFinite:  graph.ConvertDType(graph.And(done, graph.Not(finite)), dtype),
		Cost:       mcmc.Cost{Length: rounds, Partial: graph.MulScalar(rounds, 2)}, // at both places, in each round
	})
}
