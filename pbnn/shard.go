package pbnn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
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
	Differences(ctx context.Context, q Request) ([]float64, error)
	// Gradients are, for each chain, the sum over the rows of M mini-batches of n, drawn in the same way but others than those of Differences, of the gradient of log p(y | x, From) with respect to From: flat
	// [J, D], not scaled; NaN for a chain whose log-likelihood is not finite. To is not looked at.
	Gradients(ctx context.Context, q Request) ([]float64, error)
}

// Description is what must agree between shards, and which rows each has.
type Description struct {
	Model           string // bayes.Model, as JSON
	Shared          string // of a trained posterior's shared parameters and standardisation, a hash; empty if there are none
	Inputs, Outputs int
	DType           string
	Rows            int
	Hash            string // of the rows, dataset.Dataset.Hash: a checkpoint goes on with the same data only
}

// Question is one step of all chains.
type Request struct {
	Seed        uint64
	Shard, Move int
	Batches     int       // M
	BatchSize   int       // n, rows of this shard in each
	Chains      int       // J
	From, To    []float64 // flat [J, D]; To is empty if gradients are asked for
}

// LocalShard is a Shard whose rows are in this process.
type LocalShard struct {
	description Description
	bound       *bayes.BoundModel
	dtype       compute.DType
	engine      *compute.Engine

	mu       sync.Mutex
	state    *compute.State
	programs map[wanted]*compute.Program
}

// wanted is what a program of a shard is compiled for.
type wanted struct {
	gradients                  bool
	chains, batches, batchSize int
}

var _ Shard = (*LocalShard)(nil)

// NewShard takes rows as they are: scaled by whoever knows the scales, since no shard knows the others' rows. All of the model must be stochastic: of one that shares parameters take NewShardFrom. The type is
// Float32 if dtype is 0, the engine compute.Default if nil. Close it at the end.
func NewShard(model bayes.Model, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine) (*LocalShard, error) {
	joined, err := fit.Share("pbnn", model, data)
	if err == nil {
		err = nothingShared(joined.Bound)
	}
	if err != nil {
		return nil, err
	}
	return newShard(&prepared{Data: joined}, dtype, engine)
}

// NewShardFrom takes rows in raw units, to sample with the shared parameters and the standardisation of a trained posterior, as SampleFrom does: every shard has the same one. The type is Float32 if dtype is
// 0, the engine compute.Default if nil. Close it at the end.
func NewShardFrom(trained *bayes.Posterior, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine) (*LocalShard, error) {
	joined, err := fit.Of("pbnn", trained, data)
	if err != nil {
		return nil, err
	}
	return newShard(&prepared{Data: joined}, dtype, engine)
}

func newShard(d *prepared, dtype compute.DType, engine *compute.Engine) (*LocalShard, error) {
	d.rows, d.settings.DType, d.settings.Engine = d.Rows(), dtype, engine
	if err := d.prepare(); err != nil {
		return nil, err
	}
	text, shared, err := d.describe()
	if err != nil {
		return nil, err
	}
	s := &LocalShard{
		description: Description{
			Model: text, Shared: shared, Inputs: d.Bound.Inputs, Outputs: d.Bound.Outputs, DType: d.settings.DType.String(), Rows: d.rows, Hash: d.Parts.Train.Hash(),
		},
		bound: d.Bound, dtype: d.settings.DType, engine: d.engine, state: compute.NewState(d.engine), programs: map[wanted]*compute.Program{},
	}
	for name, t := range d.tensors() {
		s.state.Set(name, t)
	}
	return s, nil
}

// nothingShared is an error where a model shares parameters between its particles: they would have to be trained first.
func nothingShared(bound *bayes.BoundModel) error {
	if bound.W == 0 {
		return nil
	}
	return fmt.Errorf("pbnn: the model shares %d numbers between its particles: train them, for instance with baseline.MAP, "+
		"and go on with NewShardFrom and SampleShardsFrom, or take bayes.All()", bound.W)
}

