package mcmc

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// nutsReference is the algorithm of NUTS for one particle in plain loops, which keeps the whole trajectory, finds turns
// by recursion with sums taken afresh, and draws the random numbers that the kernel draws.
type nutsReference struct {
	density   func(x []float64) (logDensity float64, gradient []float64)
	stepSize  float64
	scale     []float64
	maxDepth  int
	momentum  func(move int) []float64
	choice    func(move, i int) float64
	direction float64
	move      int // next
	moves     int // in all
}

type nutsLeaf struct {
	x, p, gradient     []float64
	logDensity, energy float64
}

func (r *nutsReference) leaf(x, p []float64) nutsLeaf {
	logDensity, gradient := r.density(x)
	return nutsLeaf{x, p, gradient, logDensity, inner(p, p)/2 - logDensity}
}

func (r *nutsReference) leapfrog(from nutsLeaf) nutsLeaf {
	h := r.stepSize * r.direction
	x, p := slices.Clone(from.x), slices.Clone(from.p)
	for i := range x {
		p[i] += h / 2 * r.scale[i] * from.gradient[i]
		x[i] += h * r.scale[i] * p[i]
	}
	to := r.leaf(x, p)
	for i := range p {
		p[i] += h / 2 * r.scale[i] * to.gradient[i]
	}
	to.energy = inner(p, p)/2 - to.logDensity
	return to
}

