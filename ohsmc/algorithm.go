package ohsmc

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/optim"
	"gobnn/bayes/smc"
	"gobnn/bayes/target"

	. "github.com/gomlx/gomlx/core/graph"
)

// Algorithm is what a run repeats for each mini-batch: OpenHorizon, Guided or SMC.
type Algorithm interface {
	// prepared fills in defaults for a model and checks the settings.
	prepared(bound *bayes.BoundModel) (Algorithm, error)
	// resampling is when and how particles are resampled unless Settings say otherwise.
	resampling() (threshold float64, scheme smc.Resampler)
	// horizon is the batches of a run and how many steps it makes.
	horizon(s Settings, rows int) (dataset.Batches, int, error)
	// title says what it is and where it comes from; describe is its settings, for provenance and checkpoints.
	title() string
	describe() any
	// build prepares its programs.
	build(c *core, engine *compute.Engine) (stepper, error)
}

// stepper is an algorithm's programs over a run's state.
type stepper interface {
	// begin puts what the algorithm carries beside phi, log_weights, psi and the optimiser's moments into the state.
	begin(r *run) error
	// advance makes step r.step, counted from 0, on its batch. Where it takes long it looks at the context, and gives its error before anything of the
	// step counts.
	advance(ctx context.Context, r *run, batch dataset.Batch) (StepRecord, error)
	// sharded names what it carries beside phi that devices share, as compute.Sharding does. Log-weights are not shared: resampling needs all of them
	// everywhere, and they are few.
	sharded() []string
	close()
}

// epochs is the horizon of algorithms that pass through the data again and again.
func epochs(s Settings, rows int) (dataset.Batches, int, error) {
	batches, err := dataset.NewEpochBatches(rows, s.BatchSize, s.Seed)
	if err != nil {
		return nil, 0, err
	}
	return batches, s.Epochs * batches.PerEpoch(), nil
}

// StepRecord is what a step leaves on the host. Numbers that an algorithm does not have are NaN.
type StepRecord struct {
	// LogEvidence is log sum_j w_j p(y_S | phi_j; psi) for OpenHorizon: the increment of the log evidence. For Guided it is the log of the ratio of
	// this step's normalising constant to the last one's, for SMC log p(y_S; psi), the whole sub-dataset's.
	LogEvidence       float64
	LogEvidenceStdErr float64 // of LogEvidence, estimated from this run's genealogy; SMC only
	Loss              float64 // minus the log-likelihood of the batch under the weighted particles, per row
	ESS               float64 // after weighing
	UniqueAncestors   float64 // different particles among the ancestors; J if not resampled; SMC: the fewest of the step
	Resamplings       int     // in this step: 0 or 1; SMC: up to the batch size
	NonFinite         int     // particles whose log-likelihood, or the gradient that a proposal needs, is NaN or infinite: they got weight 0
	GradientRejected  bool    // the gradient with respect to psi was not finite, and psi stayed
	Acceptance        float64 // mean acceptance probability of the moves (SMC), or that they would have had (Guided with Adapt)
	StepSize          float64 // of the proposals; Guided only
	LogConstant       float64 // the smallest constant that would have kept the Poisson estimator's weights positive; OpenHorizon with Poisson only
	Seconds           float64 // of the step, without validation
}

const recordWidth = 12

func (r StepRecord) values() []float64 {
	return []float64{
		r.LogEvidence, r.LogEvidenceStdErr, r.Loss, r.ESS, r.UniqueAncestors, float64(r.Resamplings), float64(r.NonFinite), number(r.GradientRejected),
		r.Acceptance, r.StepSize, r.LogConstant, r.Seconds,
	}
}

func recordOf(v []float64) StepRecord {
	return StepRecord{
		LogEvidence: v[0], LogEvidenceStdErr: v[1], Loss: v[2], ESS: v[3], UniqueAncestors: v[4], Resamplings: int(v[5]), NonFinite: int(v[6]),
		GradientRejected: v[7] != 0, Acceptance: v[8], StepSize: v[9], LogConstant: v[10], Seconds: v[11],
	}
}

// stepInfo is a step's record in the graph: scalars, nil for what there is not.
type stepInfo struct {
	logEvidence, loss, ess, unique, resampled, nonFinite, rejected, acceptance, stepSize, logConstant *Node
}

// record lays it out as recordOf reads it.
func (t stepInfo) record() *Node {
	var row []*Node
	for _, node := range []*Node{t.logEvidence, nil, t.loss, t.ess, t.unique, t.resampled, t.nonFinite, t.rejected, t.acceptance, t.stepSize, t.logConstant, nil} {
		if node == nil {
			node = ConstAs(t.ess, math.NaN())
		}
		row = append(row, ConvertDType(node, compute.Float64))
	}
	return Stack(row, 0)
}

// state are the tensors that a step carries, and those of the best validation.
type state struct {
	phi        *Node // [J, D]
	logWeights *Node // [J], normalised
	psi        *Node // [W]; nil if nothing is shared
	moments    optim.Moments
}

