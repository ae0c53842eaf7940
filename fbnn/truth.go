package fbnn

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// This file compares the emulator with the truth: on the held-out pairs before the sampling, and at emulated states
// after it.

// judge computes a candidate's errors on the held-out pairs.
type judge struct {
	*ces
	head     head
	held     *mat.Dense // [H, D]
	gradient *mat.Dense // [H, D], of the true log-likelihood
}

func (r *ces) newJudge(ctx context.Context, h head) (j *judge, err error) {
	from := r.pairs.learnt
	j = &judge{ces: r, head: h, held: mat.DenseCopyOf(r.pairs.theta.Slice(from, r.Pairs, 0, r.Bound.D))}
	j.gradient, err = r.truth.gradient(ctx, j.held)
	r.spent.FullGradients += r.Pairs - from
	return j, err
}

// errors returns the errors of a candidate.
func (j *judge) errors(ctx context.Context, candidate *predictor) (Errors, error) {
	e, err := newEvaluator(j.job, j.emulatedProblem(j.head, candidate))
	if err != nil {
		return Errors{}, err
	}
	defer e.Close()
	predicted, err := e.at(ctx, "emulated scores", j.held, func(target density.Target, theta *graph.Node) *graph.Node {
		return target.(emulated).scoresAt(theta)
	})
	if err != nil {
		return Errors{}, err
	}
	phi, err := e.potential(ctx, j.held)
	if err != nil {
		return Errors{}, err
	}
	gradient, err := e.gradient(ctx, j.held)
	if err != nil {
		return Errors{}, err
	}
	bad := 0
	for i, v := range phi {
		if !finite(v) || slices.ContainsFunc(predicted.RawRowView(i), func(v float64) bool { return !finite(v) }) {
			bad++
		}
	}
	if bad > 0 {
		return Errors{}, fmt.Errorf("%w: what it predicts is not finite at %d of %d held-out pairs: look at its settings "+
			"(CES.Regressor)", ErrEmulator, bad, len(phi))
	}
	count, rank := predicted.Dims()
	scores := j.head.scores().Slice(j.pairs.learnt, j.Pairs, 0, rank).(*mat.Dense)
	missed, spread, mean := 0., 0., make([]float64, rank)
	for i := range count {
		floats.AddScaled(mean, 1/float64(count), scores.RawRowView(i))
	}
	for i := range count {
		rest := j.head.missed(j.pairs.learnt + i)
		missed += rest + square(floats.Distance(predicted.RawRowView(i), scores.RawRowView(i), 2))
		spread += rest + square(floats.Distance(mean, scores.RawRowView(i), 2))
	}
	truth := j.gradient.RawMatrix().Data
	return Errors{
		R2: 1 - missed/spread, Phi: floats.Distance(phi, j.pairs.phi[j.pairs.learnt:], 2) / math.Sqrt(float64(count)),
		Gradient: floats.Distance(gradient.RawMatrix().Data, truth, 2) / floats.Norm(truth, 2),
	}, nil
}

func square(x float64) float64 { return x * x }

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

const (
	checked    = 100 // states of the sampling at which the true Phi is evaluated, or all if there are fewer
	priorDraws = 100 // by which Phi under the prior is estimated
)

// compare evaluates the true Phi at states of the sampling, and adds doubts to the result.
func (r *ces) compare(ctx context.Context, result *fit.Result, cheap density.Problem, outputs *outputsHead) error {
	ctx = context.WithoutCancel(ctx) // the draws of a cancelled run are compared too
	draws := r.details.Sampling.Draws
	all := draws.Chains * draws.PerChain
	count := min(all, checked)
	states := mat.NewDense(count, draws.Dim, nil)
	for i := range count {
		at := ((2*i + 1) * all) / (2 * count)
		states.SetRow(i, draws.At(at/draws.PerChain, at%draws.PerChain))
	}
	emulator, err := newEvaluator(r.job, cheap)
	if err != nil {
		return err
	}
	defer emulator.Close()
	t := &r.details.Truth
	truth, err := r.truth.potential(ctx, states)
	if err != nil {
		return err
	}
	predicted, err := emulator.potential(ctx, states)
	if err != nil {
		return err
	}
	var trues, emulateds []float64
	for i := range truth {
		if finite(truth[i]) && finite(predicted[i]) {
			trues, emulateds = append(trues, truth[i]), append(emulateds, predicted[i])
		} else {
			t.nonFinite++
		}
	}
	t.states = count
	t.True, t.Emulated = stat.Mean(trues, nil), stat.Mean(emulateds, nil)
	t.RMS = floats.Distance(trues, emulateds, 2) / math.Sqrt(float64(len(trues)))
	t.Calibration, t.calibrationStdDev = stat.PopMeanStdDev(r.pairs.phi, nil)
	if t.Prior, err = r.priorPotential(ctx); err != nil {
		return err
	}
	if err := r.ess(draws); err != nil {
		return err
	}
	r.spent.Full += count + priorDraws
	r.spent.Partial += count
	r.account()
	if r.PaperMode {
		if r.details.emulated, err = r.paperPrediction(ctx, emulator, outputs); err != nil {
			return err
		}
	}
	r.doubt(result)
	return nil
}

