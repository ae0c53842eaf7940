package pmcnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/tensorfile"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
)

// This file is step 5 of Annealed, the bridge: tempered SMC that begins at the fitted mixture instead of the prior.

// Bridging says when Annealed runs the bridge, its second SMC sampler, from the fitted mixture to the posterior.
type Bridging string

// When the bridge is run.
const (
	// BridgeIfNeeded runs the bridge if there are no weighted draws that can be trusted, if k-hat plus its standard error
	// is above .5, or if the weighted draws and the first SMC disagree on the log evidence by more than three standard
	// errors; but not if the mixture is further from the posterior than the prior is, such that the bridge's first step of
	// the power would be less than a tenth of the SMC's: then Estimates.NoBridge says so. It is the default.
	BridgeIfNeeded Bridging = "if needed"
	BridgeAlways   Bridging = "always"
	NoBridge       Bridging = "never"
)

// bridged is the posterior as what comes after a mixture: its density is (density)^(1-power) (posterior)^power. The
// mixture is fitted to one image of the posterior; here its density is that of a particle's image in canonical order,
// so that all images are alike, as the posterior has them, and moves may cross from one to the next.
type bridged struct {
	posterior mcmc.Target
	density   mcmc.Density // log q, [J] for phi, [J, D]
}

var _ smc.Folded = bridged{}

func (b bridged) LogDensity(phi *Node) *Node                      { return b.posterior.LogDensity(phi) }
func (b bridged) Gradient(phi *Node) (logDensity, gradient *Node) { return b.posterior.Gradient(phi) }
func (b bridged) LogPrior(phi *Node) *Node                        { return b.density(phi) }
func (b bridged) LogLikelihood(phi *Node) *Node                   { return Sub(b.LogDensity(phi), b.density(phi)) }
func (b bridged) Folded()                                         {}
func (b bridged) Tempered(power *Node) mcmc.Target                { return betweenTargets{b, power} }

// betweenTargets is the distribution at a power, above 0.
type betweenTargets struct {
	bridged
	power *Node
}

func (b betweenTargets) LogDensity(phi *Node) *Node {
	return Add(Mul(OneMinus(b.power), b.density(phi)), Mul(b.power, b.posterior.LogDensity(phi)))
}

func (b betweenTargets) Gradient(phi *Node) (logDensity, gradient *Node) {
	from, up := b.density.Gradient(phi)
	to, upTo := b.posterior.Gradient(phi)
	between := func(x, y *Node) *Node { return Add(Mul(OneMinus(b.power), x), Mul(b.power, y)) }
	return between(from, to), between(up, upTo)
}

// bridgeKind is what a compiled bridge depends on, beside the problem and its own settings.
type bridgeKind struct {
	annealedKind
	form
	ordered bool
}

// mostTries is how many draws of the mixture are made for each that is in canonical order, at most.
const mostTries = 50

// inOrder are n draws of the mixture that are in canonical order, [n, D], and what share of all draws these are.
func (r *annealing) inOrder(ctx context.Context, q mixture, n int) (x *mat.Dense, share float64, err error) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x62726964))
	x = mat.NewDense(n, r.Problem.Dim, nil)
	found, tried := 0, 0
	for found < n {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if tried >= mostTries*n {
			return nil, 0, fmt.Errorf("of %d draws of the mixture only %d are in canonical order", tried, found)
		}
		some := q.draws(rng, n)
		r.asKept(some)
		for _, j := range rng.Perm(n) { // draws come component after component
			tried++
			if !r.order.inside(some.RawRowView(j)) {
				continue
			}
			x.SetRow(found, some.RawRowView(j))
			if found++; found == n {
				break
			}
		}
	}
	return x, float64(found) / float64(tried), nil
}

// bridge is step 5: SMC from the mixture, restricted to the canonical region R, to the posterior. Its particles, [J,
// D], are put into canonical order. With m the mixture's share in R, the density that it begins at is the mixture's
// over m |G|, all of whose images are alike: so the evidence is m |G| times what the SMC gives.
func (r *annealing) bridge(ctx context.Context, q mixture) (*mat.Dense, error) {
	settings := r.Sampling
	settings.Ladder = nil
	settings.Seed = r.Seed ^ 0x9e3779b97f4a7c15 // other random numbers than step 1
	if settings.Checkpoint != "" {
		settings.Checkpoint += ".bridge"
	}
	if settings.Progress != nil {
		settings.Progress = func(p run.Progress) {
			p.Stage = "bridge from the mixture"
			r.Settings.Progress(p)
		}
	}
	start, share, err := r.inOrder(ctx, q, settings.Particles)
	if err != nil {
		return nil, err
	}
	f := form{components: len(q), rank: r.rank()}
	key := bridgeKind{annealedKind: r.kind(), form: f, ordered: len(r.order.layers) > 0}
	sampler, giveBack, err := r.sampler.bridges.Take(key, func() (*smc.Sampler, error) {
		return &smc.Sampler{Kernel: r.Kernel}, nil
	})
	if err != nil {
		return nil, err
	}
	defer giveBack()
	if sampler.Problem, err = r.bridgeProblem(q, f, start); err != nil {
		return nil, err
	}
	begun := time.Now()
	result, err := sampler.Sample(ctx, settings)
	if result != nil {
		r.earlier = max(0, result.Elapsed-time.Since(begun))
	}
	switch {
	case err != nil:
		return nil, err
	case result.Status != run.Completed:
		return nil, cmp.Or(ctx.Err(), result.Status.Err()) // that of a deadline is another than that of a cancellation
	}
	flat, err := compute.Float64s(result.Phi)
	if err != nil {
		return nil, err
	}
	x := mat.NewDense(settings.Particles, r.Problem.Dim, flat)
	for j := range settings.Particles {
		r.order.apply(x.RawRowView(j))
	}
	r.said.Bridge = result
	r.said.BridgeEvidence = bayes.Evidence{
		Value:  result.LogEvidence + math.Log(share) + r.order.logImages,
		StdErr: math.Hypot(result.LogEvidenceStdErr, math.Sqrt((1-share)/float64(settings.Particles))),
	}
	return x, nil
}

// notItsFile says whether the bridge could not begin because of what is in the place of its checkpoint, which is for
// the user to mend, and no fault of the mixture.
func notItsFile(err error) bool {
	return errors.Is(err, run.ErrOtherRun) || errors.Is(err, run.ErrInUse) || errors.Is(err, tensorfile.ErrDamaged)
}

// bridgeProblem is that of the bridge, whose particles begin at the given draws.
func (r *annealing) bridgeProblem(q mixture, f form, start *mat.Dense) (mcmc.Problem, error) {
	name, err := r.name()
	if err != nil {
		return mcmc.Problem{}, err
	}
	problem := r.Problem
	problem.Name = name + "; bridge"
	problem.Data = maps.Clone(problem.Data)
	if problem.Data == nil {
		problem.Data = map[string]*tensors.Tensor{}
	}
	maps.Copy(problem.Data, q.data(f, r.DType))
	maps.Copy(problem.Data, r.order.data(r.DType))
	problem.Initial, problem.Start = nil, r.rows(start)
	target, order := r.Problem.Target, r.order
	problem.Target = func(data compute.Nodes, inputs []*Node) mcmc.Target {
		return bridged{target(data, inputs), func(phi *Node) *Node {
			return f.logDensity(data, order.canonical(data, phi))
		}}
	}
	return problem, nil
}
