package annealed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// This file is the algorithm, top to bottom: its six steps in the order of their numbers. Settings are in settings.go,
// the doubts about a result in doubts.go, the mixture in student.go, the order of the units in order.go.

// annealing is a run of Annealed.
type annealing struct {
	Annealed
	*fit.Job
	problem density.Problem
	order   order
	details Details
	// Of the draws of the mixture: the share that is not in canonical order, and the numbers of those whose log-density is
	// not finite, and of those where it is NaN or +Inf.
	outside          float64
	nonFinite, wrong int
}

// Run implements fit.Method.
func (a Annealed) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	const atOnce = 5000 // about the number of draws evaluated at once: it decides the chunks
	problem, err := j.Density(atOnce)
	if err != nil {
		return nil, err
	}
	if err := checkProblem(problem, j.Engine); err != nil {
		return nil, err
	}
	r := &annealing{Annealed: a, Job: j, problem: problem, order: newOrder(j.Bound)}
	particles, err := r.temper(ctx) // (1)
	if err != nil {
		return nil, err
	}
	result, err := r.checked(ctx, particles) // (2) to (6)
	if err != nil || r.Observe == nil {
		return result, err
	}
	posterior, err := r.PosteriorOf(result.Draws, bayes.Provenance{})
	if err != nil {
		return nil, err
	}
	if err := r.Observe(1, posterior); err != nil {
		result.Status = run.Stopped
		return result, fmt.Errorf("annealed: Settings.Observe: %w", err)
	}
	return result, nil
}

// checked is steps 2 to 6.
func (r *annealing) checked(ctx context.Context, particles *fit.Result) (*fit.Result, error) {
	x, err := r.matrix(particles)
	if err != nil {
		return nil, err
	}
	original := mat.DenseCopyOf(x)
	r.order.learn(x) // (2)
	q, draws, err := r.approximated(ctx, x, particles)
	if err == nil && r.outside > mostOutside {
		r.order = order{}
		x = original
		q, draws, err = r.approximated(ctx, x, particles)
	}
	if err != nil {
		return nil, err
	}
	var across *mat.Dense
	if len(q) > 0 && r.bridges(draws.theta != nil) {
		across, err = r.bridge(ctx, q) // (5)
		if err != nil && (ctx.Err() != nil || notItsFile(err)) {
			return nil, err
		}
		if err != nil {
			r.details.NoBridge = err.Error()
		}
	}
	return r.choose(particles, x, draws, across), nil // (6)
}

// mostOutside is the largest share of the mixture's draws that may lie outside the canonical region. Above it the
// result has no canonical order: with many units the region has too many edges for a mixture to fit between them.
const mostOutside = .95

// approximated is steps 3 and 4; the mixture is empty where none can be fitted to particles, the rows of x.
func (r *annealing) approximated(
	ctx context.Context, x *mat.Dense, particles *fit.Result,
) (mixture, weightedDraws, error) {
	weights, err := bayes.NewLogWeights(particles.Draws.LogWeights)
	if err != nil {
		return nil, weightedDraws{}, fmt.Errorf("annealed: %w", err)
	}
	q, err := r.fitted(ctx, x, weights.Weights()) // (3)
	if err != nil || len(q) == 0 {
		r.details.unweighed(unfitted(len(weights), r.problem.Dim))
		return nil, weightedDraws{}, err
	}
	theta, logWeights, err := r.weigh(ctx, q) // (4)
	if err != nil {
		return nil, weightedDraws{}, err
	}
	draws, err := r.judge(theta, logWeights)
	return q, draws, err
}

// temper is step 1: particles of the posterior by SMC through powers of the likelihood.
func (r *annealing) temper(ctx context.Context) (*fit.Result, error) {
	particles, err := r.RunStage(ctx, fit.Stage{Name: "smc", Method: r.SMC, Problem: r.problem, Inner: true})
	if err == nil {
		err = particles.Status.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("annealed: the SMC that leads to the posterior: %w", errors.Join(err, context.Cause(ctx)))
	}
	r.details.tempered, r.details.SMCEvidence = particles, particles.Draws.Evidence
	return particles, nil
}

