package shards

import (
	"cmp"
	"context"
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

	"github.com/gomlx/gomlx/core/graph"
)

// local is a Shard whose rows are in this process.
type local struct {
	description Description
	bound       *bayes.BoundModel
	dtype       compute.DType
	engine      *compute.Engine

	mu      sync.Mutex
	state   *compute.State
	program *compute.Program
}

// The compiled program evaluates so many chains on so many rows. A question of any shape is divided into such blocks,
// the last ones padded.
const (
	blockChains = 4
	blockRows   = 512
)

var _ Shard = (*local)(nil)

// New is a shard of rows that the caller has standardised, with the same scaler for all shards: New does not scale
// them, since no shard knows the others' rows. All parameters must be stochastic. The number type is Float32 if dtype
// is 0, the engine compute.Default if nil. Close it at the end.
func New(model bayes.Model, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine) (Shard, error) {
	joined, err := fit.Share("shards", model, data)
	if err == nil {
		err = nothingShared(joined.Bound)
	}
	if err != nil {
		return nil, err
	}
	if engine, err = engine.Or(); err != nil {
		return nil, err
	}
	dtype = cmp.Or(dtype, compute.Float32)
	s := &local{bound: joined.Bound, dtype: dtype, engine: engine, state: compute.NewState(engine)}
	x, y, err := joined.Tensors(dtype, data)
	if err != nil {
		return nil, err
	}
	if s.description, err = describe(joined.Bound, dtype); err != nil {
		return nil, err
	}
	s.description.Rows, s.description.Hash = data.Rows(), data.Hash()
	s.description.Features, s.description.Targets = slices.Clone(data.Features), slices.Clone(data.TargetNames())
	s.description.Classes = slices.Clone(data.Classes)
	rows, err := density.RowTensors(engine, s.bound, x, y, nil)
	if err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	for name, t := range rows {
		s.state.Set(name, t)
	}
	if s.program, err = s.compile(); err != nil {
		return nil, fmt.Errorf("shards: %w", err)
	}
	return s, nil
}

// nothingShared is an error for a model with shared parameters.
func nothingShared(bound *bayes.BoundModel) error {
	if bound.W == 0 {
		return nil
	}
	return fmt.Errorf("shards: the model has %d shared numbers, which this sampler does not train: sample them too, "+
		"by names in Model.Stochastic", bound.W)
}

// describe is the description of a model, without rows and names.
func describe(bound *bayes.BoundModel, dtype compute.DType) (Description, error) {
	text, err := json.Marshal(bound.Model)
	if err != nil {
		return Description{}, fmt.Errorf("shards: the model: %w", err)
	}
	return Description{Model: string(text), Inputs: bound.Inputs, Outputs: bound.Outputs, DType: dtype.String(),
		Extras: bound.Extras}, nil
}

// Close frees the rows and the compiled program.
func (s *local) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program.Close()
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
	return s.answer(ctx, q)
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

func (s *local) answer(ctx context.Context, q Request) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := random.KeyOf(q.Seed).Named("shard").At(uint32(q.Shard)).Named("move").At(uint32(q.Move))
	rows := key.Named("rows").Subsets(q.Batches, s.description.Rows, q.BatchSize)
	values := make([]float64, q.Chains*q.Batches)
	for chain := 0; chain < q.Chains; chain += blockChains {
		for row := 0; row < len(rows); row += blockRows {
			if err := ctx.Err(); err != nil { // the caller has given up
				return Answer{}, fmt.Errorf("shards: %w", err)
			}
			chains, count := min(blockChains, q.Chains-chain), min(blockRows, len(rows)-row)
			numbers, err := s.run(rows[row:row+count], q.From[chain*s.bound.D:][:chains*s.bound.D],
				q.To[chain*s.bound.D:][:chains*s.bound.D])
			if err != nil {
				return Answer{}, fmt.Errorf("shards: %w", err)
			}
			for j := range chains {
				sums := values[(chain+j)*q.Batches:][:q.Batches]
				for i, v := range numbers[j*blockRows:][:count] {
					sums[(row+i)/q.BatchSize] += v
				}
			}
		}
	}
	return Answer{Values: values, Rows: s.description.Rows, Hash: s.description.Hash}, nil
}

// run answers for a block of chains, at places flat [C, D], about a block of rows: the differences row by row, flat
// [blockChains, blockRows], with zeros for rows beyond.
func (s *local) run(rows []int32, places ...[]float64) ([]float64, error) {
	padded := make([]int32, blockRows)
	copy(padded, rows)
	inputs := []any{padded, float64(len(rows))}
	for _, place := range places {
		phi := make([]float64, blockChains*s.bound.D)
		copy(phi, place)
		inputs = append(inputs, compute.Floats(s.dtype, phi, blockChains, s.bound.D))
	}
	return s.program.Run(s.state, inputs...)
}

func (s *local) compile() (*compute.Program, error) {
	plan := density.NewPlan(s.bound, s.dtype, density.Workload{Particles: blockChains, Rows: blockRows})
	step := func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
		batch := density.BatchOf(data, graph.Reshape(inputs[0], blockRows, 1))
		batch.Count = graph.ConvertDType(inputs[1], s.dtype)
		likelihood := density.Likelihood{Model: s.bound, Plan: plan}
		difference := graph.Sub(likelihood.Rows(inputs[3], nil, batch), likelihood.Rows(inputs[2], nil, batch))
		return nil, graph.Reshape(difference, blockChains*blockRows)
	}
	return compute.NewProgram(s.engine, "shard", s.state.Names(), nil, step)
}
