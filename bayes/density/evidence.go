package density

import (
	"maps"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Potential is the factor by which particles' weights change (G of a Feynman-Kac model), in logs, [c], given their
// log-likelihoods and gradients.
type Potential struct {
	Factor   func(e Evaluated) *graph.Node // nil: the weights do not change
	Gradient bool                          // whether Factor needs Evaluated.Gradient
	// standalone says that Factor uses no nodes but those of Evaluated. Then chunks of particles can be a loop; otherwise
	// they are unrolled, which for 10 000 particles and more takes long to compile.
	standalone bool
}

// Evaluated holds the evaluations of c particles, for computing their weights.
type Evaluated struct {
	LogLikelihood *graph.Node // [c]: log p(y_batch | phi_j; psi), -Inf where not finite
	Gradient      *graph.Node // [c, D]: of LogLikelihood with respect to phi; nil unless Potential.Gradient
	particles     compute.Span
}

// Of returns the rows of x, [J, ...], that belong to these particles.
func (e Evaluated) Of(x *graph.Node) *graph.Node { return e.particles.Of(x) }

// LikelihoodPotential multiplies the weights by the likelihood.
var LikelihoodPotential = Potential{standalone: true, Factor: func(e Evaluated) *Node { return e.LogLikelihood }}

// Reweighted holds the particles' new weights W_j after a batch.
type Reweighted struct {
	// [J]: log p(y_batch | phi_j; psi), -Inf where not finite; of no meaning where the weight was 0 before
	LogLikelihood *graph.Node
	// [J], not normalised; -Inf where the log-likelihood, or the gradient that was asked for, is not finite
	LogWeights *graph.Node
	LogSum     *graph.Node // scalar: log of the sum of the weights; -Inf if no particle has any
	// [W]: sum_j W_j grad_psi log p(y_batch | phi_j; psi), W_j normalised and held constant; nil if nothing is shared
	Gradient *graph.Node
}

// Reweight evaluates the batch in one pass over the particles. It computes their new weights from logWeights, [J], and
// the gradient with respect to psi under the new weights; chunks are merged by a running log-sum-exp. Of normalised
// weights and LikelihoodPotential, LogSum is the batch's log evidence, log sum_j w_j p(y_batch | phi_j; psi), and
// Gradient its gradient by Fisher's identity (Zhao et al. 2024, section 3.1). Nothing is scaled by N/n: see
// Posterior.Scale. The rows are not cut into parts, whatever memory they take: the weights depend on all of them, and
// the gradient on the weights.
func (l Likelihood) Reweight(phi, psi, logWeights *graph.Node, batch Batch, weighing Potential) Reweighted {
	finite := compute.RowsAll(LessOrEqual(Abs(phi), ConstAs(phi, largest(phi.DType()))), phi.DType()) // [J]; false for NaN
	alive := And(finite, IsFinite(logWeights))
	phi = Where(BroadcastToDims(ExpandAxes(alive, 1), phi.Shape().Dimensions...), phi, ZerosLike(phi))
	logWeights = compute.Only(alive, logWeights)

	e := l.begin(phi, psi, batch, false)
	if weighing.Factor == nil {
		weighing = Potential{standalone: true, Factor: func(e Evaluated) *Node { return ZerosLike(e.LogLikelihood) }}
	}
	wrt, names := e.differentiated()
	// of the running log-sum-exp: log sum = maximum + log total
	none := []*Node{ConstAs(phi, math.Inf(-1)), ConstAs(phi, 0.0)}
	for _, x := range wrt {
		none = append(none, ZerosLike(x))
	}
	rows, sums := e.over(pass{
		outer:    []*Node{finite, logWeights},
		rows:     [][]int{{}, {}},
		none:     none,
		captures: !weighing.standalone,
		chunk: func(e *evaluation, c chunk, outer []*Node) (rows, sums []*Node) {
			finite, logWeights := c.Of(outer[0]), c.Of(outer[1])
			outputs := e.outputs(c)
			raw := e.sum(c, outputs)
			logLik := compute.Only(finite, compute.Gate(raw))
			evaluated := Evaluated{LogLikelihood: StopGradient(logLik), particles: c.Span}
			usable := IsFinite(logLik)
			if weighing.Gradient {
				evaluated.Gradient = e.gradient(c, raw)
				usable = And(usable, compute.RowsAll(IsFinite(evaluated.Gradient), e.phi.DType()))
			}
			joint := StopGradient(Add(logWeights, weighing.Factor(evaluated)))
			joint = compute.Gate(compute.Only(usable, joint))
			maximum := compute.FiniteMax(joint)
			weights := Exp(Sub(joint, maximum))
			sums = []*Node{maximum, ReduceAllSum(weights)}
			if wrt, _ := e.differentiated(); len(names) > 0 {
				weighted := Mul(weights, e.sum(e.only(usable, c, outputs)))
				sums = append(sums, Gradient(ReduceAllSum(weighted), wrt...)...)
			}
			return []*Node{logLik, joint}, sums
		},
		merge: func(a, b []*Node) []*Node {
			maximum := Max(a[0], b[0])
			ofA, ofB := Exp(Sub(a[0], maximum)), Exp(Sub(b[0], maximum))
			both := []*Node{maximum}
			for i := 1; i < len(a); i++ {
				both = append(both, Add(Mul(a[i], ofA), Mul(b[i], ofB)))
			}
			return both
		},
	})
	return Reweighted{
		LogLikelihood: rows[0],
		LogWeights:    rows[1],
		LogSum:        Add(sums[0], Log(sums[1])),
		Gradient:      e.pack(names, sums[2:], sums[1]),
	}
}

// gradient is the gradient of a chunk's values, [c], with respect to its particles, [c, D].
func (e *evaluation) gradient(c chunk, values *Node) *Node {
	var leaves []*Node
	for _, slot := range e.Model.Slots {
		if slot.Stochastic {
			leaves = append(leaves, c.params[slot.Name].Node)
		}
	}
	flat := Gradient(ReduceAllSum(values), leaves...)
	for i, leaf := range leaves {
		blocks, block := leaf.Shape().Dim(0), leaf.Shape().Dim(-1)
		flat[i] = Reshape(flat[i], blocks, leaf.Shape().Size()/(blocks*block), block)
	}
	together := flat[0]
	if len(flat) > 1 {
		together = Concatenate(flat, 1)
	}
	return nn.Unblock(together, c.Count)
}

// differentiated returns the nodes that a chunk's gradient is taken with respect to, and their names. They are the
// prefix's output, named "", if the prefix has parameters; and the shared parameters after the prefix.
func (e *evaluation) differentiated() (wrt []*Node, names []string) {
	if len(e.prefix) > 0 {
		wrt, names = append(wrt, e.input.Node), append(names, "")
	}
	for _, slot := range e.Model.Slots {
		if leaf, ok := e.common[slot.Name]; ok {
			wrt, names = append(wrt, leaf.Node), append(names, slot.Name)
		}
	}
	return wrt, names
}

// pack propagates the gradient with respect to the prefix's output back through the prefix, once, divides by the total
// weight and returns all in the layout of psi, [W].
func (e *evaluation) pack(names []string, gradient []*Node, total *Node) *Node {
	if len(names) == 0 {
		return nil
	}
	byName, ofPrefix := map[string]*Node{}, slices.Sorted(maps.Keys(e.prefix)) // in the order of Nodes
	for i, name := range names {
		if name != "" {
			byName[name] = gradient[i]
			continue
		}
		ofOutput := ReduceAllSum(Mul(e.input.Node, StopGradient(gradient[i])))
		for k, g := range Gradient(ofOutput, e.prefix.Nodes()...) {
			byName[ofPrefix[k]] = g
		}
	}
	var flat []*Node
	for _, slot := range e.Model.Slots {
		if !slot.Stochastic {
			flat = append(flat, Reshape(byName[slot.Name], slot.Size()))
		}
	}
	return Div(Concatenate(flat, 0), total)
}