// describe is the model as text, and a hash of what comes from the trained posterior, empty if there is none.
func (d *prepared) describe() (model, shared string, err error) {
	text, err := json.Marshal(d.Bound.Model)
	if err != nil {
		return "", "", fmt.Errorf("pbnn: the model: %w", err)
	}
	if d.Trained == nil {
		return string(text), "", nil
	}
	var psi []float64
	if d.psi != nil {
		if psi, err = compute.Float64s(d.psi); err != nil {
			return "", "", fmt.Errorf("pbnn: %w", err)
		}
	}
	digest := sha256.New()
	if err := json.NewEncoder(digest).Encode([]any{psi, d.Features, d.Target}); err != nil {
		return "", "", fmt.Errorf("pbnn: the shared parameters: %w", err)
	}
	return string(text), hex.EncodeToString(digest.Sum(nil)), nil
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
func (s *LocalShard) Differences(_ context.Context, q Request) ([]float64, error) {
	if size := q.Chains * s.bound.D; q.Chains < 1 || len(q.From) != size || len(q.To) != size {
		return nil, fmt.Errorf("pbnn: the question has %d and %d numbers for %d chains: each has %d", len(q.From), len(q.To), q.Chains, s.bound.D)
	}
	return s.answer(false, q, q.From, q.To)
}

// Gradients implements Shard.
func (s *LocalShard) Gradients(_ context.Context, q Request) ([]float64, error) {
	if q.Chains < 1 || len(q.From) != q.Chains*s.bound.D {
		return nil, fmt.Errorf("pbnn: the question has %d numbers for %d chains: each has %d", len(q.From), q.Chains, s.bound.D)
	}
	return s.answer(true, q, q.From)
}

func (s *LocalShard) answer(gradients bool, q Request, places ...[]float64) ([]float64, error) {
	if q.Batches < 1 || q.BatchSize < 1 || q.BatchSize > s.description.Rows {
		return nil, fmt.Errorf("pbnn: the question asks for %d mini-batches of %d rows: the shard has %d rows", q.Batches, q.BatchSize, s.description.Rows)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	program, err := s.program(wanted{gradients, q.Chains, q.Batches, q.BatchSize})
	if err != nil {
		return nil, err
	}
	inputs := []any{random.SeedWords(q.Seed), uint32(q.Shard), uint32(q.Move)}
	for _, values := range places {
		inputs = append(inputs, compute.Floats(s.dtype, values, q.Chains, s.bound.D))
	}
	answer, err := program.Run(s.state, inputs...)
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	return answer, nil
}

func (s *LocalShard) program(w wanted) (*compute.Program, error) {
	if p, ok := s.programs[w]; ok {
		return p, nil
	}
	plan, err := target.NewPlan(s.bound, s.dtype, target.Workload{Particles: w.chains, Rows: w.batches * w.batchSize})
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	p, err := compute.NewProgram(s.engine, "pbnn shard", s.state.Names(), nil, func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
		rng := random.FromSeed(inputs[0]).Named("shard").At(inputs[1]).Named("move").At(inputs[2])
		t := miniBatches{
			likelihood: target.Likelihood{Model: s.bound, Plan: plan}, rows: s.description.Rows, size: w.batchSize, batches: w.batches, data: data,
		}
		if w.gradients {
			return nil, graph.Reshape(t.likelihoodGradient(rng.Named("gradient"), inputs[3]), w.chains*s.bound.D)
		}
		return nil, graph.Reshape(t.sums(t.byRow(rng, inputs[3], inputs[4])), w.chains*w.batches)
	})
	if err != nil {
		return nil, fmt.Errorf("pbnn: %w", err)
	}
	s.programs[w] = p
	return p, nil
}

// likelihoodGradient is the gradient of the log-likelihood of all M n rows, [J, D], without the prior's; NaN where the log-likelihood is not finite.
func (t miniBatches) likelihoodGradient(rng random.Stream, phi *graph.Node) *graph.Node {
	t.points = float64(t.size * t.batches) // whose likelihood is that of the rows, unscaled
	value, gradient := t.all(t.draw(rng)).Gradient(phi)
	gradient = graph.Sub(gradient, graph.Gradient(graph.ReduceAllSum(t.likelihood.Model.LogPrior(phi)), phi)[0])
	return mcmc.Choose(graph.IsFinite(value), gradient, graph.MulScalar(graph.OnesLike(gradient), math.NaN()))
}
