package compute_test

import (
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"

	. "github.com/gomlx/gomlx/core/graph"
)

var cut = []string{"x", "more/"}

// centred is a step over particles x, [J, 2], that needs sums over all of them: x' = x - mean + shift, and new entries.
func centred(s compute.Nodes, inputs []*Node) (compute.Nodes, *Node) {
	mean := ReduceMean(s["x"], 0) // [2]
	x := Add(Sub(s["x"], BroadcastToShape(ExpandAxes(mean, 0), s["x"].Shape())),
		BroadcastToShape(ExpandAxes(s["shift"], 0), s["x"].Shape()))
	x = Add(x, BroadcastToShape(inputs[0], x.Shape()))
	turned := Gather(s["x"], ExpandAxes(inputs[1], -1)) // from wherever the particle lies
	return compute.Nodes{"x": x, "mean": mean, "more/turned": turned, "steps": OnePlus(s["steps"])},
		Concatenate([]*Node{mean, Reshape(s["steps"], 1)}, 0)
}

// Steps over a state that devices share give what they give on one; each device holds its part, and the whole of
// everything else.
func TestSharding(t *testing.T) {
	engine := computetest.Several(t)
	const particles = 8
	start := make([]float64, 2*particles)
	for i := range start {
		start[i] = float64(i*i%7) - .5
	}
	var want []float64
	for _, devices := range []int{1, 2, 4} {
		state := computetest.Must(compute.NewShardedState(engine, compute.Sharding{Devices: devices, Particles: cut}))
		defer state.Close()
		program := computetest.Must(compute.NewProgram(engine, "centred", []string{"x", "shift", "steps"},
			[]string{"x", "mean", "more/turned", "steps"}, centred))
		defer program.Close()
		state.Set("x", compute.Floats(compute.Float64, start, particles, 2))
		state.Set("shift", compute.Floats(compute.Float64, []float64{.25, -3}, 2))
		state.Set("steps", compute.Floats(compute.Float64, []float64{0}))
		computetest.Near(t, "x before a step", host(state, "x"), start, 0)
		var got []float64
		turn := []int32{7, 6, 5, 4, 3, 2, 1, 0}
		for step := range 3 {
			consumed := entry(state, "x")
			record, err := program.Run(state, compute.Floats(compute.Float64, []float64{float64(step)}), turn)
			if err != nil {
				t.Fatalf("%d devices: %v", devices, err)
			}
			if _, err := compute.Float64s(consumed); step > 0 && err == nil {
				t.Errorf("%d devices: a donated part can still be read", devices)
			}
			if step == 1 { // a tensor from the host takes the place of one on the devices, as when a run is resumed
				state.Set("x", computetest.Must(state.Host("x"))["x"])
			}
			got = append(got, record...)
		}
		for _, name := range state.Names() {
			got = append(got, read(t, state, name)...)
			shards := computetest.Must(state.Shards(name))
			rows := map[string]int{"x": particles / devices, "more/turned": particles / devices, "mean": 2, "shift": 2}[name]
			if len(shards) != devices {
				t.Errorf("%q lies on %d devices, not %d", name, len(shards), devices)
			}
			for i, shard := range shards {
				if rows != 0 && shard.Shape().Dim(0) != rows {
					t.Errorf("device %d of %d holds %q of shape %s, want %d rows", i, devices, name, shard.Shape(), rows)
				}
				if on, err := shard.Device(); err != nil || int(on) != i {
					t.Errorf("part %d of %q lies on device %d (%v)", i, name, on, err)
				}
			}
		}
		if want == nil {
			want = got
		}
		computetest.Near(t, "results", got, want, 1e-14)
		if names := state.Names(); !slices.Equal(names, []string{"mean", "more/turned", "shift", "steps", "x"}) {
			t.Errorf("names %q", names)
		}
		state.Close()
		if len(state.Names()) != 0 {
			t.Errorf("a closed state holds %q", state.Names())
		}
	}
}

func TestShardingErrors(t *testing.T) {
	engine := computetest.Several(t)
	_, err := compute.NewShardedState(engine, compute.Sharding{Devices: 1000})
	computetest.WantError(t, "too many devices", err, "1000", engine.Name())
	state := computetest.Must(compute.NewShardedState(engine, compute.Sharding{Devices: 2, Particles: cut}))
	defer state.Close()
	sum := func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
		return compute.Nodes{}, Reshape(ReduceAllSum(s["x"]), 1)
	}
	program := computetest.Must(compute.NewProgram(engine, "sum", []string{"x"}, nil, sum))
	defer program.Close()
	_, err = program.Run(state)
	computetest.WantError(t, "an entry that is not there", err, `"x"`, "sum")
	state.Set("x", compute.Floats(compute.Float64, []float64{1, 2, 3}, 3))
	_, err = program.Run(state)
	computetest.WantError(t, "an odd number of particles", err, `"x"`, "2 devices", "[3]")
	state.Set("x", compute.Floats(compute.Float64, []float64{1, 2, 3, 4}, 4))
	if record, err := program.Run(state); err != nil || record[0] != 10 {
		t.Errorf("after the faults: %v, %v", record, err)
	}
	one := compute.NewState(engine)
	defer one.Close()
	one.Set("x", compute.Floats(compute.Float64, []float64{1}, 1))
	_, err = program.Run(one)
	computetest.WantError(t, "another number of devices", err, "2 devices", "by 1")
}

func TestCheckDevices(t *testing.T) {
	for _, engine := range computetest.Engines(t) {
		have := engine.Devices()
		for _, c := range []struct {
			devices, particles int
			says               string
		}{
			{1, 7, ""}, {have, 3 * have, ""},
			{0, 4, "at least 1"}, {-2, 4, "-2 devices"}, {have + 1, have + 1, "at most"},
		} {
			err := engine.CheckDevices(c.devices, c.particles)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %d devices, %d particles: %v, want %q", engine.Name(), c.devices, c.particles, err, c.says)
			}
		}
	}
	engine := computetest.Several(t)
	for particles, says := range map[int]string{1001: "share 1001 equally: take 1000 or 1004",
		3: "share 3 equally: take 4"} {
		computetest.WantError(t, "particles", engine.CheckDevices(4, particles), says)
	}
}

// Programs of several goroutines, each on all devices, do not wait for one another for ever.
func TestShardingConcurrently(t *testing.T) {
	engine := computetest.Several(t)
	failures := make(chan error)
	const runs = 3
	for range runs {
		go func() {
			failures <- func() error {
				state, err := compute.NewShardedState(engine, compute.Sharding{Devices: 4, Particles: cut})
				if err != nil {
					return err
				}
				defer state.Close()
				program, err := compute.NewProgram(engine, "sum", []string{"x"}, []string{"x"},
					func(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
						x := Sub(s["x"], ReduceAndKeep(s["x"], ReduceMean, 0))
						x = Sub(AddScalar(x, 1), ReduceAndKeep(x, ReduceMax, 0))
						return compute.Nodes{"x": x}, Reshape(ReduceAllSum(x), 1)
					})
				if err != nil {
					return err
				}
				defer program.Close()
				state.Set("x", compute.Floats(compute.Float64, make([]float64, 4000), 400, 10))
				for range 300 {
					if _, err := program.Run(state); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range runs {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}
