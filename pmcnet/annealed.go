package pmcnet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file is the form of adaptive importance sampling that works on networks, top to bottom: its settings, what it
// says of itself, and its six steps in their order. Step 2's order of the units is in order.go, step 3's mixture in
// student.go, step 5 in bridge.go, and which estimate is the result in choose.go.

// Annealed is importance sampling from a mixture that is fitted to the particles of tempered sequential Monte Carlo. It
// is the algorithm that nil stands for, and the zero value of every field works. Its steps are
//
//  1. SMC: a tempered SMC sampler (package smc) moves particles from the prior to the posterior, and estimates the
//     evidence with a standard error;
//  2. order: each particle is put into canonical order (hidden units sorted, signs of tanh units flipped), so that the
//     mixture has to fit one of the posterior's |G| identical images, not all (see the package comment);
//  3. fit: a mixture q of Student-t distributions is fitted to the particles, with one wide component for regions that
//     the particles have missed;
//  4. weighting: new draws of q get the weights w = pi(theta) / q(theta) in canonical order, 0 otherwise. The evidence
//     is |G| times the mean of w; the weights of the result are Pareto-smoothed;
//  5. bridge: if these weights cannot be trusted, or contradict the SMC, a second SMC sampler moves particles from q to
//     the posterior through q^(1-power) pi^power. In many dimensions weights degenerate if q is wrong by some
//     hundredths of its scale in each coordinate; the bridge is then short, and ends at the exact posterior. It is left
//     out where it would begin further away than the prior is;
//  6. choice: the result is one of the three estimates, by the rule in the package comment. Result.Annealed says which,
//     and what each estimator gives.
//
// The SMC moves particles until their correlation with their starting points is small (smc.Settings.Correlation). It is
// waste-free only if Sampling.WasteFree is set: waste-free chains have a fixed length, and if they do not mix within
// it, as on many networks, neither the posterior nor the error of the evidence can be estimated from them.
//
// If the ladder of powers of the first SMC stalls (smc.ErrStalled), the result is returned with the error. It has the
// particles at the power reached, which are not draws of the posterior, the status run.Stopped and no evidence.
//
// Given the mixture, the weighted draws and their evidence do not depend on the moves of the SMC. But all three
// estimates miss a part of the posterior that no particle of the first SMC has found and the mixture does not cover.
//
// It needs a target with separate prior and likelihood (smc.Factored), as those of Fit are. Most of the cost is the
// first SMC's. The rest is Draws evaluations, J M D^2 multiplications for each iteration of the fit of M components to
// J particles, and the bridge, if it is run: on boston half of the SMC's evaluations with two hidden units, three times
// as many with two layers of 4.
type Annealed struct {
	Kernel mcmc.Kernel // of the SMC's moves and the bridge's; default smc.DefaultKernel()
	// Sampling are the settings of the SMC; default 2000 particles and, at each temperature, as many moves as
	// smc.Settings.Correlation asks for. Its Seed, DType, Engine, Devices, checkpoint fields and Progress must be left
	// out: those of Settings hold.
	Sampling smc.Settings

	// Unordered leaves out step 2: the particles are not put into canonical order.
	Unordered bool
	// Components is the number of Student-t components, without the wide one. At most one for each particle. Default 0: 1,
	// 2, 4, 8 and 16 are tried in turn, while the log-density at a fifth of the particles, held out from the fit,
	// increases.
	Components int
	// Covariance is the form of the components' scale matrices: FullCovariance, or LowRankCovariance with 20 columns, or D
	// - 1 if that is less. Default full if there are at least 4 D particles, else low rank.
	Covariance Covariance
	Draws      int // number of draws of the mixture, N; default 5000
	// Bridge says when step 5 is run; default BridgeIfNeeded. The bridge has the settings of Sampling, except Ladder.
	Bridge Bridging
}

var _ Algorithm = Annealed{}

// LowRankCovariance is U U' + diag(s^2), with U of a few columns.
const LowRankCovariance Covariance = "low rank+diagonal"

// The mixture: the wide component's share of the draws, its degrees of freedom, and by how much it is wider than all
// particles; the columns of low rank covariances; and the most components that are tried.
const (
	wideShare      = 0.1
	wideDoF        = 4
	inflation      = 1.2
	mostColumns    = 20
	mostComponents = 16
)

