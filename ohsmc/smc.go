package ohsmc

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/smc"
	"gobnn/bayes/target"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// SMC is Algorithm 2 of Zhao et al. 2024 (SGSMC), and Algorithm 1 (SMC) where the batch is all rows: each step draws particles from the prior anew and
// takes the batch's data in one by one, with moves that leave p(phi | y_1:n-1; psi) invariant in between,
//
//	w_n <- w_n-1 p(y_n | phi_n; psi),   log p(y_S; psi) = sum_n log sum_j w_n
//
// and moves psi along (N/M) sum_j w_j grad log p(y_S | phi_j; psi). With all rows the particles are the exact posterior at the psi that they were drawn
// with. With fewer they are that of a sub-dataset, so only psi is of use: sample p(phi | y; psi) afterwards, as Sample does.
//
// One graph serves every n: the rows beyond it are masked. A step takes M (Moves + 1) calls, each of which evaluates all M rows.
type SMC struct {
	// Kernel leaves the target invariant: mcmc.RandomWalkMetropolis, PreconditionedCrankNicolson, MALA, HMC or NUTS, with its step size set; default
	// RandomWalkMetropolis{StepSize: 0.2}.
	Kernel mcmc.Kernel
	// Moves is the number of transitions before each datum; default 10.
	Moves int
	// Precondition takes the kernel's step size in units of the weighted particles' standard deviation, coordinate by coordinate, before each datum.
	Precondition bool
}

// Prepare implements Algorithm.
func (a SMC) Prepare(model *bayes.BoundModel) (Algorithm, error) {
	if a.Kernel == nil {
		a.Kernel = mcmc.RandomWalkMetropolis{StepSize: 0.2}
	}
	if a.Moves == 0 {
		a.Moves = 10
	}
	if a.Moves < 0 {
		return nil, fmt.Errorf("ohsmc: SMC.Moves is %d: it must be at least 1 (0 takes the default, 10)", a.Moves)
	}
	if !mcmc.LeavesInvariant(a.Kernel) {
		return nil, fmt.Errorf("ohsmc: SMC.Kernel is %T, which leaves no posterior invariant, or does not say so (mcmc.Exact): take one that "+
			"accepts or rejects, such as mcmc.RandomWalkMetropolis", a.Kernel)
	}
	if err := mcmc.Check(a.Kernel, model.D, false); err != nil {
		return nil, fmt.Errorf("ohsmc: %w", err)
	}
	return a, nil
}

// Title implements Algorithm.
func (a SMC) Title() string {
	return "SMC on sub-datasets (Zhao et al. 2024, Algorithm 2; Algorithm 1 where they are all rows)"
}

// Describe implements Described: it names the kernel's type.
func (a SMC) Describe() any {
	return map[string]any{"kernel": typeAnd(a.Kernel), "moves": a.Moves, "precondition": a.Precondition}
}

// Evidence implements Evidence: that of the last step where its batch is all rows, at the psi before it.
func (a SMC) Evidence(s Settings, rows int, trace []StepRecord) bayes.Evidence {
	if len(trace) == 0 || s.BatchSize != rows {
		return bayes.Evidence{Value: nan, StdErr: nan}
	}
	last := trace[len(trace)-1]
	return bayes.Evidence{Value: last.LogEvidence, StdErr: last.LogEvidenceStdErr}
}

// sequence is SMC bound to a model and data: the compiled parts of a pass through one batch. The particles on their way are the entries moving/... of
// the state, so that phi and log_weights are always those of a finished step.
type ibis struct {
	SMC
	*Core
	own      []string // names of the kernel's own state
	multiple bool     // a transition may take several moves

	start, restart, move, weigh, finish *compute.Program
}

// The entries of state.
const (
	movingPhi        = "moving/phi"         // [J, D]
	movingWeights    = "moving/log_weights" // [J], normalised
	movingDensity    = "moving/log_density" // [J]: log p(phi) + log p(y_1:n | phi; psi)
	movingGradient   = "moving/gradient"    // [J, D], if the kernel needs it
	movingOwn        = "moving/own/"        // the kernel's own
	movingUnfinished = "moving/now"         // [J]: 1 for particles whose transition goes on
	movingEve        = "moving/eve"         // int32 [J]: the first ancestor
	movingScale      = "moving/scale"       // [D]
	batchFeatures    = "moving/features"    // [width, M]: target.Batch.Features, since psi stays as it is on the way
	batchX           = "moving/x"           // [M, d]
	batchY           = "moving/y"           // [M]
)

