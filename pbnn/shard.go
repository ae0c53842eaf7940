package pbnn

import (
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
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/target"

	"github.com/gomlx/gomlx/core/graph"
)

// Shard holds a part of the data's rows, which never leave it, and answers questions about them: it sends only sums
// over mini-batches, of differences of log-likelihoods or of gradients (section 7 of the paper). A LocalShard has the
// rows in this process; Dial reaches a shard in another. Its methods may be called by several goroutines at once.
type Shard interface {
	// Describe returns the shard's model, the names of its columns and classes, and the number and hash of its rows.
	Describe(ctx context.Context) (Description, error)
	// Differences draws M mini-batches of n of the shard's rows, without replacement, as a function of Seed, Shard and
	// Move alone. It returns, for each chain and mini-batch, the sum over the mini-batch of log p(y | x, To) - log p(y |
	// x, From): flat [J, M], not scaled by N_s/n. The same question has the same answer, bit for bit.
	Differences(ctx context.Context, q Request) (Answer, error)
	// Gradients draws M mini-batches of n rows in the same way, but independent of those of Differences. It returns, for
	// each chain, the sum over all M n rows of the gradient of log p(y | x, From) with respect to From: flat [J, D], not
	// scaled. It is NaN for a chain whose log-likelihood is not finite. To is not used.
	Gradients(ctx context.Context, q Request) (Answer, error)
}

// Description is a shard's model, which must be the same for all shards, and the identity of its rows.
type Description struct {
	Model           string // bayes.Model, as JSON
	Shared          string // hash of a trained posterior's shared parameters and standardisation; empty if there are none
	Inputs, Outputs int
	DType           string
	Rows            int    // N_s
	Hash            string // of the rows, dataset.Dataset.Hash: a checkpoint resumes only with the same rows
	// The names of the features, targets and classes, in the order of the columns and labels. They must be the same for
	// all shards; lists that a shard leaves empty are not compared.
	Features, Targets, Classes []string
}

// Request is a question to a shard about one step of all chains.
type Request struct {
	Seed        uint64
	Shard, Move int
	Batches     int       // M
	BatchSize   int       // n, rows of this shard in each
	Chains      int       // J
	From, To    []float64 // flat [J, D]; To is empty if gradients are asked for
}

// Answer is a shard's answer, with the identity of its rows, which must be those that it described at the start.
type Answer struct {
	Values []float64
	Rows   int
	Hash   string
}

// LocalShard is a Shard whose rows are in this process.
type LocalShard struct {
	description Description
	bound       *bayes.BoundModel
	dtype       compute.DType
	engine      *compute.Engine

	mu       sync.Mutex
	state    *compute.State
	programs run.Cache[questionShape, *compute.Program]
}

// shardPrograms is how many compiled programs a shard keeps: a run asks for two, differences and gradients.
const shardPrograms = 8

// questionShape is the kind and size of question that a program is compiled for.
type questionShape struct {
	gradients                  bool
	chains, batches, batchSize int
}

var _ Shard = (*LocalShard)(nil)

// NewShard is a shard of rows that the caller has standardised, with the same scaler for all shards: NewShard does not
// scale them, since no shard knows the others' rows. All parameters must be stochastic; for a model with shared
// parameters use NewShardFrom. The number type is Float32 if dtype is 0, the engine compute.Default if nil. Close it at
// the end.
func NewShard(
	model bayes.Model, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine,
) (*LocalShard, error) {
	joined, err := fit.Share("pbnn", fit.AllByDefault(model), data)
	if err == nil {
		err = nothingShared(joined.Bound, "NewShardFrom and FitShardsFrom")
	}
	if err != nil {
		return nil, err
	}
	return newShard(&Data{Data: joined}, dtype, engine)
}

// NewShardFrom is a shard of rows in raw units, with the shared parameters and the standardisation of a trained
// posterior, the same for every shard. The type is Float32 if dtype is 0, the engine compute.Default if nil. Close it
// at the end.
func NewShardFrom(
	trained *bayes.Posterior, data *dataset.Dataset, dtype compute.DType, engine *compute.Engine,
) (*LocalShard, error) {
	joined, err := fit.Of("pbnn", trained, data)
	if err != nil {
		return nil, err
	}
	return newShard(&Data{Data: joined}, dtype, engine)
}

func newShard(d *Data, dtype compute.DType, engine *compute.Engine) (*LocalShard, error) {
	d.Sampling.DType, d.Sampling.Engine = dtype, engine
	if err := d.prepare(); err != nil {
		return nil, err
	}
	text, shared, err := d.describe()
	if err != nil {
		return nil, err
	}
	s := &LocalShard{
		description: Description{
			Model: text, Shared: shared, Inputs: d.Bound.Inputs, Outputs: d.Bound.Outputs,
			DType: d.Sampling.DType.String(), Rows: d.rows, Hash: d.Parts.Train.Hash(),
			Features: slices.Clone(d.Parts.Train.Features), Targets: slices.Clone(d.Parts.Train.TargetNames()),
			Classes: slices.Clone(d.Parts.Train.Classes),
		},
		bound: d.Bound, dtype: d.Sampling.DType, engine: d.Sampling.Engine, state: compute.NewState(d.Sampling.Engine),
	}
	s.programs.Most = shardPrograms
	for name, t := range d.tensors() {
		s.state.Set(name, t)
	}
	return s, nil
}

