package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopVariable, when set, makes this test's program the cell that TestStopButton stops: the checkpoint's file.
const stopVariable = "GOBNN_TEST_STOP"

const stopSteps = 100

func stoppedCell(file string) error {
	a := &adder{steps: stopSteps, before: func(_ context.Context, step int) error {
		fmt.Println("step", step)
		time.Sleep(5 * time.Millisecond)
		return nil
	}}
	r := New(a, Options{Owner: "test", Checkpoint: file, Format: "test/2", Every: time.Hour})
	if err := r.Loop(Context()); err != nil {
		return err
	}
	fmt.Println(r.Status(), math.Float64bits(a.sum))
	return r.Status().Err()
}

// The stop button ends a cell's run as cancelled, with its checkpoint written: twenty times in a row it goes on from
// the step that it had reached, and ends at the bits of a run that nobody stopped. Checkpoints are due every hour
// only, so that a run that is killed without one would begin anew and never end. One press sends SIGINT twice, by
// Jupyter and by the kernel; every other stop is a SIGTERM instead.
func TestStopButton(t *testing.T) {
	if file := os.Getenv(stopVariable); file != "" {
		if err := stoppedCell(file); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		return
	}
	file := filepath.Join(t.TempDir(), "a run")
	first, stops := 1, 0
	for {
		cell := exec.Command(os.Args[0], "-test.run=^TestStopButton$", "-test.v=false")
		cell.Env = append(os.Environ(), stopVariable+"="+file)
		out, err := cell.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cell.Start(); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		line := make([]byte, 4096)
		for sent := false; ; {
			n, err := out.Read(line)
			said.Write(line[:n])
			if !sent && stops < 20 && strings.Count(said.String(), "step") >= 2 {
				signals := []syscall.Signal{syscall.SIGINT, syscall.SIGINT}
				if stops%2 == 1 {
					signals = []syscall.Signal{syscall.SIGTERM}
				}
				for _, s := range signals {
					if err := cell.Process.Signal(s); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Millisecond)
				}
				sent = true
				stops++
			}
			if err != nil {
				break
			}
		}
		ended := cell.Wait()
		if !strings.HasPrefix(said.String(), fmt.Sprintf("step %d\n", first)) {
			t.Fatalf("after %d stops it began with %q, want step %d", stops, said.String(), first)
		}
		first += strings.Count(said.String(), "step ")
		if ended == nil {
			if want := fmt.Sprint(Completed, " ", math.Float64bits(sumTo(stopSteps))); stops != 20 ||
				!strings.Contains(said.String(), want) {
				t.Errorf("after %d stops it ended with %q, want %q", stops, said.String(), want)
			}
			return
		}
		if exit := (*exec.ExitError)(nil); !errors.As(ended, &exit) || exit.ExitCode() != 3 ||
			!strings.Contains(said.String(), string(Cancelled)) {
			t.Fatalf("stopped: %v, says %q", ended, said.String())
		}
	}
}

// A program that does not end by itself is ended by a signal more than a second after the first.
func TestSecondSignal(t *testing.T) {
	if os.Getenv(stopVariable) != "" {
		fmt.Println("waiting")
		<-Context().Done()
		time.Sleep(time.Minute)
		return
	}
	program := exec.Command(os.Args[0], "-test.run=^TestSecondSignal$", "-test.v=false")
	program.Env = append(os.Environ(), stopVariable+"=yes")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // it says that it waits just before
	began := time.Now()
	for range 2 {
		if err := program.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(onePress + 300*time.Millisecond)
	}
	err = program.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || time.Since(began) > 30*time.Second ||
		exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("%v, after %v; want that the second signal ended it", err, time.Since(began))
	}
}

// A * in the checkpoint's name stands for what the run is: another seed does not touch what is kept of the first.
func TestBeside(t *testing.T) {
	pattern := filepath.Join(t.TempDir(), "run-*.safetensors")
	for i, seed := range []string{"1", "2", "1"} {
		a := &adder{steps: 5, seed: seed}
		o := options(t)
		o.Checkpoint, o.Replace = pattern, true
		if err := New(a, o).Loop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if want := i < 2; (a.begun > 0) != want {
			t.Errorf("run %d with seed %s: computed %v, want %v", i, seed, a.begun > 0, want)
		}
	}
	if files, err := filepath.Glob(pattern); err != nil || len(files) != 2 {
		t.Errorf("files %q (%v), want two", files, err)
	}
}