// priorPotential is the median of Phi over draws from the prior.
func (r *ces) priorPotential(ctx context.Context) (float64, error) {
	drawn, err := r.initial(priorDraws)
	if err != nil {
		return 0, err
	}
	phi, err := r.truth.potential(ctx, drawn)
	if err != nil {
		return 0, err
	}
	slices.Sort(phi)
	return stat.Quantile(.5, stat.Empirical, phi, nil), nil
}

// account sums up the evaluations of all steps.
func (r *ces) account() {
	e := r.spent
	e.Partial += r.details.Sampling.Evaluations.Partial
	e.PartialGradients += r.details.Sampling.Evaluations.PartialGradients
	e.PartialShare = r.details.Sampling.Evaluations.PartialShare
	c := r.calibrationCost()
	e.Full, e.FullGradients = e.Full+c.Full, e.FullGradients+c.FullGradients
	if s := r.details.Sampling.Evaluations; r.corrected() {
		e.Full += s.Full
		e.FullGradients += s.FullGradients
	} else { // its target is the emulator
		e.Partial += s.Full
		e.PartialGradients += s.FullGradients
	}
	r.details.Evaluations = e
}

// calibrationCost counts the evaluations of the network on all rows by the calibration's chain and its climb.
func (r *ces) calibrationCost() (e mcmc.Evaluations) {
	c := r.details.Calibration
	moves := c.Moves + c.WarmUpMoves
	perMove := 1.
	climb := r.problem.ClimbSteps()
	if r.Calibration.Traits().Carries == mcmc.CarriesNothing {
		perMove = float64(r.BatchSize) / float64(r.Rows())
		e.FullGradients += int(math.Ceil(perMove * float64(moves+climb)))
	} else {
		if r.Calibration.Traits().Carries == mcmc.CarriesGradient {
			e.FullGradients += moves
		} else {
			e.Full += moves
		}
		if p, ok := r.Calibration.(mcmc.PreconditionedCrankNicolson); !ok || p.Beta > 0 {
			e.FullGradients += climb
		}
	}
	return e
}

// ess returns the effective sample sizes of at most 200 coordinates' means, evenly spaced.
func (r *ces) ess(draws *mcmc.Draws) error {
	t := &r.details.Truth
	t.medianESS, t.minESS = math.NaN(), math.NaN()
	if draws.PerChain < 4 {
		return nil
	}
	count := min(200, draws.Dim)
	values := make([]float64, count*draws.Chains*draws.PerChain)
	for i := range count {
		for chain, column := range draws.Coordinate(i * draws.Dim / count) {
			for draw, v := range column {
				values[(chain*draws.PerChain+draw)*count+i] = v
			}
		}
	}
	summary, err := diag.OfSample(diag.Sample{
		Values: values, Chains: draws.Chains, Draws: draws.PerChain, Parameters: count,
	})
	if err != nil {
		return fmt.Errorf("fbnn: %w", err)
	}
	var ess []float64
	for _, r := range summary.Rows {
		if finite(r.BulkESS) {
			ess = append(ess, r.BulkESS)
		}
	}
	if slices.Sort(ess); len(ess) > 0 {
		t.minESS, t.medianESS = ess[0], stat.Quantile(.5, stat.Empirical, ess, nil)
	}
	return nil
}

// paperPrediction returns the weights with which the pairs' outputs add up to the emulator's output at each draw. They
// follow from row = mean + sum_r z_r sum_j combine_jr (row_j - mean), with z = size * scores.
func (r *ces) paperPrediction(
	ctx context.Context, e *evaluator, outputs *outputsHead,
) (*emulatedPrediction, error) {
	theta := drawnPlaces{r.details.Sampling.Draws}
	scores, err := e.at(ctx, "emulated scores", theta, func(target density.Target, theta *graph.Node) *graph.Node {
		return target.(emulated).scoresAt(theta)
	})
	if err != nil {
		return nil, err
	}
	draws, _ := scores.Dims()
	learnt := r.pairs.learnt
	var some mat.Dense
	some.Mul(scores, outputs.combine.T()) // [S, T]
	weights := mat.NewDense(draws, r.Pairs, nil)
	for s := range draws {
		row := some.RawRowView(s)
		floats.Scale(outputs.size, row)
		floats.AddConst((1-floats.Sum(row))/float64(learnt), row)
		copy(weights.RawRowView(s), row)
	}
	pairs, err := r.PosteriorOf(bayes.Draws{
		Phi: r.details.Calibration.Draws.Tensor(), LogWeights: bayes.EqualLogWeights(r.Pairs), Chains: 1,
	}, bayes.Provenance{Status: "pairs of the calibration"})
	return &emulatedPrediction{pairs: pairs, weights: weights, chains: r.Chains}, err
}

// initial draws from the prior, [n, D].
func (j *job) initial(n int) (*mat.Dense, error) {
	drawn, err := graph.CallOnce(j.Engine.Backend(), func(g *graph.Graph) *graph.Node {
		return j.problem.Initial(random.New(g, j.Seed).Named("prior"), j.DType, n)
	})
	if err != nil {
		return nil, fmt.Errorf("fbnn: draws from the prior: %w", err)
	}
	defer finalize(drawn)
	return matrixOf(drawn)
}

func finalize(t *tensors.Tensor) { t.FinalizeAll() } //nolint:errcheck // freeing a tensor that was read
