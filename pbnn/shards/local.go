package shards

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// local is a Shard whose rows are in this process.
type local struct {
	description Description
	bound       *bayes.BoundModel
	dtype       compute.DType
	engine      *compute.Engine

	mu       sync.Mutex
	state    *compute.State
	programs compute.Cache[block, *compute.Program]
}

// block is the kind and size of a compiled program, which evaluates this number of chains on this number of rows. A
// question of any shape is divided into such blocks, the last ones padded. So a shard compiles at most twelve programs,
// one for each kind and size that is asked for.
type block struct {
	gradients    bool
	chains, rows int
}

// The sizes of a block, each an eighth of the one before. So the rest of a question costs at most four small blocks, or
// one large block that is up to half padding.
var (
	chainSizes = []int{32, 4}
	rowSizes   = []int{4096, 512, 64}
)

// part is a part of a question's chains or rows: count of them, padded to size.
type part struct{ from, count, size int }

// parts divides n chains or rows into parts of the given sizes, which descend. Each part has the largest size that
// would be more than half full, or else the smallest.
func parts(n int, sizes []int) (all []part) {
	for from := 0; from < n; {
		size := sizes[len(sizes)-1]
		for _, s := range sizes {
			if 2*(n-from) > s {
				size = s
				break
			}
		}
		all = append(all, part{from, min(size, n-from), size})
		from += size
	}
	return all
}

var _ Shard = (*local)(nil)

// New is a shard of rows that the caller has standardised, with the same scaler for all shards: New does not scale
// them, since no shard knows the others' rows. All parameters must be stochastic; for a model with shared parameters
// use NewFrom. The number type is Float32 if dtype is 0, the engine compute.Default if nil. Close it at the end.
func New(model bayes.Model, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine) (Shard, error) {
	joined, err := fit.Share("shards", fit.AllByDefault(model), data)
	if err == nil {
		err = nothingShared(joined.Bound)
	}
	if err != nil {
		return nil, err
	}
	return newLocal(joined, dtype, engine)
}

// NewFrom is a shard of rows in raw units, with the shared parameters and the standardisation of a trained posterior,
// the same for every shard. The type is Float32 if dtype is 0, the engine compute.Default if nil. Close it at the end.
func NewFrom(
	trained *bayes.Posterior, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine,
) (Shard, error) {
	joined, err := fit.Of("shards", trained, data)
	if err != nil {
		return nil, err
	}
	if engine == nil {
		engine = trained.Engine()
	}
	return newLocal(joined, dtype, engine)
}

func newLocal(d *fit.Data, dtype compute.DType, engine *compute.Engine) (*local, error) {
	engine, err := engine.Or()
	if err != nil {
		return nil, err
	}
	dtype = cmp.Or(dtype, compute.Float32)
	rows := d.Parts.Train
	s := &local{bound: d.Bound, dtype: dtype, engine: engine, state: compute.NewState(engine)}
	x, y, err := d.Tensors(dtype, rows)
	if err != nil {
		return nil, err
	}
	description, psi, err := describe(d, dtype)
	if err != nil {
		return nil, err
	}
	s.description = description
	s.description.Rows, s.description.Hash = rows.Rows(), rows.Hash()
	s.description.Features, s.description.Targets = slices.Clone(rows.Features), slices.Clone(rows.TargetNames())
	s.description.Classes = slices.Clone(rows.Classes)
	data, err := density.RowTensors(engine, d.Bound, x, y, psi)
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	for name, t := range data {
		s.state.Set(name, t)
	}
	return s, nil
}

// nothingShared is an error for a model with shared parameters, which must be trained first.
func nothingShared(bound *bayes.BoundModel) error {
	if bound.W == 0 {
		return nil
	}
	return fmt.Errorf("shards: the model has %d shared numbers, which this sampler does not train: sample them too, "+
		"by names in Model.Stochastic, or train them first, for instance with baseline.MAP, and take NewFrom and fit.From",
		bound.W)
}

// describe is the description of a model, without rows and names, and its shared parameters, [W]; nil if there are
// none.
func describe(d *fit.Data, dtype compute.DType) (out Description, psi *tensors.Tensor, err error) {
	text, err := json.Marshal(d.Bound.Model)
	if err != nil {
		return out, nil, fmt.Errorf("shards: the model: %w", err)
	}
	out = Description{Model: string(text), Inputs: d.Bound.Inputs, Outputs: d.Bound.Outputs, DType: dtype.String(),
		Extras: d.Bound.Extras}
	if d.Trained == nil {
		return out, nil, nil
	}
	if psi, _, err = density.ChainStarts(d.Trained, dtype, 1, 0); err != nil {
		return out, nil, fmt.Errorf("shards: %w", err)
	}
	var shared []float64
	if psi != nil {
		if shared, err = compute.Float64s(psi); err != nil {
			return out, nil, fmt.Errorf("shards: %w", err)
		}
	}
	digest := sha256.New()
	if err := json.NewEncoder(digest).Encode([]any{shared, d.Features, d.Target}); err != nil {
		return out, nil, fmt.Errorf("shards: the shared parameters: %w", err)
	}
	out.Shared = hex.EncodeToString(digest.Sum(nil))
	return out, psi, nil
}

// Close frees the rows and the compiled programs.
func (s *local) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.programs.Close()
	s.state.Close()
	return nil
}

// Describe implements Shard.
func (s *local) Describe(context.Context) (Description, error) { return s.description, nil }