// Compile implements Algorithm.
func (a SMC) Compile(c *Core) (Stepper, error) {
	engine := c.Engine
	s := &ibis{SMC: a, Core: c}
	if err := compute.Try(func() { s.probe(engine) }); err != nil {
		return nil, fmt.Errorf("ohsmc: building a move of %T: %w", a.Kernel, err)
	}
	var shared []string
	if c.Bound.W > 0 {
		shared = []string{"psi"}
	}
	weights := []string{movingPhi, movingWeights, movingDensity, movingEve, movingScale}
	moved := s.carried()
	reads := func(more ...[]string) []string {
		return append(slices.Concat(more...), append(shared, batchFeatures, batchY)...)
	}
	var learnt []string
	for _, name := range c.carried() {
		if name != "phi" && name != "log_weights" {
			learnt = append(learnt, name)
		}
	}
	for _, p := range []struct {
		program *(*compute.Program)
		name    string
		reads   []string
		updates []string
		step    compute.Step
	}{
		{&s.start, "smc start", append(shared, "train_x", "train_y"), append(weights, batchX, batchFeatures, batchY), s.startStep},
		{&s.restart, "smc kernel start", reads([]string{movingPhi}), moved[1:], s.restartStep},
		{&s.move, "smc move", reads(moved, []string{movingScale}), moved, s.moveStep},
		{&s.weigh, "smc weigh", reads(weights), weights, s.weighStep},
		{&s.finish, "smc finish", append(append([]string{movingPhi, movingWeights, movingEve}, learnt...), batchX, batchY), c.carried(), s.finishStep},
	} {
		program, err := compute.NewProgram(engine, p.name, p.reads, p.updates, p.step)
		if err != nil {
			return nil, err
		}
		*p.program = program
	}
	return s, nil
}

// Close implements Stepper.
func (s *ibis) Close() {
	for _, p := range []*compute.Program{s.start, s.restart, s.move, s.weigh, s.finish} {
		p.Close()
	}
}

// probe builds a move in a graph that is thrown away, to learn what the kernel carries.
func (s *ibis) probe(engine *compute.Engine) {
	g := NewGraph(engine.Backend(), "ohsmc probe")
	defer g.Finalize()
	phi := Zeros(g, shapes.Make(s.DType, s.Particles, s.Bound.D))
	flat := mcmc.Density(func(phi *Node) *Node { return ReduceSum(phi, 1) })
	rng := random.New(g, 0)
	state := mcmc.Start(s.Kernel, rng, phi, flat)
	_, info := s.Kernel.Move(rng, state, flat, mcmc.Tuning{})
	s.own = slices.Sorted(maps.Keys(state.Own))
	s.multiple = info.Complete != nil
}

// carried names the entries that a move replaces, phi first.
func (s *ibis) carried() []string {
	names := []string{movingPhi, movingDensity}
	if s.Kernel.Carries() == mcmc.CarriesGradient {
		names = append(names, movingGradient)
	}
	for _, name := range s.own {
		names = append(names, movingOwn+name)
	}
	if s.multiple {
		names = append(names, movingUnfinished)
	}
	return names
}

// keeps says whether the kernel's state after a datum follows from the one before: the log-density does, a gradient would have to be taken anew.
func (s *ibis) carriesDensity() bool {
	return s.Kernel.Carries() == mcmc.CarriesLogDensity && len(s.own) == 0
}

// first is the posterior of the batch's first n rows, n a scalar.
func (s *ibis) first(nodes compute.Nodes, n *Node) mcmc.Target {
	batch := target.Batch{Features: nodes[batchFeatures], Y: nodes[batchY], Count: ConvertDType(n, s.DType)}
	return target.At(target.Full{Likelihood: s.Target.Likelihood}, nodes["psi"], batch)
}

