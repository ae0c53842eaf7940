package smc

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/tryout"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Spec says what stages are compiled for: a kernel, a number of particles, and a sequence of distributions from the
// prior to the posterior.
type Spec struct {
	Kernel    mcmc.Kernel // leaves its target invariant: see mcmc.LeavesInvariant
	Particles int         // J
	Dim       int         // D
	DType     compute.DType
	Moves     int // the number of transitions after a weighing; 0: not known. See Stages.PerCall

	Resampler  Resampler
	Threshold  float64 // share of J: Weigh resamples if the effective sample size is at most Threshold J
	FixedScale bool    // step sizes are in units of 1, not of the particles' scales

	Prefix string   // of the names of the entries that are the stages' own, such as "moving/"
	Reads  []string // the entries that the Sequence reads
	Sequence

	// chains is M, how many of the particles are drawn to be moved. Each drawn particle is the start of a chain of J/M
	// states, which become the new particles (waste-free: Dau and Chopin 2022). 0: all J are moved, and only their last
	// states are kept.
	chains  int
	tuned   bool // the step size is an input of Move, see stepShares; else it is the kernel's own
	steered bool // the number of steps of a trajectory is an input of Move; else it is the kernel's own
	// tempered: Weigh multiplies what Potential gives by the step of the power; else it counts once. Move reports how
	// far particles have come: see movement.correlation and movement.unmoved.
	tempered bool
	// try, if set, tries by the first particles, phi, whether the target is in order.
	try func(t *tryout.Trial, rng random.Stream, nodes compute.Nodes, phi *graph.Node)
}

// Sequence has the distributions from the prior to the posterior, as functions of the state's entries that Spec.Reads
// names. A distribution is named by its place in the sequence, a number: the power of the likelihood, from 0 to 1, as
// for Tempered, or the number of rows that are taken in, as for ohsmc.SMC.
type Sequence struct {
	// Probe gives a target like those of Target, in a graph that is thrown away, to find out what the kernel carries.
	Probe func(g *graph.Graph) density.Target
	// Initial draws the first particles from the prior, [J, D].
	Initial func(nodes compute.Nodes, rng random.Stream) *graph.Node
	// LogPrior is the log-density of the draws of Initial at phi, [J, D]: [J].
	LogPrior func(nodes compute.Nodes, phi *graph.Node) *graph.Node
	// Target is the distribution at a place, a scalar of DType.
	Target func(nodes compute.Nodes, place *graph.Node) density.Target
	// Potential is the log-likelihood of what comes in next after a place, [J] for phi, [J, D].
	Potential func(nodes compute.Nodes, phi, place *graph.Node) *graph.Node
}

// Stages are the stages of an SMC sampler, compiled, for samplers of your own: Tempered and ohsmc.SMC are made of them.
// They work on a compute.State, which the caller owns: Start draws particles, Weigh multiplies their weights by what
// comes in and resamples them, Restart evaluates what the kernel carries, such as gradients, under the new
// distribution, and Move moves them.
type Stages struct {
	Spec
	// PerCall is the number of transitions that a call of Move makes: the largest divisor of Spec.Moves up to five, and
	// always 1 for kernels whose transitions take several moves. A call costs a tenth of a millisecond, as much as some
	// hundred particles, and each transition in its graph costs half a second of compilation.
	PerCall int
	carrier *mcmc.Carrier // of the particles, or of the chains where they are fewer

	start, weigh, restart, move *compute.Program
	carried                     *compute.Program // compares what a user's own kernel carries; nil for others
	tried, compared             tryout.Trial     // of the first particles, and of what the kernel carries
	moved                       int              // calls of Move
}