// fitted is step 3: a mixture of t distributions fitted to particles, the rows of x, [J, D], with their weights, [J],
// and a wide one; empty where none can be fitted.
func (r *annealing) fitted(ctx context.Context, x *mat.Dense, weights []float64) (mixture, error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x66697474))
	wide, ok := component(x, weights, slices.Repeat([]float64{1}, len(weights)), wideDoF)
	if !ok {
		return nil, nil
	}
	n := r.Components
	if n == 0 {
		var err error
		if n, err = components(ctx, x, weights, rng); err != nil {
			return nil, err
		}
	}
	q, err := fitMixture(ctx, x, weights, n, rng)
	if err != nil || len(q) == 0 {
		return nil, err
	}
	for k := range q {
		q[k].share *= 1 - wideShare
	}
	wide.share = wideShare
	wide.lower.ScaleTri(inflation, wide.lower)
	return append(q, wide), nil
}

// components is the number of components, 1, 2, 4, .., under which a fifth of the particles is most probable when the
// mixture is fitted to the others; as soon as more of them are no better, it stops.
func components(ctx context.Context, x *mat.Dense, weights []float64, rng *rand.Rand) (int, error) {
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
		q, err := fitMixture(ctx, others, ofOthers, n, rng)
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

// weigh is step 4. It draws from the mixture, [N, D], from each component its share of N, and returns the logs of w =
// pi(theta) / q(theta), [N]. These are -Inf outside the canonical region, and where pi is not finite.
func (r *annealing) weigh(ctx context.Context, q mixture) (theta *mat.Dense, logWeights []float64, err error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x64726177))
	for k, count := range q.counts(r.Draws) { // q has the share of the draws, so that the mean of w is unbiased
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
	r.nonFinite, r.wrong = 0, 0
	for j := range logWeights {
		finite := !math.IsInf(logPi[j], 0) && !math.IsNaN(logPi[j])
		inside := r.order.inside(theta.RawRowView(j))
		if !finite || !inside {
			logWeights[j] = math.Inf(-1)
		}
		if !finite {
			r.nonFinite++
		}
		if !finite && !math.IsInf(logPi[j], -1) {
			r.wrong++
		}
		if !inside {
			outside++
		}
	}
	r.outside = float64(outside) / float64(r.Draws)
	return theta, logWeights, nil
}

// asKept rounds draws to the type that they are kept in, in which they are evaluated.
func (r *annealing) asKept(x *mat.Dense) {
	if r.DType == compute.Float32 {
		x.Apply(func(_, _ int, v float64) float64 { return float64(float32(v)) }, x)
	}
}

// logDensities evaluates the target's log-density at draws, [N, D], up to 1000 at a time.
func (r *annealing) logDensities(ctx context.Context, theta *mat.Dense) ([]float64, error) {
	rows, _ := theta.Dims()
	e, err := density.NewEvaluator("annealed", r.Engine, r.problem, nil, r.DType, true)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	values, err := e.At(ctx, "log-density of the mixture's draws", theta, min(rows, 1000),
		func(target density.Target, _ compute.Nodes, phi *graph.Node) *graph.Node {
			return target.LogDensity(phi)
		})
	if report := r.Settings.Progress; err == nil && report != nil {
		report(run.Progress{Stage: "importance sampling", Step: rows, Steps: rows})
	}
	return values, err
}

// weightedDraws are step 4's, [N, D], with smoothed weights; theta is nil where these cannot be trusted.
type weightedDraws struct {
	theta      *mat.Dense
	logWeights []float64
}

// unknown is an evidence that is not known.
var unknown = bayes.Evidence{Value: math.NaN(), StdErr: math.NaN()}

// unweighed says why there are no weighted draws.
func (e *Details) unweighed(why string) {
	e.ImportanceEvidence, e.BridgeEvidence, e.why = unknown, unknown, why
	e.KHat, e.kHatStdErr, e.ESS = math.NaN(), math.NaN(), math.NaN()
}

// judge says whether draws of the mixture can be trusted, by their log-weights, [N], and what they give.
func (r *annealing) judge(theta *mat.Dense, logWeights []float64) (draws weightedDraws, err error) {
	details := &r.details
	honest, err := bayes.NewLogWeights(logWeights)
	if err != nil {
		details.unweighed(r.weightless())
		details.ESS = 0
		return draws, nil
	}
	details.unweighed("")
	details.ESS = honest.EffectiveSampleSize()
	s, err := diag.PSIS(honest, 1)
	switch {
	case err == nil:
		details.KHat, details.kHatStdErr = s.KHat, (1+s.KHat)/math.Sqrt(float64(s.Tail))
	case !errors.Is(err, diag.ErrNoTail):
		return draws, fmt.Errorf("annealed: %w", err)
	}
	if details.KHat <= pmcnet.MaxKHat {
		e := &details.ImportanceEvidence
		e.Value, e.StdErr = smc.LogEvidence(logWeights)
		e.Value += r.order.logImages
	}
	if details.why = r.verdict(); details.KHat <= pmcnet.MaxKHat && details.ESS >= fewDraws {
		draws.theta, draws.logWeights = theta, s.LogWeights
	}
	return draws, nil
}

