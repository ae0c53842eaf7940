//go:build long

package fit_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/ohsmc"
	"gobnn/pbnn"
)

// manySteps is the number of steps of a run in TestManyStepsLong: with -steps 1000000 it takes six minutes.
var manySteps = flag.Int("steps", 100_000, "steps of each run in TestManyStepsLong")

// standing is how a run stands at one of its tenths.
type standing struct {
	step     int // as Progress has it
	when     time.Time
	resident int64 // bytes of the process in memory, VmRSS
	heap     int64 // of them those that Go holds after a collection
	file     int64 // bytes of the largest checkpoint
}

// stand measures a run's process and its checkpoints, whose names begin alike.
func stand(t *testing.T, step int, checkpoint string) standing {
	t.Helper()
	s := standing{step: step, when: time.Now()}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.heap = int64(m.HeapAlloc)
	if f, err := os.Open("/proc/self/status"); err == nil { // of Linux
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &s.resident); err == nil {
				s.resident <<= 10
				break
			}
		}
	}
	files := computetest.Must(filepath.Glob(checkpoint + "*"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			s.file = max(s.file, info.Size())
		}
	}
	return s
}

// A run of many steps takes no more memory at its end than after a tenth, and its checkpoint has what it has kept and
// no more: 100 draws of a chain, or a record for each step of a training, of 13 numbers, which are in memory too. Small
// runs are made of each kind, with a checkpoint every two seconds. Go's heap may grow by 2 MiB beside that, and the
// process, of which Go's collector and XLA decide, by 64 MiB. Seconds a step are told, and not judged.
func TestManyStepsLong(t *testing.T) {
	steps := *manySteps
	if steps < 1000 {
		t.Fatalf("-steps is %d: it must be at least 1000", steps)
	}
	const draws = 100
	records := int64(steps * 13 * 8) // bytes
	chains := mcmc.Chains{Chains: 1, Draws: draws, Thin: steps / draws, WarmUp: mcmc.NoWarmUp}
	hmc := chains
	hmc.Kernel = mcmc.HMC{StepSize: .02, Steps: 3}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{5}}, Likelihood: bayes.Gaussian{StdDev: sd},
		Stochastic: bayes.All()}
	for _, c := range []struct {
		name, stage string // of Progress, that is measured
		method      fit.Method
		grows       int64 // bytes that are kept of all steps
	}{
		{"penalty", "chains: draws", pbnn.Metropolis{BatchSize: 10, Batches: 2, StepSize: .01, Sampling: pbnn.Sampling{
			Chains: 1, Draws: draws, Thin: steps / draws, WarmUp: mcmc.NoWarmUp}}, 32 << 10},
		{"HMC", "draws", hmc, 32 << 10},
		{"SGHMC", "sampling: draws", baseline.SGHMC{Training: baseline.Training{Epochs: 2, BatchSize: 10},
			Chains: chains}, 32 << 10},
		{"open horizon", "", ohsmc.OpenHorizon{Training: particles.Training{Particles: 10, BatchSize: 10,
			Epochs: steps / 10}}, records},
		{"MAP", "training", baseline.MAP{Training: baseline.Training{BatchSize: 10, Epochs: steps / 10}}, records},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := run.Settings{Seed: 1, Engine: computetest.XLA(t, "so many steps take minutes"),
				Checkpoint: filepath.Join(t.TempDir(), "checkpoint"), CheckpointEvery: 2 * time.Second}
			var tenths []standing
			each := 0. // steps of what Progress counts
			s.Progress = func(p run.Progress) {
				if p.Stage != c.stage || p.Step*10 < len(tenths)*p.Steps {
					return
				}
				tenths, each = append(tenths, stand(t, p.Step, s.Checkpoint)), float64(steps)/float64(p.Steps)
			}
			if _, err := fit.Fit(t.Context(), model, c.method, dataset.Parts{Train: plane(100)}, s); err != nil {
				t.Fatal(err)
			}
			n := len(tenths)
			if n < 4 {
				t.Fatalf("Progress was called at %d tenths", n)
			}
			for _, i := range []int{1, n / 2, n - 1} {
				now, before := tenths[i], tenths[i-1]
				t.Logf("%3.0f %%: %.1f MB resident, %.1f MB of Go's, checkpoint %d bytes, %.1f us a step",
					100*float64(now.step)*each/float64(steps), float64(now.resident)/1e6, float64(now.heap)/1e6, now.file,
					now.when.Sub(before.when).Seconds()*1e6/(float64(now.step-before.step)*each))
			}
			tenth, end := tenths[1], stand(t, 0, s.Checkpoint)
			if grown := end.file - tenths[0].file; grown > c.grows {
				t.Errorf("the checkpoint has grown by %d bytes, more than %d", grown, c.grows)
			}
			if grown := tenths[n-1].heap - tenth.heap; grown > c.grows+2<<20 {
				t.Errorf("Go's memory has grown by %d bytes, more than %d", grown, c.grows+2<<20)
			}
			if grown := tenths[n-1].resident - tenth.resident; grown > 64<<20 {
				t.Errorf("the process has grown by %d bytes", grown)
			}
		})
	}
}
