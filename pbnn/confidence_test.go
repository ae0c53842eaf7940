package pbnn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/mcmc"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// c_t by Bardenet and Maillard's formula, worked out apart, and by what it must do: 0 by all rows, and hold with its
// probability for samples of a population.
func TestBernsteinSerfling(t *testing.T) {
	const rows = 50
	ts := []float64{2, 25, 26, 49, 50}
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		out := computetest.Run(t, engine, func(_ *Graph, a []*Node) []*Node {
			ofStdDev, ofRange := bernsteinSerfling(ConvertDType(a[0], dtype), rows, 3)
			return []*Node{ofStdDev, ofRange}
		}, ts)
		var ofStdDev, ofRange []float64
		for _, n := range ts {
			rho := 1 - (n-1)/rows
			if n > rows/2 {
				rho = (1 - n/rows) * (1 + 1/n)
			}
			ofStdDev = append(ofStdDev, math.Sqrt(2*rho*3/n))
			ofRange = append(ofRange, (7./3+3/math.Sqrt2)*3/n)
		}
		// The last, by all rows, is 0 but for rounding under the root.
		computetest.Near(t, "factor of the standard deviation", out[0], ofStdDev, 1e-4)
		computetest.Near(t, "factor of the range", out[1], ofRange, 1e-6)
	})
}

