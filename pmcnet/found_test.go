package pmcnet_test

import (
	"context"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/pmcnet"

	"github.com/gomlx/gomlx/core/tensors"
)

// found is a result with its draws and its details.
type found struct {
	*fit.Result
	*pmcnet.Details // empty for another method
	Phi             *tensors.Tensor
	LogWeights      bayes.LogWeights
	Evidence        bayes.Evidence
}

func find(r *fit.Result, err error) (*found, error) {
	if r == nil {
		return nil, err
	}
	f := &found{Result: r, Details: fit.Details[*pmcnet.Details](r), Phi: r.Draws.Phi, Evidence: r.Draws.Evidence}
	if f.Details == nil {
		f.Details = &pmcnet.Details{}
	}
	weights, failed := bayes.NewLogWeights(r.Draws.LogWeights)
	if failed != nil {
		return nil, failed
	}
	f.LogWeights = weights
	return f, err
}

// fitted is fit.Fit.
func fitted(
	ctx context.Context, model bayes.Model, a fit.Method, parts dataset.Parts, settings run.Settings,
) (*found, error) {
	return find(fit.Fit(ctx, model, a, parts, settings))
}

// sampled is fit.Sample.
func sampled(
	ctx context.Context, problem density.Problem, a fit.Method, settings run.Settings,
) (*found, error) {
	return find(fit.Sample(ctx, problem, a, settings))
}

// numbers are a posterior's draws and log-weights.
func numbers(t *testing.T, p *bayes.Posterior) []float64 {
	t.Helper()
	draws, err := p.Draws()
	if err != nil {
		t.Fatal(err)
	}
	phi, err := compute.Float64s(draws.Phi)
	if err != nil {
		t.Fatal(err)
	}
	return append(phi, draws.LogWeights...)
}
