package check

import (
	"errors"
	"fmt"
	"slices"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// chains runs a kernel over all rows of a layout, a transition at a time.
type chains struct {
	layout
	kernel mcmc.Kernel
	dtype  compute.DType
	most   int // moves a transition may take

	startExec, moveExec *Exec
	own                 []string // the names of State.Own, sorted
	gives               given

	seed  []uint32
	data  *tensors.Tensor
	state []*tensors.Tensor // phi, the log-density and the gradient if needed, own
	step  uint32
}

// given says which of Info's fields the kernel fills in.
type given struct{ complete, acceptance, accepted, nonFinite bool }

// info is a transition's Info on the host, [J] each: nil where the kernel gives none.
type info struct{ acceptance, accepted, nonFinite []float64 }

func newChains(engine *compute.Engine, kernel mcmc.Kernel, l layout, o Options) (*chains, error) {
	c := &chains{layout: l, kernel: kernel, dtype: o.DType, most: o.MaxMoves}
	tuning := func(g *Graph) (t mcmc.Tuning) {
		if o.StepSize > 0 {
			t.StepSize = Const(g, o.StepSize)
		}
		if o.Scale != nil {
			t.Scale = Const(g, o.Scale)
		}
		return t
	}
	var err error
	c.startExec, err = NewExec(engine.Backend(), func(seed, data, phi *Node) []*Node {
		target := composite{l, data}
		s := mcmc.Start(kernel, random.FromSeed(seed).Named("start"), phi, target)
		logDensity := s.LogDensity
		if logDensity == nil { // it is compared whatever the kernel needs
			logDensity = compute.Gate(target.LogDensity(phi))
		}
		c.own = c.own[:0]
		for name := range s.Own {
			c.own = append(c.own, name)
		}
		slices.Sort(c.own)
		return append([]*Node{logDensity}, c.flat(s)[1:]...)
	})
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	c.moveExec, err = NewExec(engine.Backend(), func(args []*Node) []*Node {
		seed, step, data, frozen, flat := args[0], args[1], args[2], args[3], args[4:]
		before := c.unflat(flat)
		after, info := kernel.Move(random.FromSeed(seed).At(step), before, composite{l, data}, tuning(seed.Graph()))
		isFrozen := GreaterThan(frozen, ZerosLike(frozen))
		out := c.flat(after)
		for i, node := range out {
			if !node.Shape().Equal(flat[i].Shape()) {
				panic(fmt.Errorf("a move of %T turns entry %d of its state (phi, log-density, gradient as far as it needs them, then %q) from %s into %s", kernel, i, c.own, flat[i].Shape(), node.Shape()))
			}
			condition := isFrozen
			if node.Rank() > 1 {
				condition = BroadcastToDims(ExpandAxes(condition, 1), node.Shape().Dimensions...)
			}
			out[i] = Where(condition, flat[i], node)
		}
		c.gives = given{info.Complete != nil, info.Acceptance != nil, info.Accepted != nil, info.NonFinite != nil}
		complete := OnesLike(frozen)
		if info.Complete != nil {
			complete = Max(frozen, info.Complete)
		}
		for _, node := range []*Node{complete, info.Acceptance, info.Accepted, info.NonFinite} {
			if node == nil {
				node = frozen // any [J]: it is not read
			}
			out = append(out, ConvertDType(node, c.dtype))
		}
		return out
	})
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return c, nil
}

func (c *chains) close() {
	c.startExec.Finalize()
	if c.moveExec != nil {
		c.moveExec.Finalize()
	}
}

// flat lists a state's nodes in the order of chains.state.
func (c *chains) flat(s mcmc.State) []*Node {
	out := []*Node{s.Phi}
	switch c.kernel.Carries() {
	case mcmc.CarriesLogDensity:
		out = append(out, s.LogDensity)
	case mcmc.CarriesGradient:
		out = append(out, s.LogDensity, s.Gradient)
	}
	for _, name := range c.own {
		out = append(out, s.Own[name])
	}
	if i := slices.Index(out, nil); i >= 0 {
		panic(fmt.Errorf("%T gives a state in which entry %d of phi, the log-density, the gradient (as far as it needs them) and %q is nil", c.kernel, i, c.own))
	}
	return out
}

// unflat is flat's inverse.
func (c *chains) unflat(flat []*Node) mcmc.State {
	s := mcmc.State{Phi: flat[0]}
	flat = flat[1:]
	switch c.kernel.Carries() {
	case mcmc.CarriesLogDensity:
		s.LogDensity, flat = flat[0], flat[1:]
	case mcmc.CarriesGradient:
		s.LogDensity, s.Gradient, flat = flat[0], flat[1], flat[2:]
	}
	for i, name := range c.own {
		if s.Own == nil {
			s.Own = map[string]*Node{}
		}
		s.Own[name] = flat[i]
	}
	return s
}

// evaluate gives what a start at phi evaluates anew: the log-density, and the state's other tensors.
func (c *chains) evaluate(phi *tensors.Tensor, data *tensors.Tensor) (logDensity []float64, state []*tensors.Tensor, err error) {
	out, err := c.startExec.Call(c.seed, data, phi)
	if err != nil {
		return nil, nil, fmt.Errorf("check: start: %w", err)
	}
	if logDensity, err = compute.Float64s(out[0]); err != nil {
		return nil, nil, fmt.Errorf("check: start: %w", err)
	}
	return logDensity, append([]*tensors.Tensor{phi}, out[1:]...), nil
}

// start puts the chains at phi, [J, D] flat.
func (c *chains) start(seed uint64, phi, data []float64) (logDensity []float64, err error) {
	c.seed, c.step = random.SeedWords(seed), 0
	c.data = compute.Floats(c.dtype, data, c.j, c.layout.data)
	logDensity, c.state, err = c.evaluate(compute.Floats(c.dtype, phi, c.j, c.d), c.data)
	return logDensity, err
}

// phi is where the chains are, [J, D] flat.
func (c *chains) phi() ([]float64, error) { return compute.Float64s(c.state[0]) }

// move makes one move, in which the frozen rows stay, and gives Info.
func (c *chains) move(frozen *tensors.Tensor) (complete *tensors.Tensor, i info, err error) {
	args := []any{c.seed, c.step, c.data, frozen}
	for _, t := range c.state {
		args = append(args, t)
	}
	out, err := c.moveExec.Call(args...)
	if err != nil {
		return nil, info{}, fmt.Errorf("check: move %d: %w", c.step, err)
	}
	c.step++
	c.state = out[:len(c.state)]
	rest := out[len(c.state):]
	read := func(t *tensors.Tensor, wanted bool) []float64 {
		if !wanted {
			return nil
		}
		values, e := compute.Float64s(t)
		err = errors.Join(err, e)
		return values
	}
	i = info{read(rest[1], c.gives.acceptance), read(rest[2], c.gives.accepted), read(rest[3], c.gives.nonFinite)}
	return rest[0], i, err
}

// transition moves until every chain has come to the end of one transition; those that have done so before the others wait.
func (c *chains) transition() (info, error) {
	frozen := compute.Floats(c.dtype, make([]float64, c.j), c.j)
	done := make([]float64, c.j)
	var total info
	for n := range c.most {
		complete, now, err := c.move(frozen)
		if err != nil {
			return info{}, err
		}
		if n == 0 {
			total = now
			if !c.gives.complete {
				return total, nil
			}
			done, err = compute.Float64s(complete)
			if err != nil {
				return info{}, err
			}
		} else {
			finished, err := compute.Float64s(complete)
			if err != nil {
				return info{}, err
			}
			for j := range done {
				if done[j] > 0 {
					continue // it waited
				}
				if now.nonFinite != nil {
					total.nonFinite[j] = max(total.nonFinite[j], now.nonFinite[j])
				}
				if now.acceptance != nil {
					total.acceptance[j] = now.acceptance[j]
				}
				if now.accepted != nil {
					total.accepted[j] = now.accepted[j]
				}
			}
			done = finished
		}
		if slices.Min(done) > 0 {
			return total, nil
		}
		frozen = complete
	}
	return info{}, fmt.Errorf("check: %T has not completed a transition of every chain in %d moves: raise Options.MaxMoves if that is few for its settings", c.kernel, c.most)
}
