package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gobnn/bayes/baseline"
	"gobnn/bayes/cluster"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/environment"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
)

// ensembles are two runs of two members, whose joined posterior has four.
func ensembles(ctx context.Context, o cluster.Options) (*fit.Result, error) {
	model, parts := line()
	method := baseline.Ensemble{Members: 2, Training: baseline.Training{Epochs: 3}}
	return cluster.Fit(ctx, o, 2, model, method, parts, run.Settings{Seed: 1})
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
	cache := t.TempDir()
	if err := errors.Join(
		os.Symlink(env, filepath.Join(cache, "env")), os.MkdirAll(filepath.Join(cache, "ray/ray"), 0o755),
		os.Symlink(stub, filepath.Join(cache, "ray/ray/__init__.py")),
	); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOBNN_CACHE": cache, "PYTHONDONTWRITEBYTECODE": "1", "STUB": "local",
		"STUB_PEAK": filepath.Join(cache, "peak"), "TMPDIR": t.TempDir(), "RAY_ADDRESS": "ray://127.0.0.1:9"} {
		t.Setenv(name, value)
	}
	var texts [2]string
	for i, on := range []string{"", "ray"} {
		said := map[string]string{}
		o := cluster.Options{On: on, Folder: filepath.Join(t.TempDir(), "ensembles"), Progress: func(task, line string) {
			said[task] += line + "\n"
		}}
		result, err := ensembles(t.Context(), o)
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