// Advance is one iteration of Algorithm 1 or 2.
func (s *ibis) Advance(ctx context.Context, r *Session) (StepRecord, error) {
	batch := r.Batch()
	seed := random.SeedWords(r.Seed)
	number := uint32(r.Step + 1)
	if _, err := s.start.Run(r.State, batch.Rows, number, seed); err != nil {
		return StepRecord{}, err
	}
	record := StepRecord{UniqueAncestors: math.Inf(1), StepSize: nan, LogConstant: nan}
	acceptance, calls := 0.0, uint32(0)
	for n := 1; n <= batch.Count; n++ {
		if ctx.Err() != nil {
			return StepRecord{}, ctx.Err()
		}
		// Move by a kernel that leaves p(phi | y_1:n-1; psi) invariant.
		if !s.carriesDensity() {
			if _, err := s.restart.Run(r.State, float64(n-1), []uint32{number, uint32(n)}, seed); err != nil {
				return StepRecord{}, err
			}
		}
		for move := 0; move < s.Moves; move += s.movesPerCall() {
			outcome, err := s.transitions(r, n, number, &calls, seed)
			if err != nil {
				return StepRecord{}, err
			}
			acceptance += outcome
		}
		// Weigh by datum n, w_n <- w_n-1 p(y_n | phi_n; psi), and resample for the next.
		last := float64(0)
		if n == batch.Count {
			last = 1
		}
		outcome, err := s.weigh.Run(r.State, int32(n-1), last, []uint32{number, uint32(n)}, seed)
		if err != nil {
			return StepRecord{}, err
		}
		record.LogEvidence += outcome[0]
		record.ESS = outcome[1]
		record.UniqueAncestors = min(record.UniqueAncestors, outcome[2])
		record.Resamplings += int(outcome[3])
		record.NonFinite = max(record.NonFinite, int(outcome[4]))
		if math.IsInf(outcome[0], -1) || math.IsNaN(outcome[0]) {
			return record, nil // the caller makes an error of it
		}
	}
	// psi by Adam along (N/M) sum_j w_j grad log p(y_S | phi_j; psi).
	outcome, err := s.finish.Run(r.State, []float64{float64(r.Step + 1), r.Rate(), float64(batch.Count)})
	if err != nil {
		return StepRecord{}, err
	}
	record.LogEvidenceStdErr = evidenceStdErr(outcome[0], r.Particles, record.Resamplings)
	record.GradientRejected = outcome[1] != 0
	record.Loss = -record.LogEvidence / float64(batch.Count)
	record.Acceptance = acceptance / float64(batch.Count*s.Moves)
	return record, nil
}

// together is how many transitions one call makes: a call costs a tenth of a millisecond by itself, as much as a move of some hundred particles, and each
// transition in its graph half a second of compilation. Where a transition takes several moves a call makes one of them.
func (s *ibis) movesPerCall() int {
	const most = 5
	if s.multiple {
		return 1
	}
	for k := most; k > 1; k-- {
		if s.Moves%k == 0 {
			return k
		}
	}
	return 1
}

// transitions makes `together` transitions of all particles at datum n, and gives the sum of their mean acceptances.
func (s *ibis) transitions(r *Session, n int, number uint32, calls *uint32, seed []uint32) (acceptance float64, err error) {
	begin := 1.0
	for {
		outcome, err := s.move.Run(r.State, float64(n-1), begin, []uint32{number, *calls + 1}, seed)
		*calls += uint32(s.movesPerCall())
		if err != nil {
			return 0, err
		}
		acceptance += outcome[0]
		if outcome[1] == 0 {
			return acceptance, nil
		}
		begin = 0
	}
}

// evidenceStdErr is the standard error of the log evidence from one run. sum is sum_i G_i^2, where G_i is the weight of all particles that descend from
// the first particle i. The relative variance of the evidence's estimate is estimated by
//
//	1 - (J/(J-1))^(r+1) (1 - sum_i G_i^2)
//
// after r resamplings (Lee and Whiteley 2018, eq. 7 at the last time; Chan and Lai 2013 have the same to first order): without resampling it is
// that of a mean of J weights. It holds for multinomial resampling, and is too large for the quieter schemes; it says nothing once all
// particles descend from a few.
func evidenceStdErr(sum float64, particles, resamplings int) float64 {
	j := float64(particles)
	return math.Sqrt(max(0, 1-math.Pow(j/(j-1), float64(resamplings+1))*(1-sum)))
}

