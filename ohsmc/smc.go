package ohsmc

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/particles"
	"gobnn/bayes/smc"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// SMC is Algorithm 2 of Zhao et al. 2024 (SGSMC), and Algorithm 1 (SMC) if the batch is all rows. Each step draws
// particles from the prior with equal weights 1/J, and takes the batch's rows one by one (IBIS, Chopin 2002). For row n
// it
//
//  1. moves the particles by a kernel that leaves p(phi | y_1:n-1; psi) invariant;
//  2. multiplies the weights, w_j <- w_j p(y_n | phi_j; psi). Their sum estimates p(y_n | y_1:n-1; psi), and the logs
//     of these sums, added up over the rows, give log p(y_S; psi);
//  3. normalises the weights, and resamples if the effective sample size is low, but not after the last row.
//
// Then psi moves along (N/M) sum_j w_j grad log p(y_S | phi_j; psi). With all rows in the batch the particles are the
// exact posterior at the psi before that move. With fewer rows they are the posterior given the batch alone, and only
// psi is of use: draw from p(phi | y; psi) afterwards, by Sample.
//
// One graph serves every n, by a mask on the rows from n on, so each move costs an evaluation of all M rows. A step has
// M Moves of these for RandomWalkMetropolis, and more for kernels that evaluate the target several times a transition;
// weighing evaluates one row at a time.
type SMC struct {
	particles.Training // default Resampler smc.Stratified, Threshold 0.5
	// Kernel leaves the target invariant: mcmc.RandomWalkMetropolis, PreconditionedCrankNicolson, MALA, HMC or NUTS,
	// with its step size set; default RandomWalkMetropolis{StepSize: 0.2}.
	Kernel mcmc.Kernel
	// Moves is the number of transitions of the kernel before each row; default 10.
	Moves int
	// Precondition takes the kernel's step size in units of the weighted particles' standard deviation, coordinate by
	// coordinate, computed anew before each row. Since these units come from the particles that they move, the estimated
	// evidence has a bias of the order of 1/J: with 50 particles its mean was 1.015 times the true value.
	Precondition bool
}

var (
	_ fit.Method          = SMC{}
	_ particles.Doubter   = SMC{}
	_ particles.Estimator = SMC{}
)

// Prepare implements fit.Method.
func (a SMC) Prepare(j *fit.Job) (fit.Method, error) {
	if a.Kernel == nil {
		a.Kernel = mcmc.RandomWalkMetropolis{StepSize: 0.2}
	}
	if err := limits.Fill("ohsmc: SMC", limits.Int("Moves", &a.Moves, 10).From(1)); err != nil {
		return nil, err
	}
	if !a.Kernel.Traits().Exact {
		return nil, fmt.Errorf("ohsmc: SMC.Kernel is %T, which leaves no posterior invariant, or does not say so "+
			"(mcmc.Traits): take one that accepts or rejects, such as mcmc.RandomWalkMetropolis", a.Kernel)
	}
	if err := mcmc.Check(a.Kernel, j.Bound.D, false); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	if j.Bound.W == 0 { // then one SMC on all rows is the posterior, and others on parts of them are nothing
		a.BatchSize, a.Epochs = cmp.Or(a.BatchSize, j.Rows()), cmp.Or(a.Epochs, 1)
	}
	var err error
	a.Training, err = a.Training.Prepared(j, 0.5, smc.Stratified)
	return a, err
}

// Title implements fit.Method.
func (a SMC) Title() string {
	return "SMC on sub-datasets (Zhao et al. 2024, Algorithm 2; Algorithm 1 where they are all rows)"
}

// MarshalJSON names the kernel's type.
func (a SMC) MarshalJSON() ([]byte, error) {
	return written(a.Training, map[string]any{
		"kernel": typeAnd(a.Kernel), "moves": a.Moves, "precondition": a.Precondition,
	})
}

// Run implements fit.Method.
func (a SMC) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	return particles.Run(ctx, j, a.Training, a)
}

// Estimates implements particles.Estimator. If the batch is all rows the particles, which begin anew at each psi, are
// those of the posterior, and the evidence is the estimate of the last step, at the psi before that step.
func (a SMC) Estimates(t particles.Training, rows int) particles.Estimates {
	whole := t.BatchSize == rows
	return particles.Estimates{Posterior: whole, Evidence: func(trace []particles.StepRecord) bayes.Evidence {
		if len(trace) == 0 || !whole {
			return bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}
		}
		last := trace[len(trace)-1]
		return bayes.Evidence{Value: last.LogEvidence, StdErr: last.LogEvidenceStdErr}
	}}
}

