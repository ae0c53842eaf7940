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
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
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

// Request is a question to a shard about one step of all chains. Every number of its places must be finite.
type Request struct {
	Seed        uint64
	Shard, Move int
	Batches     int       // M
	BatchSize   int       // n, rows of this shard in each
	Chains      int       // J
	From, To    []float64 // flat [J, D]; To is empty if gradients are asked for
}

// checkPlaces is an error that names the first number of the places that is NaN, or above the largest in size: the
// answer would be none.
func (q Request) checkPlaces(largest float64) error {
	for i, places := range [][]float64{q.From, q.To} {
		for k, v := range places {
			if !(math.Abs(v) <= largest) {
				return fmt.Errorf("%w: Request.%s[%d] is %v: ask about places whose numbers are all finite, and at most %.2g",
					ErrRefused, []string{"From", "To"}[i], k, v, largest)
			}
		}
	}
	return nil
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
	programs compute.Cache[block, *compute.Program]
}

// block is the kind and size of a compiled program: it answers for so many chains about so many rows. A question of any
// shape is taken apart into such blocks, the last ones padded: a shard compiles a program for each kind and size that
// it is asked for, of which there are twelve in all.
type block struct {
	gradients    bool
	chains, rows int
}

// The sizes of a block, each an eighth of the one before: four small blocks, or one large block of which up to half is
// padding, are what the rest of a question costs.
var (
	chainSizes = []int{32, 4}
	rowSizes   = []int{4096, 512, 64}
)

// part is a part of a question's chains or rows: count of them, padded to size.
type part struct{ from, count, size int }

// parts are n chains or rows in parts of the given sizes, the largest first: each the largest that is more than half
// full, or the smallest.
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

// check is an error if places are not [J, D], or not finite in the shard's type, or a mini-batch is larger than the
// shard. It compares quotients, since products of arbitrary numbers could overflow.
func (s *LocalShard) check(q Request, name string, places []float64) error {
	if q.Chains < 1 || len(places)%s.bound.D != 0 || len(places)/s.bound.D != q.Chains {
		return fmt.Errorf("pbnn: Request.%s has %d numbers for %d chains: it must have %d for each",
			name, len(places), q.Chains, s.bound.D)
	}
	if q.BatchSize < 1 || q.BatchSize > s.description.Rows || q.Batches < 1 || q.Batches > math.MaxInt32/q.BatchSize {
		return fmt.Errorf("pbnn: the question asks for %d mini-batches of %d rows: the shard has %d rows, and there must "+
			"be at least one mini-batch, and in all at most %d rows", q.Batches, q.BatchSize, s.description.Rows, math.MaxInt32)
	}
	if s.dtype == compute.Float32 {
		return q.checkPlaces(math.MaxFloat32)
	}
	return q.checkPlaces(math.MaxFloat64)
}

func (s *LocalShard) answer(ctx context.Context, gradients bool, q Request, places ...[]float64) (Answer, error) {
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
				return Answer{}, fmt.Errorf("pbnn: %w", err)
			}
			numbers, err := s.run(gradients, c, r, rows, places)
			if err != nil {
				return Answer{}, fmt.Errorf("pbnn: %w", err)
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
func (s *LocalShard) run(gradients bool, chains, rows part, numbers []int32, places [][]float64) ([]float64, error) {
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

func (s *LocalShard) compile(b block) (*compute.Program, error) {
	plan, err := density.NewPlan(s.bound, s.dtype, density.Workload{Particles: b.chains, Rows: b.rows})
	if err != nil {
		return nil, err
	}
	step := func(data compute.Nodes, inputs []*graph.Node) (compute.Nodes, *graph.Node) {
		batch := batchOf(data, graph.Reshape(inputs[0], b.rows, 1))
		batch.Count = graph.ConvertDType(inputs[1], s.dtype)
		likelihood := density.Likelihood{Model: s.bound, Plan: plan}
		if b.gradients {
			return nil, graph.Reshape(gradient(likelihood, data["psi"], inputs[2], batch), b.chains*s.bound.D)
		}
		t := miniBatches{likelihood: likelihood, data: data}
		return nil, graph.Reshape(t.differences(batch, inputs[2], inputs[3]), b.chains*b.rows)
	}
	return compute.NewProgram(s.engine, "pbnn shard", s.state.Names(), nil, step)
}

// gradient is that of the log-likelihood of a batch's rows, [J, D], without the prior's; NaN where the log-likelihood
// is not finite.
func gradient(l density.Likelihood, psi, phi *graph.Node, batch density.Batch) *graph.Node {
	value, gradient := density.Full{Likelihood: l}.Gradient(phi, psi, batch)
	gradient = graph.Sub(gradient, graph.Gradient(graph.ReduceAllSum(l.Model.LogPrior(phi)), phi)[0])
	return mcmc.Choose(graph.IsFinite(value), gradient, graph.MulScalar(graph.OnesLike(gradient), math.NaN()))
}
