package target

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
)

// Evidence is what one batch says about the model under weighted particles.
type Evidence struct {
	LogLikelihood *Node // [J]: log p(y_batch | phi_j; psi), -Inf where not finite; of no meaning where the weight was 0 before
	LogEvidence   *Node // scalar: log sum_j w_j p(y_batch | phi_j; psi); -Inf if no particle has a weight
	Gradient      *Node // [W]: of LogEvidence with respect to psi; nil if nothing is shared
}

// Evidence evaluates the batch's evidence under particles with normalised logWeights, [J], and its gradient by Fisher's
// identity: sum_j W_j grad_psi log p(y_batch | phi_j; psi) with W_j proportional to w_j p(y_batch | phi_j; psi) held constant
// (Zhao et al. 2024, section 3.1). Nothing is scaled by N/n: see MiniBatch.Scale.
func (l Likelihood) Evidence(phi, psi, logWeights *Node, batch Batch) Evidence {
	w := l.Reweight(phi, psi, logWeights, batch, LikelihoodPotential)
	return Evidence{w.LogLikelihood, w.LogSum, w.Gradient}
}

// Potential says by what factor the weights of particles change, in logs, [c], from what was evaluated of them.
type Potential struct {
	Factor   func(e Evaluated) *Node
	Gradient bool // whether Factor needs Evaluated.Gradient
}

// Evaluated is what is known of the particles From to To, c of them, when they are weighed.
type Evaluated struct {
	From, To      int
	LogLikelihood *Node // [c]: log p(y_batch | phi_j; psi), -Inf where not finite
	Gradient      *Node // [c, D]: of LogLikelihood with respect to phi; nil unless it was asked for
}

// Of are the rows of x, [J, ...], that belong to these particles.
func (e Evaluated) Of(x *Node) *Node { return part(x, e.From, e.To) }

// Bayes multiplies the weights by the likelihood; Keep leaves them as they are.
var (
	LikelihoodPotential = Potential{Factor: func(e Evaluated) *Node { return e.LogLikelihood }}
	UnitPotential       = Potential{Factor: func(e Evaluated) *Node { return ZerosLike(e.LogLikelihood) }}
)

// Reweighted are particles after a batch, with new weights W_j.
type Reweighted struct {
	LogLikelihood *Node // [J]: log p(y_batch | phi_j; psi), -Inf where not finite; of no meaning where the weight was 0 before
	LogWeights    *Node // [J], not normalised; -Inf where the log-likelihood, or the gradient that was asked for, is not finite
	LogSum        *Node // scalar: log of the sum of the weights; -Inf if no particle has any
	Gradient      *Node // [W]: sum_j W_j grad_psi log p(y_batch | phi_j; psi), W_j normalised and held constant; nil if nothing is shared
}

// Weigh evaluates the batch, gives the particles with logWeights, [J], new ones, and the gradient with respect to psi under these, in one
// pass: chunks merge as running log-sum-exps do.
func (l Likelihood) Reweight(phi, psi, logWeights *Node, batch Batch, weighing Potential) Reweighted {
	finite := compute.RowsAll(LessOrEqual(Abs(phi), ConstAs(phi, largest(phi.DType()))), phi.DType()) // [J]; false for NaN
	alive := And(finite, IsFinite(logWeights))
	phi = Where(BroadcastToDims(ExpandAxes(alive, 1), phi.Shape().Dimensions...), phi, ZerosLike(phi))
	logWeights = compute.Only(alive, logWeights)

	e := l.begin(phi, psi, batch)
	wrt, names := e.differentiated()
	var parts, joints, gradient []*Node
	var maximum, total *Node // running log-sum-exp: log sum = maximum + log total
	for from, to := range e.Plan.All() {
		c := e.chunk(from, to, e.before(parts))
		raw := e.sum(c)
		logLik := compute.Gate(raw)
		logLik = compute.Only(part(finite, from, to), logLik)
		evaluated := Evaluated{From: from, To: to, LogLikelihood: StopGradient(logLik)}
		usable := IsFinite(logLik)
		if weighing.Gradient {
			evaluated.Gradient = e.gradient(c, raw)
			usable = And(usable, compute.RowsAll(IsFinite(evaluated.Gradient), phi.DType()))
		}
		joint := StopGradient(Add(part(logWeights, from, to), weighing.Factor(evaluated)))
		joint = compute.Gate(compute.Only(usable, joint))
		chunkMax := compute.FiniteMax(joint)
		weights := Exp(Sub(joint, chunkMax))
		sum := ReduceAllSum(weights)
		var gradients []*Node
		if len(wrt) > 0 {
			gradients = Gradient(ReduceAllSum(Mul(weights, raw)), wrt...)
		}
		parts, joints = append(parts, logLik), append(joints, joint)
		if maximum == nil {
			maximum, total, gradient = chunkMax, sum, gradients
			continue
		}
		both := Max(maximum, chunkMax)
		before, now := Exp(Sub(maximum, both)), Exp(Sub(chunkMax, both))
		total = Add(Mul(total, before), Mul(sum, now))
		for i := range gradient {
			gradient[i] = Add(Mul(gradient[i], before), Mul(gradients[i], now))
		}
		maximum = both
	}
	return Reweighted{
		LogLikelihood: concatenate(parts),
		LogWeights:    concatenate(joints),
		LogSum:        Add(maximum, Log(total)),
		Gradient:      e.pack(names, gradient, total, psi),
	}
}

// gradient is that of a chunk's values, [c], with respect to its particles, [c, D].
func (e *evaluation) gradient(c chunk, values *Node) *Node {
	var leaves []*Node
	for _, slot := range e.Model.Slots {
		if slot.Stochastic {
			leaves = append(leaves, c.leaves[slot.Name].Node)
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
	return nn.Unblock(together, c.particles())
}

// differentiated lists what a chunk's gradient is taken with respect to: the prefix's output, if the prefix has parameters,
// under the name "", and the shared parameters behind the prefix.
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

// pack pulls the gradient with respect to the prefix's output back through the prefix, once, divides by the total weight and lays all
// of it out as psi, [W].
func (e *evaluation) pack(names []string, gradient []*Node, total, psi *Node) *Node {
	if len(names) == 0 {
		return nil
	}
	byName := map[string]*Node{}
	for i, name := range names {
		if name != "" {
			byName[name] = gradient[i]
			continue
		}
		var leaves []*Node
		var of []string
		for _, slot := range e.Model.Slots {
			if leaf, ok := e.prefix[slot.Name]; ok {
				leaves, of = append(leaves, leaf.Node), append(of, slot.Name)
			}
		}
		pulled := Gradient(ReduceAllSum(Mul(e.input.Node, StopGradient(gradient[i]))), leaves...)
		for k, g := range pulled {
			byName[of[k]] = g
		}
	}
	var flat []*Node
	for _, slot := range e.Model.Slots {
		if !slot.Stochastic {
			flat = append(flat, Reshape(byName[slot.Name], slot.Size()))
		}
	}
	return Div(concatenate(flat), total)
}
