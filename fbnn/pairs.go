package fbnn

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/limits"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// pairs are draws of the calibration in the order of their chain, theta_1 .. theta_J, with Phi at each. The emulator
// learns from the first ones; the last fifth is held out.
type pairs struct {
	theta  *mat.Dense // [J, D]
	phi    []float64  // [J]
	learnt int        // T

	center, scale []float64 // [D]: mean and standard deviation of the learnt pairs; 1 where they are all the same
}

// fewestPairs is the least number of pairs to learn from, and of pairs held out.
const fewestPairs = 10

func newPairs(theta *mat.Dense, phi []float64) (*pairs, error) {
	rows, d := theta.Dims()
	p := &pairs{theta: theta, phi: phi, learnt: rows - rows/5}
	var err error
	p.center, p.scale, err = spread(phi, d, p.learnt, func(i int) []float64 { return mat.Col(nil, i, theta) })
	return p, err
}

// spread is the mean and the standard deviation of each of d coordinates over the first learnt draws; a standard
// deviation is 1 where these are all the same. It is an error if the draws and Phi at them cannot be used. column
// copies a coordinate.
func spread(phi []float64, d, learnt int, column func(i int) []float64) (center, scale []float64, err error) {
	rows := len(phi)
	if rows < fewestPairs {
		return nil, nil, fmt.Errorf("%w: there are %d, of which a fifth is held out: take at least %d", errPairs, rows,
			fewestPairs)
	}
	for i, v := range phi {
		if !(math.Abs(v) <= limits.Float32) {
			return nil, nil, fmt.Errorf("%w: the log-likelihood at pair %d of %d is %.3g: the calibration has left the region "+
				"of finite density; take a smaller step (mcmc.SGHMC.LearningRate), or larger mini-batches (CES.BatchSize)",
				errPairs, i, rows, -v)
		}
	}
	center, scale = make([]float64, d), make([]float64, d)
	moved := 0
	for i := range d {
		center[i], scale[i] = stat.PopMeanStdDev(column(i)[:learnt], nil)
		if scale[i] > 1e-7*math.Abs(center[i]) && scale[i] > 1e-30 {
			moved++
		} else {
			scale[i] = 1
		}
	}
	if moved == 0 {
		return nil, nil, fmt.Errorf("%w: the first %d of %d are all alike: the calibration stands still; take a larger "+
			"step, or more transitions between pairs (CES.PairsThin)", errPairs, learnt, rows)
	}
	return center, scale, nil
}

// digest identifies the pairs' weights, bit by bit. The run's identity does not: the mini-batches of the calibration
// depend on the number of rows of a block, too.
func (p *pairs) digest() run.Part {
	sum := sha256.New()
	binary.Write(sum, binary.LittleEndian, p.theta.RawMatrix().Data) //nolint:errcheck // a hash takes all
	return run.Part{Name: "pairs", Value: hex.EncodeToString(sum.Sum(nil))}
}

// standardised returns the rows of theta minus the centre, divided by the scale.
func (p *pairs) standardised(theta mat.Matrix) *mat.Dense {
	out := mat.DenseCopyOf(theta)
	rows, _ := out.Dims()
	for j := range rows {
		row := out.RawRowView(j)
		floats.Sub(row, p.center)
		floats.Div(row, p.scale)
	}
	return out
}

// components holds the R leading principal components v_1, ..., v_R of J long rows (here the outputs of each pair).
// They are learnt from the first T rows, about their mean:
//
//	row_j = mean + sum_r scores_jr v_r + a rest that is orthogonal to all v
//	v_r = sum_j combine_jr (row_j - mean), over the first T rows
//
// They are computed from the inner products of the rows. The rows themselves, which may have millions of numbers each,
// are not needed.
type components struct {
	scores  *mat.Dense // [J, R]
	combine *mat.Dense // [T, R]
	rest    []float64  // [J]: squared length of each row's rest
	total   float64    // sum of squared distances of the first rows from their mean
}

