package mcmc

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// LAPS is the late-adjusted parallel sampler (Robnik and Seljak 2026, arXiv 2601.16696): many chains, of a few draws
// each. Without a Metropolis test chains come near the target in fewer steps than with one, but keep a bias there. So
// the test is added late:
//
//  1. Unadjusted: all chains move by MCLMC. After each step the ensemble's bias is estimated, and the next step's size
//     chosen such that its energy error goes with a somewhat smaller bias. So steps are long while the chains are far
//     from the target, and shorten as they come near. The phase ends when the bias is small. Where the density
//     jumps, as at a bound, it takes all its Steps.
//  2. Adjusted: all chains move by MicrocanonicalHMC, in units of the ensemble's standard deviations. The first half of
//     the phase chooses the step size, the other half makes the draws. It takes about as many steps as the first phase,
//     and more if there are more than ten Draws.
//
// The cost of a draw is mostly that of the way to the target, which each chain goes by itself; all chains go it at
// once. With fewer Chains and more Draws there are more draws for a gradient, and they take longer.
//
// It samples all parameters of a model given all rows, a log-density (fit.Sample), or the stochastic parameters of a
// trained posterior (fit.From). There must be at least two coordinates. Modes that no chain moves between keep the
// shares of the chains that began near them.
//
// The particles of the result are the draws of all chains, chain after chain, of equal weight. Its details are a
// *LAPSDetails. Warnings say if the unadjusted phase has not converged, and if the ensemble still changed in the
// adjusted one.
type LAPS struct {
	Chains int // J, at least 8; default 100
	Draws  int // of each chain; default 10
	Steps  int // at most, of the unadjusted phase, at least 32; default 5000
}

// LAPSDetails are the details of a run of LAPS.
type LAPSDetails struct {
	Unadjusted []LAPSRecord // of each step of the first phase
	Converged  bool         // the first phase ended by itself, before its Steps or with the last
	Adjusted   *Details     // of the second phase; its first draw of each chain is none of the result
	// RHat compares all chains at the middle draw of the second phase with all chains at the last: it is the
	// rank-normalised split R-hat of these two samples, the mean over the coordinates, and WorstRHat the largest. NaN if
	// there is one draw only, of a run that was cancelled.
	RHat, WorstRHat float64
	Gradients       int // evaluated by all chains in both phases
}

// LAPSRecord is a step of the unadjusted phase.
type LAPSRecord struct {
	StepSize float64 // h, a length
	Length   float64 // L, see MCLMC
	// EnergyError is the mean square of the step's energy error over the chains, per coordinate. A chain's counts at most
	// 25 times what is Wanted, and so much if its step was not finite.
	EnergyError, Wanted float64
	// Bias is 1 less the virial of the chains, averaged over the last steps: about 1 when they begin, and 0 of draws from
	// the target.
	Bias      float64
	Looks     bool // the phase ends after this step if the bias is small
	NonFinite int  // chains whose step was not finite; they stayed
}

var (
	_ fit.OfDensity = LAPS{}
	_ fit.OfTrained = LAPS{}
)

// OfDensity implements fit.OfDensity.
func (LAPS) OfDensity() {}

// OfTrained implements fit.OfTrained.
func (LAPS) OfTrained() {}

// Title implements fit.Method.
func (LAPS) Title() string {
	return "LAPS, the late-adjusted parallel sampler (Robnik and Seljak 2026)"
}

// Prepare implements fit.Method.
func (l LAPS) Prepare(j *fit.Job) (fit.Method, error) {
	if err := limits.Fill("mcmc: LAPS",
		limits.Int("Chains", &l.Chains, 100).From(8),
		limits.Int("Draws", &l.Draws, 10).From(1),
		limits.Int("Steps", &l.Steps, 5000).From(2*firstLook),
	); err != nil {
		return nil, err
	}
	if err := limits.Check("mcmc: LAPS", limits.Numbers("Draws", l.Draws, l.Chains, l.Draws+1, j.Dim())); err != nil {
		return nil, err
	}
	return l, checkSphere("LAPS", j.Dim())
}