// A round's rows are the next of a permutation of all; another transition or seed has another; a resumed run finds the
// same.
func TestRowOrder(t *testing.T) {
	draw := func(o *rowOrder, first, round int) []int32 {
		var rows []int32
		if err := o.of(first, round).ConstFlatData(func(flat any) { rows = slices.Clone(flat.([]int32)) }); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	o := &rowOrder{seed: 4, rows: 23, size: 5}
	var all []int32
	for round := range 5 {
		rows := draw(o, 7, round)
		if again := draw(&rowOrder{seed: 4, rows: 23, size: 5}, 7, round); !slices.Equal(rows, again) {
			t.Errorf("round %d: %v, anew %v", round, rows, again)
		}
		all = append(all, rows...)
	}
	all = all[:23]
	first := slices.Clone(all[:5])
	slices.Sort(all)
	for i, row := range all {
		if int(row) != i {
			t.Fatalf("no permutation: %v", all)
		}
	}
	if slices.Equal(first, draw(o, 8, 0)) || slices.Equal(first, draw(&rowOrder{seed: 5, rows: 23, size: 5}, 7, 0)) {
		t.Error("another transition or seed has the same rows")
	}
	// Move 9 is the third round of the transition that began with move 7, where some chains have decided; with none in a
	// transition it begins one.
	for round, carried := range map[int][]float64{2: {0, 2, 2}, 0: {0, 0, 0}} {
		asked, err := o.next(context.Background(), 9,
			map[string]*tensors.Tensor{"rounds": compute.Floats(compute.Float64, carried, 3)})
		if err != nil {
			t.Fatal(err)
		}
		var got []int32
		err = asked[0].(*tensors.Tensor).ConstFlatData(func(flat any) { got = slices.Clone(flat.([]int32)) })
		if err != nil {
			t.Fatal(err)
		}
		if want := draw(o, 9-round, round); !slices.Equal(got, want) {
			t.Errorf("rounds %v: rows %v, want %v", carried, got, want)
		}
	}
}

// Twice as many rows each time are the rounds after which a step may be decided.
func TestLooks(t *testing.T) {
	for _, c := range []struct {
		rows, size int
		want       []int
	}{{1000, 100, []int{0, 1, 3, 7}}, {1050, 100, []int{0, 1, 3, 7}}, {100, 100, nil}, {101, 100, []int{0}}} {
		after, count := confident{Rows: c.rows, BatchSize: c.size}.looks()
		var got []int
		for i, look := range after {
			if look {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, c.want) || count != len(c.want) || len(after) != (c.rows+c.size-1)/c.size {
			t.Errorf("%+v: looks after %v, %d of them", c, got, count)
		}
	}
}

// shown are the differences of a round, as they stand, [J, n].
type shown struct {
	density.Target
	values *Node
}

func (l shown) WithMiniBatch(random.Stream) density.Target { return l }

func (l shown) Differences(random.Stream, *Node, *Node) (estimates, variance *Node, degrees float64) {
	return l.values, nil, 0
}

// Each chain decides in the round, and in the way, that the rule says, worked out here from the rows' differences so
// far; one that has decided waits; a round that is not full counts what it has; and a difference that is not finite
// rejects its own chain alone.
func TestConfidenceDecides(t *testing.T) {
	const chains, rows, size = 40, 43, 5
	rng := rand.New(rand.NewPCG(8, 9))
	differences := make([][]float64, chains)
	for j := range differences {
		differences[j] = make([]float64, rows)
		center := 4 * rng.NormFloat64()
		for i := range differences[j] {
			differences[j][i] = center + .5*rng.NormFloat64() + 1.2*float64(i/size%2) // rounds differ
		}
	}
	differences[3][12] = math.NaN()
	names := []string{"proposal", "level", "mean", "squares", "low", "high", "rounds"}
	k := confident{kernel: kernel{Proposal: RandomWalk, Estimate: MeanOfBatches, Rule: Naive, StepSize: 1}, Rows: rows,
		BatchSize: size, Error: .3}
	after, looks := k.looks()
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		move := computetest.Compile(t, engine, func(g *Graph, a []*Node) []*Node {
			s := mcmc.State{Phi: ConvertDType(a[0], dtype), Auxiliary: map[string]*Node{}}
			for i, name := range names {
				s.Auxiliary[name] = ConvertDType(a[2+i], dtype)
			}
			next, info := k.Move(random.New(g, 5), s, shown{values: ConvertDType(a[1], dtype)}, mcmc.Tuning{})
			out := []*Node{next.Phi, info.Complete, info.Accepted, info.NonFinite, info.Length}
			for _, name := range names {
				out = append(out, next.Auxiliary[name])
			}
			return out
		})
		column := func(values []float64) any { return compute.Floats(compute.Float64, values, chains, 1) }
		phi := make([]float64, chains)
		args := []any{column(phi), nil, column(phi), phi, phi, phi, phi, phi, phi}
		decided := make([]bool, chains)
		accepted, early, nonFinite := 0, 0, 0
		for round := range after {
			m := min(size, rows-round*size)
			values := make([][]float64, chains)
			for j := range values {
				values[j] = make([]float64, size)
				copy(values[j], differences[j][round*size:round*size+m])
				for i := m; i < size; i++ {
					values[j][i] = 1e6 // not to be looked at
				}
			}
			args[1] = values
			out := move(args...)
			level, proposal := out[6], out[5]
			for j := range chains {
				seen := differences[j][:round*size+m]
				n := float64(len(seen))
				mean, squares := 0.0, 0.0
				for _, v := range seen {
					mean += v / n
				}
				for _, v := range seen {
					squares += (v - mean) * (v - mean)
				}
				c := slices.Max(seen) - slices.Min(seen)
				rho := 1 - (n-1)/rows
				if n > rows/2. {
					rho = (1 - n/rows) * (1 + 1/n)
				}
				logarithm := math.Log(5 * float64(looks) / k.Error)
				bound := math.Sqrt(squares/n)*math.Sqrt(2*rho*logarithm/n) + (7./3+3/math.Sqrt2)*c*logarithm/n
				lambda := mean + level[j]
				finite := !math.IsNaN(mean)
				now := !decided[j] && (!finite || len(seen) == rows || after[round] && math.Abs(lambda) >= bound)
				if now != (out[1][j] == 1) || now && (finite && lambda > 0) != (out[2][j] == 1) || now &&
					finite == (out[3][j] == 1) {
					t.Errorf("chain %d, round %d: complete %v, accepted %v, not finite %v; lambda %.3f, bound %.3f, want decided %v",
						j, round, out[1][j], out[2][j], out[3][j], lambda, bound, now)
				}
				if now {
					decided[j] = true
					if out[4][j] != float64(round+1) {
						t.Errorf("chain %d: %v rounds in round %d", j, out[4][j], round)
					}
					if out[2][j] == 1 {
						accepted++
						if phi[j] = proposal[j]; out[0][j] != proposal[j] {
							t.Errorf("chain %d did not move", j)
						}
					}
					if len(seen) < rows {
						early++
					}
					nonFinite += int(out[3][j])
				} else if out[0][j] != phi[j] {
					t.Errorf("chain %d moved in round %d", j, round)
				}
			}
			args[0] = column(out[0])
			for i := range names {
				args[2+i] = out[5+i]
			}
			args[2] = column(proposal)
		}
		if accepted < 5 || accepted > 35 || early < 5 || early > 35 || nonFinite != 1 || slices.Contains(decided, false) {
			t.Errorf("accepted %d, %d before all rows, %d not finite, decided %v: the test has nothing to say", accepted,
				early, nonFinite, decided)
		}
		if rounds := args[8].([]float64); slices.Max(rounds) != 0 {
			t.Errorf("rounds %v after all have decided", rounds)
		}
	})
}

