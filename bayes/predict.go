package bayes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// predictRows is how many rows are evaluated at once: one shape, so one compilation.
const predictRows = 1024

// Predict evaluates every particle on raw features x, [N, d], and returns all outputs, [J, N, C]. Where these would not fit in
// memory, use PredictBatches.
func (p *Posterior) Predict(ctx context.Context, x *mat.Dense) (Prediction, error) {
	rows, _ := x.Dims()
	var whole Prediction
	for part, err := range p.PredictBatches(ctx, x, predictRows) {
		if err != nil {
			return Prediction{}, err
		}
		if whole.Outputs == nil {
			whole = part
			if part.Rows == rows {
				return part, nil
			}
			whole.Rows = 0
			whole.Outputs = make([]float64, part.Particles*rows*part.Width)
		}
		for j := range part.Particles {
			copy(whole.Outputs[(j*rows+whole.Rows)*part.Width:], part.Outputs[j*part.Rows*part.Width:(j+1)*part.Rows*part.Width])
		}
		whole.Rows += part.Rows
	}
	return whole, nil
}

// PredictBatches yields the predictions for x, [N, d], in order, at most `rows` rows at a time. It ends with the first
// error; a cancelled context is one.
func (p *Posterior) PredictBatches(ctx context.Context, x *mat.Dense, rows int) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		if err := p.predictBatches(ctx, x, rows, func(part Prediction) bool { return yield(part, nil) }); err != nil {
			yield(Prediction{}, err)
		}
	}
}

func (p *Posterior) predictBatches(ctx context.Context, x *mat.Dense, rows int, yield func(Prediction) bool) error {
	total, dims := x.Dims()
	if dims != p.bound.Inputs {
		return fmt.Errorf("bayes: x has shape [%d, %d], but the model was trained on %d features %v", total, dims, p.bound.Inputs, p.origin.FeatureNames)
	}
	if rows < 1 {
		return fmt.Errorf("bayes: predicting %d rows at a time: it must be at least 1", rows)
	}
	for i := range total {
		for k, v := range x.RawRowView(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("bayes: x at row %d, %s is %v: replace or drop it", i, p.featureName(k), v)
			}
		}
	}
	scaled := x
	if len(p.origin.Features.Mean) > 0 {
		var err error
		if scaled, err = p.origin.Features.Apply(x); err != nil {
			return err
		}
	}
	engine, err := p.origin.Engine.Or()
	if err != nil {
		return err
	}
	noise, err := p.noise()
	if err != nil {
		return err
	}
	rows = min(rows, total)
	build := p.compilePredict
	if p.Linearised() {
		rows, build = min(rows, p.linearisedRows()), p.compileLinearised
	}
	exec, err := build(engine, rows)
	if err != nil {
		return err
	}
	defer exec.Finalize()
	copied, err := p.copies()
	if err != nil {
		return err
	}
	parameters := slices.DeleteFunc(copied[:], func(t *tensors.Tensor) bool { return t == nil })
	defer func() {
		for _, t := range parameters {
			t.FinalizeAll() //nolint:errcheck // freeing what this call made
		}
	}()
	weights := p.logWeights.Weights()
	for from := 0; from < total; from += rows {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("bayes: prediction stopped at row %d of %d: %w", from, total, err)
		}
		count := min(rows, total-from)
		outputs, err := p.run(exec, parameters, scaled.Slice(from, from+count, 0, dims).(*mat.Dense), rows)
		if err != nil {
			return fmt.Errorf("bayes: predicting rows %d to %d: %w", from, from+count, err)
		}
		part := Prediction{
			Task: p.bound.Model.Likelihood.Task(), Outputs: outputs, Particles: p.Particles(), Rows: count, Width: p.bound.Outputs,
			Chains: p.chains, Weights: weights, NoiseStdDev: noise, TargetMean: p.origin.Target.Mean, TargetStdDev: p.origin.Target.StdDev,
		}
		if !yield(part) {
			return nil
		}
	}
	return nil
}

func (p *Posterior) featureName(column int) string {
	if column < len(p.origin.FeatureNames) {
		return fmt.Sprintf("column %q", p.origin.FeatureNames[column])
	}
	return fmt.Sprintf("column %d", column)
}