// describe is the model as JSON, and a hash of the shared parameters and standardisation, empty if there are none.
func (d *Data) describe() (model, shared string, err error) {
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

// Close frees the rows and the compiled programs.
func (s *LocalShard) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.programs.Close()
	s.state.Close()
}

// Describe implements Shard.
func (s *LocalShard) Describe(context.Context) (Description, error) { return s.description, nil }

// Differences implements Shard.
func (s *LocalShard) Differences(ctx context.Context, q Request) (Answer, error) {
	if err := s.check(q, "From", q.From); err != nil {
		return Answer{}, err
	}
	if err := s.check(q, "To", q.To); err != nil {
		return Answer{}, err
	}
	return s.answer(ctx, false, q, q.From, q.To)
}

// Gradients implements Shard.
func (s *LocalShard) Gradients(ctx context.Context, q Request) (Answer, error) {
	if err := s.check(q, "From", q.From); err != nil {
		return Answer{}, err
	}
	return s.answer(ctx, true, q, q.From)
}

// check is an error if places are not [J, D], or a mini-batch is larger than the shard. It compares quotients, since
// products of arbitrary numbers could overflow.
func (s *LocalShard) check(q Request, name string, places []float64) error {
	if q.Chains < 1 || len(places)%s.bound.D != 0 || len(places)/s.bound.D != q.Chains {
		return fmt.Errorf("pbnn: Request.%s has %d numbers for %d chains: it must have %d for each",
			name, len(places), q.Chains, s.bound.D)
	}
	if q.BatchSize < 1 || q.BatchSize > s.description.Rows || q.Batches < 1 || q.Batches > math.MaxInt32/q.BatchSize {
		return fmt.Errorf("pbnn: the question asks for %d mini-batches of %d rows: the shard has %d rows, and there must "+
			"be at least one mini-batch, and in all at most %d rows", q.Batches, q.BatchSize, s.description.Rows, math.MaxInt32)
	}
	return nil
}

func (s *LocalShard) answer(ctx context.Context, gradients bool, q Request, places ...[]float64) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil { // the caller has given up
		return Answer{}, fmt.Errorf("pbnn: %w", err)
	}
	shape := questionShape{gradients, q.Chains, q.Batches, q.BatchSize}
	program, giveBack, err := s.programs.Take(shape, func() (*compute.Program, error) { return s.compile(shape) })
	if err != nil {
		return Answer{}, fmt.Errorf("pbnn: %w", err)
	}
	defer giveBack()
	key := random.KeyOf(q.Seed).Named("shard").At(uint32(q.Shard)).Named("move").At(uint32(q.Move))
	inputs := []any{key.Words()}
	for _, values := range places {
		inputs = append(inputs, compute.Floats(s.dtype, values, q.Chains, s.bound.D))
	}
	values, err := program.Run(s.state, inputs...)
	if err != nil {
		return Answer{}, fmt.Errorf("pbnn: %w", err)
	}
	return Answer{Values: values, Rows: s.description.Rows, Hash: s.description.Hash}, nil
}

func (s *LocalShard) compile(shape questionShape) (*compute.Program, error) {
	work := target.Workload{Particles: shape.chains, Rows: shape.batches * shape.batchSize}
	plan, err := target.NewPlan(s.bound, s.dtype, work)
	if err != nil {
		return nil, err
	}
	step := func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
		rng := random.FromKey(inputs[0])
		t := miniBatches{
			likelihood: target.Likelihood{Model: s.bound, Plan: plan}, rows: s.description.Rows,
			size: shape.batchSize, batches: shape.batches, data: data,
		}
		if shape.gradients {
			gradient := t.likelihoodGradient(rng.Named("gradient"), inputs[1])
			return nil, graph.Reshape(gradient, shape.chains*s.bound.D)
		}
		return nil, graph.Reshape(t.sums(t.byRow(rng, inputs[1], inputs[2])), shape.chains*shape.batches)
	}
	return compute.NewProgram(s.engine, "pbnn shard", s.state.Names(), nil, step)
}

// likelihoodGradient is the gradient of the log-likelihood of all M n rows, [J, D], without the prior's; NaN where the
// log-likelihood is not finite.
func (t miniBatches) likelihoodGradient(rng random.Stream, phi *graph.Node) *graph.Node {
	t.points = float64(t.size * t.batches) // so that the rows' log-likelihood is not scaled
	value, gradient := t.all(t.draw(rng)).Gradient(phi)
	gradient = graph.Sub(gradient, graph.Gradient(graph.ReduceAllSum(t.likelihood.Model.LogPrior(phi)), phi)[0])
	return mcmc.Choose(graph.IsFinite(value), gradient, graph.MulScalar(graph.OnesLike(gradient), math.NaN()))
}
