package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/cluster"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/mcmc/check"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	"github.com/google/renameio/v2"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// The program of the tests is what the nodes execute: there it does one of these tasks.
func TestMain(m *testing.M) {
	if on, folder, ok := strings.Cut(os.Getenv(callEntry), " in "); ok && !cluster.OnNode() {
		err := cluster.Run(context.Background(), cluster.Options{On: on, Folder: folder}, counting(3, 0))
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if cluster.OnNode() {
		switch os.Getenv(endEntry) {
		case "well":
			fmt.Println("open table.csv: no such file")
			os.Exit(0)
		case "killed":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		lists := map[string]func(ctx context.Context, o cluster.Options) error{
			"counting": func(ctx context.Context, o cluster.Options) error {
				pause := time.Duration(0)
				if os.Getenv("GOBNN_TASK_STDIN") != "" { // by Ray, with time to kill a node
					pause = 700 * time.Millisecond
				}
				return cluster.Run(ctx, o, append(counting(20, pause), failing, large))
			},
			"empty":     func(ctx context.Context, o cluster.Options) error { return cluster.Run(ctx, o, empty(10_000)) },
			"chains":    func(ctx context.Context, o cluster.Options) error { _, err := chains(ctx, o); return err },
			"islands":   func(ctx context.Context, o cluster.Options) error { _, err := islands(ctx, o); return err },
			"ensembles": func(ctx context.Context, o cluster.Options) error { _, err := ensembles(ctx, o); return err },
		}
		for name, list := range lists {
			if err := list(context.Background(), cluster.Options{Folder: name}); !errors.Is(err, cluster.ErrOtherList) {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// callEntry, with where the tasks are done "in" which folder, makes the test's program call Run, to be killed.
const callEntry = "GOBNN_TEST_CALL"

// endEntry makes a program end before its task is done: "well", with status 0, or "killed".
const endEntry = "GOBNN_TEST_END"

// counting are tasks that count to ten, with a checkpoint after each step.
func counting(n int, pause time.Duration) (tasks []cluster.Task) {
	for k := range n {
		name := fmt.Sprintf("count %d", k)
		tasks = append(tasks, cluster.Task{Name: name, Do: func(_ context.Context, folder string) error {
			at := filepath.Join(folder, "checkpoint")
			var done []string
			if text, err := os.ReadFile(at); err == nil {
				done = strings.Fields(string(text))
				fmt.Fprintf(os.Stderr, "goes on from %d\n", len(done))
			}
			for len(done) < 10 {
				time.Sleep(pause)
				done = append(done, strconv.Itoa(k*len(done)))
				if err := renameio.WriteFile(at, []byte(strings.Join(done, " ")), 0o644); err != nil {
					return err
				}
				clock := time.Date(1990+50*(k%2), 1, 1, 0, 0, 0, 0, time.UTC) // as where the clock is wrong
				if err := os.Chtimes(at, clock, clock); err != nil {
					return err
				}
			}
			return os.WriteFile(filepath.Join(folder, "result"), []byte(strings.Join(done, " ")), 0o644)
		}})
	}
	return tasks
}

// large writes more than the nodes' object stores hold.
var large = cluster.Task{Name: "large", Do: func(_ context.Context, folder string) error {
	return os.WriteFile(filepath.Join(folder, "result"), make([]byte, 120<<20), 0o644)
}}

var failing = cluster.Task{Name: "fails", Do: func(context.Context, string) error {
	return errors.New("no such prior")
}}

// line is the regression of check.Line, whose posterior and evidence are known.
func line() (bayes.Model, dataset.Parts) {
	exact := check.Line()
	d := &dataset.Dataset{Name: "line", Features: []string{"a", "b"}, Target: "y", Y: exact.Y}
	x := mat.NewDense(len(exact.X), 2, nil)
	for i, row := range exact.X {
		x.SetRow(i, row[:2])
	}
	d.X = x
	return bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: exact.NoiseStdDev}, Stochastic: bayes.All(),
		Prior: bayes.Normal{StdDev: 1}}, dataset.Parts{Train: d}
}

// chains are eight runs of two chains each, islands are eight of tempered SMC.
func chains(ctx context.Context, o cluster.Options) (*fit.Result, error) {
	model, parts := line()
	return cluster.Fit(ctx, o, 8, model, mcmc.Chains{Chains: 2, Draws: 100, WarmUp: 100}, parts, run.Settings{Seed: 1})
}

func islands(ctx context.Context, o cluster.Options) (*fit.Result, error) {
	model, parts := line()
	method := smc.Tempered{Particles: 200, Ladder: []float64{.001, .004, .015, .06, .25, 1}}
	return cluster.Fit(ctx, o, 8, model, method, parts, run.Settings{Seed: 1})
}

// Joined chains and islands have the exact posterior mean, and the islands the exact evidence, within four standard
// errors: two cases in ten thousand would fail by chance. The errors are by the 16 chains, or the 8 islands.
func TestFitIsExact(t *testing.T) {
	mean, covariance, logZ := check.Line().Posterior()
	for name, list := range map[string]func(context.Context, cluster.Options) (*fit.Result, error){
		"chains": chains, "islands": islands,
	} {
		result := computetest.Must(list(t.Context(), cluster.Options{Folder: filepath.Join(t.TempDir(), name)}))
		p := result.Posterior
		for k, want := range mean {
			values := computetest.Must(p.Coordinate(k))
			got, parts := 0., make([]float64, 8)
			for j, w := range p.LogWeights().Weights() {
				got += w * values[j]
				parts[j*8/len(values)] += values[j] / float64(len(values)/8)
			}
			if stdErr := stat.StdDev(parts, nil) / math.Sqrt(8); math.Abs(got-want) > 4*stdErr ||
				stdErr > .2*math.Sqrt(covariance.At(k, k)) {
				t.Errorf("%s: coordinate %d has mean %.4f +- %.4f, exact %.4f", name, k, got, stdErr, want)
			}
		}
		e := p.Evidence()
		if e.Known() != (name == "islands") || e.Known() && (math.Abs(e.Value-logZ) > 4*e.StdErr || e.StdErr > .2) {
			t.Errorf("%s: log evidence %v, exact %.3f", name, e, logZ)
		}
	}
}

// alike checks that tasks have the results that the process itself gives.
func alike(t *testing.T, folder string, tasks []cluster.Task) {
	t.Helper()
	home := cluster.Options{Folder: t.TempDir()}
	computetest.NoError(t, cluster.Run(t.Context(), home, counting(len(tasks), 0)))
	for _, task := range tasks {
		var texts [2]string
		for i, f := range []string{folder, home.Folder} {
			text := computetest.Must(os.ReadFile(filepath.Join(f, task.Name, "result")))
			texts[i] = string(text)
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: %q on the cluster, %q here", task.Name, texts[0], texts[1])
		}
	}
}

// nodes starts a cluster of a head and two nodes on this machine; do does something to one of these, see nodes.py.
func nodes(t testing.TB) (address string, do func(what string)) {
	t.Helper()
	env, packages := computetest.Ray(t)
	python := exec.Command(filepath.Join(env, "bin", "python"), "testdata/nodes.py")
	python.Env = append(os.Environ(), "PYTHONPATH="+packages)
	python.Stderr = os.Stderr
	in := computetest.Must(python.StdinPipe())
	out := computetest.Must(python.StdoutPipe())
	computetest.NoError(t, python.Start())
	t.Cleanup(func() {
		in.Close()
		_ = python.Wait()
	})
	lines := bufio.NewScanner(out)
	next := func(prefix string) string {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), prefix) {
				return lines.Text()
			}
		}
		t.Fatalf("the cluster did not say %q", prefix)
		return ""
	}
	address = next("ray://")
	return address, func(what string) {
		_, _ = io.WriteString(in, what+"\n")
		next(what)
	}
}

// submitted is the script of a call for Slurm, which ends with the error that names what to submit.
func submitted(t *testing.T, o cluster.Options, says string, err error) (script string) {
	t.Helper()
	if !errors.Is(err, cluster.ErrSubmit) || !strings.Contains(err.Error(), says) {
		t.Fatalf("error %v, want what to submit, and %q", err, says)
	}
	scripts, err := filepath.Glob(filepath.Join(o.Folder, "tasks-*.sh"))
	if err != nil || len(scripts) != 1 {
		t.Fatalf("the scripts are %q (%v)", scripts, err)
	}
	return scripts[0]
}

// job does a task by its number, as Slurm does.
func job(script, number string, environ ...string) (out string, done bool) {
	c := exec.Command("sh", script)
	c.Env = append(append(os.Environ(), "SLURM_ARRAY_TASK_ID="+number), environ...)
	text, err := c.CombinedOutput()
	return string(text), err == nil
}

// The script for Slurm does one task for each number, as Slurm calls it, and those that are done are gathered. With
// GOBNN_TEST_SLURM it is submitted to the Slurm that runs here.
func TestSlurm(t *testing.T) {
	o := cluster.Options{On: "slurm", Folder: filepath.Join(t.TempDir(), "counting")}
	tasks := append(counting(2, 0), failing)
	script := submitted(t, o, "0 of 3 are done; submit", cluster.Run(t.Context(), o, tasks))
	if os.Getenv("GOBNN_TEST_SLURM") != "" {
		out, err := exec.Command("sbatch", "--wait", "--output=/dev/null", script).CombinedOutput()
		t.Logf("sbatch: %s %v", out, err) // an error: one task fails
	} else {
		for k := range tasks {
			if out, done := job(script, fmt.Sprint(k+1)); done == (k == 2) {
				t.Errorf("task %d: done: %v: %s", k+1, done, out)
			}
		}
	}
	computetest.WantError(t, "the same call", cluster.Run(t.Context(), o, tasks), "2 of 3 are done")
	if err := cluster.Run(t.Context(), o, tasks[:2]); err != nil {
		t.Errorf("all are done: %v", err)
	}
	alike(t, o.Folder, tasks[:2])

	computetest.NoError(t, o.Forget("count 0"))
	for end, says := range map[string]string{"well": "status 0 before task 'count 0' was done", "killed": "status 137"} {
		if got, _ := job(script, "1", endEntry+"="+end); !strings.Contains(got, says) || o.Done("count 0") {
			t.Errorf("a program that ends %s: %s; done: %v", end, got, o.Done("count 0"))
		}
	}
	for number, says := range map[string]string{"": "submit this by sbatch", "9": "has no such task here"} {
		if got, done := job(script, number); !strings.Contains(got, says) || done {
			t.Errorf("job %q: %s", number, got)
		}
	}
	program := filepath.Join(o.Folder, "gobnn-program")
	computetest.NoError(t, os.WriteFile(program, []byte("exit 0"), 0o755))
	changed := program + " has changed since this job was written: make the same call again"
	if got, _ := job(script, "1"); !strings.Contains(got, changed) {
		t.Errorf("another program: %s", got)
	}
	text := computetest.Must(os.ReadFile(script))
	if !strings.Contains(string(text), "export NPROC=1 ") {
		t.Errorf("the number of threads is not set:\n%s", text)
	}
}

// More tasks than an array job may have go in several, which the command that the error names submits, also from a
// folder whose name a shell would cut.
func TestSlurmMany(t *testing.T) {
	o := cluster.Options{On: "slurm", Folder: filepath.Join(t.TempDir(), "it's my counting")}
	for n, want := range map[int]string{1000: "1000 1-1000", 2001: "2001 1-1 1-1000 1-1000"} {
		err := cluster.Run(t.Context(), o, empty(n))
		_, command, _ := strings.Cut(fmt.Sprint(err), "`")
		command, _, _ = strings.Cut(command, "`")
		listed, arrays := map[string]bool{}, []string(nil)
		out, failed := exec.Command("sh", "-c", `sbatch() { echo "$1"; }; `+command).Output()
		for script := range strings.Lines(string(out)) {
			script = strings.TrimSuffix(script, "\n")
			text, err := os.ReadFile(script)
			names, err2 := os.ReadFile(strings.TrimSuffix(script, ".sh") + ".txt")
			computetest.NoError(t, errors.Join(err, err2))
			_, array, _ := strings.Cut(string(text), "#SBATCH --array=")
			array, _, _ = strings.Cut(array, "\n")
			lines := strings.Split(strings.TrimSpace(string(names)), "\n")
			if array != fmt.Sprint("1-", len(lines)) {
				t.Errorf("%d tasks: the array is %s, for %d names", n, array, len(lines))
			}
			arrays = append(arrays, array)
			for _, name := range lines {
				listed[name] = true
			}
		}
		slices.Sort(arrays)
		if got := strings.Join(append([]string{fmt.Sprint(len(listed))}, arrays...), " "); failed != nil || got != want {
			t.Errorf("%d tasks are submitted by %s as %q (%v), want %q", n, command, got, failed, want)
		}
	}
}

// A run that is cut, as by Ctrl-C, is not done: the same call goes on with it.
func TestFitCut(t *testing.T) {
	model, parts := line()
	o := cluster.Options{Folder: t.TempDir()}
	method := baseline.Ensemble{Members: 2, Training: baseline.Training{Epochs: 100}} // more steps than a call makes
	ctx, cancel := context.WithCancel(t.Context())
	watched := run.Watched(ctx, func(run.Progress, run.Machine) { cancel() })
	_, err := cluster.Fit(watched, o, 1, model, method, parts, run.Settings{})
	if !errors.Is(err, context.Canceled) || o.Done("run 1") {
		t.Errorf("%v; done: %v", err, o.Done("run 1"))
	}
	result, err := cluster.Fit(t.Context(), o, 1, model, method, parts, run.Settings{})
	if err != nil || result.Status != run.Completed {
		t.Errorf("the same call: %v", err)
	}
}

// The second of two calls on one folder is refused while the first one works, and does the same list after it.
func TestTwoCalls(t *testing.T) {
	o := cluster.Options{Folder: filepath.Join(t.TempDir(), "tasks")}
	ran := 0
	task := cluster.Task{Name: "a", Do: func(context.Context, string) error {
		ran++
		for _, on := range []string{"", "slurm", "ray"} {
			second := cluster.Options{On: on, Folder: o.Folder}
			err := cluster.Run(t.Context(), second, []cluster.Task{failing})
			computetest.WantError(t, "a second call on "+on, err, o.Folder+": another call")
		}
		return nil
	}}
	for range 2 {
		if err := cluster.Run(t.Context(), o, []cluster.Task{task}); err != nil || ran != 1 {
			t.Errorf("%v, done %d times", err, ran)
		}
	}
	if left, err := filepath.Glob(filepath.Join(o.Folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What cannot be done is refused before anything is.
func TestRefused(t *testing.T) {
	do := func(context.Context, string) error { return nil }
	folder := t.TempDir()
	for _, c := range []struct {
		o     cluster.Options
		tasks []cluster.Task
		says  string
	}{
		{cluster.Options{}, nil, "Folder is empty"},
		{cluster.Options{Folder: folder, On: "sge"}, nil, `"sge"`},
		{cluster.Options{Folder: folder}, []cluster.Task{{Name: "../a", Do: do}}, `"../a"`},
		{cluster.Options{Folder: folder}, []cluster.Task{{Name: "", Do: do}}, `""`},
		{cluster.Options{Folder: folder}, []cluster.Task{{Name: ".new", Do: do}}, `".new"`},
		{cluster.Options{Folder: folder}, []cluster.Task{{Name: "a\nb", Do: do}}, `"a\nb"`},
		{cluster.Options{Folder: folder}, []cluster.Task{{Name: "a.done", Do: do}}, `"a.done"`},
		{cluster.Options{Folder: folder}, []cluster.Task{{Name: "a", Do: do}, {Name: "a", Do: do}}, "two tasks"},
	} {
		computetest.WantError(t, c.says, cluster.Run(t.Context(), c.o, c.tasks), c.says)
	}
	if found, _ := os.ReadDir(folder); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

// In the process tasks are done in order; one that fails does not keep others from it, and what is done is not done
// again.
func TestHere(t *testing.T) {
	o := cluster.Options{Folder: t.TempDir()}
	ran := 0
	last := cluster.Task{Name: "last", Do: func(context.Context, string) error { ran++; return nil }}
	for range 2 {
		err := cluster.Run(t.Context(), o, []cluster.Task{failing, last})
		computetest.WantError(t, "a task that fails", err, `task "fails": no such prior`)
	}
	if ran != 1 || !o.Done("last") || o.Done("fails") {
		t.Errorf("the last task ran %d times; done: %v and %v", ran, o.Done("last"), o.Done("fails"))
	}
	if err := o.Forget("last"); err != nil || o.Done("last") {
		t.Errorf("forgotten (%v), and done: %v", err, o.Done("last"))
	}
}