// ibis is SMC bound to a model and data. A pass through one batch is made of the stages of package smc. During a pass
// the particles are in the entries moving/... of the state, so that phi and log_weights are always those of a finished
// step, also if the run is cancelled within a pass.
type ibis struct {
	SMC
	*particles.Core
	take   *compute.Program // puts a batch into the state
	stages *smc.Stages
	learns *compute.Program // makes the particles the step's result, and moves psi
}

// The entries of the state besides the stages' own.
const (
	moving        = "moving/"
	batchX        = "batch/x"        // [M, d]
	batchY        = "batch/y"        // [M]
	batchFeatures = "batch/features" // [width, M]: density.Batch.Features, as psi is fixed during a pass
)

// Advance implements particles.Stepper: one iteration of Algorithm 1 or 2.
func (s *ibis) Advance(ctx context.Context, r *particles.Session) (_ []particles.StepRecord, err error) {
	batch, number := r.Batch(), uint32(r.Step+1)
	key := keyOf(r, number)
	if err := s.begins(r, batch, key); err != nil {
		return nil, err
	}
	record := particles.StepRecord{UniqueAncestors: math.Inf(1), StepSize: math.NaN(), MeanGradient: math.NaN()}
	var genealogy smc.Genealogy
	calls := uint32(1)
	for n := 1; n <= batch.Count; n++ {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// Move by a kernel that leaves p(phi | y_1:n-1; psi) invariant.
		acceptance, err := s.moves(r, n-1, key, &calls)
		if err != nil {
			return nil, err
		}
		record.Acceptance += acceptance / float64(batch.Count)
		// Weigh by datum n, w_n <- w_n-1 p(y_n | phi_n; psi), and resample for the next.
		w, err := s.stages.Weigh(r.State, float64(n-1), n < batch.Count, key.At(uint32(n)))
		if err != nil {
			return nil, err
		}
		genealogy.Add(w)
		record.LogEvidence += w.Increment
		record.ESS = w.ESS
		record.UniqueAncestors = min(record.UniqueAncestors, w.Ancestors)
		record.NonFinite = max(record.NonFinite, w.NonFinite)
		if math.IsInf(w.Increment, -1) || math.IsNaN(w.Increment) {
			record.LogEvidence = math.Inf(-1) // which the run makes an error
			return []particles.StepRecord{record}, nil
		}
	}
	record.Resamplings = genealogy.Before
	record.LogEvidenceStdErr = genealogy.StdErr(r.Resampler, r.Particles)
	record.Loss = -record.LogEvidence / float64(batch.Count)
	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	outcome, err := s.learns.Run(r.State, []float64{float64(r.Step + 1), r.Rate(), float64(batch.Count)})
	if err != nil {
		return nil, err
	}
	record.GradientRejected = outcome[0] != 0
	return []particles.StepRecord{record}, nil
}

// keyOf is the key of the random numbers of a pass.
func keyOf(r *particles.Session, number uint32) random.Key {
	return random.KeyOf(r.Seed).Named("sequence").At(number)
}

// begins puts the batch into the state and draws particles from the prior.
func (s *ibis) begins(r *particles.Session, batch dataset.Batch, key random.Key) error {
	if _, err := s.take.Run(r.State, batch.Rows); err != nil {
		return err
	}
	return s.stages.Start(r.State, key)
}

// moves makes Moves transitions under the posterior of the first rows, and returns their mean acceptance.
func (s *ibis) moves(r *particles.Session, rows int, key random.Key, calls *uint32) (acceptance float64, err error) {
	if !s.stages.CarriesDensity() {
		if err := s.stages.Restart(r.State, float64(rows), key.At(uint32(rows+1))); err != nil {
			return 0, err
		}
	}
	for made := 0; made < s.Moves; made += s.stages.PerCall {
		for begin := true; ; begin = false { // until the last particle has ended its transition
			moved, unfinished, err := s.stages.Move(r.State, float64(rows), begin, key, *calls)
			if err != nil {
				return 0, err
			}
			*calls += uint32(s.stages.PerCall)
			acceptance += moved / float64(s.Moves)
			if unfinished == 0 {
				break
			}
		}
	}
	return acceptance, nil
}

