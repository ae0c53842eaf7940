package mcmc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// Hosted is a problem whose target's log-density is computed by a function on the host, such as a sum over more blocks
// of rows than memory holds, together with a cheap problem that replaces it in the graph. It is for a DelayedAcceptance
// with OnHost, which requests the log-densities of all chains' proposals, [chains, D], once in a move. These are
// float64, and so are their differences, whatever the chains' type. Values that are not finite count as -Inf; at the
// start they are an error. The cheap problem must have no Inputs.
func Hosted(
	cheap density.Problem, chains int, logDensity func(ctx context.Context, phi *mat.Dense) ([]float64, error),
) density.Problem {
	problem := cheap
	problem.Target = func(data compute.Nodes, inputs []*graph.Node) density.Target {
		return hosted{cheap.Target(data, nil), inputs[0]}
	}
	problem.HostInputs = &density.HostInputs{
		Blank: []any{compute.Floats(compute.Float64, make([]float64, chains), chains)},
		Inputs: func(ctx context.Context, move int, carried map[string]*tensors.Tensor) ([]any, error) {
			proposal := carried[hostedProposal]
			if proposal == nil {
				return nil, errors.New("mcmc: no proposal to evaluate: a problem of Hosted is for a DelayedAcceptance with OnHost")
			}
			flat, err := compute.Float64s(proposal)
			if err != nil {
				return nil, err
			}
			values, err := logDensity(ctx, mat.NewDense(chains, cheap.Dim, flat))
			if err != nil {
				return nil, err
			}
			if len(values) != chains {
				return nil, fmt.Errorf("mcmc: %d log-densities of %d proposals", len(values), chains)
			}
			if bad := slices.IndexFunc(values, func(v float64) bool { return !finite(v) }); bad >= 0 && move == 0 {
				return nil, fmt.Errorf("%w: the log-density of chain %d is %v", errStart, bad, values[bad])
			}
			return []any{compute.Floats(compute.Float64, values, chains)}, nil
		},
	}
	return problem
}

// hosted is a target whose log-density at the previous move's proposals is an input, float64 [J].
type hosted struct {
	cheap   density.Target
	answers *Node
}

var _ Surrogated = hosted{}

// Surrogate implements Surrogated.
func (h hosted) Surrogate() density.Target { return h.cheap }

// LogDensity implements Target: it panics.
func (h hosted) LogDensity(*graph.Node) *graph.Node {
	panic(errors.New("the target is evaluated on the host, between moves: take mcmc.DelayedAcceptance with OnHost"))
}

// Gradient implements Target: it panics.
func (h hosted) Gradient(phi *graph.Node) (logDensity, gradient *graph.Node) {
	return h.LogDensity(phi), nil
}

// The further entries that a DelayedAcceptance on the host carries: the proposal, the cheap target's values there, and
// the threshold of its acceptance. The last is the target's log-density at phi, float64, NaN as long as it is not
// known.
const (
	hostedProposal  = "proposal"
	hostedCheap     = "proposal_cheap_log_density"
	hostedGradient  = "proposal_cheap_gradient"
	hostedThreshold = "threshold"
	hostedDensity   = "log_density"
)

// startOnHost proposes the current point, so that the host evaluates the log-density at the start.
func (k DelayedAcceptance) startOnHost(s, at State) {
	zero := ZerosLike(at.LogDensity)
	carryProposal(s, at, zero)
	s.Auxiliary[hostedDensity] = fillAs(ConvertDType(zero, dtypes.Float64), math.NaN())
}

// hostedOf is a target of Hosted.
func hostedOf(target density.Target) hosted {
	on, ok := target.(hosted)
	if !ok {
		panic(fmt.Errorf("DelayedAcceptance.OnHost is set, but the target is %T: sample a problem of mcmc.Hosted", target))
	}
	return on
}

// carryProposal adds the end of an inner transition to a state's entries.
func carryProposal(s, end State, threshold *Node) {
	s.Auxiliary[hostedProposal], s.Auxiliary[hostedCheap] = end.Phi, end.LogDensity
	if end.Gradient != nil {
		s.Auxiliary[hostedGradient] = end.Gradient
	}
	s.Auxiliary[hostedThreshold] = threshold
}

// moveOnHost accepts or rejects the previous move's proposal, whose log-density the target provides, and proposes anew.
func (k DelayedAcceptance) moveOnHost(
	rng random.Stream, s, at State, target density.Target, tuning Tuning,
) (State, Info) {
	on, own := hostedOf(target), s.Auxiliary
	end := State{Phi: own[hostedProposal], LogDensity: own[hostedCheap], Gradient: own[hostedGradient]}
	density := compute.Gate(on.answers)
	onTarget := ConvertDType(Sub(density, own[hostedDensity]), s.Phi.DType())
	accepted, next, info := k.decide(own[hostedThreshold], at, end, density, onTarget)

	// The first log-density from the host belongs to the starting point.
	first := IsNaN(own[hostedDensity])
	info.Complete = ConvertDType(Not(first), s.Phi.DType())
	info.NonFinite = Where(first, ZerosLike(info.NonFinite), info.NonFinite)
	next.Auxiliary[hostedDensity] = Where(Or(first, accepted), density, own[hostedDensity])

	// What the inner transition reports is counted now, though its end is judged in the next move.
	end, inner := k.propose(rng, k.onCheap(next), cheapOf(target), tuning)
	inner.addTo(&info)
	carryProposal(next, end, threshold(rng, s))
	return next, info
}