// startStep draws particles from the prior with equal weights. Inputs: rows, the number of the step, the seed.
func (s *ibis) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	batch := s.gather(nodes, inputs[0], ConstAs(nodes["train_x"], 1.0))
	phi := s.Bound.SamplePrior(random.FromSeed(inputs[2]).Named("sequence").At(inputs[1]), s.DType, s.Particles)
	next := compute.Nodes{
		movingPhi: phi, movingWeights: s.EqualWeights(phi), movingDensity: compute.Gate(s.Bound.LogPrior(phi)), movingEve: s.places(phi), batchX: batch.X, batchY: batch.Y,
		batchFeatures: s.Target.Features(nodes["psi"], batch),
	}
	next[movingScale] = s.scale(phi, next[movingWeights])
	return next, ConstAs(phi, []float64{0})
}

// places are 0 to J-1, int32 [J].
func (s *ibis) places(like *Node) *Node {
	return Iota(like.Graph(), shapes.Make(dtypes.Int32, s.Particles), 0)
}

// scale is what step sizes are in units of, [D].
func (s *ibis) scale(phi, logWeights *Node) *Node {
	if !s.Precondition {
		return Ones(phi.Graph(), shapes.Make(s.DType, s.Bound.D))
	}
	return weightedStdDev(phi, logWeights)
}

// restartStep evaluates what the kernel needs under the first n-1 rows. Inputs: n-1, the counters, the seed.
func (s *ibis) restartStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := stream(inputs[2], inputs[1]).Named("start")
	next := s.pack(mcmc.Start(s.Kernel, rng, nodes[movingPhi], s.first(nodes, inputs[0])))
	delete(next, movingPhi)
	if s.multiple {
		next[movingUnfinished] = Zeros(inputs[0].Graph(), shapes.Make(s.DType, s.Particles))
	}
	return next, ConstAs(nodes[movingPhi], []float64{0})
}

// moveStep makes a move of the particles whose transition goes on, or `together` of them. Inputs: n-1, whether a transition begins, the counters of the first move,
// the seed. The record: the sum over transitions that ended now of their acceptance over J, and how many go on.
func (s *ibis) moveStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	current := mcmc.State{Phi: nodes[movingPhi], LogDensity: nodes[movingDensity], Gradient: nodes[movingGradient]}
	for _, name := range s.own {
		if current.Own == nil {
			current.Own = map[string]*Node{}
		}
		current.Own[name] = nodes[movingOwn+name]
	}
	distribution, tuning := s.first(nodes, inputs[0]), mcmc.Tuning{Scale: nodes[movingScale]}
	first := element(inputs[2], 1)
	if !s.multiple {
		sum := ConstAs(current.LogDensity, 0.0)
		for i := range s.movesPerCall() {
			var info mcmc.Info
			current, info = s.Kernel.Move(streamAt(inputs[3], element(inputs[2], 0), AddScalar(first, float64(i))), current, distribution, tuning)
			sum = Add(sum, meanAcceptance(info, OnesLike(current.LogDensity)))
		}
		return s.pack(current), Stack([]*Node{sum, ZerosLike(sum)}, 0)
	}
	next, info := s.Kernel.Move(streamAt(inputs[3], element(inputs[2], 0), first), current, distribution, tuning)
	packed := s.pack(next)
	now := Max(nodes[movingUnfinished], BroadcastToDims(ConvertDType(inputs[1], s.DType), s.Particles))
	moving := GreaterThan(now, ZerosLike(now))
	for name, node := range packed {
		packed[name] = mcmc.Choose(moving, node, nodes[name])
	}
	ended := Mul(now, info.Complete)
	packed[movingUnfinished] = Sub(now, ended)
	return packed, Stack([]*Node{meanAcceptance(info, ended), ReduceAllSum(packed[movingUnfinished])}, 0)
}

// meanAcceptance is the sum over the transitions that ended, [J], of their acceptance, over J.
func meanAcceptance(info mcmc.Info, ended *Node) *Node {
	if info.Acceptance == nil {
		return ReduceAllMean(ended)
	}
	return ReduceAllMean(Mul(compute.Finite(info.Acceptance), ended))
}

