package compute_test

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// walk is a step x' = a x + input, n' = n + 1, recording the sum of x' and n'.
func walk(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	x := Add(Mul(s["x"], s["a"]), inputs[0])
	n := OnePlus(s["n"])
	return compute.Nodes{"x": x, "n": n}, Stack([]*Node{ReduceAllSum(x), n}, 0)
}

// newProgram is a program and a state of these entries, both closed at the end of the test.
func newProgram(
	t testing.TB, engine *compute.Engine, reads, updates []string, step compute.Step, entries map[string]*tensors.Tensor,
) (*compute.Program, *compute.State) {
	t.Helper()
	program := computetest.Must(compute.NewProgram(engine, t.Name(), reads, updates, step))
	t.Cleanup(program.Close)
	state := compute.NewState(engine)
	t.Cleanup(state.Close)
	for name, x := range entries {
		state.Set(name, x)
	}
	return program, state
}

func newWalk(t testing.TB, engine *compute.Engine, dtype compute.DType) (*compute.Program, *compute.State) {
	t.Helper()
	return newProgram(t, engine, []string{"x", "a", "n"}, []string{"x", "n"}, walk, map[string]*tensors.Tensor{
		"x": compute.Floats(dtype, []float64{1, 2, -.5}, 3), "a": compute.Floats(dtype, []float64{.5, -1, 2}, 3),
		"n": compute.Floats(dtype, []float64{0}),
	})
}

// zeros are numbers of a shape.
func zeros(dims ...int) *tensors.Tensor {
	size := 1
	for _, d := range dims {
		size *= d
	}
	return compute.Floats(compute.Float32, make([]float64, size), dims...)
}

// host is a copy of an entry on the host.
func host(state *compute.State, name string) []float64 {
	return computetest.Must(compute.Float64s(computetest.Must(state.Host(name))[name]))
}

func read(t *testing.T, state *compute.State, name string) (v []float64) {
	t.Helper()
	if err := state.Read(name, func(x *tensors.Tensor) (err error) {
		v, err = compute.Float64s(x)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return v
}

// entry is what the first device holds of an entry.
func entry(state *compute.State, name string) *tensors.Tensor {
	return computetest.Must(state.Shards(name))[0]
}

// Steps compute what a plain loop does; what the step does not replace stays; a copy on the host does not change with
// later steps; the tensor that a step consumed cannot be used any more.
func TestProgram(t *testing.T) {
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		program, state := newWalk(t, engine, dtype)
		x, a := []float64{1, 2, -.5}, []float64{.5, -1, 2}
		var copied *tensors.Tensor
		var then []float64
		for step := range 5 {
			input := float64(step) * .25
			consumed, kept := entry(state, "x"), entry(state, "a")
			record := computetest.Must(program.Run(state, compute.Floats(dtype, []float64{input})))
			sum := 0.0
			for i := range x {
				x[i] = a[i]*x[i] + input
				sum += x[i]
			}
			computetest.Near(t, "record", record, []float64{sum, float64(step + 1)}, 1e-6)
			if step > 0 { // in step 0 it still had the copy on the host that it was made from
				if v, err := compute.Float64s(consumed); err == nil {
					t.Errorf("step %d: a donated tensor can still be read: %v", step, v)
				}
			}
			if entry(state, "a") != kept {
				t.Errorf("step %d: an entry that is only read was replaced", step)
			}
			if step == 2 {
				copied, then = computetest.Must(state.Host("x"))["x"], slices.Clone(x)
			}
		}
		computetest.Near(t, "state", host(state, "x"), x, 1e-6)
		computetest.Near(t, "copy of step 2", computetest.Must(compute.Float64s(copied)), then, 1e-6)
		computetest.Near(t, "state as it is read", read(t, state, "x"), x, 1e-6)
		if got := state.Names(); !slices.Equal(got, []string{"a", "n", "x"}) {
			t.Errorf("names %q", got)
		}
		_, err := state.Host("x", "nothing")
		computetest.WantError(t, "Host of what is not there", err, `"nothing"`)
		err = state.Read("nothing", func(*tensors.Tensor) error { return nil })
		computetest.WantError(t, "Read of what is not there", err, `"nothing"`)
		state.Close()
		if len(state.Names()) != 0 {
			t.Errorf("a closed state holds %q", state.Names())
		}
	})
}

// A step may make entries that were not there, and replace some that it does not read.
func TestNewEntries(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		program, state := newProgram(t, engine, nil, []string{"y"},
			func(_ compute.Nodes, in []*Node) (compute.Nodes, *Node) {
				return compute.Nodes{"y": MulScalar(in[0], 3)}, in[0]
			}, nil)
		for _, v := range []float32{2, 5} {
			var before *tensors.Tensor
			if len(state.Names()) > 0 {
				before = entry(state, "y")
			}
			if _, err := program.Run(state, v); err != nil {
				t.Fatal(err)
			}
			if got := host(state, "y")[0]; got != float64(3*v) {
				t.Errorf("y = %v, want %v", got, 3*v)
			}
			if before != nil && before.Ok() {
				t.Error("the replaced tensor still holds its memory")
			}
		}
	}
}

