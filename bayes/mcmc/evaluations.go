package mcmc

// Evaluations counts what was evaluated; in a Details, by the transitions after the warm-up. The full counts are
// evaluations of the target on all data, the partial ones those of a cheaper target, such as a surrogate or
// mini-batches (Problem.BatchShare). A number that a kernel does not report is 0.
type Evaluations struct {
	Full             int // log-densities of the target, without a gradient
	FullGradients    int // gradients of the target, with its log-density
	Partial          int // log-densities of the cheap target
	PartialGradients int // gradients of the cheap target
	// PartialShare is the cost of an evaluation of the cheap target relative to one of the target, in the mean if there
	// are several; 0: unknown.
	PartialShare float64
}

// gradientForwards is the cost of a gradient in reverse mode: the forward pass, and twice as much backwards.
const gradientForwards = 3

// Forwards is the cost in full forward passes: 1 for a log-density of the target, 3 for a gradient, and in proportion
// for the cheap target.
func (e Evaluations) Forwards() float64 {
	partial := float64(e.Partial + gradientForwards*e.PartialGradients)
	return float64(e.Full+gradientForwards*e.FullGradients) + e.PartialShare*partial
}

// plus adds the counts of another chain of the same kernel.
func (e Evaluations) plus(b Evaluations) Evaluations {
	e.Full, e.FullGradients = e.Full+b.Full, e.FullGradients+b.FullGradients
	e.Partial, e.PartialGradients = e.Partial+b.Partial, e.PartialGradients+b.PartialGradients
	e.PartialShare = b.PartialShare
	return e
}

// ofMiniBatches counts all evaluations as partial, for a target that evaluates only a share of the rows at a time.
func (e Evaluations) ofMiniBatches(share float64) Evaluations {
	return Evaluations{
		Partial: e.Full + e.Partial, PartialGradients: e.FullGradients + e.PartialGradients, PartialShare: share,
	}
}

// costs is a kernel that knows the cost of its partial evaluations, as Evaluations.PartialShare.
type costs interface{ PartialShare() float64 }
