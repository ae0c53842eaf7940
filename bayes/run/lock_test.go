package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
)

// Of two runs with one checkpoint that are begun at the same instant, before either has written it, one runs and the
// other says which file it is that they share, whether they have the same seed or not. Nothing is left beside the file.
func TestTwoAtOnce(t *testing.T) {
	for _, seed := range []string{"1", "2"} {
		o := options(t)
		first := &adder{steps: 6, seed: "1"}
		late := New(&adder{steps: 6, seed: seed}, o)
		first.before = func(_ context.Context, step int) error {
			if step > 1 {
				return nil
			}
			if err := os.Remove(o.Checkpoint); err != nil { // as if the second had looked for it before the first wrote it
				t.Error(err)
			}
			for range 2 { // nor does it begin anew at a second call, with what it read in the first
				err := late.Loop(context.Background())
				if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), o.Checkpoint) || late.Status() != "" {
					t.Errorf("seed %s: a second run ended with %v, %q", seed, err, late.Status())
				}
			}
			return nil
		}
		if err := New(first, o).Loop(context.Background()); err != nil || first.sum != sumTo(6) {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(filepath.Dir(o.Checkpoint))
		if err != nil || len(entries) != 1 {
			t.Errorf("left %v, %v", entries, err)
		}
	}
}

// A finished run can be read while another one has the lock, as several readers have in turn.
func TestReadFinishedInUse(t *testing.T) {
	o := options(t)
	computetest.NoError(t, New(&adder{steps: 6}, o).Loop(context.Background()))
	other := New(&adder{steps: 6}, o)
	computetest.NoError(t, other.lock())
	defer other.unlock()
	reader := &adder{steps: 6}
	if err := New(reader, o).Loop(context.Background()); err != nil || reader.sum != sumTo(6) {
		t.Errorf("%v, sum %v", err, reader.sum)
	}
}

// holdLock is the environment variable with the checkpoint that a program started by TestKilled locks.
const holdLock = "GOBNN_TEST_HOLD_LOCK"

// Another program's lock counts while the program lives. The file that it leaves when it is killed counts for nothing.
func TestKilled(t *testing.T) {
	if path := os.Getenv(holdLock); path != "" {
		r := New(&adder{}, Options{Owner: "test", Checkpoint: path})
		computetest.NoError(t, r.lock())
		os.Stdout.WriteString("locked\n") //nolint:errcheck // the test would wait
		select {}
	}
	o := options(t)
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), holdLock+"="+o.Checkpoint)
	out := computetest.Must(child.StdoutPipe())
	computetest.NoError(t, child.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := New(&adder{steps: 6}, o).Loop(context.Background()); !errors.Is(err, ErrInUse) {
		t.Errorf("while another program has the lock: %v", err)
	}
	computetest.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(o.Checkpoint), ".*.lock")); err != nil || len(left) != 1 {
		t.Fatalf("the killed program left %v, %v", left, err)
	}
	if err := New(&adder{steps: 6}, o).Loop(context.Background()); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
}