func TestProgramErrors(t *testing.T) {
	fault, one := errors.New("a fault in the graph"), float32(1)
	for _, engine := range computetest.Engines(t) {
		for _, c := range []struct {
			name  string
			reads []string
			input any
			step  compute.Step
			says  []string
			kept  bool
		}{
			{"missing entry", []string{"x", "absent"}, one, walk, []string{`"absent"`, `"x"`}, true},
			{"forgotten update", []string{"x"}, one, func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
				return compute.Nodes{}, ReduceAllSum(s["x"])
			}, []string{`"x"`, "update"}, false},
			{"update not declared", []string{"x"}, one, func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
				return compute.Nodes{"x": s["x"], "y": s["x"]}, ReduceAllSum(s["x"])
			}, []string{"2 entries", `"x"`}, false},
			{"panic", []string{"x"}, one, func(compute.Nodes, []*Node) (compute.Nodes, *Node) { panic(fault) },
				[]string{fault.Error()}, false},
			{"GoMLX's panic", []string{"x"}, one, func(s compute.Nodes, in []*Node) (compute.Nodes, *Node) {
				return compute.Nodes{"x": Add(s["x"], Const(s["x"].Graph(), []float32{1, 2}))}, in[0]
			}, []string{"shape"}, false},
			{"nil", []string{"x"}, nil, walk, []string{"input 0 is nil"}, true},
			{"no tensor", []string{"x"}, (*tensors.Tensor)(nil), walk, []string{"input 0 is nil"}, true},
		} {
			t.Run(c.name+" on "+engine.Name(), func(t *testing.T) {
				program, state := newProgram(t, engine, c.reads, []string{"x"}, c.step, map[string]*tensors.Tensor{
					"x": compute.Floats(compute.Float32, []float64{1, 2, 3}, 3)})
				_, err := program.Run(state, c.input)
				computetest.WantError(t, "the first run", err, append(c.says, t.Name())...)
				if c.kept { // found before anything was donated
					computetest.Near(t, "x after the error", host(state, "x"), []float64{1, 2, 3}, 0)
				}
				if _, err := program.Run(state, c.input); err == nil {
					t.Error("the second run went well")
				}
			})
		}
	}
}

func TestFloats(t *testing.T) {
	given := []float64{1, math.Pi, math.Inf(-1), math.NaN(), 1e300, math.Copysign(0, -1)}
	for _, c := range []struct {
		dtype compute.DType
		round func(float64) float64
	}{
		{compute.Float64, func(v float64) float64 { return v }},
		{compute.Float32, func(v float64) float64 { return float64(float32(v)) }},
	} {
		x := compute.Floats(c.dtype, given, 2, 3)
		if x.DType() != c.dtype || !slices.Equal(x.Shape().Dimensions, []int{2, 3}) {
			t.Errorf("%s: a tensor of shape %s", c.dtype, x.Shape())
		}
		for i, got := range computetest.Must(compute.Float64s(x)) {
			if want := c.round(given[i]); math.Float64bits(got) != math.Float64bits(want) &&
				!(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: %v came back as %v, want %v", c.dtype, given[i], got, want)
			}
		}
	}
	given[0] = 7
	if x := compute.Floats(compute.Float64, given, 6); computetest.Must(compute.Float64s(x))[0] != 7 {
		t.Error("Floats does not copy what it was given")
	} else if given[0] = 8; computetest.Must(compute.Float64s(x))[0] != 7 {
		t.Error("the tensor changed with the slice that it was made from")
	}
	_, err := compute.Float64s(tensors.FromFlatDataAndDimensions([]int32{1}, 1))
	computetest.WantError(t, "Float64s of an int32", err, "Int32")
}

// Chunks are as many as make up the particles, keep to the budget, and say so; unrolled there are no more than a graph
// can hold.
func TestPlan(t *testing.T) {
	const budget, most = 32 << 20, 32 // bytes, chunks: see NewPlan
	for _, j := range []int{1, 2, 3, 31, 32, 33, 100, 1000, 10_007, 200_000} {
		for _, bytes := range []int64{0, 1, 1000, 33 << 10, 1 << 20, 33 << 20, 1 << 40} {
			for _, chunk := range []int{0, 1, 7, 100, j, 2 * j} {
				plan := compute.NewPlan(j, bytes, chunk)
				count := plan.Chunks()
				if plan.Particles != j || plan.Chunk < 1 || (count-1)*plan.Chunk >= j || count*plan.Chunk < j {
					t.Fatalf("%+v: chunks that do not make up %d particles", plan, j)
				}
				switch {
				case chunk > 0 && plan.Chunk != min(chunk, j):
					t.Fatalf("%+v: chunks of %d were asked for", plan, chunk)
				case chunk == 0 && plan.Bytes > budget && plan.Chunk > 1:
					t.Fatalf("%+v: a chunk beyond the budget", plan)
				case chunk == 0 && plan.InFewChunks().Chunks() > most:
					t.Fatalf("%+v: unrolled it is %+v", plan, plan.InFewChunks())
				case (chunk > 0 || count <= most) && plan.InFewChunks() != plan:
					t.Fatalf("%+v: unrolled it is %+v", plan, plan.InFewChunks())
				case chunk == 0 && int64(j)*bytes <= budget && count != 1:
					t.Fatalf("%+v: all particles fit one chunk", plan)
				}
			}
		}
	}
	if plan := compute.NewPlan(10_000, 12<<10, 0); plan.Chunks() != 4 || plan.Chunk != 2500 {
		t.Errorf("%+v: want 4 equal ones", plan)
	}
}