// newComponents decomposes rows given gram, [J, J], their inner products about the mean of the first `learnt` rows. It
// takes components until at most a share `tolerance` of the variance is left.
func newComponents(gram *mat.SymDense, learnt int, tolerance float64) (*components, error) {
	rows := gram.SymmetricDim()
	var eigen mat.EigenSym
	if ok := eigen.Factorize(gram.SliceSym(0, learnt), true); !ok {
		return nil, fmt.Errorf("%w: the eigenvalues of their inner products cannot be computed", errPairs)
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	c := &components{total: mat.Trace(gram.SliceSym(0, learnt))}
	if !(c.total > 0) || math.IsInf(c.total, 1) {
		return nil, fmt.Errorf("%w: the variance of what the pairs hold is %v", errPairs, c.total)
	}
	rank, kept := 0, 0.
	for rank < learnt-1 && 1-kept/c.total > tolerance {
		v := values[learnt-1-rank]
		if v <= 1e-15*values[learnt-1] {
			break
		}
		kept += v
		rank++
	}
	c.combine = mat.NewDense(learnt, rank, nil)
	for r := range rank {
		v := values[learnt-1-r]
		for j := range learnt {
			c.combine.Set(j, r, vectors.At(j, learnt-1-r)/math.Sqrt(v))
		}
	}
	var scores mat.Dense
	scores.Mul(gram, onto(c.combine, rows))
	c.scores = &scores
	for j := range rows {
		row := c.scores.RawRowView(j)
		c.rest = append(c.rest, max(0, gram.At(j, j)-floats.Dot(row, row)))
	}
	return c, nil
}

// onto pads x, [T, R], with rows of zeros to [J, R].
func onto(x *mat.Dense, rows int) *mat.Dense {
	_, width := x.Dims()
	out := mat.NewDense(rows, width, nil)
	out.Copy(x)
	return out
}

// outputs are the inner products of the pairs' network outputs about their mean over the learnt pairs. They are summed
// over the rows of the data block by block, so that no more than a block is ever in memory. For the likelihood of a
// regression with known noise they include the inner products with the targets.
type outputs struct {
	gram      *mat.SymDense // [J, J]
	residual  []float64     // [J]: (g_j - mean)' (y - mean)
	residual2 float64       // |y - mean|^2
}

// rowsAtOnce returns the number of rows of the data in one evaluation of the pairs' outputs.
func rowsAtOnce(rows, pairs, width int) int {
	return max(1, min(rows, mostOutputs/max(1, pairs*width)))
}

// mostOutputs is the largest number of outputs of a block, of one layer, for all pairs; a variable for the tests.
var mostOutputs = 1 << 21

// blocks evaluates f on all rows of the data, B at a time. f gets three arguments. centred has the outputs of the
// network for all pairs minus their mean over the learnt pairs, [J, W, B] with W outputs a row; mean is this mean, [W,
// B]; y is the standardised target, [W, B] or, for classes, [1, B]. All are 0 in rows of padding, at the end of the
// last block. each is called with the result of f, flat, and the targets of the block.
func (p *pairs) blocks(
	ctx context.Context, job *job, name string, f func(centred, mean, y *Node) *Node,
	each func(values, y []float64),
) error {
	read, err := job.reader()
	if err != nil {
		return err
	}
	bound := job.Bound
	all, d := p.theta.Dims()
	rows, inputs, targets := job.Rows(), bound.Inputs, bound.Targets()
	block := rowsAtOnce(rows, all, bound.SuffixWidth())
	if job.Source != nil {
		block = min(block, blockRows)
	}
	plan := compute.NewPlan(all, int64(2*bound.SuffixWidth()*block)*int64(job.DType.Size()), 0)
	program, err := compute.NewProgram(job.Engine, "fbnn "+name, nil, nil,
		func(_ compute.Nodes, in []*Node) (compute.Nodes, *Node) {
			g := bound.NetworkOutputs(plan, in[1], in[0], nil)
			mean := ReduceMean(Slice(g, AxisRange(0, p.learnt)), 0)
			real := ConvertDType(LessThan(Iota(g.Graph(), mean.Shape(), 1), ConvertDType(in[3], job.DType)), job.DType)
			centred := Mul(Sub(g, ExpandAxes(mean, 0)), ExpandAxes(real, 0))
			out := f(centred, Mul(mean, real), Transpose(in[2], 0, 1))
			return nil, Reshape(out, out.Shape().Size())
		})
	if err != nil {
		return fmt.Errorf("fbnn: %w", err)
	}
	defer program.Close()
	state := compute.NewState(job.Engine)
	defer state.Close()
	theta := compute.Floats(job.DType, p.theta.RawMatrix().Data, all, d)
	for from := 0; from < rows; from += block {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("fbnn: %s: %w", name, err)
		}
		count := min(block, rows-from)
		partX, partY := make([]float64, block*inputs), make([]float64, block*targets)
		if err := read(ctx, from, partX[:count*inputs], partY[:count*targets]); err != nil {
			return fmt.Errorf("fbnn: %s: rows %d to %d: %w", name, from, from+count-1, err)
		}
		values, err := program.Run(state, theta, compute.Floats(job.DType, partX, block, inputs),
			compute.Floats(job.DType, partY, block, targets), float64(count))
		if err != nil {
			return fmt.Errorf("fbnn: %s: %w", name, err)
		}
		each(values, partY[:count*targets])
	}
	return nil
}

// outputs sums the inner products of the pairs' outputs over all rows.
func (p *pairs) outputs(ctx context.Context, job *job) (*outputs, error) {
	all, _ := p.theta.Dims()
	sum := make([]float64, all*all+all+1)
	regression := knownNoise(job.Bound) > 0
	err := p.blocks(ctx, job, "outputs of the pairs", func(centred, mean, y *Node) *Node {
		size := mean.Shape().Size()
		flat := ConvertDType(Reshape(centred, all, size), compute.Float64)
		r := Zeros(flat.Graph(), shapes.Make(compute.Float64, size, 1))
		if regression {
			r = ConvertDType(Reshape(Sub(y, mean), size, 1), compute.Float64)
		}
		gram, residual := Einsum("ik,jk->ij", flat, flat), Einsum("ik,kl->il", flat, r)
		return Concatenate([]*Node{Reshape(gram, all*all), Reshape(residual, all), Reshape(ReduceAllSum(Square(r)), 1)}, 0)
	}, func(values, _ []float64) { floats.Add(sum, values) })
	if err != nil {
		return nil, err
	}
	o := &outputs{gram: mat.NewSymDense(all, nil), residual: sum[all*all : all*all+all], residual2: sum[all*all+all]}
	for i := range all {
		for j := range i + 1 {
			v := (sum[i*all+j] + sum[j*all+i]) / 2
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("%w: the network's outputs at pair %d are not finite", errPairs, i)
			}
			o.gram.SetSym(i, j, v)
		}
	}
	return o, nil
}

// knownNoise is the standard deviation of a regression's noise, if it is known and the same everywhere; else 0.
func knownNoise(bound *bayes.BoundModel) float64 {
	g, ok := bound.Model.Likelihood.(bayes.Gaussian)
	switch {
	case !ok || g.Learn:
		return 0
	case g.StdDev == 0:
		return 1
	}
	return g.StdDev
}