// Title implements Algorithm.
func (Annealed) Title() string {
	return "importance sampling from a mixture fitted to the particles of tempered sequential Monte Carlo"
}

// MarshalJSON writes what decides the draws.
func (a Annealed) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"kernel": fmt.Sprintf("%T", a.Kernel), "kernel_settings": a.Kernel, "sampling": a.Sampling.Record(),
		"unordered": a.Unordered, "components": a.Components, "covariance": a.Covariance, "draws": a.Draws,
		"bridge": a.Bridge,
	})
}

// Prepare implements Algorithm.
func (a Annealed) Prepare(job *Job) (Algorithm, error) {
	if a.Kernel == nil {
		a.Kernel = smc.DefaultKernel()
	}
	err := limits.Fill("pmcnet: Annealed", limits.Int("Sampling.Particles", &a.Sampling.Particles, 2000),
		limits.Field("Sampling.Devices", a.Sampling.Devices, a.Sampling.Devices == 0,
			"left out: set Settings.Devices, which holds for all of the algorithm"))
	if err != nil {
		return nil, err
	}
	a.Sampling.Devices = job.Devices
	if a.Sampling, err = a.Sampling.Within("pmcnet: Annealed", smc.Settings{
		Seed: job.Seed, DType: job.DType, Engine: job.Engine, Progress: job.Progress,
		Checkpoint: job.Checkpoint, CheckpointEvery: job.CheckpointEvery, Replace: job.Replace,
	}); err != nil {
		return nil, err
	}
	p, covariance := job.Problem, FullCovariance
	if a.Sampling.Particles < 4*p.Dim {
		covariance = LowRankCovariance
	}
	if err := limits.Fill("pmcnet: Annealed",
		limits.Int("Components", &a.Components).Zero("chosen").Between(1, a.Sampling.Particles).Because(
			"the number of Sampling.Particles that they are fitted to"),
		limits.Choice("Covariance", &a.Covariance, covariance, FullCovariance, LowRankCovariance),
		limits.Int("Draws", &a.Draws, 5000).From(100),
		limits.Choice("Bridge", &a.Bridge, BridgeIfNeeded, BridgeIfNeeded, BridgeAlways, NoBridge),
		limits.Field("Sampling.Tempering", a.Sampling.Tempering, a.Sampling.Tempering == smc.LikelihoodTempering,
			"smc.LikelihoodTempering"),
		limits.Field("Initial", "nil", p.Initial != nil,
			"a function that draws from the prior, of which it begins; PMC{} can begin at Problem.Start"),
		limits.Field("Start", "set", p.Start == nil,
			"nil: Annealed begins at draws from the prior, by Problem.Initial; take PMC{} to begin at Problem.Start"),
	); err != nil {
		return nil, err
	}
	if err := limits.Check("pmcnet: Annealed", limits.Numbers("Draws", a.Draws, a.Draws, p.Dim)); err != nil {
		return nil, err
	}
	return a, factored(job)
}

// factored is an error where the job's target does not know prior and likelihood apart.
func factored(job *Job) error {
	var err error
	failed := probe(job.Engine, job.Problem, func(target mcmc.Target) {
		if _, ok := target.(smc.Factored); !ok {
			err = fmt.Errorf("pmcnet: Problem.Target gives a %T, of which prior and likelihood are not known apart: Annealed, "+
				"which nil means, tempers the likelihood; give the target as an smc.Posterior, or take pmcnet.PMC{}", target)
		}
	})
	return cmp.Or(failed, err)
}

// annealing is a run of Annealed.
type annealing struct {
	Annealed
	*Job
	order order
	said  Estimates
	// evaluated is how many draws of the mixture were, and wrong how many of these have a log-density of NaN or +Inf.
	evaluated, wrong int
	// earlier is the time of the bridge's earlier sessions.
	earlier time.Duration
}

