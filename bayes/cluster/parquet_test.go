package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/cluster"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/environment"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/parquet"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/smc"

	pq "github.com/parquet-go/parquet-go"
)

// The environment of a node of these tests: the file that it reads the rows from, which is not sent to it, and the hash
// that they have at home.
const (
	rowsFile = "GOBNN_TEST_ROWS"
	rowsHash = "GOBNN_TEST_ROWS_HASH"
)

// A node of these tests does a run of the list "rows" here; others go on to TestMain.
func init() {
	path := os.Getenv(rowsFile)
	if path == "" || !cluster.OnNode() {
		return
	}
	_, err := ensembles(context.Background(), cluster.Options{Folder: "rows"}, path, os.Getenv(rowsHash))
	if !errors.Is(err, cluster.ErrOtherList) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeRows makes a file of three row groups; shift is added to one target in the last.
func writeRows(t *testing.T, shift float64) (path string) {
	t.Helper()
	type record struct {
		A float64 `parquet:"a"`
		Y float64 `parquet:"y"`
	}
	records := make([]record, 300)
	for i := range records {
		a := float64(i*37%300)/150 - 1
		records[i] = record{a, 2*a + float64(i%7)/10}
	}
	records[299].Y += shift
	path = filepath.Join(t.TempDir(), "rows.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := pq.NewGenericWriter[record](f, pq.MaxRowsPerRowGroup(100))
	_, err = w.Write(records)
	computetest.NoError(t, errors.Join(err, w.Close(), f.Close()))
	return path
}

// streamed are parts whose training rows stay in the file.
func streamed(path string) (bayes.Model, dataset.Parts, error) {
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .5}, Stochastic: bayes.All()}
	source, err := parquet.OpenSource(path)
	if err != nil {
		return model, dataset.Parts{}, err
	}
	return model, dataset.Parts{Source: source}, nil
}

// ensemble reads the file's rows in mini-batches.
var ensemble = baseline.Ensemble{Members: 2, Training: baseline.Training{Epochs: 3, BatchSize: 30}}

// ensembles are two runs of it, whose joined posterior has four members.
func ensembles(ctx context.Context, o cluster.Options, path, hash string) (*fit.Result, error) {
	model, parts, err := streamed(path)
	if err != nil {
		return nil, err
	}
	parts.TrainHash = hash
	return cluster.Fit(ctx, o, 2, model, ensemble, parts, run.Settings{Seed: 1})
}

// On a cluster of this machine, with testdata/stub in Ray's place and whatever RAY_ADDRESS says, nodes give the members
// that the process gives, and lines of each run's progress come here. Nodes of another engine do not begin.
func TestFitOnRay(t *testing.T) {
	env, err := environment.Dir()
	if err != nil {
		t.Fatal(err)
	}
	stub, err := filepath.Abs("testdata/stub/ray.py")
	if _, none := os.Stat(filepath.Join(env, "bin", "python")); err != nil || none != nil {
		t.Skip("no Python here", err, none)
	}
	cache, path := t.TempDir(), writeRows(t, 0)
	if err := errors.Join(
		os.Symlink(env, filepath.Join(cache, "env")), os.MkdirAll(filepath.Join(cache, "ray/ray"), 0o755),
		os.Symlink(stub, filepath.Join(cache, "ray/ray/__init__.py")),
	); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOBNN_CACHE": cache, "PYTHONDONTWRITEBYTECODE": "1", "STUB": "local",
		"STUB_PEAK": filepath.Join(cache, "peak"), "TMPDIR": t.TempDir(), rowsFile: path,
		"RAY_ADDRESS": "ray://127.0.0.1:9"} {
		t.Setenv(name, value)
	}
	var texts [2]string
	for i, on := range []string{"", "ray"} {
		said := map[string]string{}
		o := cluster.Options{On: on, Folder: filepath.Join(t.TempDir(), "rows"), Progress: func(task, line string) {
			said[task] += line + "\n"
		}}
		result, err := ensembles(t.Context(), o, path, "")
		if err != nil {
			t.Fatalf("on %q: %v", on, err)
		}
		values := computetest.Must(result.Posterior.Coordinate(0))
		texts[i] = fmt.Sprint(values)
		for _, task := range []string{"run 1", "run 2"} {
			if !regexp.MustCompile(`(?m)step \d+ of \d+`).MatchString(said[task]) ||
				!strings.HasSuffix(said[task], cluster.TaskDone+"\n") {
				t.Errorf("on %q %s said %q", on, task, said[task])
			}
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("other members on a cluster, %s, than here, %s", texts[1], texts[0])
	}
}

// onNode does a run as a node does: the program is executed anew, with the file as it is there.
func onNode(t *testing.T, o cluster.Options, task, path, hash string) (said string, err error) {
	t.Helper()
	folder := filepath.Join(o.Folder, task)
	computetest.NoError(t, os.MkdirAll(folder, 0o755))
	program := computetest.Must(os.Executable())
	node := exec.Command(program)
	node.Env = append(os.Environ(), "GOBNN_TASK="+task, "GOBNN_TASK_LIST="+filepath.Base(o.Folder),
		"GOBNN_TASK_FOLDER="+folder, rowsFile+"="+path, rowsHash+"="+hash)
	out, err := node.CombinedOutput()
	return string(out), err
}