// Run implements fit.Method.
func (l LAPS) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := problemOf(j, l.Chains, MCLMC{})
	if err != nil {
		return nil, err
	}
	first, err := j.RunStage(ctx, fit.Stage{Name: "unadjusted", Method: unadjusted(l), Problem: problem, Inner: true})
	if err != nil {
		return nil, err
	}
	if first.Status != run.Completed {
		return nil, fmt.Errorf("mcmc: the run ended before all chains had a draw: %w", context.Cause(ctx))
	}
	d := fit.Details[*LAPSDetails](first)
	chains, err := l.adjusted(j, d, first.Draws.Phi, problem.Dim)
	if err != nil {
		return nil, err
	}
	problem.Start, problem.Climb = first.Draws.Phi, nil
	second, stopped := j.RunStage(ctx, fit.Stage{
		Name: "adjusted", Method: chains, Problem: problem, Seed: 1, Inner: true,
	})
	if second == nil {
		return nil, stopped
	}
	d.Adjusted = fit.Details[*Details](second)
	d.Gradients = 2 * l.Chains * (len(d.Unadjusted) + d.Adjusted.WarmUpMoves + d.Adjusted.Moves)
	result := &fit.Result{
		Draws: l.last(d.Adjusted.Draws), Status: second.Status, Details: []any{d}, Warnings: second.Warnings,
	}
	if d.RHat, d.WorstRHat, err = ensembleRHat(d.Adjusted.Draws); err != nil {
		return nil, err
	}
	result.Warnings = append(result.Warnings, d.warnings(l)...)
	return result, stopped
}

// The unadjusted phase. The first three are the authors': of a bias b an energy error of wantedShare b^(2 wantedPower)
// is wanted, and L is lengthShare times the ensemble's radius (C, 3/8 and alpha of their program).
const (
	wantedShare   = .1
	wantedPower   = 3. / 8
	lengthShare   = 1.9
	beginShare    = .01 // the first step's size in units of the root of D
	mostGrowth    = 3.  // of the size from one step to the next
	mostError     = 25  // that counts of a chain, times the wanted energy error: a chain in a steep place stops no other
	mostVirial    = 10  // that counts of a chain, likewise; it is 1 in the mean
	mostForgotten = 20  // 2 h / L at most: the places of chains that begin at one point have no radius
	firstLook     = 16  // the step after which the bias is looked at first, and then after half as many again
	mostBias      = .05 // at the end; with .15 some predictions on Boston were a standard deviation off
)

// unadjusted is the first phase, as a method of its own: its draws are where the chains end.
type unadjusted LAPS

// OfDensity implements fit.OfDensity.
func (unadjusted) OfDensity() {}

// Title implements fit.Method.
func (unadjusted) Title() string { return "the unadjusted phase of LAPS" }

// Prepare implements fit.Method.
func (u unadjusted) Prepare(*fit.Job) (fit.Method, error) { return u, nil }

// Run implements fit.Method.
func (u unadjusted) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	problem, err := j.Density(u.Chains)
	if err != nil {
		return nil, err
	}
	e := &ensemble{LAPS: LAPS(u), job: j, problem: problem}
	loop := fit.Loop[LAPSRecord]{
		Format: "gobnn.laps/1", Steps: u.Steps, Begin: e.begin, Step: e.step, Done: converged,
		Data: []string{density.DataPrefix, startName, climbMean, climbSquare},
		Kept: map[string]shapes.Shape{phiName: shapes.Make(j.DType, u.Chains, problem.Dim)}, ObserveEvery: u.Steps,
		Scores: func(r LAPSRecord) []run.Score {
			return []run.Score{{Name: "step size", Value: r.StepSize}, {Name: "bias", Value: r.Bias}}
		},
		Result: e.result,
	}
	return loop.Run(ctx, j)
}

// converged says whether the phase ends after a step.
func converged(r LAPSRecord) bool { return r.Looks && math.Abs(r.Bias) <= mostBias }

// ensemble are the chains of the unadjusted phase.
type ensemble struct {
	LAPS
	job     *fit.Job
	problem density.Problem
	moves   *moves
	program *lapsProgram
}

// lapsProgram is the program of a step.
type lapsProgram struct{ *compute.Program }

// The state's entries beside those of the chains.
const (
	lapsStep   = "laps step size"
	lapsLength = "laps length"
	lapsBias   = "laps bias"
	lapsCentre = "laps centre" // [J, D], the mean of each chain's way, in which later steps count more
)

// begin compiles the step unless it is compiled, and sets the chains to their starting points.
func (e *ensemble) begin(ctx context.Context) (*compute.State, func(), error) {
	chains := Chains{Kernel: MCLMC{}, Chains: e.Chains, Draws: 1, Thin: 1, WarmUp: NoWarmUp}
	r := newSampling(e.job, chains, e.problem)
	if err := r.Begin(ctx); err != nil {
		r.close()
		return nil, nil, err
	}
	e.moves = r.moves
	names := append(r.carrier.Names(), lapsStep, lapsLength, lapsBias, lapsCentre)
	key := r.key()
	if key != "" {
		key += " laps"
	}
	program, giveBack, err := compute.Keep(e.job.Engine, key, func() (*lapsProgram, error) {
		p, err := compute.NewProgram(e.job.Engine, "mcmc LAPS", append(slices.Clone(names), e.problem.Entries()...), names,
			e.graph)
		return &lapsProgram{p}, err
	})
	if err != nil {
		r.close()
		return nil, nil, err
	}
	e.program = program
	for name, value := range map[string]float64{
		lapsStep: beginShare * math.Sqrt(float64(e.problem.Dim)), lapsLength: math.Sqrt(float64(e.problem.Dim)), lapsBias: 1,
	} {
		r.state.Set(name, compute.Floats(e.job.DType, []float64{value}))
	}
	begin, err := r.state.Host(r.carrier.Phi())
	if err != nil {
		r.close()
		giveBack()
		return nil, nil, fmt.Errorf("mcmc: %w", err)
	}
	r.state.Set(lapsCentre, begin[r.carrier.Phi()])
	state, movesBack := r.state, r.giveBack
	return state, func() { giveBack(); movesBack() }, nil
}