// fewDraws is the least effective sample size of weighted draws that can be the result.
const fewDraws = 100

// safeKHat is the k-hat above which the weights' distribution has no finite variance, so that what is stated as the
// standard error of their mean says nothing.
const safeKHat = .5

// haveVariance says whether the weights' distribution has a variance, even if k-hat is too low by its standard error.
// Without this margin some runs state an evidence that is too low by several of their errors.
func (e *Details) haveVariance() bool { return e.KHat+e.kHatStdErr <= safeKHat }

// bridges says whether step 5 is to be made, beside weighted draws that can be trusted or without such.
func (r *annealing) bridges(weighted bool) bool {
	details := &r.details
	agree := apart(details.ImportanceEvidence, details.SMCEvidence) <= mostApart
	needed := !weighted || !details.haveVariance() || !agree
	return r.Bridge == BridgeAlways || r.Bridge == bridgeIfNeeded && needed
}

// mostApart is the largest difference of two estimates of the evidence, in its standard errors, at which they still
// agree.
const mostApart = 3

// apart returns the difference of two estimates in units of its standard error; 0 where one is not known.
func apart(a, b bayes.Evidence) float64 {
	if !a.Known() || !b.Known() {
		return 0
	}
	return math.Abs(a.Value-b.Value) / math.Hypot(a.StdErr, b.StdErr)
}

// bridge is step 5: SMC from the mixture, restricted to the canonical region R, to the posterior. Its particles, [J,
// D], are put into canonical order. All images are alike, so with m the mixture's share in R it begins at the mixture's
// density over m |G|. The evidence is then m |G| times the SMC's.
func (r *annealing) bridge(ctx context.Context, q mixture) (*mat.Dense, error) {
	sampler := r.SMC
	sampler.Ladder = nil
	start, share, err := r.inOrder(ctx, q, sampler.Particles)
	if err != nil {
		return nil, err
	}
	result, err := r.RunStage(ctx, fit.Stage{
		Name: "bridge", Method: sampler, Problem: r.bridgeProblem(q, start),
		Seed:  r.Seed ^ 0x9e3779b97f4a7c15 - r.Seed, // other random numbers than step 1
		Inner: true,
	})
	switch {
	case err != nil:
		return nil, err
	case result.Status != run.Completed:
		return nil, fmt.Errorf("annealed: the bridge: %w", errors.Join(result.Status.Err(), context.Cause(ctx)))
	}
	x, err := r.matrix(result)
	if err != nil {
		return nil, err
	}
	for j := range sampler.Particles {
		r.order.apply(x.RawRowView(j))
	}
	e := result.Draws.Evidence
	r.details.bridged, r.details.BridgeEvidence = result, bayes.Evidence{
		Value:  e.Value + math.Log(share) + r.order.logImages,
		StdErr: math.Hypot(e.StdErr, math.Sqrt((1-share)/float64(sampler.Particles))),
	}
	return x, nil
}

// mostTries is the largest number of draws of the mixture made for each wanted draw in canonical order.
const mostTries = 50

// inOrder draws from the mixture until n draws are in canonical order, [n, D]. share is their share of all draws,
// which end at the n-th: (n - 1)/(tried - 1) would have no bias, that of n/tried is at most 1/n of it.
func (r *annealing) inOrder(ctx context.Context, q mixture, n int) (x *mat.Dense, share float64, err error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x62726964))
	x = mat.NewDense(n, r.problem.Dim, nil)
	found, tried := 0, 0
	for found < n {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if tried >= mostTries*n {
			return nil, 0, fmt.Errorf("of %d draws of the mixture only %d are in canonical order", tried, found)
		}
		some := q.draws(rng, n)
		r.asKept(some)
		for _, j := range rng.Perm(n) { // draws come component after component
			tried++
			if !r.order.inside(some.RawRowView(j)) {
				continue
			}
			x.SetRow(found, some.RawRowView(j))
			if found++; found == n {
				break
			}
		}
	}
	return x, float64(found) / float64(tried), nil
}