func inner(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// turnsBack says whether the trajectory of these leaves turns.
func turnsBack(leaves []nutsLeaf) bool {
	rho := make([]float64, len(leaves[0].p))
	for _, l := range leaves {
		for i := range rho {
			rho[i] += l.p[i]
		}
	}
	return !(inner(leaves[0].p, rho) > 0 && inner(leaves[len(leaves)-1].p, rho) > 0)
}

// spans says whether a trajectory that is put together of two halves turns, as a whole or across the seam.
func spans(left, right []nutsLeaf) bool {
	all := slices.Concat(left, right)
	return turnsBack(all) || turnsBack(all[:len(left)+1]) || turnsBack(all[len(left)-1:])
}

// anyTurns says whether a subtree of the given size turns anywhere, as far as its leaves have come.
func anyTurns(leaves []nutsLeaf, size int) bool {
	half := size / 2
	if half == 0 || len(leaves) <= 1 {
		return false
	}
	if anyTurns(leaves[:min(half, len(leaves))], half) {
		return true
	}
	if len(leaves) <= half {
		return false
	}
	if turnsBack(leaves[:half+1]) || anyTurns(leaves[half:], half) {
		return true
	}
	return len(leaves) == size && spans(leaves[:half], leaves[half:])
}

// nutsTransition is what came of one transition; flags are 0 or 1.
type nutsTransition struct {
	x                                       []float64
	moved, acceptance, gradients, divergent float64
}

// transition is one from x. It is not done if it runs out of moves.
func (r *nutsReference) transition(x []float64) (to nutsTransition, done bool) {
	start := r.leaf(x, r.momentum(r.move))
	trajectory, weight := []nutsLeaf{start}, 1.0 // in the direction of time
	to.x = x
	sum := 0.0 // of acceptance
	for depth := 0; ; depth++ {
		if r.move+1<<depth > r.moves {
			return to, false
		}
		if r.choice(r.move, 0) < .5 {
			r.direction = -r.direction
		}
		// The subtree, from the end on; the tree, up to that end.
		tree := slices.Clone(trajectory)
		if r.direction < 0 {
			slices.Reverse(tree)
		}
		var subtree []nutsLeaf
		var candidate []float64
		subWeight, from := 0.0, tree[len(tree)-1]
		for range 1 << depth {
			from = r.leapfrog(from)
			subtree = append(subtree, from)
			w := math.Exp(start.energy - from.energy)
			subWeight += w
			if r.choice(r.move, 1) < w/subWeight {
				candidate = from.x
			}
			to.gradients++
			sum += min(1, w)
			to.acceptance = sum / to.gradients
			r.move++
			if !(from.energy-start.energy <= 1000) {
				to.divergent = 1
				return to, true
			}
			if anyTurns(subtree, 1<<depth) {
				return to, true
			}
		}
		if r.choice(r.move-1, 2) < subWeight/weight {
			to.x, to.moved = candidate, 1
		}
		weight += subWeight
		turned := spans(tree, subtree)
		trajectory = slices.Concat(tree, subtree)
		if r.direction < 0 {
			slices.Reverse(trajectory)
		}
		if turned || depth+1 == r.maxDepth {
			return to, true
		}
	}
}

// The kernel does what the algorithm does, number by number: the same leaves, the same turns, the same choices.
func TestNUTSAgainstRecursion(t *testing.T) {
	const particles, d, most = 40, 3, 700
	// A Gaussian with a quartic well on one axis and a skew one on another.
	density := density.Func(func(x *Node) *Node {
		at := func(i int) *Node { return Squeeze(Slice(x, AxisRange(), AxisElem(i)), 1) }
		a, b, c := at(0), at(1), at(2)
		log := MulScalar(Add(Square(a), Square(Sub(b, MulScalar(a, .8)))), -.5)
		return Sub(log, Add(MulScalar(Square(Square(c)), .25), Sub(Exp(b), b)))
	})
	plain := func(x []float64) (float64, []float64) {
		a, b, c := x[0], x[1], x[2]
		e := b - .8*a
		return -.5*(a*a+e*e) - .25*c*c*c*c - math.Exp(b) + b, []float64{-a + .8*e, -e - math.Exp(b) + 1, -c * c * c}
	}
	scale := []float64{1, .7, 1.3}
	phi := make([]float64, particles*d)
	for i := range phi {
		phi[i] = math.Sin(float64(i))
		if i < particles {
			phi[i] *= 4 // with a large step these diverge
		}
	}
	type run struct {
		stepSize    float64
		moves       int     // at most most, for ten transitions of each particle
		longest     float64 // transition that must occur, in gradients
		divergences bool    // must occur
	}
	for _, engine := range computetest.Engines(t) {
		draws := computetest.Compile(t, engine, func(_ *Graph, a []*Node) []*Node {
			rng := random.New(a[0].Graph(), nutsSeed).At(a[0])
			return []*Node{
				rng.Named("momentum").Normal(dtypes.Float64, particles, d),
				rng.Named("choices").Uniform(dtypes.Float64, particles, 3),
			}
		})
		var choices [][]float64
		// that of the start, and of the end of each move
		momenta := computetest.Run(t, engine, func(g *Graph, _ []*Node) []*Node {
			return []*Node{random.New(g, nutsStartSeed).Named("momentum").Normal(dtypes.Float64, particles, d)}
		})
		for m := range uint32(most) {
			out := draws(m)
			momenta, choices = append(momenta, out[0]), append(choices, out[1])
		}
		for _, c := range []struct {
			maxDepth int
			runs     []run
		}{
			{
				10,
				[]run{
					{stepSize: .04, moves: most, longest: 64}, {stepSize: .3, moves: 300, longest: 15},
					{stepSize: 1.2, moves: 150, longest: 3, divergences: true},
				},
			},
			{3, []run{{stepSize: .05, moves: 150, longest: 7}}},
			{2, []run{{stepSize: .2, moves: 100, longest: 3}}},
			{1, []run{{stepSize: .2, moves: 50, longest: 1}}},
		} {
			if engine.IsXLA() && c.maxDepth != 10 {
				continue // compiles long
			}
			chains := newNUTSChains(t, engine, compute.Float64, NUTS{MaxDepth: c.maxDepth}, density, scale)
			for _, r := range c.runs {
				chains.start(phi, d)
				var got []nutsMove
				for range r.moves {
					got = append(got, chains.move(r.stepSize))
				}
				longest, divergences, transitions := 0.0, 0, 0
				for j := range particles {
					reference := &nutsReference{
						density: plain, stepSize: r.stepSize, scale: scale, maxDepth: c.maxDepth, direction: 1, moves: r.moves,
						momentum: func(move int) []float64 { return slices.Clone(momenta[move][j*d : (j+1)*d]) },
						choice:   func(move, i int) float64 { return choices[move][j*3+i] },
					}
					x := phi[j*d : (j+1)*d]
					for reference.move < r.moves {
						from := reference.move
						want, done := reference.transition(x)
						if !done {
							break
						}
						end := reference.move - 1
						for m := from; m <= end; m++ {
							if (got[m].complete[j] == 1) != (m == end) {
								t.Fatalf("%s, depth %d, %+v: particle %d: the transition from move %d on takes %v gradients, "+
									"but after move %d Complete is %v",
									engine.Name(), c.maxDepth, r, j, from, want.gradients, m, got[m].complete[j])
							}
						}
						g := got[end]
						computetest.Near(t, "acceptance, accepted, divergent, length, phi",
							append([]float64{g.acceptance[j], g.accepted[j], g.divergent[j], g.gradients[j]}, g.phi[j*d:(j+1)*d]...),
							append([]float64{want.acceptance, want.moved, want.divergent, want.gradients}, want.x...), 1e-7)
						if t.Failed() {
							t.Fatalf(
								"%s, depth %d, %+v: particle %d, transition of moves %d to %d", engine.Name(), c.maxDepth, r, j, from, end,
							)
						}
						x = g.phi[j*d : (j+1)*d] // what differs by rounding would grow from transition to transition
						transitions++
						longest = max(longest, want.gradients)
						divergences += int(want.divergent)
					}
				}
				if longest < r.longest || r.divergences && divergences == 0 || transitions < 10*particles {
					t.Errorf(
						"depth %d, %+v: the longest of %d transitions took %v gradients, and %d diverged: this tests little", c.maxDepth,
						r, transitions, longest, divergences,
					)
				}
			}
		}
	}
}