// step is one step of all chains.
func (e *ensemble) step(_ context.Context, state *compute.State, made int) (r LAPSRecord, err error) {
	r.Looks = looks(made + 1)
	key := random.KeyOf(e.job.Seed).Named("laps").At(uint32(made))
	values, err := e.program.Run(state, key.Words(), 2/float64(made+3), 8/float64(made+8))
	if err != nil {
		return r, err
	}
	r.StepSize, r.Length, r.EnergyError, r.Wanted = values[0], values[1], values[2], values[3]
	r.Bias, r.NonFinite = values[4], int(values[5])
	return r, nil
}

// looks says whether the bias decides after a step, counted from 1: now and then only, since it varies by chance.
func looks(step int) bool {
	at := firstLook
	for at < step {
		at += at / 2
	}
	return at == step
}

// graph moves all chains by a step, and chooses the next one's size. Inputs: the step's key, and the weights of the
// present in the chains' centres and in the bias.
func (e *ensemble) graph(nodes compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	m := e.moves
	h, length := nodes[lapsStep], nodes[lapsLength]
	s, info := langevin(random.FromKey(inputs[0]), m.carrier.Unpack(nodes), m.target(nodes, nil), h,
		MinScalar(Div(MulScalar(h, 2), length), mostForgotten), Tuning{})
	d := float64(e.problem.Dim)
	bias := ensembleBias(s, nodes[lapsCentre])
	averaged := ConvertDType(inputs[2], bias.DType())
	bias = Add(nodes[lapsBias], Mul(averaged, Sub(bias, nodes[lapsBias])))
	least := ConstAs(bias, 1/float64(e.Chains)) // of which J draws see nothing
	wanted := MulScalar(PowScalar(Min(Max(Square(bias), least), OnesLike(bias)), wantedPower), wantedShare)

	square := DivScalar(Square(info.EnergyError), d)
	most := BroadcastToShape(MulScalar(wanted, mostError), square.Shape())
	usable := Equal(info.NonFinite, ZerosLike(square))
	energyError := ReduceAllMean(Where(usable, Min(square, most), most))
	factor := Pow(Div(wanted, MaxScalar(energyError, 1e-12)), ConstAs(wanted, 1./6))

	centred := Sub(s.Phi, BroadcastToShape(ExpandAxes(ReduceMean(s.Phi, 0), 0), s.Phi.Shape()))
	radius := Sqrt(MaxScalar(DivScalar(ReduceAllSum(Square(centred)), float64(e.Chains-1)), 1e-30))
	next := m.carrier.pack(s)
	weight := BroadcastToShape(ConvertDType(inputs[1], s.Phi.DType()), s.Phi.Shape())
	next[lapsCentre] = Add(nodes[lapsCentre], Mul(weight, Sub(s.Phi, nodes[lapsCentre])))
	next[lapsBias] = bias
	next[lapsStep] = Mul(h, Min(factor, ConstAs(factor, mostGrowth)))
	next[lapsLength] = MulScalar(radius, lengthShare)
	record := []*Node{h, length, energyError, wanted, bias, ReduceAllSum(info.NonFinite)}
	for i, x := range record {
		record[i] = Reshape(x, 1)
	}
	return next, Concatenate(record, 0)
}

// ensembleBias is 1 less the mean over the chains of the virial -(phi - centre) g / D, with g the gradient. Of draws
// from the target that do not depend on the centres the virial has mean 1 (equipartition), whatever the target's scales
// and correlations, and of J chains on a Gaussian target its mean varies by the root of 2/(J D). A centre is the mean
// of a chain's own way so far. So the virial of a chain that stands still is 0, and chains in modes of their own do no
// harm: about a mean of all chains, as the authors have it, the gradients in narrow modes far apart would drown all
// else.
func ensembleBias(s State, centre *Node) *Node {
	virials := DivScalar(compute.RowSums(Mul(Sub(s.Phi, centre), s.Gradient)), float64(centre.Shape().Dim(1)))
	return OnePlus(ReduceAllMean(ClipScalar(compute.Finite(virials), -mostVirial, mostVirial)))
}