// notItsFile says whether the bridge could not begin because of what is in the place of its checkpoint, which is for
// the user to mend, and no fault of the mixture.
func notItsFile(err error) bool {
	return errors.Is(err, run.ErrOtherRun) || errors.Is(err, run.ErrInUse) || errors.Is(err, tensorfile.ErrDamaged)
}

// choose is step 6. x are the SMC's particles, across the bridge's, nil where there is none.
func (r *annealing) choose(particles *fit.Result, x *mat.Dense, draws weightedDraws, across *mat.Dense) *fit.Result {
	details := &r.details
	details.decide(draws.theta != nil)
	var result *fit.Result
	switch details.Source {
	case ByImportance:
		result = r.of(draws.theta, draws.logWeights, details.ImportanceEvidence)
		result.Draws.Diagnostics[fit.ESSCurve] = details.ESS // before smoothing
	case ByBridge:
		result = r.of(across, details.bridged.Draws.LogWeights, details.BridgeEvidence)
	default:
		result = r.of(x, particles.Draws.LogWeights, details.SMCEvidence)
	}
	result.Status = run.Completed
	result.Doubts = append(slices.Clone(particles.Doubts), r.doubts()...)
	return result
}

// decide says which estimator is the result: the first, in the order of how small and how sure their errors are, that
// no other is above by more than three standard errors. An estimate of p(y) with the right mean may have a distribution
// with a long tail. Then it is too low in most runs, which missed a part of the posterior, and far too high in few. So
// of two estimates that contradict each other the higher one has seen more. The SMC counts only where the bridge is
// missing or doubtful: on problems with known evidence where the two differed, the bridge was right each time.
func (e *Details) decide(weighted bool) {
	type candidate struct {
		by Estimator
		bayes.Evidence
	}
	var all []candidate
	add := func(is bool, by Estimator, evidence bayes.Evidence) {
		if is {
			all = append(all, candidate{by, evidence})
		}
	}
	sound := e.bridged != nil && len(e.bridged.Doubts) == 0
	add(weighted && e.haveVariance(), ByImportance, e.ImportanceEvidence)
	add(sound, ByBridge, e.BridgeEvidence)
	add(weighted && !e.haveVariance(), ByImportance, e.ImportanceEvidence)
	add(!sound, BySMC, e.SMCEvidence)
	e.Source = all[slices.IndexFunc(all, func(c candidate) bool {
		return !slices.ContainsFunc(all, func(o candidate) bool {
			return o.Value > c.Value && apart(o.Evidence, c.Evidence) > mostApart
		})
	})].by
	e.why += e.ofBridge() + results[e.Source]
}

// of is the result that draws are, the rows of x, with their log-weights and evidence.
func (r *annealing) of(x *mat.Dense, logWeights []float64, e bayes.Evidence) *fit.Result {
	ess := math.NaN()
	if weights, err := bayes.NewLogWeights(logWeights); err == nil {
		ess = weights.EffectiveSampleSize()
	}
	sum, powers := 0., fit.Details[*smc.Details](r.details.tempered).Trace
	return &fit.Result{
		Draws: bayes.Draws{
			Phi: r.rows(x), LogWeights: logWeights, Evidence: e,
			Diagnostics: map[string]float64{pmcnet.KHat: r.details.KHat, fit.ESSCurve: ess},
		},
		Curves: []fit.Curve{
			fit.NewCurve(fit.ESSCurve, powers, func(t smc.StepRecord) float64 { return t.ESS }),
			fit.NewCurve(pmcnet.LogEvidenceCurve, powers, func(t smc.StepRecord) float64 {
				sum += t.LogEvidence
				return sum
			}),
		},
		Details: []any{&r.details},
	}
}

// matrix are the draws of a result, [J, D].
func (r *annealing) matrix(particles *fit.Result) (*mat.Dense, error) {
	flat, err := compute.Float64s(particles.Draws.Phi)
	if err != nil {
		return nil, fmt.Errorf("annealed: %w", err)
	}
	return mat.NewDense(len(particles.Draws.LogWeights), r.problem.Dim, flat), nil
}

// rows returns the rows of x as a tensor, [J, D].
func (r *annealing) rows(x *mat.Dense) *tensors.Tensor {
	rows, d := x.Dims()
	return compute.Floats(r.DType, x.RawMatrix().Data, rows, d)
}
