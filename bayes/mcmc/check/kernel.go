package check

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/mcmc"
)

// Options say how a kernel is tested. The zero value works.
type Options struct {
	// Targets are the distributions that the kernel must leave invariant, all of one dimension; default Targets(). A
	// kernel whose distribution is its own, such as mcmc.OrnsteinUhlenbeck, is tested on that distribution.
	Targets []Target
	// Particles is the number of chains for each target and start; default 2000. The smallest bias that is found goes
	// with one over its root.
	Particles int
	// Transitions is how far the chains go; default 100.
	Transitions int
	// NotReversible says that the kernel does not claim detailed balance: it is not tested then, and neither are ranks,
	// which rest on it. It is for kernels with a velocity that lasts, with a fixed order of updates, or with step sizes
	// that change in time.
	NotReversible bool
	// Slow says that chains need not reach the target from Target.Start within the Transitions.
	Slow   bool
	Engine *compute.Engine // default compute.Default()
	DType  compute.DType   // default compute.Float32

	// What only tests of this package change.
	maxMoves int       // of a transition; a particle that has completed its own (Info.Complete) waits for the others
	stepSize float64   // given to the kernel as mcmc.Tuning; 0: its own. A kernel leaves its target invariant under any
	scale    []float64 // [D], likewise
}

// falseAlarm is the probability that any test of a right kernel or sampler fails: see the package's comment.
const falseAlarm = 1e-3

func (o Options) withDefaults() Options {
	if o.Targets == nil {
		o.Targets = Targets()
	}
	o.Particles = cmp.Or(o.Particles, 2000)
	o.Transitions = cmp.Or(o.Transitions, 100)
	o.maxMoves = cmp.Or(o.maxMoves, 10_000)
	o.DType = cmp.Or(o.DType, compute.Float32)
	return o
}

func (o Options) check(kernel mcmc.Kernel) error {
	if o.Particles < 100 || o.Transitions < 3 {
		return fmt.Errorf("check: Options.Particles is %d, and Transitions %d: they must be at least 100, and 3",
			o.Particles, o.Transitions)
	}
	if o.DType != compute.Float32 && o.DType != compute.Float64 {
		return fmt.Errorf("check: Options.DType is %s: it must be Float32 or Float64", o.DType)
	}
	if len(o.Targets) == 0 {
		return fmt.Errorf("check: Options.Targets is empty: name a target, or leave it nil for Targets()")
	}
	for _, t := range o.Targets {
		if err := t.check(); err != nil {
			return err
		}
		if t.D != o.Targets[0].D {
			return fmt.Errorf("check: target %q has %d coordinates, %q has %d: test them in two calls",
				o.Targets[0].Name, o.Targets[0].D, t.Name, t.D)
		}
	}
	return mcmc.Check(kernel, o.Targets[0].D, o.stepSize > 0)
}