// NewStages checks spec and prepares the programs. Each is compiled at its first call. To find out what the kernel
// carries, NewStages builds a move in a graph that is thrown away.
func NewStages(engine *compute.Engine, spec Spec) (*Stages, error) {
	spec.chains = cmp.Or(spec.chains, spec.Particles)
	s := &Stages{Spec: spec, PerCall: 1}
	for k := 2; k <= min(spec.Moves, 5); k++ {
		if spec.Moves%k == 0 {
			s.PerCall = k
		}
	}
	carrier, err := mcmc.NewCarrier(engine, s.Kernel, shapes.Make(s.DType, s.chains, s.Dim), s.Probe)
	if err != nil {
		return nil, fmt.Errorf("smc: %w", err)
	}
	if s.carrier = carrier.WithPrefix(s.Prefix); s.wasteFree() {
		s.carrier = carrier.WithPrefix(s.Prefix + "chain/")
	}
	if s.carrier.SeveralMoves() {
		s.PerCall = 1
	}
	progress := []string{s.unfinished()}
	if s.tempered {
		progress = append(progress, s.before(), s.unmoved())
	}
	carried := s.carrier.Names() // the chains' phi first
	population := []string{s.phi(), s.logWeights(), s.eve(), s.scale()}
	weighed, restarted := slices.Clone(population), append(slices.Clone(carried[1:]), s.scale())
	moved := slices.Concat(carried, progress)
	switch {
	case s.wasteFree():
		weighed, restarted = append(weighed, s.carrier.Phi()), append(restarted, s.phi())
		moved = append(moved, s.phi())
	case s.CarriesDensity():
		population = append(population, s.carrier.LogDensity())
		weighed = population
	}
	for _, p := range []struct {
		program        **compute.Program
		name           string
		reads, updates []string
		step           compute.Step
	}{
		{&s.start, "smc start", nil, slices.Concat(population, progress), s.startStep},
		{&s.weigh, "smc weigh", population, weighed, s.weighStep},
		{&s.restart, "smc kernel start", []string{carried[0], s.scale()}, restarted, s.restartStep},
		{&s.move, "smc move", append(slices.Clone(moved), s.scale()), moved, s.moveStep},
	} {
		reads := append(slices.Clone(p.reads), s.Reads...)
		if *p.program, err = compute.NewProgram(engine, p.name, reads, p.updates, p.step); err != nil {
			return nil, err
		}
	}
	if s.carrier.ComparesCarried() {
		reads := append(s.carrier.Names(), s.Reads...)
		s.carried, err = compute.NewProgram(engine, "smc carried values", reads, nil, s.carriedStep)
	}
	return s, err
}

// Close frees the programs.
func (s *Stages) Close() {
	for _, p := range []*compute.Program{s.start, s.weigh, s.restart, s.move} {
		p.Close()
	}
	if s.carried != nil {
		s.carried.Close()
	}
}

// The names of the state's entries. For the particles: phi, [J, D]; their normalised log-weights, [J]; the number of
// each one's first ancestor, int32 [J]; and the scales of the coordinates, [D]. For the chains: 1 where a transition is
// not complete, else 0, [M]; the log prior and log-likelihood before the moves, [M, 2]; and 1 where a chain has not
// moved since it was drawn, else 0, [M].
func (s *Stages) phi() string        { return s.Prefix + "phi" }
func (s *Stages) logWeights() string { return s.Prefix + "log_weights" }
func (s *Stages) eve() string        { return s.Prefix + "eve" }
func (s *Stages) scale() string      { return s.Prefix + "scale" }
func (s *Stages) unfinished() string { return s.Prefix + "unfinished" }
func (s *Stages) before() string     { return s.Prefix + "before" }
func (s *Stages) unmoved() string    { return s.Prefix + "unmoved" }

// Entries names the entries of the state that are the stages' own: the particles, [J, D], and their log-weights, [J],
// first. Some exist after the first Restart only.
func (s *Stages) Entries() []string {
	own := s.carrier.Names()
	if !s.wasteFree() {
		own = own[1:] // the first are the particles
	}
	names := append([]string{s.phi(), s.logWeights(), s.eve(), s.scale(), s.unfinished()}, own...)
	if s.tempered {
		names = append(names, s.before(), s.unmoved())
	}
	return names
}