// copies are phi, psi and where the network is linearised, for one call, nil what there is not: a tensor that has been on a device stays bound to it, and the
// posterior's own must not.
func (p *Posterior) copies() (copies [3]*tensors.Tensor, err error) {
	for i, t := range []*tensors.Tensor{p.phi, p.psi, p.expansionPoint} {
		if t == nil {
			continue
		}
		if copies[i], err = t.LocalClone(); err != nil {
			return copies, err
		}
	}
	return copies, nil
}

// compilePredict builds x, phi, psi to outputs [J, C, rows] in chunks of particles.
func (p *Posterior) compilePredict(engine *compute.Engine, rows int) (*graph.Exec, error) {
	bytes := int64(2*p.bound.SuffixWidth()*rows) * int64(p.phi.DType().Size())
	plan, err := compute.NewPlan(p.Particles(), bytes, 0)
	if err != nil {
		return nil, err
	}
	return graph.NewExec(engine.Backend(), func(args []*graph.Node) *graph.Node {
		x, phi := args[0], args[1]
		var psi *graph.Node
		if len(args) > 2 {
			psi = args[2]
		}
		shared := p.bound.Unpack(nil, psi, func(s Slot) bool { return !s.Stochastic })
		h := p.bound.Prefix(shared, x)
		var parts []*graph.Node
		for from, to := range plan.All() {
			chunk := phi
			if plan.Chunks() > 1 {
				chunk = graph.Slice(phi, graph.AxisRange(from, to))
			}
			if len(parts) > 0 {
				chunk = compute.Barrier(chunk, parts[len(parts)-1])
			}
			leaves := p.bound.Unpack(nn.Block(chunk, 1), nil, func(s Slot) bool { return s.Stochastic })
			for name, leaf := range shared {
				leaves[name] = leaf
			}
			out := p.bound.Suffix(leaves, h)
			if out.PerParticle {
				parts = append(parts, graph.Squeeze(out.Node, -1))
			} else {
				parts = append(parts, graph.BroadcastPrefix(out.Node, to-from))
			}
		}
		if len(parts) == 1 {
			return parts[0]
		}
		return graph.Concatenate(parts, 0)
	})
}

// run evaluates one block of standardised rows, padded to `rows`, and lays the outputs out as [J, count, C] in raw units.
func (p *Posterior) run(exec *graph.Exec, parameters []*tensors.Tensor, x *mat.Dense, rows int) ([]float64, error) {
	count, dims := x.Dims()
	padded := make([]float64, rows*dims)
	for i := range count {
		copy(padded[i*dims:], x.RawRowView(i))
	}
	args := []any{compute.Floats(p.phi.DType(), padded, rows, dims)}
	for _, t := range parameters {
		args = append(args, t)
	}
	results, err := exec.Call(args...)
	if err != nil {
		return nil, err
	}
	defer results[0].FinalizeAll() //nolint:errcheck // freeing a tensor that was read
	raw, err := compute.Float64s(results[0])
	if err != nil {
		return nil, err
	}
	width := p.bound.Outputs
	outputs := make([]float64, p.Particles()*count*width)
	for j := range p.Particles() {
		for c := range width {
			for n := range count {
				v := raw[(j*width+c)*rows+n]
				if p.bound.Model.Likelihood.Task() == Regression {
					v = p.origin.Target.Mean + p.origin.Target.StdDev*v
				}
				outputs[(j*count+n)*width+c] = v
			}
		}
	}
	return outputs, nil
}

func shapeOf(like *tensors.Tensor, dims []int) shapes.Shape {
	return shapes.Make(like.DType(), dims...)
}

// copyColumns copies `columns` columns of each of `rows` rows between matrices of the given widths and of one type.
func copyColumns(to *tensors.Tensor, toWidth, toColumn int, from *tensors.Tensor, fromWidth, fromColumn, rows, columns int) error {
	if to.DType() != from.DType() {
		return fmt.Errorf("parameters of types %s and %s do not go together", to.DType(), from.DType())
	}
	size := int(to.DType().Size())
	var inner error
	err := to.MutableBytes(func(target []byte) {
		inner = from.ConstBytes(func(source []byte) {
			for r := range rows {
				copy(target[(r*toWidth+toColumn)*size:][:columns*size], source[(r*fromWidth+fromColumn)*size:][:columns*size])
			}
		})
	})
	return errors.Join(err, inner)
}