// Kernel tests a kernel, and fails t, with a table of what failed, unless it passes.
func Kernel(t testing.TB, kernel mcmc.Kernel, o Options) {
	t.Helper()
	report, err := Run(kernel, o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Failures() > 0 {
		t.Error(report.Summary())
	}
}

// Run tests a kernel. The error is about options, or from the kernel's graph; what the tests find is in the report.
// There are some 140 comparisons:
//
//   - Invariant: chains that begin as exact draws must be exact draws after every number of transitions. Each
//     coordinate is turned into a uniform given those before it (Rosenblatt 1952), and these are compared in
//     distribution (Kolmogorov and Smirnov), mean, variance and dependence. The log-density is compared with that of
//     fresh draws. It detects a wrong acceptance, proposal ratio, Jacobian, reference distribution or temper.
//   - Converged: chains that all begin at Target.Start, away from the centre, must be exact draws at the end. It
//     detects kernels that do nothing, bad proposals, and moves that do not reach the whole space.
//   - Balance: in detailed balance the start x and the end y of a transition can change places, so f(x, y) - f(y, x)
//     has mean 0 for every f. It detects probability that flows in circles, which Invariant does not.
//   - Rank: a parameter is drawn from the prior, data given the parameter, and a path of the chain under their
//     posterior. The rank of the parameter in this path must be uniform (simulation-based calibration; Talts et al.
//     2018). The parameter stands at a random place in the path, and the chain runs from there both ways (Gandy and
//     Scott 2021): so the rank is uniform however slowly the chain mixes. It needs detailed balance. It alone sees
//     momenta that are not refreshed, and steps that depend on the past.
//   - Info and State: Acceptance is in [0, 1]; Accepted and NonFinite are 0 or 1; particles move exactly where Accepted
//     says; the log-density and the gradient carried along are those of phi. One particle that is NaN is counted, and
//     leaves all others the same, bit for bit.
//
// All targets, and all ways to begin on them, are rows of one [J, D], so that a single compiled move tests everything.
func Run(kernel mcmc.Kernel, o Options) (Report, error) {
	o = o.withDefaults()
	if err := o.check(kernel); err != nil {
		return Report{}, err
	}
	engine, err := o.Engine.Or()
	if err != nil {
		return Report{}, fmt.Errorf("check: %w", err)
	}
	l := newLayout(o.Targets, o.Particles)
	c, err := newChains(engine, kernel, l, o)
	if err != nil {
		return Report{}, err
	}
	defer c.close()
	report := Report{subject: fmt.Sprintf("%T%+v", kernel, kernel)}
	r := rand.New(rand.NewPCG(1, 0x636865636b))
	phi, data := l.draw(r, false)
	if err := isolated(c, &report, phi, data); err != nil {
		return Report{}, err
	}
	if err := followed(c, &report, r, o, phi, data); err != nil {
		return Report{}, err
	}
	report.judge()
	return report, nil
}

// isolated compares a few moves with the same moves when one particle of each block begins at NaN: the others must go
// exactly where they went, and the one must be counted, if the kernel counts.
func isolated(c *chains, report *Report, phi, data []float64) error {
	const moves = 3
	poisoned := slices.Clone(phi)
	ill := map[int]bool{}
	for _, b := range c.blocks {
		row := (b.from + b.to) / 2
		ill[row] = true
		poisoned[row*c.d] = math.NaN()
	}
	var ends [2][]float64
	counted := make([]bool, c.j)
	for i, start := range [][]float64{phi, poisoned} {
		if err := c.start(1, start, data); err != nil {
			return err
		}
		for range moves {
			c.begin()
			_, info, err := c.move()
			if err != nil {
				return err
			}
			for j, count := range info[nonFinite] {
				counted[j] = counted[j] || i == 1 && count > 0
			}
		}
		var err error
		if ends[i], err = c.phi(); err != nil {
			return err
		}
	}
	disturbed, missed := 0, 0
	for j := range c.j {
		if ill[j] {
			if !counted[j] {
				missed++
			}
			continue
		}
		for k := j * c.d; k < (j+1)*c.d; k++ {
			if math.Float64bits(ends[0][k]) != math.Float64bits(ends[1][k]) {
				disturbed++
				break
			}
		}
	}
	report.exact("all", "particles disturbed by one that is NaN", disturbed)
	if slices.Contains(c.gives, nonFinite) {
		report.exact("all", "NaN particles that Info.NonFinite does not count", missed)
	}
	return nil
}

// followed runs the chains and compares what they do on the way and where they end.
func followed(c *chains, report *Report, r *rand.Rand, o Options, phi, data []float64) error {
	freshPhi, freshData := c.draw(r, true)
	drawn, fresh, err := c.at(freshPhi, freshData)
	if err != nil {
		return err
	}
	drawn.Close()
	if err := c.start(2, phi, data); err != nil {
		return err
	}
	now, err := c.phi() // rounded to the kernel's type
	if err != nil {
		return err
	}
	trackers := []tracker{&moves{c: c}}
	if !o.NotReversible {
		trackers = append(trackers, newBalance(c, now, data), newRanks(c, r, now, o.Transitions))
	}
	for n := range o.Transitions {
		info, err := c.transition()
		if err != nil {
			return err
		}
		before := now
		if now, err = c.phi(); err != nil {
			return err
		}
		for _, t := range trackers {
			t.observe(n+1, before, now, info)
		}
	}
	for _, t := range trackers {
		t.report(report)
	}
	again, logDensity, err := c.at(now, data)
	if err != nil {
		return err
	}
	defer again.Close()
	if err := carried(c, report, again); err != nil {
		return err
	}
	for _, b := range c.blocks {
		if b.kind != farStart || !o.Slow {
			ended(c, report, b, now, data, logDensity, fresh)
		}
	}
	return nil
}