// A parallel plan has a multiple of as many chunks as lanes, or nearly, each within the budget where the number of
// chunks allows it.
func TestParallelPlan(t *testing.T) {
	for _, j := range []int{1, 2, 5, 100, 1000, 10_007} {
		for _, bytes := range []int64{0, 1000, 61 << 10, 3 << 20, 1 << 30} {
			plan := compute.NewParallelPlan(j, bytes)
			small := int64(j)*bytes < 4<<20
			if plan.Particles != j || plan.Chunk < 1 || plan.Concurrent < 1 ||
				plan.Concurrent > min(8, compute.Threads()) || small && plan.Chunks() != 1 ||
				!small && plan.Chunks() < min(j, plan.Concurrent) {
				t.Errorf("%d particles of %d bytes: %+v, %d lanes", j, bytes, plan, plan.Concurrent)
			}
			if before := plan.Before(plan.Concurrent + 3); before != 3 || plan.Before(0) != -1 ||
				plan.Before(plan.Concurrent-1) != -1 {
				t.Errorf("%d lanes: chunk %d waits for %d", plan.Concurrent, plan.Concurrent+3, before)
			}
		}
	}
	for text, threads := range map[string]int{"": runtime.NumCPU(), "6": 6, "0": 1, "many": runtime.NumCPU()} {
		t.Setenv("NPROC", text) // by which XLA goes too
		if plan := compute.NewParallelPlan(64, 1<<20); compute.Threads() != threads ||
			plan.Concurrent != min(8, threads) {
			t.Errorf("NPROC=%q: %d threads, %+v, want %d", text, compute.Threads(), plan, threads)
		}
	}
}

// After returns x to the bit, whatever it waits for, and takes no part in gradients.
func TestAfter(t *testing.T) {
	computetest.Each(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		run := computetest.Compile(t, engine, func(_ *Graph, a []*Node) []*Node {
			x, before := ConvertDType(a[0], dtype), ConvertDType(a[1], dtype)
			y := compute.Barrier(x, before)
			return append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, y)), x, before)...)
		})
		x := []float64{1, -2.5, 0}
		for _, before := range [][]float64{{1, 2}, {math.NaN(), 1}, {math.Inf(1), 0}, {math.Inf(-1), math.Inf(-1)},
			{math.MaxFloat32, math.MaxFloat32}} {
			out := run(x, before)
			computetest.Near(t, "x", out[0], x, 0)
			computetest.Near(t, "its gradient", out[1], []float64{2, -5, 0}, 0)
			computetest.Near(t, "that of what it waits for", out[2], []float64{0, 0}, 0)
		}
	})
}

// BenchmarkCall is the floor of a Program.Run: a step that adds a scalar to three numbers, and its record on the host.
func BenchmarkCall(b *testing.B) {
	for _, engine := range computetest.Engines(b) {
		b.Run(engine.Name(), func(b *testing.B) {
			program, state := newWalk(b, engine, compute.Float32)
			input := compute.Floats(compute.Float32, []float64{0})
			if _, err := program.Run(state, input); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := program.Run(state, input); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A step that begins a state gives on the Go backend, where few numbers are made, what it gives on the state's own:
// words to the bit, normals up to their last bits; also where devices share the state.
func TestInitial(t *testing.T) {
	step := func(_ compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
		rng := random.FromKey(inputs[0])
		uniform := rng.Named("u").Uniform(compute.Float32, 8, 3)
		return compute.Nodes{"u": uniform, "z": rng.Named("z").Normal(compute.Float64, 8, 200)},
			Reshape(ReduceAllMax(uniform), 1)
	}
	for _, engine := range computetest.Engines(t) {
		devices := 1
		if engine.IsXLA() {
			engine, devices = computetest.Several(t), 4
		}
		var got [2]map[string][]float64
		for i, numbers := range []int{1, 1 << 30} {
			program := computetest.Must(compute.NewInitial(engine, "initial", numbers, []string{"u", "z"}, step))
			defer program.Close()
			sharding := compute.Sharding{Devices: devices, Particles: []string{"u", "z"}}
			state := computetest.Must(compute.NewShardedState(engine, sharding))
			defer state.Close()
			record, err := program.Run(state, random.KeyOf(7).Words())
			if err != nil || len(record) != 1 || !(record[0] > .5) {
				t.Fatalf("record %v, %v", record, err)
			}
			got[i] = map[string][]float64{"u": host(state, "u"), "z": host(state, "z")}
		}
		for name, tolerance := range map[string]float64{"u": 0, "z": 1e-14} {
			computetest.Near(t, name, got[0][name], got[1][name], tolerance)
		}
	}
}