// Sharded names the entries that devices may share, as compute.Sharding does: those with a particle axis. Log-weights
// are not among them: they are few, and resampling needs all of them on every device.
func (s *Stages) Sharded() []string {
	return slices.DeleteFunc(s.Entries(), func(name string) bool { return name == s.logWeights() || name == s.scale() })
}

// wasteFree says whether fewer particles are moved than there are.
func (s *Stages) wasteFree() bool { return s.chains < s.Particles }

// CarriesDensity says whether the kernel carries the log-density and nothing else. Weigh then keeps it up to date, by
// adding what comes in, and Restart is not needed.
func (s *Stages) CarriesDensity() bool {
	return !s.wasteFree() && !s.carrier.SeveralMoves() && s.Kernel.Traits().Carries == mcmc.CarriesLogDensity &&
		len(s.carrier.Names()) == 2
}

// Start draws particles from the prior, with equal weights. Here and below, the random numbers are those of a key: no
// two calls on the same particles may have the same one.
func (s *Stages) Start(state *compute.State, key random.Key) error {
	record, err := s.start.Run(state, key.Words())
	if err != nil {
		return err
	}
	return s.tried.Check(record)
}

func (s *Stages) startStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	rng := random.FromKey(inputs[0])
	phi := s.Initial(nodes, rng)
	s.check("what Initial draws", phi, s.Particles, s.Dim)
	next := compute.Nodes{s.phi(): phi, s.logWeights(): s.uniform(phi), s.eve(): s.tile(places(phi.Graph(), s.chains))}
	next[s.scale()] = s.stdDev(phi, next[s.logWeights()])
	next[s.unfinished()] = Zeros(phi.Graph(), shapes.Make(s.DType, s.chains))
	if s.tempered {
		next[s.before()] = Zeros(phi.Graph(), shapes.Make(s.DType, s.chains, 2))
		next[s.unmoved()] = OnesLike(next[s.unfinished()])
	}
	if s.CarriesDensity() {
		logPrior := s.LogPrior(nodes, phi)
		s.check("the log prior", logPrior, s.Particles)
		next[s.carrier.LogDensity()] = compute.Gate(logPrior)
	}
	s.tried = tryout.Trial{}
	if s.try != nil {
		s.try(&s.tried, rng, nodes, phi)
	}
	if numbers := s.tried.Numbers(); numbers != nil {
		return next, numbers
	}
	return next, ConstAs(phi, []float64{0})
}

// Weighed holds the results of Weigh on the host.
type Weighed struct {
	Increment float64 // of the log evidence: log sum_j w_j exp(step potential_j); -Inf if no particle has any weight
	ESS       float64 // the effective sample size after weighing, before resampling
	Ancestors float64 // number of different ancestors, of those drawn if waste-free; else J if not resampled
	NonFinite int     // particles whose potential is not finite

	resampled bool
	step      float64 // by which the power has risen; 1 unless Spec.tempered
	families  float64 // sum_i G_i^2 of Genealogy, before resampling
	variance  float64 // relative variance of the mean weight of particles, or chains, since they were resampled
	// ahead is log sum_j w_j exp(step/2 potential_j), with the weights before weighing. behind is the same with -last/2
	// in place of step/2. They are the two sides of the bridges from which the drift is computed. 0 unless Spec.tempered.
	ahead, behind float64
	// joint is the variance of ahead - Increment - behind, and alone the variance of behind, if particles, or chains,
	// are independent.
	joint, alone float64
}

// Weigh takes in what comes after a place: it multiplies the weights by its likelihood. With resample it resamples
// where the effective sample size is at most Spec.Threshold J.
func (s *Stages) Weigh(state *compute.State, place float64, resample bool, key random.Key) (Weighed, error) {
	w := weighing{place: place}
	if resample {
		w.share = s.Threshold
	}
	return s.weighBy(state, w, key)
}

