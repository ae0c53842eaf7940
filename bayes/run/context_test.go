package run

import (
	"bufio"
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

	"gobnn/bayes/compute/computetest"
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
		out := computetest.Must(cell.StdoutPipe())
		computetest.NoError(t, cell.Start())
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
					computetest.NoError(t, cell.Process.Signal(s))
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

// A stopped cell says so on one line, and fails.
func TestFail(t *testing.T) {
	if file, child := os.LookupEnv(stopVariable); child {
		if err := stoppedCell(file); err != nil {
			Fail(fmt.Errorf("a wrapper's: %w", err))
		}
		return
	}
	cell := exec.Command(os.Args[0], "-test.run=^TestFail$", "-test.v=false")
	cell.Env = append(os.Environ(), stopVariable+"="+filepath.Join(t.TempDir(), "a run"))
	out := computetest.Must(cell.StdoutPipe())
	var said strings.Builder
	cell.Stderr = &said
	computetest.NoError(t, cell.Start())
	steps := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if steps++; steps == 2 {
			computetest.NoError(t, cell.Process.Signal(syscall.SIGINT))
		}
	}
	cell.Wait() //nolint:errcheck // the status is looked at
	const want = "stopped: run the cell again to go on with what is kept; without a Checkpoint it begins anew\n"
	if said.String() != want || cell.ProcessState.ExitCode() != 1 {
		t.Errorf("status %d, says %q; want 1 and %q", cell.ProcessState.ExitCode(), said.String(), want)
	}
}

// Of another error it prints the text and the lines of the program, without the trace of a panic.
func TestFailNamesLines(t *testing.T) {
	source := filepath.Join(t.TempDir(), "main.go")
	const text = `package main

import (
	"os"

	"gobnn/bayes/run"
)

func must[T any](value T, err error) T {
	if err != nil {
		run.Fail(err)
	}
	return value
}

func load() []byte {
	return must(os.ReadFile("missing.csv"))
}

func main() {
	load()
}
`
	computetest.NoError(t, os.WriteFile(source, []byte(text), 0o644))
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	failed := exec.Command(program)
	out, _ := failed.CombinedOutput()
	want := fmt.Sprintf("open missing.csv: no such file or directory\n\t%s:17\n\t%[1]s:21\n", source)
	if string(out) != want || failed.ProcessState.ExitCode() != 1 {
		t.Errorf("status %d, says %q; want 1 and %q", failed.ProcessState.ExitCode(), out, want)
	}
}

// A program that does not end by itself is ended by a signal more than a second after the first, also where it began
// with SIGINT ignored, as a shell begins what is to run in the background.
func TestSecondSignal(t *testing.T) {
	if os.Getenv(stopVariable) != "" {
		interrupted := Context()
		fmt.Println("waiting")
		<-interrupted.Done()
		fmt.Println("told")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends it
		return
	}
	for name, trap := range map[string]string{"plain": "-", "ignored": "''"} {
		t.Run(name, func(t *testing.T) {
			program := exec.Command("sh", "-c", "trap "+trap+` INT; exec "$0" -test.run='^TestSecondSignal$'`, os.Args[0])
			program.Env = append(os.Environ(), stopVariable+"=yes")
			in := computetest.Must(program.StdinPipe())
			out := computetest.Must(program.StdoutPipe())
			computetest.NoError(t, program.Start())
			lines := bufio.NewReader(out)
			said := func(want string) {
				t.Helper()
				if got, err := lines.ReadString('\n'); got != want {
					t.Fatalf("it says %q (%v), want %q", got, err, want)
				}
			}
			said("waiting\n")
			ended := make(chan struct{})
			send := func() { program.Process.Signal(syscall.SIGINT) } //nolint:errcheck // it may have ended
			send()
			said("told\n")
			go func() {
				program.Wait() //nolint:errcheck // the status is looked at
				close(ended)
			}()
			for range 50 { // how long a press takes is its own affair
				send()
				select {
				case <-ended:
				case <-time.After(onePress / 5):
					continue
				}
				break
			}
			in.Close() //nolint:errcheck // if it has not ended, it now does
			<-ended
			if got := program.ProcessState.ExitCode(); got != 128+int(syscall.SIGINT) {
				t.Errorf("status %d; want 130, by the second signal", got)
			}
		})
	}
}

// A * in the checkpoint's name stands for what the run is: another seed does not touch what is kept of the first.
func TestBeside(t *testing.T) {
	pattern := filepath.Join(t.TempDir(), "run-*.safetensors")
	for i, seed := range []string{"1", "2", "1"} {
		a := &adder{steps: 5, seed: seed}
		o := options(t)
		o.Checkpoint, o.Replace = pattern, true
		computetest.NoError(t, New(a, o).Loop(context.Background()))
		if want := i < 2; (a.begun > 0) != want {
			t.Errorf("run %d with seed %s: computed %v, want %v", i, seed, a.begun > 0, want)
		}
	}
	if files, err := filepath.Glob(pattern); err != nil || len(files) != 2 {
		t.Errorf("files %q (%v), want two", files, err)
	}
}