// Rows of a Parquet file that each node reads itself, from where its own copy lies, give the members that one process
// gives, bit for bit. A node whose file differs in one number is refused by both hashes: before it trains if the
// program has said the hash, and else as the runs are joined.
func TestFitOfParquet(t *testing.T) {
	home, copied, other := writeRows(t, 0), writeRows(t, 0), writeRows(t, 1e-9)
	hashes := map[string]string{}
	for _, path := range []string{home, other} {
		_, parts, err := streamed(path)
		if err != nil {
			t.Fatal(err)
		}
		found := computetest.Must(dataset.Examine(t.Context(), parts.Source, 0, nil))
		hashes[path] = found.Hash
	}
	model, parts, err := streamed(home)
	if err != nil {
		t.Fatal(err)
	}
	first := computetest.Must(fit.Fit(t.Context(), model, ensemble, parts, run.Settings{Seed: 1}))
	members := func(p *bayes.Posterior) (all []float64) {
		for k := range 2 {
			values := computetest.Must(p.Coordinate(k))
			all = append(all, values...)
		}
		return all
	}

	here := cluster.Options{Folder: filepath.Join(t.TempDir(), "rows")}
	want := computetest.Must(ensembles(t.Context(), here, home, hashes[home]))
	all := members(want.Posterior) // [2, 4]
	if one := members(first.Posterior); len(all) != 8 || !slices.Equal(slices.Concat(all[:2], all[4:6]), one) ||
		slices.Equal(all[:2], all[2:4]) {
		t.Errorf("the members are %v, of which the first run has %v", all, one)
	}

	nodes := cluster.Options{Folder: filepath.Join(t.TempDir(), "rows")}
	for _, task := range []string{"run 1", "run 2"} {
		if said, err := onNode(t, nodes, task, copied, hashes[home]); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	got := computetest.Must(ensembles(t.Context(), nodes, home, hashes[home]))
	if !slices.Equal(members(got.Posterior), all) {
		t.Errorf("nodes have the members %v, and one process %v", members(got.Posterior), all)
	}

	refused := cluster.Options{Folder: filepath.Join(t.TempDir(), "rows")}
	said, err := onNode(t, refused, "run 1", other, hashes[home])
	if err == nil || !strings.Contains(said, hashes[home]) || !strings.Contains(said, hashes[other]) {
		t.Errorf("a node with another file: %v: %s", err, said)
	}
	if left, err := os.ReadDir(filepath.Join(refused.Folder, "run 1")); err != nil || len(left) > 0 {
		t.Errorf("it has begun: %v, %v", left, err)
	}

	for _, task := range []string{"run 1", "run 2"} { // of a program that does not say the hash
		if said, err := onNode(t, refused, task, other, ""); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	_, err = ensembles(t.Context(), refused, home, "")
	if !errors.Is(err, run.ErrOtherRun) || !strings.Contains(err.Error(), hashes[home]) ||
		!strings.Contains(err.Error(), hashes[other]) {
		t.Errorf("runs of another file were joined: %v", err)
	}
}

// Methods that need all rows in memory say so, before they begin.
func TestFitOfParquetRefuses(t *testing.T) {
	model, parts, err := streamed(writeRows(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []fit.Method{mcmc.Chains{Kernel: mcmc.HMC{}}, smc.Tempered{}} {
		_, err := cluster.Fit(t.Context(), cluster.Options{Folder: t.TempDir()}, 2, model, method, parts, run.Settings{})
		computetest.WantError(t, "a source", err,
			fmt.Sprintf("the training rows are in Parts.Source, and %T needs them in memory", method))
	}
}

// A node whose rows in memory are not those at home is refused by both hashes before it trains, and one whose engine is
// another by both names; the script for Slurm has those at home.
func TestFitOfOtherRows(t *testing.T) {
	o := cluster.Options{On: "slurm", Folder: filepath.Join(t.TempDir(), "chains")}
	_, err := chains(t.Context(), o)
	script := computetest.Must(os.ReadFile(submitted(t, o, "", err)))
	_, parts := line()
	home := parts.Train.Hash()
	engine := computetest.Must(compute.Default())
	for _, c := range [][2]string{{home, home}, {home, strings.Repeat("a", len(home))}, {engine.Name(), "xla:other.so"}} {
		home, hash := c[0], c[1]
		path := filepath.Join(o.Folder, "job.sh")
		text := strings.ReplaceAll(string(script), "'"+home+"'", "'"+hash+"'")
		computetest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		out, done := job(path, "1")
		refused := strings.Contains(out, home) && strings.Contains(out, hash)
		if done != (hash == home) || !done && !refused {
			t.Errorf("%s at home, %s on the node: done: %v: %s", hash, home, done, out)
		}
		computetest.NoError(t, o.Forget("run 1"))
	}
}