// weighing says what weighBy takes in, and when it resamples.
type weighing struct {
	place float64 // that is reached: what comes next after it is taken in
	share float64 // of J: the largest effective sample size at which it resamples; 0: never, +Inf: always
	// If Spec.tempered, step is the increase of the power. 0 takes the largest step, at most most, at which the
	// effective sample size is at least Spec.Threshold J. last is the step that led to place, 0 at the beginning.
	step, most, last float64
}

// weighBy is Weigh, by the likelihood to the power of the step if Spec.tempered.
func (s *Stages) weighBy(state *compute.State, w weighing, key random.Key) (Weighed, error) {
	inputs := []float64{w.place, w.step, w.most, w.share * float64(s.Particles) * (1 + 1e-6), w.last}
	record, err := s.weigh.Run(state, inputs, key.Words())
	if err != nil {
		return Weighed{}, err
	}
	return Weighed{
		step: record[0], Increment: record[1], ESS: record[2], resampled: record[3] != 0, Ancestors: record[4],
		NonFinite: int(record[5]), families: record[6], variance: record[7], ahead: record[8], behind: record[9],
		joint: record[10], alone: record[11],
	}, nil
}

func (s *Stages) weighStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	place := compute.Element(inputs[0], 0)
	phi := nodes[s.phi()]
	potential := s.Potential(nodes, phi, ConvertDType(place, s.DType))
	s.check("the log-likelihood", potential, s.Particles)
	potential = compute.Gate(potential)
	step, increment := OnesLike(place), potential
	var ahead, behind, logAhead, logBehind *Node
	if s.tempered {
		step = s.step(nodes[s.logWeights()], potential, compute.Element(inputs[0], 1), compute.Element(inputs[0], 2))
		times := func(x *Node) *Node { return ConvertDType(Mul(ConvertDType(potential, compute.Float64), x), s.DType) }
		half := func(step *Node, sign float64) (weights, logSum *Node) {
			logFactor := compute.Gate(times(MulScalar(step, sign/2)))
			normalised, logSum := Normalise(Add(nodes[s.logWeights()], logFactor))
			return Exp(normalised), logSum
		}
		increment = times(step)
		ahead, logAhead = half(step, 1)
		behind, logBehind = half(compute.Element(inputs[0], 4), -1)
	}
	logWeights, logSum := Normalise(Add(nodes[s.logWeights()], increment))
	ess := EffectiveSampleSize(logWeights)

	// Resample.
	done := LessOrEqual(ess, ConvertDType(compute.Element(inputs[0], 3), ess.DType()))
	ifDone := func(a, b *Node) *Node { return Where(BroadcastToDims(done, a.Shape().Dim(0)), a, b) }
	ancestors := s.Resampler.Draw(logWeights, s.chains, random.FromKey(inputs[1]).Named("resample"))
	next := compute.Nodes{
		s.logWeights(): ifDone(s.uniform(phi), logWeights), s.scale(): s.stdDev(phi, logWeights),
	}
	eve := nodes[s.eve()]
	if s.wasteFree() {
		next[s.phi()], next[s.carrier.Phi()] = phi, Select(phi, ancestors)
		next[s.eve()] = ifDone(s.tile(Select(eve, ancestors)), eve)
	} else {
		ancestors = ifDone(ancestors, places(phi.Graph(), s.Particles))
		next[s.phi()], next[s.eve()] = Select(phi, ancestors), Select(eve, ancestors)
	}
	if s.CarriesDensity() {
		weighed := Add(nodes[s.carrier.LogDensity()], increment)
		next[s.carrier.LogDensity()] = Select(compute.Gate(weighed), ancestors)
	}

	weights := Exp(logWeights)
	families := Zeros(eve.Graph(), shapes.Make(s.DType, s.chains))
	families = ScatterSum(families, ExpandAxes(eve, -1), weights, false, false)
	drift := []*Node{ZerosLike(place), ZerosLike(place), ZerosLike(place), ZerosLike(place)}
	if s.tempered {
		joint := s.relativeVariance(Sub(Sub(ahead, weights), behind))
		drift = []*Node{logAhead, logBehind, joint, s.relativeVariance(behind)}
	}
	var record []*Node
	for _, v := range append([]*Node{
		step, logSum, ess, ConvertDType(done, s.DType), UniqueAncestors(ancestors, s.DType),
		ReduceAllSum(ConvertDType(Not(IsFinite(potential)), s.DType)), ReduceAllSum(Square(families)),
		s.relativeVariance(weights),
	}, drift...) {
		record = append(record, ConvertDType(v, compute.Float64))
	}
	return next, Stack(record, 0)
}