// Sample implements Algorithm.
func (a Annealed) Sample(ctx context.Context, job *Job) (*Result, error) {
	r := &annealing{Annealed: a, Job: job, order: order{why: "the problem is not known to be a network"}}
	switch {
	case a.Unordered:
		r.order.why = "Annealed.Unordered is set"
	case job.Data != nil:
		r.order = newOrder(job.Data.Bound)
	}
	// (1)
	particles, failed := r.temper(ctx)
	if particles == nil {
		return nil, failed
	}
	begun := time.Now()
	var result *Result
	var err error
	if particles.Status == run.Completed {
		result, err = r.weighed(ctx, particles)
	} else {
		result, err = r.unchecked(particles, particles.Status, fmt.Sprintf("the run ended at power %.3g of the likelihood, "+
			"on the way to the posterior: the draws are those of the prior times the likelihood to that power, and no "+
			"evidence is stated", reached(particles)))
	}
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	result.Elapsed = particles.Elapsed + r.earlier + time.Since(begun)
	if r.Observe != nil && result.Status == run.Completed {
		posterior, err := r.posterior(result)
		if err != nil {
			return nil, err
		}
		if err := r.Observe(1, posterior); err != nil {
			result.Status, failed = run.Stopped, errors.Join(failed, fmt.Errorf("pmcnet: Settings.Observe: %w", err))
		}
	}
	return result, failed
}

// weighed is steps 2 to 6. A cancelled context leaves the SMC's particles, without an evidence.
func (r *annealing) weighed(ctx context.Context, particles *smc.Result) (*Result, error) {
	flat, err := compute.Float64s(particles.Phi)
	if err != nil {
		return nil, fmt.Errorf("pmcnet: %w", err)
	}
	x := mat.NewDense(particles.LogWeights.Len(), r.Problem.Dim, flat)
	original := mat.DenseCopyOf(x)
	r.order.learn(x) // (2)
	q, draws, err := r.approximated(ctx, x, particles)
	if err == nil && r.said.Outside > mostOutside {
		r.order = order{why: fmt.Sprintf("only %.2g of the draws of a mixture fitted in canonical order are in it",
			1-r.said.Outside)}
		x = original
		q, draws, err = r.approximated(ctx, x, particles)
	}
	var across *mat.Dense
	if err == nil && r.bridges(len(q) > 0, draws) {
		across, err = r.bridge(ctx, q) // (5)
		if err != nil && ctx.Err() == nil && !notItsFile(err) {
			r.said.NoBridge, err = err.Error(), nil
		}
	}
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return r.unchecked(particles, run.Cancelled, "the run was cancelled before the SMC's particles were checked")
	case err != nil:
		return nil, err
	}
	return r.choose(particles, x, draws, across), nil // (6)
}

// mostOutside is the share of the mixture's draws outside the canonical region above which there is no such region: of
// many units it has so many edges that a mixture does not fit between them.
const mostOutside = .95

// approximated is steps 3 and 4; the mixture is empty where none can be fitted to particles, the rows of x.
func (r *annealing) approximated(
	ctx context.Context, x *mat.Dense, particles *smc.Result,
) (mixture, weightedDraws, error) {
	r.said.Order, r.said.LogImages = r.order.why, r.order.logImages
	q, err := r.fitted(ctx, x, particles.LogWeights.Weights()) // (3)
	if err != nil || len(q) == 0 {
		r.said.unweighed(fmt.Sprintf("no mixture could be fitted to %d particles in %d dimensions: their covariance is not "+
			"positive definite, or they are too few", particles.LogWeights.Len(), r.Problem.Dim))
		return nil, weightedDraws{}, err
	}
	theta, logWeights, err := r.weigh(ctx, q) // (4)
	if err != nil {
		return nil, weightedDraws{}, err
	}
	draws, err := r.judge(theta, logWeights)
	return q, draws, err
}

// temper is step 1: particles of the posterior by SMC through powers of the likelihood. A run that is cancelled before
// the posterior has none; one that an error has stopped there, such as a ladder that stalls, has those of the power
// that it got to, beside the error.
func (r *annealing) temper(ctx context.Context) (*smc.Result, error) {
	sampler, giveBack, err := r.sampler.annealed.Take(r.kind(), func() (*smc.Sampler, error) {
		return &smc.Sampler{Kernel: r.Kernel}, nil
	})
	if err != nil {
		return nil, err
	}
	defer giveBack()
	sampler.Problem = r.Problem
	if sampler.Problem.Name, err = r.name(); err != nil {
		return nil, err
	}
	particles, err := sampler.Sample(ctx, r.Sampling)
	if err != nil {
		err = fmt.Errorf("pmcnet: %w", err)
	}
	if particles == nil {
		return nil, err
	}
	if particles.Status == run.Cancelled {
		return nil, errors.Join(err, fmt.Errorf("pmcnet: the run ended at power %.3g of the likelihood, on the way to the "+
			"posterior, of which there are no draws yet: %w", reached(particles),
			cmp.Or(context.Cause(ctx), particles.Status.Err())))
	}
	r.said.SMC = particles
	r.said.SMCEvidence = bayes.Evidence{Value: particles.LogEvidence, StdErr: particles.LogEvidenceStdErr}
	return particles, err
}

