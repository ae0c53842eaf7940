package fbnn

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Emulated is what an emulator predicts. The default, "outputs", are G(X; theta), the network's outputs on all rows:
// the emulator predicts their scores on the leading principal components of the pairs' outputs.
type Emulated string

// What can be emulated.
const (
	networkOutputs Emulated = "outputs"
	// LogLikelihood is log p(y | theta): the emulator predicts one number, at a cost that does not grow with N.
	LogLikelihood Emulated = "log-likelihood"
)

// head computes the log-likelihood from the scores, [R], that a regressor predicts at theta. Scores are scaled to the
// order of 1 for the regressor; the head undoes this.
type head interface {
	// scores are what the regressor is to predict at each pair, [J, R].
	scores() *mat.Dense
	// missed is the squared error at pair j that remains if its scores are exact, as of outputs beyond the leading
	// components, in units of scores.
	missed(j int) float64
	data(dtype compute.DType) map[string]*tensors.Tensor
	// logLikelihood is the log-likelihood, [J], at theta, [J, D], with predicted scores z, [J, R].
	logLikelihood(data compute.Nodes, theta, z *Node) *Node
}

// likelihoodHead emulates the log-likelihood itself.
type likelihoodHead struct {
	mean, stdDev float64
	phi          []float64
}

func newLikelihoodHead(p *pairs) (*likelihoodHead, error) {
	h := &likelihoodHead{phi: p.phi}
	h.mean, h.stdDev = stat.PopMeanStdDev(p.phi[:p.learnt], nil)
	if !(h.stdDev > 1e-12*math.Abs(h.mean)) {
		return nil, fmt.Errorf("%w: the log-likelihood is %.6g at all of them", errPairs, -h.mean)
	}
	return h, nil
}

func (h *likelihoodHead) missed(int) float64 { return 0 }

func (h *likelihoodHead) scores() *mat.Dense {
	out := mat.NewDense(len(h.phi), 1, nil)
	for j, v := range h.phi {
		out.Set(j, 0, (v-h.mean)/h.stdDev)
	}
	return out
}

func (h *likelihoodHead) data(dtype compute.DType) map[string]*tensors.Tensor {
	return map[string]*tensors.Tensor{"head": compute.Floats(dtype, []float64{h.mean, h.stdDev}, 2)}
}

func (h *likelihoodHead) logLikelihood(data compute.Nodes, _, z *Node) *Node {
	phi := Add(compute.Element(data["head"], 0), Mul(Reshape(z, z.Shape().Dim(0)), compute.Element(data["head"], 1)))
	return Neg(phi)
}

// outputsHead emulates the outputs: the coefficient of a component is size times its score.
type outputsHead struct {
	*components
	size float64
}

func (h *outputsHead) rank() int            { _, r := h.combine.Dims(); return r }
func (h *outputsHead) missed(j int) float64 { return h.rest[j] / (h.size * h.size) }

func (h *outputsHead) scores() *mat.Dense {
	out := mat.DenseCopyOf(h.components.scores)
	out.Scale(1/h.size, out)
	return out
}

// regressionHead is the log-likelihood of a regression with known noise s. It does not need the N outputs. With r = y -
// mean, b = V'r and orthonormal V,
//
//	log p(y | theta) = -(|r|^2 - 2 b'z + |z|^2) / (2 s^2) - N log(s sqrt(2 pi))
type regressionHead struct {
	*outputsHead
	b         []float64 // [R]
	residual2 float64
	stdDev    float64
	numbers   int // N, targets counted
}

// data has the constant, 1/(2 s^2) and the size in the entry "head", and b.
func (h *regressionHead) data(dtype compute.DType) map[string]*tensors.Tensor {
	// |r - V z|^2 = |r|^2 - |b|^2 + |b - z|^2: in this form no large numbers that depend on z are subtracted from each
	// other, so that rounding errors stay small.
	rest := max(0, h.residual2-floats.Dot(h.b, h.b))
	constant := -rest/(2*h.stdDev*h.stdDev) - float64(h.numbers)*(math.Log(h.stdDev)+math.Log(2*math.Pi)/2)
	return map[string]*tensors.Tensor{
		"head": compute.Floats(dtype, []float64{constant, .5 / (h.stdDev * h.stdDev), h.size}, 3),
		"b":    compute.Floats(dtype, h.b, 1, len(h.b)),
	}
}

func (h *regressionHead) logLikelihood(data compute.Nodes, _, z *Node) *Node {
	number := func(i int) *Node { return compute.Element(data["head"], i) }
	away := compute.RowSums(Square(Sub(Mul(z, number(2)), data["b"])))
	return Sub(number(0), Mul(away, number(1)))
}

// anyHead is the log-likelihood of any other model. It needs the components, [R, W N] with W outputs a row, and
// evaluates the outputs of all rows for each chain.
type anyHead struct {
	*outputsHead
	bound       *bayes.BoundModel
	basis, mean []float64
	y           *tensors.Tensor
}

func (h *anyHead) data(dtype compute.DType) map[string]*tensors.Tensor {
	n := len(h.mean)
	return map[string]*tensors.Tensor{
		"head": compute.Floats(dtype, []float64{h.size}, 1), "y": h.y,
		"basis": compute.Floats(dtype, h.basis, h.rank(), n), "mean": compute.Floats(dtype, h.mean, 1, n),
	}
}