// relativeVariance is the variance of the sum of weights, [J], if those of different particles, or of different chains,
// are independent: from the spread of M weights about their mean, which is near 1/M. The weights may also be
// differences of such weights.
func (s *Stages) relativeVariance(weights *Node) *Node {
	m := float64(s.chains)
	sums := ReduceSum(Reshape(weights, s.Particles/s.chains, s.chains), 0) // over a chain's places
	centred := Sub(sums, ReduceAndKeep(sums, ReduceMean, 0))
	return MulScalar(ReduceAllSum(Square(centred)), m/max(m-1, 1))
}

// Restart evaluates what the kernel carries under the distribution at a place, at the particles that are to be moved.
// For waste-free chains these are the ancestors that were drawn; until a chain moves, all its states are its start.
func (s *Stages) Restart(state *compute.State, place float64, key random.Key) error {
	_, err := s.restart.Run(state, place, key.Words())
	return err
}

func (s *Stages) restartStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	phi := nodes[s.carrier.Phi()]
	rng := random.FromKey(inputs[1]).Named("start")
	next := s.carrier.Start(rng, phi, s.Target(nodes, ConvertDType(inputs[0], s.DType)))
	next[s.scale()] = s.scales(nodes[s.scale()], next[s.carrier.Gradient()])
	delete(next, s.carrier.Phi())
	if s.wasteFree() {
		next[s.phi()] = s.tile(phi)
	}
	return next, ConstAs(phi, []float64{0})
}

// movement holds the results of moveBy on the host.
type movement struct {
	acceptance float64 // sum over transitions of the mean over chains; 1 each for kernels that always move
	unfinished int     // chains whose transition is not complete
	full       float64 // acceptance over the chains that take the full step size; the same unless Spec.tuned
	nonFinite  int     // transitions that came where the log-density or its gradient is not finite
	divergent  int     // transitions that diverged, see mcmc.Info.Divergent
	// correlation is the correlation over the chains of their log prior, or of their log-likelihood, with what it was
	// before the first of the moves, the larger of the two: 1 if nothing has moved. unmoved is the number of chains that
	// no transition has moved since they were drawn. Both are 0 unless Spec.watched.
	correlation float64
	unmoved     int
	// squaredJump and jumpGrowth are sums over the transitions with full steps of what mcmc.Info has; 0 unless
	// Spec.steered.
	squaredJump, jumpGrowth float64
}

// Move makes PerCall transitions of all chains under the distribution at a place. Of a kernel whose transitions take
// several moves it makes one move: with begin all chains begin a transition, else those whose transition is not
// complete continue it, until none is unfinished. acceptance is the sum over transitions of the mean over chains, 1
// each for kernels that always move. The transitions have the keys key.At(call), key.At(call+1) and so on. It is an
// error if a kernel of your own then carries values of another place than the chains': the first call tests this, and
// the second, the fourth, the eighth and so on.
func (s *Stages) Move(
	state *compute.State, place float64, begin bool, key random.Key, call uint32,
) (acceptance float64, unfinished int, err error) {
	m, err := s.moveBy(state, moves{place: place, begin: begin}, key, call)
	return m.acceptance, m.unfinished, err
}

