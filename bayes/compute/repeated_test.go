package compute_test

import (
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

// The steps of a call have the state and the records of as many calls, whether the step can stand in a loop, has one
// itself, or the backend has none.
func TestRepeated(t *testing.T) {
	simple := func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		next := Add(MulScalar(s["x"], .5), Mul(ReduceSum(inputs[0], 0), inputs[1]))
		return compute.Nodes{"x": next}, Reshape(ReduceAllSum(next), 1)
	}
	looped := func(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		if next, record := simple(s, inputs); !compute.CanLoop(s["x"].Graph()) {
			return compute.Nodes{"x": Add(next["x"], next["x"])}, record
		}
		next, record := simple(s, inputs)
		next["x"] = compute.Loop(2, []*Node{next["x"]}, []*Node{ZerosLike(next["x"])},
			func(_ *Node, outer, carried []*Node) []*Node { return []*Node{Add(carried[0], outer[0])} })[0]
		return next, record
	}
	batches := compute.Batches{Reads: []string{"rows"}, Make: func(s compute.Nodes, inputs []*Node) []*Node {
		return []*Node{Gather(s["rows"], ExpandAxes(inputs[0], -1)), inputs[1]}
	}}
	inputs := func(i int) []any { return []any{[]int32{int32(i % 3), int32(i % 2)}, []float64{float64(i), .25}} }
	for _, engine := range computetest.Engines(t) {
		for name, step := range map[string]compute.Step{"simple": simple, "looped": looped} {
			states, records := map[int][]float64{}, map[int][]float64{}
			for _, most := range []int{1, 4} {
				program := compute.NewRepeated(engine, name, []string{"x"}, []string{"x"}, batches, step)
				state := compute.NewState(engine)
				state.Set("x", compute.Floats(compute.Float64, []float64{1, 2}, 2))
				state.Set("rows", compute.Floats(compute.Float64, []float64{1, 2, 3, 4, 5, 6}, 3, 2))
				calls := 0
				for made := 0; made < 10; calls++ {
					got := computetest.Must(program.Run(state, min(most, 10-made), func(i int) []any { return inputs(made + i) }))
					for _, record := range got {
						records[most] = append(records[most], record...)
					}
					made += len(got)
				}
				want := 10
				if most > 1 && name == "simple" && engine.IsXLA() {
					want = 3
				}
				if calls != want {
					t.Errorf("%s on %s: %d calls for 10 steps, want %d", name, engine.Name(), calls, want)
				}
				states[most] = computetest.Must(compute.Float64s(computetest.Must(state.Host("x"))["x"]))
				state.Close()
				program.Close()
			}
			if len(records[4]) != 10 || !slices.Equal(records[1], records[4]) || !slices.Equal(states[1], states[4]) {
				t.Errorf("%s on %s: records %v and %v, ends %v and %v", name, engine.Name(), records[1], records[4], states[1],
					states[4])
			}
		}
	}
}

// A step that is wrong says so itself, and leaves the state as it was.
func TestRepeatedIsWrong(t *testing.T) {
	engine := computetest.Engines(t)[0]
	program := compute.NewRepeated(engine, "wrong", []string{"x"}, []string{"x"},
		compute.Batches{Make: func(_ compute.Nodes, inputs []*Node) []*Node { return inputs }},
		func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
			return compute.Nodes{"x": Add(s["x"], Ones(s["x"].Graph(), s["y"].Shape()))}, s["x"]
		})
	defer program.Close()
	state := compute.NewState(engine)
	defer state.Close()
	_, err := program.Run(state, 4, func(int) []any { return []any{[]float64{1}} })
	computetest.WantError(t, "without x", err, `"wrong"`, `no "x"`)
}