// Differences implements Shard.
func (s *local) Differences(ctx context.Context, q Request) (Answer, error) {
	if err := s.check(q, "From", q.From); err != nil {
		return Answer{}, err
	}
	if err := s.check(q, "To", q.To); err != nil {
		return Answer{}, err
	}
	return s.answer(ctx, false, q, q.From, q.To)
}

// Gradients implements Shard.
func (s *local) Gradients(ctx context.Context, q Request) (Answer, error) {
	if err := s.check(q, "From", q.From); err != nil {
		return Answer{}, err
	}
	return s.answer(ctx, true, q, q.From)
}

// check is an error if places are not [J, D], or a mini-batch is larger than the shard. It compares quotients, since
// products of arbitrary numbers could overflow.
func (s *local) check(q Request, name string, places []float64) error {
	if q.Chains < 1 || len(places)%s.bound.D != 0 || len(places)/s.bound.D != q.Chains {
		return fmt.Errorf("shards: Request.%s has %d numbers for %d chains: it must have %d for each",
			name, len(places), q.Chains, s.bound.D)
	}
	if q.BatchSize < 1 || q.BatchSize > s.description.Rows || q.Batches < 1 || q.Batches > math.MaxInt32/q.BatchSize {
		return fmt.Errorf("shards: the question asks for %d mini-batches of %d rows: the shard has %d rows, and there must "+
			"be at least one mini-batch, and in all at most %d rows", q.Batches, q.BatchSize, s.description.Rows, math.MaxInt32)
	}
	return nil
}

func (s *local) answer(ctx context.Context, gradients bool, q Request, places ...[]float64) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := random.KeyOf(q.Seed).Named("shard").At(uint32(q.Shard)).Named("move").At(uint32(q.Move))
	each := q.Batches // numbers for each chain
	if gradients {
		key, each = key.Named("gradient"), s.bound.D
	}
	rows := key.Named("rows").Subsets(q.Batches, s.description.Rows, q.BatchSize)
	values := make([]float64, q.Chains*each)
	for _, c := range parts(q.Chains, chainSizes) {
		for _, r := range parts(len(rows), rowSizes) {
			if err := ctx.Err(); err != nil { // the caller has given up
				return Answer{}, fmt.Errorf("shards: %w", err)
			}
			numbers, err := s.run(gradients, c, r, rows, places)
			if err != nil {
				return Answer{}, fmt.Errorf("shards: %w", err)
			}
			width := len(numbers) / c.size // of a chain
			for j := range c.count {
				sums := values[(c.from+j)*each:][:each]
				if gradients {
					floats.Add(sums, numbers[j*width:][:width])
					continue
				}
				for i, v := range numbers[j*width:][:r.count] {
					sums[(r.from+i)/q.BatchSize] += v
				}
			}
		}
	}
	return Answer{Values: values, Rows: s.description.Rows, Hash: s.description.Hash}, nil
}

// run answers for a part of the chains about a part of the rows: the gradients of the sum, flat [C, D], or the
// differences row by row, flat [C, B], with zeros for padding.
func (s *local) run(gradients bool, chains, rows part, numbers []int32, places [][]float64) ([]float64, error) {
	shape := block{gradients, chains.size, rows.size}
	program, giveBack, err := s.programs.Take(shape, func() (*compute.Program, error) { return s.compile(shape) })
	if err != nil {
		return nil, err
	}
	defer giveBack()
	padded := make([]int32, rows.size)
	copy(padded, numbers[rows.from:][:rows.count])
	inputs := []any{padded, float64(rows.count)}
	for _, all := range places {
		phi := make([]float64, chains.size*s.bound.D)
		copy(phi, all[chains.from*s.bound.D:][:chains.count*s.bound.D])
		inputs = append(inputs, compute.Floats(s.dtype, phi, chains.size, s.bound.D))
	}
	return program.Run(s.state, inputs...)
}

func (s *local) compile(b block) (*compute.Program, error) {
	plan, err := density.NewPlan(s.bound, s.dtype, density.Workload{Particles: b.chains, Rows: b.rows})
	if err != nil {
		return nil, err
	}
	step := func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
		batch, psi := density.BatchOf(data, graph.Reshape(inputs[0], b.rows, 1)), data["psi"]
		batch.Count = graph.ConvertDType(inputs[1], s.dtype)
		likelihood := density.Likelihood{Model: s.bound, Plan: plan}
		if b.gradients {
			return nil, graph.Reshape(gradient(likelihood, psi, inputs[2], batch), b.chains*s.bound.D)
		}
		difference := graph.Sub(likelihood.Rows(inputs[3], psi, batch), likelihood.Rows(inputs[2], psi, batch))
		return nil, graph.Reshape(difference, b.chains*b.rows)
	}
	return compute.NewProgram(s.engine, "shard", s.state.Names(), nil, step)
}

// gradient is the gradient of the log-likelihood of a batch's rows, [J, D], without the prior's; NaN where the
// log-likelihood is not finite.
func gradient(l density.Likelihood, psi, phi *graph.Node, batch density.Batch) *graph.Node {
	value, gradient := density.Full{Likelihood: l}.Gradient(phi, psi, batch)
	gradient = graph.Sub(gradient, graph.Gradient(graph.ReduceAllSum(l.Model.LogPrior(phi)), phi)[0])
	return mcmc.Choose(graph.IsFinite(value), gradient, graph.MulScalar(graph.OnesLike(gradient), math.NaN()))
}