// moves says which moves moveBy makes.
type moves struct {
	place    float64
	begin    bool
	number   int        // of the first of the transitions in the run: chains have their step sizes by it, if Spec.tuned
	shares   random.Key // likewise
	first    bool       // it is the first transition since the chains were drawn
	slot     int        // of a waste-free chain: the number, from 1, of the state that the transition leads to
	stepSize float64    // counts if Spec.tuned
	steps    int        // of a trajectory; counts if Spec.steered
}

// moveBy is Move.
func (s *Stages) moveBy(state *compute.State, m moves, key random.Key, call uint32) (movement, error) {
	inputs := []float64{
		m.place, flag(m.begin), float64(m.slot), m.stepSize, flag(m.first), float64(m.steps), float64(m.number % 2),
	}
	var keys, steps []uint32 // of each transition
	for i := range s.PerCall {
		keys = append(keys, key.At(call+uint32(i)).Words()...)
		steps = append(steps, m.shares.At(uint32(m.number+i)).Words()...)
	}
	record, err := s.move.Run(state, inputs, keys, steps)
	if err != nil {
		return movement{}, err
	}
	s.moved++
	if s.carried != nil && s.moved&(s.moved-1) == 0 { // a power of 2
		counts, err := s.carried.Run(state, m.place)
		if err != nil {
			return movement{}, err
		}
		if err := s.compared.Check(counts); err != nil {
			return movement{}, fmt.Errorf("after %d moves %w", s.moved*s.PerCall, err)
		}
	}
	return movement{
		acceptance: record[0], unfinished: int(record[1]), nonFinite: int(record[2]), divergent: int(record[3]),
		correlation: record[4], squaredJump: record[5], jumpGrowth: record[6], full: record[7], unmoved: int(record[8]),
	}, nil
}

func flag(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

func (s *Stages) moveStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	input := func(i int) *Node { return ConvertDType(compute.Element(inputs[0], i), s.DType) }
	distribution, tuning := s.Target(nodes, input(0)), mcmc.Tuning{Scale: nodes[s.scale()]}
	if s.steered {
		tuning.Steps = input(5)
	}
	isFirst := GreaterThan(input(4), ZerosLike(input(4)))
	unfinished := Max(nodes[s.unfinished()], BroadcastToDims(input(1), s.chains))
	next, ended := nodes, unfinished
	acceptance, nonFinite, divergent := ConstAs(ended, 0.0), ConstAs(ended, 0.0), ConstAs(ended, 0.0)
	squaredJump, jumpGrowth := ConstAs(ended, 0.0), ConstAs(ended, 0.0)
	fullAcceptance, full := ConstAs(ended, 0.0), OnesLike(ended)
	unmoved := OnesLike(ended)
	if s.tempered {
		unmoved = Where(BroadcastToShape(isFirst, unmoved.Shape()), unmoved, nodes[s.unmoved()])
	}
	keyOf := func(keys *Node, i int) random.Stream { return random.FromKey(Slice(keys, AxisRange(2*i, 2*i+2))) }
	for i := range s.PerCall {
		rng := keyOf(inputs[1], i)
		if s.tuned {
			var shares *Node
			odd := input(6)
			if i%2 == 1 {
				odd = OneMinus(odd)
			}
			shares, full = stepShares(keyOf(inputs[2], i), s.DType, s.chains, odd)
			tuning.StepSize = Mul(BroadcastToShape(input(3), shares.Shape()), shares)
		}
		var info mcmc.Info
		next, ended, info = s.carrier.MoveUnfinished(rng, next, unfinished, distribution, tuning)
		probability := ended
		if info.Acceptance != nil {
			probability = Mul(compute.Finite(info.Acceptance), ended)
		}
		acceptance = Add(acceptance, ReduceAllMean(probability))
		fullAcceptance = Add(fullAcceptance, ofFull(probability, full))
		has := ended
		if info.Accepted != nil {
			has = Mul(info.Accepted, ended)
		}
		unmoved = Mul(unmoved, OneMinus(has))
		count := func(sum, of *Node) *Node {
			if of == nil {
				return sum
			}
			return Add(sum, ReduceAllSum(Mul(of, ended)))
		}
		nonFinite, divergent = count(nonFinite, info.NonFinite), count(divergent, info.Divergent)
		if s.steered {
			if info.SquaredJump == nil || info.JumpGrowth == nil {
				panic(fmt.Errorf("%T is mcmc.Steered, and reports no Info.SquaredJump and JumpGrowth to choose a length by",
					s.Kernel))
			}
			squaredJump = count(squaredJump, Mul(full, compute.Finite(info.SquaredJump)))
			jumpGrowth = count(jumpGrowth, Mul(full, compute.Finite(info.JumpGrowth)))
		}
	}
	if s.wasteFree() {
		next[s.phi()] = s.keep(nodes[s.phi()], next[s.carrier.Phi()], ended, input(2))
	}
	next[s.unfinished()] = Sub(unfinished, ended)
	left, correlation := ReduceAllSum(next[s.unfinished()]), ConstAs(acceptance, 0.0)
	still := correlation
	if s.tempered {
		before := nodes[s.before()]
		before = Where(BroadcastToShape(isFirst, before.Shape()), s.potentials(nodes, nodes, distribution), before)
		next[s.before()], next[s.unmoved()] = before, unmoved
		still = ReduceAllSum(unmoved)
		correlation = ReduceAllMax(correlations(before, s.potentials(nodes, next, distribution)))
	}
	return next, Stack([]*Node{
		acceptance, left, nonFinite, divergent, correlation, squaredJump, jumpGrowth, fullAcceptance, still,
	}, 0)
}

