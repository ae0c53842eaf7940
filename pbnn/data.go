package pbnn

import (
	"encoding/json"
	"fmt"

	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Data is a job with its number of chains. A Sampler makes its problem from it, by MiniBatches or AllRows.
type Data struct {
	*fit.Job
	Chains int // J
}

// MiniBatches is the problem of sampling a target by M mini-batches of n rows. Each mini-batch is drawn without
// replacement, anew for each move. The problem's target is a density.MiniBatchTarget, whose Differences are -d_i of eq.
// 24. All chains use the same rows.
func (d *Data) MiniBatches(of FromMiniBatches, size, batches int) (density.Problem, error) {
	x, y, psi, err := d.tensors()
	if err != nil {
		return density.Problem{}, err
	}
	data, err := density.RowTensors(d.Engine, d.Bound, x, y, psi)
	if err != nil {
		return density.Problem{}, fmt.Errorf("pbnn: %w", err)
	}
	problem, likelihood, err := d.problem(of, size*batches, data)
	if err != nil {
		return problem, err
	}
	rows, points := d.Rows(), of.EffectivePoints(d.Rows())
	problem.Name += fmt.Sprintf(", %d mini-batches of %d rows", batches, size)
	problem.BatchShare = float64(size*batches) / float64(rows)
	problem.Target = func(data compute.Nodes, _ []*graph.Node) density.Target {
		return miniBatches{
			likelihood: likelihood, points: points, rows: rows, size: size, batches: batches, data: data,
		}
	}
	return problem.Keyed("pbnn", d.Bound.ProgramKey(), "mini-batches", likelihood.Plan, points, rows, size, batches), nil
}

// AllRows is the problem of sampling a target by all rows.
func (d *Data) AllRows(of Target) (density.Problem, error) {
	x, y, psi, err := d.tensors()
	if err != nil {
		return density.Problem{}, err
	}
	data := map[string]*tensors.Tensor{"y": y}
	if psi != nil {
		data["psi"] = psi
	}
	if data["features"], err = density.Features(d.Engine, d.Bound, d.DType, x, psi); err != nil {
		return density.Problem{}, fmt.Errorf("pbnn: %w", err)
	}
	problem, likelihood, err := d.problem(of, d.Rows(), data)
	if err != nil {
		return problem, err
	}
	points := of.EffectivePoints(d.Rows())
	tempered := density.Tempered(likelihood, points)
	problem.Target = func(data compute.Nodes, _ []*graph.Node) density.Target {
		return density.At(tempered, data["psi"], density.Batch{Features: data["features"], Y: data["y"]})
	}
	return problem.Keyed("pbnn", d.Bound.ProgramKey(), "all rows", likelihood.Plan, points), nil
}

// tensors returns the standardised rows, x [N, d] and y [N], and psi [W], nil if nothing is shared.
func (d *Data) tensors() (x, y, psi *tensors.Tensor, err error) {
	if x, y, err = d.Tensors(d.DType, d.Parts.Train); err == nil {
		psi, err = d.Shared()
	}
	return x, y, psi, err
}

// problem is the problem without its target, and the likelihood of all chains on the given number of rows at once.
func (d *Data) problem(
	of Target, rows int, data map[string]*tensors.Tensor,
) (density.Problem, density.Likelihood, error) {
	model, err := json.Marshal(d.Bound.Model)
	if err != nil {
		return density.Problem{}, density.Likelihood{}, fmt.Errorf("pbnn: the model: %w", err)
	}
	plan := density.NewPlan(d.Bound, d.DType, density.Workload{Particles: d.Chains, Rows: rows, Devices: d.Devices})
	return density.Problem{
		Name: fmt.Sprintf("%s of the model %s", of, model), Dim: d.Bound.D, Data: data,
		Initial: d.Bound.SamplePrior, Climb: &density.Climb{},
	}, density.Likelihood{Model: d.Bound, Plan: plan}, nil
}
