package pbnn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/target"

	"github.com/gomlx/gomlx/core/graph"
)

// Shard holds rows of the data that never leave it, and says what they think of a step: of each mini-batch only the difference of the log-likelihoods goes out (section 7 of
// the paper). LocalShard holds them in this process; Dial reaches one in another. Its methods may be called by several goroutines.
type Shard interface {
	// Describe says what the shard's losses are of.
	Describe(ctx context.Context) (Description, error)
	// Differences are, for each chain and each of M mini-batches of n of the shard's rows, drawn without replacement by Seed, Shard and Move alone, the sum over its rows of
	// log p(y | x, To) - log p(y | x, From): flat [J, M], not scaled. The same question has the same answer, to the bit, however often it is asked.
	Differences(ctx context.Context, q Question) ([]float64, error)
}

// Description is what must agree between shards, and which rows each has.
type Description struct {
	Model           string // bayes.Model, as JSON
	Inputs, Outputs int
	DType           string
	Rows            int
	Hash            string // of the rows, dataset.Dataset.Hash: a checkpoint goes on with the same data only
}

// Question is one step of all chains.
type Question struct {
	Seed        uint64
	Shard, Move int
	Batches     int       // M
	BatchSize   int       // n, rows of this shard in each
	Chains      int       // J
	From, To    []float64 // flat [J, D]
}

// LocalShard is a Shard whose rows are in this process.
type LocalShard struct {
	description Description
	bound       *bayes.Bound
	dtype       compute.DType
	engine      *compute.Engine

	mu       sync.Mutex
	state    *compute.State
	programs map[[3]int]*compute.Program // by J, M and n
}

var _ Shard = (*LocalShard)(nil)

// NewShard takes rows as they are: scaled by whoever knows the scales, since no shard knows the others' rows. All of the model must be stochastic. The type is Float32 if dtype is
// 0, the engine compute.Default if nil. Close it at the end.
func NewShard(model bayes.Model, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine) (*LocalShard, error) {
	if data == nil {
		return nil, errors.New("pbnn: a shard needs data")
	}
	if err := data.Validate(); err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	bound, text, err := bindAll(model, data.Dims(), data.Outputs())
	if err != nil {
		return nil, err
	}
	if engine, err = engine.Or(); err != nil {
		return nil, err
	}
	dtype = cmp.Or(dtype, compute.Float32)
	s := &LocalShard{
		description: Description{Model: text, Inputs: bound.Inputs, Outputs: bound.Outputs, DType: dtype.String(), Rows: data.Rows(), Hash: data.Hash()},
		bound:       bound, dtype: dtype, engine: engine, state: compute.NewState(engine), programs: map[[3]int]*compute.Program{},
	}
	rows, err := dataset.NoScaler(data.Dims()).Apply(data.X)
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	s.state.Set("x", compute.Floats(dtype, rows.RawMatrix().Data, data.Rows(), data.Dims()))
	s.state.Set("y", compute.Floats(dtype, data.Y, data.Rows()))
	return s, nil
}

// bindAll binds a model that shares nothing, and gives it as text.
func bindAll(model bayes.Model, inputs, outputs int) (*bayes.Bound, string, error) {
	bound, err := model.Bind(inputs, outputs)
	if err != nil {
		return nil, "", err
	}
	if bound.W > 0 {
		return nil, "", fmt.Errorf("pbnn: the model shares %d numbers between its particles: over shards all must be stochastic, take bayes.All()", bound.W)
	}
	text, err := json.Marshal(bound.Model)
	if err != nil {
		return nil, "", fmt.Errorf("pbnn: the model: %w", err)
	}
	return bound, string(text), nil
}

// Close frees the rows and what was compiled.
func (s *LocalShard) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.programs {
		p.Close()
	}
	clear(s.programs)
	s.state.Close()
}

// Describe implements Shard.
func (s *LocalShard) Describe(context.Context) (Description, error) { return s.description, nil }

// Differences implements Shard.
func (s *LocalShard) Differences(_ context.Context, q Question) ([]float64, error) {
	if size := q.Chains * s.bound.D; q.Chains < 1 || len(q.From) != size || len(q.To) != size {
		return nil, fmt.Errorf("pbnn: the question has %d and %d numbers for %d chains: each has %d", len(q.From), len(q.To), q.Chains, s.bound.D)
	}
	if q.Batches < 1 || q.BatchSize < 1 || q.BatchSize > s.description.Rows {
		return nil, fmt.Errorf("pbnn: the question asks for %d mini-batches of %d rows: the shard has %d rows", q.Batches, q.BatchSize, s.description.Rows)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	program, err := s.program(q)
	if err != nil {
		return nil, err
	}
	phi := func(values []float64) any { return compute.Floats(s.dtype, values, q.Chains, s.bound.D) }
	sums, err := program.Run(s.state, random.SeedWords(q.Seed), uint32(q.Shard), uint32(q.Move), phi(q.From), phi(q.To))
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	return sums, nil
}

func (s *LocalShard) program(q Question) (*compute.Program, error) {
	key := [3]int{q.Chains, q.Batches, q.BatchSize}
	if p, ok := s.programs[key]; ok {
		return p, nil
	}
	plan, err := target.NewPlan(s.bound, s.dtype, target.Work{Particles: q.Chains, Rows: q.Batches * q.BatchSize})
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	p, err := compute.NewProgram(s.engine, "pbnn shard", []string{"x", "y"}, nil, func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
		rng := random.FromSeed(inputs[0]).Named("shard").At(inputs[1]).Named("move").At(inputs[2])
		t := miniBatches{
			likelihood: target.Likelihood{Model: s.bound, Plan: plan}, rows: s.description.Rows, size: q.BatchSize, batches: q.Batches, data: data,
		}
		return nil, graph.Reshape(t.sums(t.byRow(rng, inputs[3], inputs[4])), q.Chains*q.Batches)
	})
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	s.programs[key] = p
	return p, nil
}
