package pmcnet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/diag"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// running is a run of PMC.
type running struct {
	PMC
	*fit.Job
	*programs
	problem density.Problem
}

// Run implements fit.Method.
func (a PMC) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	loop, err := a.loop(ctx, j)
	if err != nil {
		return nil, err
	}
	return loop.Run(ctx, j)
}

// loop are the iterations of a PMC, as Prepare gave it.
func (a PMC) loop(ctx context.Context, j *fit.Job) (*fit.Loop[IterationRecord], error) {
	const atOnce = 5000 // about the number of draws evaluated at once: it decides the chunks
	problem, err := j.Density(atOnce)
	if err != nil {
		return nil, err
	}
	if err := limits.Check("pmcnet: Problem",
		limits.Field("Initial", "nil", problem.Initial != nil || problem.Start != nil,
			"a function that draws from the prior"),
		limits.Field("Inputs", "set", problem.Inputs == nil && problem.HostInputs == nil,
			"nil, as HostInputs: the target must be the same throughout"),
	); err != nil {
		return nil, err
	}
	r := &running{PMC: a, Job: j, problem: problem}
	draws := a.Proposals * a.Draws
	return &fit.Loop[IterationRecord]{
		Format: "gobnn.pmcnet/6", Steps: a.Iterations, ObserveEvery: 1,
		Begin: r.begin, Data: []string{density.DataPrefix, startName},
		Step: func(ctx context.Context, at *fit.Trail[IterationRecord]) error {
			return at.Record(r.iterate(ctx, at.State(), at.Step))
		},
		Progress: func(at *fit.Trail[IterationRecord]) (p run.Progress) {
			if n := len(at.Records); n > 0 {
				last := at.Records[n-1]
				p.Scores = []run.Score{
					{Name: "ESS", Value: last.ESS}, {Name: KHat, Value: last.KHat},
					{Name: LogEvidenceCurve, Value: last.stated(draws)},
				}
			}
			return p
		},
		Result: func(at *fit.Trail[IterationRecord]) (*fit.Result, error) { return r.result(ctx, at) },
	}, nil
}

// begin prepares the programs, and gives the state with the data and the means where they begin.
func (r *running) begin(ctx context.Context) (state *compute.State, release func(), err error) {
	startAt, err := r.startsAt(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.programs, release, err = r.compiled(startAt); err != nil {
		return nil, nil, err
	}
	state = compute.NewState(r.Engine)
	if err := r.problem.Load(state); err != nil {
		return state, release, fmt.Errorf("pmcnet: %w", err)
	}
	if startAt != nil {
		state.Set(startName, startAt)
	}
	trial, err := r.start.Run(state, random.KeyOf(r.Seed).Named("pmcnet start").Words())
	if err == nil {
		err = r.tried.Check(trial)
	}
	if err != nil {
		return state, release, fmt.Errorf("pmcnet: %w", err)
	}
	return state, release, nil
}

// startsAt is where the means begin, [M, D], or [1, D] for all: Problem.Start, or a maximum; nil: where Problem.Initial
// draws.
func (r *running) startsAt(ctx context.Context) (*tensors.Tensor, error) {
	if r.Start != FromPrior {
		return r.maximum(ctx)
	}
	start := r.problem.Start
	if start == nil {
		return nil, nil
	}
	if want := shapes.Make(r.DType, r.Proposals, r.problem.Dim); !start.Shape().Equal(want) {
		return nil, fmt.Errorf("pmcnet: Problem.Start is %s: it must be %s, a mean for each proposal", start.Shape(), want)
	}
	return start.LocalClone()
}

// maximum finds the maximum of the likelihood over all parameters, [1, D], by Adam.
func (r *running) maximum(ctx context.Context) (*tensors.Tensor, error) {
	start := *r.Job
	start.Settings, start.Observe = r.Within("start"), nil
	result, err := start.RunFirst(ctx, baseline.MLE{Training: baseline.Training{BatchSize: r.BatchSize}})
	if err == nil {
		err = result.Status.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("pmcnet: finding the %s to begin at: %w", r.Start, err)
	}
	draws, err := result.Posterior.Draws()
	if err != nil {
		return nil, err
	}
	return draws.Phi, nil
}

// iterate makes an iteration.
func (r *running) iterate(_ context.Context, state *compute.State, made int) (i IterationRecord, err error) {
	begun := time.Now()
	t := made + 1
	isGlobal := 0.
	if r.Resampling > 0 && t%int(r.Resampling) == 0 {
		isGlobal = 1
	}
	inputs := []float64{forgetting, 1 / float64(t), isGlobal}
	record, err := r.step.Run(state, inputs, random.KeyOf(r.Seed).Named("pmcnet").At(uint32(t)).Words())
	if err != nil {
		return i, err
	}
	honest := record[recordHead:]
	i = IterationRecord{
		Distinct: record[inDistinct] / float64(r.Proposals), Exponent: record[inExponent],
		Replaced: int(record[inReplaced]), NonFinite: int(record[inNonFinite]), Wrong: int(record[inWrong]),
	}
	w, err := bayes.NewLogWeights(honest)
	if err != nil {
		return i, fmt.Errorf("%w: %d of %d draws have a log-density that is not finite; begin elsewhere (PMC.Start), or "+
			"with another PMC.StdDev", err, i.NonFinite, len(honest))
	}
	if r.Ascent == MiniBatchAscent {
		if err := r.epoch(state, t); err != nil {
			return i, err
		}
	}
	i.ESS, i.KHat = w.EffectiveSampleSize(), kHat(w)
	i.LogEvidence, i.LogEvidenceStdErr = smc.LogEvidence(honest)
	i.Seconds = time.Since(begun).Seconds()
	return i, nil
}

// epoch is PMCnet-light's step of the means: each mini-batch once, in an order drawn anew.
func (r *running) epoch(state *compute.State, t int) error {
	batches := (r.rows + r.batchSize - 1) / r.batchSize
	for _, b := range rand.New(rand.NewPCG(r.Seed, uint64(t))).Perm(batches) {
		if _, err := r.batch.Run(state, []int32{int32(b * r.batchSize)}); err != nil {
			return err
		}
	}
	return nil
}

// kHat returns the k-hat of weights; NaN where there is no tail to estimate it from.
func kHat(w bayes.LogWeights) float64 {
	s, err := diag.PSIS(w, 1)
	if err != nil {
		return math.NaN()
	}
	return s.KHat
}