func (s *ibis) pack(state mcmc.State) compute.Nodes {
	nodes := compute.Nodes{movingPhi: state.Phi, movingDensity: state.LogDensity}
	if s.Kernel.Carries() == mcmc.CarriesGradient {
		nodes[movingGradient] = state.Gradient
	}
	for name, node := range state.Own {
		nodes[movingOwn+name] = node
	}
	return nodes
}

// weighStep takes one datum in and, unless it was the last, resamples if needed. Inputs: the datum's place, whether it is the last, the counters,
// the seed.
func (s *ibis) weighStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	place := Reshape(inputs[0], 1, 1)
	features := Transpose(Gather(Transpose(nodes[batchFeatures], 0, 1), place), 0, 1)
	datum := target.Batch{Features: features, Y: Gather(nodes[batchY], place)}
	phi := nodes[movingPhi]
	logLik := s.Target.LogLikelihood(phi, nodes["psi"], datum)
	logWeights, increment := smc.Normalise(Add(nodes[movingWeights], logLik))

	rng := stream(inputs[3], inputs[2]).Named("resample")
	ancestors, after, done := s.Resample(logWeights, rng)
	done = And(done, Equal(inputs[1], ZerosLike(inputs[1])))
	ancestors = Where(BroadcastToDims(done, s.Particles), ancestors, s.places(phi))
	after = Where(BroadcastToDims(done, s.Particles), after, logWeights)
	next := compute.Nodes{
		movingPhi: smc.Select(phi, ancestors), movingWeights: after,
		movingDensity: smc.Select(compute.Gate(Add(nodes[movingDensity], logLik)), ancestors), movingEve: smc.Select(nodes[movingEve], ancestors),
		movingScale: s.scale(phi, logWeights),
	}
	return next, Stack([]*Node{
		increment, smc.EffectiveSampleSize(logWeights), smc.UniqueAncestors(ancestors, s.DType), ConvertDType(done, s.DType), nonFinite(logLik),
	}, 0)
}

// finishStep learns, and takes the particles over as the step's result. Inputs: the step's number, the learning rate, the count of rows. The record:
// sum_i G_i^2 of evidenceStdErr, and whether the gradient was rejected.
func (s *ibis) finishStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	as := func(i int) *Node { return ConvertDType(element(inputs[0], i), s.DType) }
	now := stateOf(nodes, nil)
	now.Phi, now.LogWeights = nodes[movingPhi], nodes[movingWeights]
	batch := target.Batch{X: nodes[batchX], Y: nodes[batchY], Count: as(2)}
	rejected := ConstAs(now.Phi, 0.0)
	if now.Psi != nil {
		weighed := s.Target.Reweight(now.Phi, now.Psi, now.LogWeights, batch, target.UnitPotential)
		now, rejected = s.Learn(now, weighed.Gradient, batch, Now{Number: as(0), Rate: as(1)})
	}
	weights := Exp(now.LogWeights)
	families := ScatterSum(ZerosLike(weights), ExpandAxes(nodes[movingEve], -1), weights, false, false)
	return now.nodes(), Stack([]*Node{ReduceAllSum(Square(families)), rejected}, 0)
}

// Sharded implements Stepper.
func (s *ibis) Sharded() []string {
	return []string{movingPhi, movingDensity, movingGradient, movingOwn, movingUnfinished, movingEve}
}

// Begin implements Stepper.
func (s *ibis) Begin(r *Session) error {
	batch := r.Batches.At(0)
	seed := random.SeedWords(r.Seed)
	if _, err := s.start.Run(r.State, batch.Rows, uint32(0), seed); err != nil {
		return err
	}
	_, err := s.restart.Run(r.State, float64(0), []uint32{0, 0}, seed)
	return err
}

// stream is that of a step and a place in it, uint32 [2].
func stream(seed, counters *Node) random.Stream {
	return streamAt(seed, element(counters, 0), element(counters, 1))
}

func streamAt(seed, step, place *Node) random.Stream {
	return random.FromSeed(seed).Named("sequence").At(step).At(place)
}