// With all rows in one round it is Metropolis' algorithm on all rows, draw by draw, for either target.
func TestConfidenceByAllRows(t *testing.T) {
	engine, data := computetest.Go(t), line(30)
	for target, all := range map[FromMiniBatches]FromAllRows{TargetFull{}: TargetFullData{},
		TargetExpected{Points: 7}: TargetTempered{Points: 7}} {
		got, err := fitLine(Confidence{Target: target, BatchSize: 30, StepSize: .2}, data, quick(engine))
		if err != nil {
			t.Fatal(err)
		}
		want, err := fitLine(AllRows{Target: all, Kernel: mcmc.RandomWalkMetropolis{StepSize: .2}}, data, quick(engine))
		if err != nil {
			t.Fatal(err)
		}
		computetest.Near(t, target.String(), flat(t, got), flat(t, want), 1e-9)
		if accepted := want.Chains.Stats[0].Accepted; accepted == 0 || accepted == 20 ||
			got.Chains.Stats[0].Accepted != accepted {
			t.Errorf("%s: accepted %d and %d", target, got.Chains.Stats[0].Accepted, accepted)
		}
	}
}

// On the conjugate regression, by the same test as the penalty, with an Error whose share is far below what the test
// can see; most steps are decided before all rows are seen.
func TestConfidenceIsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	confidenceIsExact(t, computetest.Go(t), confidenceCase{"full", rowsOfLine,
		Confidence{Target: TargetFull{}, BatchSize: 100, Error: .01, StepSize: step(1.2, rowsOfLine)}, 1})
}

type confidenceCase struct {
	name    string
	rows    int
	sampler Confidence
	share   float64 // of the rows that a step takes at most
}

func confidenceIsExact(t *testing.T, engine *compute.Engine, cases ...confidenceCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := line(c.rows)
			mean, covariance := exact(data, c.sampler.Target.ForBatchSize(0).EffectivePoints(c.rows))
			s := Settings{Chains: 8, Draws: 1500, Thin: 2, WarmUp: 30, Seed: 3, DType: compute.Float64,
				Engine: engine}
			result, err := FitFrom(context.Background(), atExact(t, mean, covariance, 8), c.sampler, dataset.Parts{Train: data},
				s)
			if err != nil {
				t.Fatal(err)
			}
			p, what := worst(result.Chains.Draws, mean, covariance)
			places := 2.
			if c.sampler.Proposal == Langevin {
				places = 4
			}
			share := result.RowsPerStep / places / float64(c.rows)
			t.Logf("p %.2g: %s; acceptance %.2f, %.2f of the rows a step, %.0f passes, %d moves, %s", p, what,
				result.Acceptance, share, result.Passes, result.Chains.Moves, result.Elapsed)
			if p < 1e-3 {
				t.Errorf("%s, p %.2g", what, p)
			}
			if share > c.share {
				t.Errorf("a step takes %.2f of the rows", share)
			}
		})
	}
}