// reached is the power of the likelihood that particles have come to.
func reached(particles *smc.Result) float64 {
	if n := len(particles.Trace); n > 0 {
		return particles.Trace[n-1].Place
	}
	return 0
}

// annealedKind is what a compiled SMC sampler depends on, beside the problem and its own settings.
type annealedKind struct {
	engine *compute.Engine
	dtype  compute.DType
	kernel string
}

func (r *annealing) kind() annealedKind {
	return annealedKind{engine: r.Engine, dtype: r.DType, kernel: compute.KeyOf(r.Kernel)}
}

// name is the problem's with all else that must agree with a checkpoint, which is the SMC's: steps 2 to 5 follow from
// its particles and the seed, and are made again.
func (r *annealing) name() (string, error) {
	algorithm, err := json.Marshal(r.Annealed)
	if err != nil {
		return "", fmt.Errorf("pmcnet: %T cannot be written as JSON: %w", r.Kernel, err)
	}
	parts, err := r.identified([]run.Part{
		{Name: "problem", Value: r.Problem.Name}, {Name: "algorithm", Value: string(algorithm)},
	})
	if err != nil {
		return "", fmt.Errorf("pmcnet: %w", err)
	}
	name := "pmcnet: annealed"
	for _, p := range parts {
		name += fmt.Sprintf("; %s: %s", p.Name, p.Value)
	}
	return name, nil
}

// rank is that of low rank + diagonal covariances, 0 of full ones.
func (r *annealing) rank() int {
	if r.Covariance == LowRankCovariance {
		return max(1, min(mostColumns, r.Problem.Dim-1))
	}
	return 0
}

// fitted is step 3: a mixture of t distributions fitted to particles, the rows of x, [J, D], with their weights, [J],
// and a wide one; empty where none can be fitted.
func (r *annealing) fitted(ctx context.Context, x *mat.Dense, weights []float64) (mixture, error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x66697474))
	f := fitting{rank: r.rank()}
	wide, ok := f.component(x, weights, slices.Repeat([]float64{1}, len(weights)), wideDoF)
	if !ok {
		return nil, nil
	}
	n := r.Components
	if n == 0 {
		var err error
		if n, err = f.components(ctx, x, weights, rng); err != nil {
			return nil, err
		}
	}
	q, err := f.fit(ctx, x, weights, n, rng)
	if err != nil || len(q) == 0 {
		return nil, err
	}
	r.said.Components, r.said.Dropped, r.said.DoF = len(q), n-len(q), q[0].dof
	for k := range q {
		q[k].share *= 1 - wideShare
	}
	wide.share = wideShare
	wide.widen(inflation)
	return append(q, wide), nil
}

// components is the number of components, 1, 2, 4, .., under which a fifth of the particles is most probable when the
// mixture is fitted to the others; as soon as more of them are no better, it stops.
func (f fitting) components(ctx context.Context, x *mat.Dense, weights []float64, rng *rand.Rand) (int, error) {
	rows, d := x.Dims()
	order := rng.Perm(rows)
	part := func(of []int) (*mat.Dense, []float64) {
		some, w := mat.NewDense(len(of), d, nil), make([]float64, len(of))
		for i, j := range of {
			some.SetRow(i, x.RawRowView(j))
			w[i] = weights[j]
		}
		floats.Scale(1/floats.Sum(w), w)
		return some, w
	}
	apart := max(1, rows/5)
	if rows < 2 {
		return 1, nil
	}
	held, ofHeld := part(order[:apart])
	others, ofOthers := part(order[apart:])
	best, chosen := math.Inf(-1), 1
	for n := 1; n <= mostComponents; n *= 2 {
		q, err := f.fit(ctx, others, ofOthers, n, rng)
		if err != nil {
			return 0, err
		}
		if len(q) < n {
			break
		}
		score := floats.Dot(q.logDensity(held), ofHeld)
		if score <= best {
			break
		}
		best, chosen = score, n
	}
	return chosen, nil
}