// Compile implements particles.Algorithm. The kernel at n leaves the posterior of the batch's first n rows invariant,
// at the psi of the step.
func (a SMC) Compile(c *particles.Core) (particles.Stepper, error) {
	s := &ibis{SMC: a, Core: c}
	learnt := c.Entries()[2:] // psi and its moments, behind phi and log_weights; empty if nothing is shared
	shared := learnt[:min(1, len(learnt))]
	batchOf := func(nodes compute.Nodes) density.Batch {
		return density.Batch{Features: nodes[batchFeatures], Y: nodes[batchY]}
	}
	var err error
	s.stages, err = smc.NewStages(c.Engine, smc.Spec{
		Kernel: a.Kernel, Particles: c.Particles, Dim: c.Bound.D, DType: c.DType, Moves: a.Moves,
		Resampler: c.Resampler, Threshold: c.Threshold, FixedScale: !a.Precondition,
		Prefix: moving, Reads: append([]string{batchFeatures, batchY}, shared...),
		Sequence: smc.Sequence{
			Probe: func(*Graph) density.Target {
				return density.Func(func(phi *Node) *Node { return ReduceSum(phi, 1) }) // any target: it is not evaluated
			},
			Initial: func(_ compute.Nodes, rng random.Stream) *Node {
				return c.Bound.SamplePrior(rng, c.DType, c.Particles)
			},
			LogPrior: func(_ compute.Nodes, phi *Node) *Node { return c.Bound.LogPrior(phi) },
			Target: func(nodes compute.Nodes, rows *Node) density.Target { // the posterior given the first rows
				first := batchOf(nodes)
				first.Count = rows
				return density.At(density.Full(s.Target.Likelihood), nodes["psi"], first)
			},
			Potential: func(nodes compute.Nodes, phi, rows *Node) *Node {
				row := batchOf(nodes).Some(ConvertDType(rows, dtypes.Int32), 1, phi.DType())
				return s.Target.LogLikelihood(phi, nodes["psi"], row)
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	batch := []string{batchX, batchY, batchFeatures}
	s.take, err = compute.NewProgram(c.Engine, "smc batch", append([]string{"train_x", "train_y"}, shared...), batch,
		s.takeStep)
	if err == nil {
		finished := append(append(s.stages.Entries()[:2], learnt...), batchX, batchY)
		s.learns, err = compute.NewProgram(c.Engine, "smc learn", finished, c.Entries(), s.learnStep)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close implements particles.Stepper.
func (s *ibis) Close() {
	s.stages.Close()
	for _, program := range []*compute.Program{s.take, s.learns} {
		if program != nil {
			program.Close()
		}
	}
}

// Sharded implements particles.Stepper.
func (s *ibis) Sharded() []string { return s.stages.Sharded() }

// Begin implements particles.Stepper: it adds the entries of a pass to the state, so that a checkpoint before the first
// step has them too.
func (s *ibis) Begin(r *particles.Session) error {
	key := keyOf(r, 0)
	if err := s.begins(r, r.Batches.At(0), key); err != nil {
		return err
	}
	return s.stages.Restart(r.State, 0, key.At(0))
}

// takeStep gathers the batch. Input: its rows.
func (s *ibis) takeStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	batch := s.Gather(nodes, inputs[0], ConstAs(nodes["train_y"], 1.0)) // the features do not depend on the count
	batch.X = bayes.Numbers(batch.X, batch.Y.DType())
	features := s.Target.Features(nodes["psi"], batch, batch.Y.DType())
	return compute.Nodes{batchX: batch.X, batchY: batch.Y, batchFeatures: features}, ConstAs(batch.X, []float64{0})
}

// learnStep makes the particles the step's result, and moves psi. Inputs: the step's number, the learning rate, the
// count of rows. The record says whether the gradient was rejected.
func (s *ibis) learnStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	as := func(i int) *Node { return ConvertDType(compute.Element(inputs[0], i), s.DType) }
	now := particles.StateOf(nodes)
	now.Phi, now.LogWeights = nodes[s.stages.Entries()[0]], nodes[s.stages.Entries()[1]]
	batch := density.Batch{X: nodes[batchX], Y: nodes[batchY], Count: as(2)}
	rejected := ConstAs(now.Phi, 0.0)
	if now.Psi != nil {
		weighed := s.Target.Reweight(now.Phi, now.Psi, now.LogWeights, batch, density.Potential{})
		now, rejected = s.Learn(now, weighed.Gradient, batch, particles.Now{Number: as(0), Rate: as(1)})
	}
	return now.Nodes(), Reshape(rejected, 1)
}