// result has the chains' places as its draws.
func (e *ensemble) result(at *fit.Trail[LAPSRecord]) (*fit.Result, error) {
	if at.Status == run.Cancelled {
		return &fit.Result{Status: at.Status}, nil
	}
	host, err := at.Host(phiName)
	if err != nil {
		return nil, fmt.Errorf("mcmc: %w", err)
	}
	d := &LAPSDetails{Unadjusted: at.Records}
	if n := len(at.Records); n > 0 {
		d.Converged = converged(at.Records[n-1])
	}
	return &fit.Result{
		Status: at.Status, Elapsed: at.Elapsed, Details: []any{d},
		Draws: bayes.Draws{Phi: host[phiName], LogWeights: bayes.EqualLogWeights(e.Chains)},
	}, nil
}

// The adjusted phase.
const (
	fewestTransitions = 10 // of its warm-up, and as many of its draws
)

// adjusted are the chains of the second phase. Steps of a transition go about as far as the ensemble's radius, as far
// as there are steps for enough transitions.
func (l LAPS) adjusted(j *fit.Job, d *LAPSDetails, phi *tensors.Tensor, dim int) (Chains, error) {
	all := newMoments(dim)
	if err := all.add(phi); err != nil {
		return Chains{}, fmt.Errorf("mcmc: %w", err)
	}
	scale, square := all.scales(), 0.
	for _, s := range scale {
		square += s * s / float64(dim)
	}
	made := len(d.Unadjusted)
	last := d.Unadjusted[made-1]
	step := last.StepSize / math.Sqrt(square)
	steps := math.Sqrt(float64(dim)) / step
	steps = math.Ceil(max(2, min(steps, float64(made)/(2*fewestTransitions))))
	transitions := max(fewestTransitions, made/int(2*steps))
	c := Chains{
		Kernel: MicrocanonicalHMC{Steps: int(steps), together: true}, Chains: l.Chains, Draws: l.Draws + 1,
		Thin: (transitions + l.Draws) / (l.Draws + 1), WarmUp: transitions, FixedScale: true,
		Tuned: Tuned{StepSize: step, Scale: scale}, together: true,
	}
	if j.Observe != nil {
		c.observe = func(draws int, now *Draws) error {
			if draws < 2 {
				return nil
			}
			p, err := j.PosteriorOf(l.last(now), bayes.Provenance{})
			if err != nil {
				return err
			}
			return j.Observe(draws-1, p)
		}
	}
	return c, nil
}

// last are the draws of all chains but the first of each, with which the others are compared; also that one if there is
// no other.
func (l LAPS) last(all *Draws) bayes.Draws {
	draws := all.between(min(1, all.PerChain-1), all.PerChain).equal()
	draws.Chains = 0
	return draws
}

// ensembleRHat is LAPSDetails.RHat, and its WorstRHat.
func ensembleRHat(all *Draws) (mean, worst float64, err error) {
	if all.PerChain < 2 {
		return math.NaN(), math.NaN(), nil
	}
	both := diag.Sample{Chains: 2, Draws: all.Chains, Parameters: all.Dim}
	for _, draw := range []int{(all.PerChain - 1) / 2, all.PerChain - 1} {
		for chain := range all.Chains {
			both.Values = append(both.Values, all.At(chain, draw)...)
		}
	}
	chains, err := diag.New(both)
	if err != nil {
		return 0, 0, fmt.Errorf("mcmc: %w", err)
	}
	for k := range all.Dim {
		r, err := chains.RHat(k)
		if err != nil {
			return 0, 0, fmt.Errorf("mcmc: %w", err)
		}
		mean, worst = mean+r/float64(all.Dim), max(worst, r)
	}
	return mean, worst, nil
}

// warnings lists what makes the draws doubtful.
func (d *LAPSDetails) warnings(l LAPS) (all []string) {
	if last := d.Unadjusted[len(d.Unadjusted)-1]; !d.Converged {
		all = append(all, fmt.Sprintf("the unadjusted phase had not converged after %d steps: the ensemble's bias was %.3g, "+
			"where %.3g is small; take more Steps, or begin nearer to the target", len(d.Unadjusted), last.Bias, mostBias))
	}
	if most := 1 + 4/float64(l.Chains); d.RHat > max(diag.MaxRHat, most) {
		all = append(all, fmt.Sprintf("the ensemble still changed in the adjusted phase: R-hat is %.3f in the mean over the "+
			"coordinates, and up to %.3f, where chance explains %.3f; take more Steps, or more Draws", d.RHat, d.WorstRHat,
			max(diag.MaxRHat, most)))
	}
	return all
}