func (h *anyHead) logLikelihood(data compute.Nodes, theta, z *Node) *Node {
	j, n := theta.Shape().Dim(0), len(h.mean)/h.bound.Width
	z = Mul(z, compute.Element(data["head"], 0))
	out := Add(Einsum("jr,rn->jn", z, data["basis"]), data["mean"])
	own := h.bound.Unpack(nn.Block(theta, 1), nil, func(s bayes.Slot) bool { return s.Layer == 0 })
	density := h.bound.LogDensity(own, nn.Value{Node: Reshape(out, j, h.bound.Width, n, 1), PerParticle: true}, data["y"])
	return compute.RowSums(Reshape(density, j, n))
}

// newHead prepares the head, and the scores to be learnt, from the pairs.
func (a CES) newHead(ctx context.Context, job *job, p *pairs) (head, *outputsHead, error) {
	if a.Emulates == LogLikelihood {
		h, err := newLikelihoodHead(p)
		return h, nil, err
	}
	sums, err := p.outputs(ctx, job)
	if err != nil {
		return nil, nil, err
	}
	tolerance := 1e-6 // rounding of float32
	if job.DType == compute.Float64 {
		tolerance = 1e-13
	}
	c, err := newComponents(sums.gram, p.learnt, tolerance)
	if err != nil {
		return nil, nil, err
	}
	h := &outputsHead{components: c, size: math.Sqrt(c.total / float64(p.learnt))}
	if s := knownNoise(job.Bound); s > 0 {
		b := mat.NewVecDense(h.rank(), nil)
		b.MulVec(c.combine.T(), mat.NewVecDense(p.learnt, sums.residual[:p.learnt]))
		numbers := job.Rows() * job.Bound.Targets()
		return &regressionHead{h, b.RawVector().Data, sums.residual2, s, numbers}, h, nil
	}
	all, err := p.basis(ctx, job, h)
	return all, h, err
}

// basis computes the components themselves, in a second pass over the rows.
func (p *pairs) basis(ctx context.Context, job *job, h *outputsHead) (*anyHead, error) {
	bound, rows := job.Bound, job.Rows()
	width, rank := bound.Width, h.rank()
	out := &anyHead{
		outputsHead: h, bound: bound, basis: make([]float64, rank*width*rows), mean: make([]float64, width*rows),
	}
	var targets []float64
	combine := compute.Floats(job.DType, h.combine.RawMatrix().Data, p.learnt, rank)
	from := 0
	err := p.blocks(ctx, job, "components of the outputs", func(centred, mean, _ *Node) *Node {
		first := Slice(centred, AxisRange(0, p.learnt))
		basis := Einsum("jr,jwb->rwb", ConvertDType(Const(centred.Graph(), combine), job.DType), first)
		return Concatenate([]*Node{ExpandAxes(mean, 0), basis}, 0)
	}, func(values, y []float64) {
		count, block := len(y)/bound.Targets(), len(values)/((rank+1)*width)
		targets = append(targets, y...)
		for r := range rank + 1 {
			for w := range width {
				part := values[(r*width+w)*block:][:count]
				if r == 0 {
					copy(out.mean[w*rows+from:], part)
				} else {
					copy(out.basis[((r-1)*width+w)*rows+from:], part)
				}
			}
		}
		from += count
	})
	shape := []int{rows}
	if k := bound.Targets(); k > 1 {
		shape = append(shape, k)
	}
	if err == nil {
		out.y = compute.Floats(job.DType, targets, shape...)
	}
	return out, err
}

// emulated is the emulated posterior: the prior times the likelihood that the emulator predicts.
type emulated struct {
	bound  *bayes.BoundModel
	head   head
	learnt *predictor
	nodes  compute.Nodes
}

var _ posterior = emulated{}

// Prefixes of the names of a sampling problem's data, beside the network's own.
const (
	headPrefix   = "head/"
	learntPrefix = "emulator/"
	centerName   = "center" // [1, D]
	scaleName    = "scale"  // [1, D]
)

// LogLikelihood is the emulated log p(y | theta), [J].
func (e emulated) LogLikelihood(theta *graph.Node) *graph.Node {
	return e.head.logLikelihood(within(e.nodes, headPrefix), theta, e.scoresAt(theta))
}

// LogPrior is log p(theta), [J].
func (e emulated) LogPrior(theta *graph.Node) *graph.Node { return e.bound.LogPrior(theta) }

// LogDensity implements density.Target.
func (e emulated) LogDensity(theta *graph.Node) *graph.Node {
	return compute.Gate(Add(e.bound.LogPrior(theta), e.LogLikelihood(theta)))
}

// Gradient implements density.Target.
func (e emulated) Gradient(theta *graph.Node) (logDensity, gradient *graph.Node) {
	logDensity = Add(e.bound.LogPrior(theta), e.LogLikelihood(theta))
	return compute.Gate(logDensity), Gradient(ReduceAllSum(logDensity), theta)[0]
}

// scoresAt returns the predicted scores at theta, [J, R].
func (e emulated) scoresAt(theta *graph.Node) *graph.Node {
	u := Div(Sub(theta, e.nodes[centerName]), e.nodes[scaleName])
	return e.learnt.predict(within(e.nodes, learntPrefix), u)
}