// carriedStep compares what the kernel carries with the distribution at a place.
func (s *Stages) carriedStep(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	s.compared = tryout.Trial{}
	s.carrier.Carried(&s.compared, nodes, s.Target(nodes, ConvertDType(inputs[0], s.DType)))
	return nil, s.compared.Numbers()
}

// potentials returns the chains' log prior and, times the power, their log-likelihood, [M, 2]; chains has the chains'
// entries. No symmetry of a network changes them. So they show how well a kernel mixes where the coordinates do not:
// signs and the order of units hardly ever change, so coordinates stay correlated.
func (s *Stages) potentials(nodes, chains compute.Nodes, distribution density.Target) *Node {
	phi, logDensity := chains[s.carrier.Phi()], chains[s.carrier.LogDensity()]
	if logDensity == nil {
		logDensity = distribution.LogDensity(phi)
	}
	logPrior := s.LogPrior(nodes, phi)
	return Stack([]*Node{logPrior, Sub(logDensity, logPrior)}, 1)
}

// correlations correlates each column of a with the same column of b, both [M, K]. The result is [K], 0 where a column
// is constant.
func correlations(a, b *Node) *Node {
	centred := func(x *Node) *Node { return Sub(x, ReduceAndKeep(x, ReduceMean, 0)) }
	sum := func(x, y *Node) *Node { return ReduceSum(Mul(x, y), 0) }
	a, b = centred(compute.Finite(a)), centred(compute.Finite(b))
	return compute.Finite(Div(sum(a, b), Sqrt(Mul(sum(a, a), sum(b, b)))))
}

// keep stores the chains' states, [M, D], among the particles, [J, D], as state number slot of each chain whose
// transition has ended.
func (s *Stages) keep(population, chains, ended, slot *Node) *Node {
	each := s.Particles / s.chains
	shape := shapes.Make(s.DType, each, s.chains)
	number := Iota(slot.Graph(), shape, 0)
	here := And(Equal(number, BroadcastToShape(slot, shape)),
		BroadcastToDims(ExpandAxes(GreaterThan(ended, ZerosLike(ended)), 0), each, s.chains))
	now := BroadcastToDims(ExpandAxes(chains, 0), each, s.chains, s.Dim)
	kept := mcmc.Choose(here, now, Reshape(population, each, s.chains, s.Dim))
	return Reshape(kept, s.Particles, s.Dim)
}

