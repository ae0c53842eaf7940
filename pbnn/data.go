package pbnn

import (
	"cmp"
	"encoding/json"
	"fmt"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Data is a model with its checked and standardised data (see fit.Data) and the settings of a run. A Sampler makes its
// problem from it, by MiniBatches or AllRows.
type Data struct {
	// Data has no Parts.Train if the rows are held elsewhere (FitHeld), and no Trained if chains begin at draws from the
	// prior.
	*fit.Data
	// Sampling has the run's settings, with the number of chains, the type of the numbers and the engine filled in.
	Sampling mcmc.Settings

	x, y *tensors.Tensor // [N, d] and [N]
	// features has the outputs of the layers before the first stochastic one, [N, width]; nil if there are no such
	// layers. columns is the transpose, [width, N], the layout in which the network takes all rows.
	features, columns *tensors.Tensor
	psi               *tensors.Tensor // [W], nil if nothing is shared
	start             *tensors.Tensor // [J, D]: where chains begin; nil: at draws from the prior, after a climb
	rows              int             // N
	names             bayes.Origin    // of rows that are held elsewhere: see Held
}

// prepare fills in the settings and puts the data into tensors.
func (d *Data) prepare() error {
	if err := d.fillIn(); err != nil {
		return err
	}
	if d.Parts.Train == nil { // the rows are held elsewhere
		if d.Trained == nil {
			return nil
		}
		return d.begin()
	}
	d.rows = d.Rows()
	var err error
	if d.x, d.y, err = d.Tensors(d.Sampling.DType, d.Parts.Train); err != nil {
		return err
	}
	if d.Trained == nil {
		return nil
	}
	if err := d.begin(); err != nil || !d.Bound.HasPrefix() {
		return err
	}
	if err := d.findColumns(); err != nil {
		return err
	}
	transpose := func(x *graph.Node) *graph.Node { return graph.Transpose(x, 0, 1) }
	if d.features, err = graph.CallOnce(d.Sampling.Engine.Backend(), transpose, d.columns); err != nil {
		return fmt.Errorf("pbnn: features of the shared layers: %w", err)
	}
	return nil
}

// fillIn fills in the number of chains, the type of the numbers and the engine.
func (d *Data) fillIn() (err error) {
	s := &d.Sampling
	if s.Engine == nil && d.Trained != nil {
		s.Engine = d.Trained.Engine()
	}
	if s.Engine, err = s.Engine.Or(); err != nil {
		return err
	}
	s.Chains = cmp.Or(s.Chains, 4)
	s.DType = cmp.Or(s.DType, compute.Float32)
	return nil
}

// begin takes psi from the trained posterior, and the chains' starting points from its particles.
func (d *Data) begin() (err error) {
	s := d.Sampling
	if d.psi, d.start, err = density.ChainStarts(d.Trained, s.DType, max(1, s.Chains), s.Seed); err != nil {
		return fmt.Errorf("pbnn: %w", err)
	}
	return nil
}

// findColumns evaluates the layers before the first stochastic one for all rows.
func (d *Data) findColumns() (err error) {
	if d.columns != nil {
		return nil
	}
	if d.columns, err = density.Features(d.Sampling.Engine, d.Bound, d.x, d.psi); err != nil {
		return fmt.Errorf("pbnn: %w", err)
	}
	return nil
}

// MiniBatches is the problem of sampling a target by M mini-batches of n rows. Each mini-batch is drawn without
// replacement, anew for each move. The problem's target is a density.MiniBatchTarget, whose Differences are -d_i of eq.
// 24. All chains use the same rows.
func (d *Data) MiniBatches(of FromMiniBatches, size, batches int) (density.Problem, error) {
	problem, likelihood, err := d.problem(of, size*batches, d.tensors())
	if err != nil {
		return problem, err
	}
	problem.Name += fmt.Sprintf(", %d mini-batches of %d rows", batches, size)
	problem.BatchShare = float64(size*batches) / float64(d.rows)
	rows, points := d.rows, of.EffectivePoints(d.rows)
	problem.Target = func(data compute.Nodes, _ []*graph.Node) density.Target {
		return miniBatches{
			likelihood: likelihood, points: points, rows: rows, size: size, batches: batches, data: data,
		}
	}
	return problem, nil
}

// AllRows is the problem of sampling a target by all rows.
func (d *Data) AllRows(of FromAllRows) (density.Problem, error) {
	if err := d.findColumns(); err != nil { // no rows are gathered
		return density.Problem{}, err
	}
	problem, likelihood, err := d.problem(of, d.rows, d.with("features", d.columns))
	if err != nil {
		return problem, err
	}
	tempered := density.Tempered{Likelihood: likelihood, Points: of.EffectivePoints(d.rows)}
	problem.Target = func(data compute.Nodes, _ []*graph.Node) density.Target {
		return density.At(tempered, data["psi"], density.Batch{Features: data["features"], Y: data["y"]})
	}
	return problem, nil
}

// problem is the problem without its target, and the likelihood of all chains on the given number of rows at once.
func (d *Data) problem(
	of Target, rows int, data map[string]*tensors.Tensor,
) (density.Problem, density.Likelihood, error) {
	model, err := json.Marshal(d.Bound.Model)
	if err != nil {
		return density.Problem{}, density.Likelihood{}, fmt.Errorf("pbnn: the model: %w", err)
	}
	work := density.Workload{Particles: d.Sampling.Chains, Rows: rows, Devices: d.Sampling.Devices}
	plan, err := density.NewPlan(d.Bound, d.Sampling.DType, work)
	if err != nil {
		return density.Problem{}, density.Likelihood{}, fmt.Errorf("pbnn: %w", err)
	}
	problem := density.Problem{
		Name: fmt.Sprintf("%s of the model %s", of, model), Dim: d.Bound.D, Data: data,
		Initial: d.Bound.SamplePrior, Climb: density.NewClimb(d.Bound), Start: d.start,
	}
	return problem, density.Likelihood{Model: d.Bound, Plan: plan}, nil
}

// tensors returns the data, one row each, under the names of miniBatches.data.
func (d *Data) tensors() map[string]*tensors.Tensor {
	if d.features != nil {
		return d.with("features", d.features)
	}
	return d.with("x", d.x)
}

// with returns y, psi, and the inputs under the given name.
func (d *Data) with(name string, inputs *tensors.Tensor) map[string]*tensors.Tensor {
	data := map[string]*tensors.Tensor{name: inputs, "y": d.y}
	if d.psi != nil {
		data["psi"] = d.psi
	}
	return data
}

// batchOf is the rows with the given numbers, int32 [B, 1], or all if there are none.
func batchOf(data compute.Nodes, rows *graph.Node) density.Batch {
	of := func(x *graph.Node) *graph.Node {
		if x == nil || rows == nil {
			return x
		}
		return graph.Gather(x, rows)
	}
	batch := density.Batch{X: of(data["x"]), Y: of(data["y"])}
	if features := of(data["features"]); features != nil {
		batch.Features = graph.Transpose(features, 0, 1)
	}
	return batch
}