func stateOf(s compute.Nodes) state {
	return state{phi: s["phi"], logWeights: s["log_weights"], psi: s["psi"], moments: optim.Moments{Mean: s["mean"], Square: s["square"]}}
}

func (s state) nodes() compute.Nodes {
	nodes := compute.Nodes{"phi": s.phi, "log_weights": s.logWeights}
	if s.psi != nil {
		nodes["psi"], nodes["mean"], nodes["square"] = s.psi, s.moments.Mean, s.moments.Square
	}
	return nodes
}

// core is a model, data and settings bound together: what every algorithm builds its graphs from.
type core struct {
	Settings
	bound    *bayes.BoundModel
	target   target.MiniBatch
	validate target.Likelihood
}

// kept names the tensors that make a posterior.
func (c *core) kept() []string {
	if c.bound.W == 0 {
		return []string{"phi", "log_weights"}
	}
	return []string{"phi", "log_weights", "psi"}
}

// carried names the entries of state that a step may replace.
func (c *core) carried() []string {
	if c.bound.W == 0 {
		return c.kept()
	}
	return append(c.kept(), "mean", "square")
}

// uniform are equal log-weights.
func (c *core) uniform(like *Node) *Node {
	return BroadcastToDims(ConstAs(like, -math.Log(float64(c.Particles))), c.Particles)
}

// resample draws ancestors if the effective sample size is at most Threshold J. It gives their places, [J], the weights after it, and whether
// it was done, a bool scalar.
func (c *core) resample(logWeights *Node, draw func() *Node) (ancestors, after, done *Node) {
	done = LessOrEqual(smc.EffectiveSampleSize(logWeights), ConstAs(logWeights, c.Threshold*float64(c.Particles)*(1+1e-6)))
	ancestors = draw()
	if c.Threshold < 1 {
		ancestors = Where(BroadcastToDims(done, c.Particles), ancestors, Iota(logWeights.Graph(), ancestors.Shape(), 0))
	}
	return ancestors, Where(BroadcastToDims(done, c.Particles), c.uniform(logWeights), logWeights), done
}

// learn moves psi by Adam along (N/M) times the gradient of a batch. A gradient that is not finite moves nothing, and counts as rejected. number counts steps
// from 1, rate is the learning rate, both scalars.
func (c *core) learn(s state, gradient *Node, batch target.Batch, number, rate *Node) (next state, rejected *Node) {
	if s.psi == nil {
		return s, ConstAs(s.phi, 0.0)
	}
	gradient = Mul(gradient, c.target.Scale(batch))
	psi, moments, moved := c.Optimiser.AscendFinite(nil, s.psi, gradient, s.moments, number, rate)
	s.psi, s.moments = psi, moments
	return s, ConvertDType(Not(moved), s.phi.DType())
}

// gather takes the batch's rows, int32 [M], of which count, a scalar, are real.
func (c *core) gather(s compute.Nodes, rows, count *Node) target.Batch {
	return target.Batch{
		X:     Gather(s["train_x"], ExpandAxes(rows, -1)),
		Y:     Gather(s["train_y"], ExpandAxes(rows, -1)),
		Count: ConvertDType(count, s["train_x"].DType()),
	}
}

// spread is the weighted particles' standard deviation, [D], shrunk where few particles carry the weight, as Stan does for its mass matrix.
func weightedStdDev(phi, logWeights *Node) *Node {
	weights := ExpandAxes(Exp(logWeights), 1)
	mean := ReduceSum(Mul(phi, weights), 0)
	variance := ReduceSum(Mul(Square(Sub(phi, ExpandAxes(mean, 0))), weights), 0)
	ess := smc.EffectiveSampleSize(logWeights)
	return Sqrt(Add(Mul(variance, Div(ess, AddScalar(ess, 5))), MulScalar(Reciprocal(AddScalar(ess, 5)), 5e-3)))
}

// nonFinite counts the particles whose log-density is not finite.
func nonFinite(logDensity *Node) *Node {
	return ReduceAllSum(ConvertDType(Not(IsFinite(logDensity)), logDensity.DType()))
}

// perRow is minus a log-likelihood over the number of rows.
func perRow(logLik *Node, batch target.Batch) *Node {
	return Neg(Div(ConvertDType(logLik, compute.Float64), ConvertDType(batch.Count, compute.Float64)))
}

// element is one of a vector's elements, a scalar.
func element(v *Node, i int) *Node { return Reshape(Slice(v, AxisElem(i))) }

// zeroWeights is the error of a step after which no particle has any weight.
func (r *run) zeroWeights(record StepRecord) error {
	return fmt.Errorf("ohsmc: step %d of %d: %w: %d of %d particles have a log-likelihood that is not finite; "+
		"check the data for outliers, use a smaller learning rate or a smaller step of the kernel", r.step, r.steps, smc.ErrZeroWeights, record.NonFinite, r.Particles)
}