// check panics if what a function of Spec gave does not have the shape that it must have.
func (s *Stages) check(what string, node *Node, dims ...int) {
	if want := shapes.Make(s.DType, dims...); !node.Shape().Equal(want) {
		panic(fmt.Errorf("%s has shape %s: it must be %s", what, node.Shape(), want))
	}
}

// uniform is the log-weight -log J for all particles, [J].
func (s *Stages) uniform(like *Node) *Node {
	return BroadcastToDims(ConstAs(like, -math.Log(float64(s.Particles))), s.Particles)
}

// places returns the numbers 0 to n-1, int32 [n].
func places(g *Graph, n int) *Node { return Iota(g, shapes.Make(dtypes.Int32, n), 0) }

// tile repeats x, [M, ...], for each of a chain's states: [J, ...]. Particle p M + m is state p of chain m.
func (s *Stages) tile(x *Node) *Node {
	dims := slices.Clone(x.Shape().Dimensions)
	all := BroadcastToDims(ExpandAxes(x, 0), append([]int{s.Particles / s.chains}, dims...)...)
	dims[0] = s.Particles
	return Reshape(all, dims...)
}

// stdDev returns the scales, [D], that the particles alone give: their weighted standard deviations, or 1 if
// Spec.FixedScale. Step sizes are in units of the scales.
func (s *Stages) stdDev(phi, logWeights *Node) *Node {
	if s.FixedScale {
		return Ones(phi.Graph(), shapes.Make(s.DType, s.Dim))
	}
	return weightedStdDev(phi, logWeights)
}

// scales returns the scales, [D], from the gradients at the chains' starts, [M, D]. gradient is nil for a kernel that
// carries none: then they are stdDev.
func (s *Stages) scales(stdDev, gradient *Node) *Node {
	if s.FixedScale || gradient == nil {
		return Identity(stdDev)
	}
	return localScale(stdDev, gradient)
}

// weightedStdDev is the standard deviation of weighted particles, phi, [J, D], with normalised logWeights, [J], in each
// coordinate: [D]. The variances are shrunk towards 1e-3 if few particles carry the weight, as Stan does for its mass
// matrix.
func weightedStdDev(phi, logWeights *graph.Node) *graph.Node {
	weights := ExpandAxes(Exp(logWeights), 1)
	mean := ReduceSum(Mul(phi, weights), 0)
	variance := ReduceSum(Mul(Square(Sub(phi, ExpandAxes(mean, 0))), weights), 0)
	ess := EffectiveSampleSize(logWeights)
	return Sqrt(Add(Mul(variance, Div(ess, AddScalar(ess, 5))), MulScalar(Reciprocal(AddScalar(ess, 5)), 5e-3)))
}

// localScale estimates the width of a distribution in each coordinate, [D], around a single particle. It is 1/sqrt(mean
// of g_i^2), with g the gradients of the log-density at all particles, [J, D], but at most the particles' standard
// deviation, [D]. For a Gaussian with covariance S this is 1/sqrt((S^-1)_ii), the standard deviation given the other
// coordinates. For a distribution with many modes it is the width of one mode, where a standard deviation measures how
// far the modes lie apart.
func localScale(stdDev, gradient *Node) *Node {
	largest := ReduceAndKeep(Abs(gradient), ReduceMax, 0) // divided out: squares may overflow
	largest = Where(GreaterThan(largest, ZerosLike(largest)), largest, OnesLike(largest))
	relative := Div(gradient, BroadcastToShape(largest, gradient.Shape()))
	steepness := Mul(Squeeze(largest, 0), Sqrt(ReduceMean(Square(relative), 0)))
	return Min(Reciprocal(steepness), stdDev)
}