// weigh is step 4: draws of the mixture, [N, D], so many of each component as its share says, and the logs of w =
// pi(theta) / q(theta), [N]: -Inf outside the canonical region, and where pi is not finite.
func (r *annealing) weigh(ctx context.Context, q mixture) (theta *mat.Dense, logWeights []float64, err error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x64726177))
	for k, count := range q.counts(r.Draws) { // The share in q is that of the draws: so the mean of w is unbiased.
		q[k].share = float64(count) / float64(r.Draws)
	}
	theta = q.draws(rng, r.Draws)
	r.asKept(theta)
	logPi, err := r.logDensities(ctx, theta)
	if err != nil {
		return nil, nil, err
	}
	logWeights = q.logDensity(theta)
	floats.SubTo(logWeights, logPi, logWeights)
	outside := 0
	r.said.NonFinite, r.wrong = 0, 0
	for j := range logWeights {
		finite := !math.IsInf(logPi[j], 0) && !math.IsNaN(logPi[j])
		inside := r.order.inside(theta.RawRowView(j))
		if !finite || !inside {
			logWeights[j] = math.Inf(-1)
		}
		if !finite {
			r.said.NonFinite++
		}
		if !finite && !math.IsInf(logPi[j], -1) {
			r.wrong++
		}
		if !inside {
			outside++
		}
	}
	r.said.Outside = float64(outside) / float64(r.Draws)
	return theta, logWeights, nil
}

// asKept rounds draws to the type that they are kept in, in which they are evaluated.
func (r *annealing) asKept(x *mat.Dense) {
	if r.DType == compute.Float32 {
		x.Apply(func(_, _ int, v float64) float64 { return float64(float32(v)) }, x)
	}
}

// draws are n draws, [n, D], of one component after another, so many as their shares say.
func (m mixture) draws(rng *rand.Rand, n int) *mat.Dense {
	d := len(m[0].mean)
	x, from := mat.NewDense(n, d, nil), 0
	for k, count := range m.counts(n) {
		if count > 0 {
			m[k].draw(rng, x.Slice(from, from+count, 0, d).(*mat.Dense))
			from += count
		}
	}
	return x
}

// counts are how many of n draws are of each component: its share of n, rounded so that they sum to n (by the largest
// remainders).
func (m mixture) counts(n int) []int {
	counts, rest := make([]int, len(m)), make([]float64, len(m))
	left := n
	for k, s := range m {
		exact := s.share * float64(n)
		counts[k] = int(exact)
		rest[k] = float64(counts[k]) - exact
		left -= counts[k]
	}
	order := make([]int, len(m))
	floats.ArgsortStable(rest, order)
	for i := range left {
		counts[order[i%len(m)]]++
	}
	return counts
}

// logDensities are the target's at draws, [N, D]: evaluated in one compiled program, so many draws at a time.
func (r *annealing) logDensities(ctx context.Context, theta *mat.Dense) ([]float64, error) {
	rows, d := theta.Dims()
	const most = 1000 // at a time
	chunk := min(rows, most)
	program, giveBack, err := r.densities(chunk)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	state := compute.NewState(r.Engine)
	defer state.Close()
	if err := setData(state, r.Problem); err != nil {
		return nil, err
	}
	var out []float64
	for from := 0; from < rows; from += chunk {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := make([]float64, chunk*d) // the last part is filled up with zeros
		for i := range min(chunk, rows-from) {
			copy(part[i*d:], theta.RawRowView(from+i))
		}
		values, err := program.Run(state, compute.Floats(r.DType, part, chunk, d))
		if err != nil {
			return nil, fmt.Errorf("pmcnet: the log-density of the mixture's draws: %w", err)
		}
		out = append(out, values[:min(chunk, rows-from)]...)
		r.evaluated = len(out)
		if r.Progress != nil {
			r.Progress(run.Progress{Stage: "importance sampling", Step: len(out), Steps: rows})
		}
	}
	return out, nil
}
