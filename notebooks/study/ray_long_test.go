//go:build long

package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gobnn/bayes/cluster"
	"gobnn/bayes/compute/computetest"
)

// TestMain makes this program a node's, too: there it does its one repetition.
func TestMain(m *testing.M) {
	if !cluster.OnNode() {
		os.Exit(m.Run())
	}
	e, o, err := tableOfYacht()
	if err == nil {
		err = Distribute(context.Background(), "ray", []Experiment{e}, o)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func tableOfYacht() (Experiment, Options, error) {
	e, err := Find("ohsmc.table8")
	return e, Options{Data: []string{"yacht"}, Methods: []string{"OHSMC", "MAP"}, Reps: 2, Epochs: 2}, err
}

// A study's repetitions by Ray, on a cluster that is started and ended for it, have the bits of this process.
func TestRayLong(t *testing.T) {
	env, packages := computetest.Ray(t)
	e, o, err := tableOfYacht()
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	o.event = func(r event) {
		if r.Kept {
			kept++
		}
	}
	t.Setenv("GOMLX_BACKEND", "go:ops_sequential")
	var tables [2]string
	for i, on := range []string{"", "ray"} {
		cache := t.TempDir() // without kept results
		if err := errors.Join(os.Symlink(env, filepath.Join(cache, "env")),
			os.Symlink(packages, filepath.Join(cache, "ray"))); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOBNN_CACHE", cache)
		failOn(Distribute(t.Context(), on, []Experiment{e}, o))
		kept = 0
		cells, err := e.Run(t.Context(), o)
		if err != nil || kept != 4 {
			t.Fatalf("on %q %d of 4 repetitions are kept (%v)", on, kept, err)
		}
		for _, c := range cells {
			if c.Metric != "seconds" {
				tables[i] += fmt.Sprintln(c.Method, c.Metric, c.Ours, c.SE)
			}
		}
	}
	if tables[0] != tables[1] {
		t.Errorf("here:\n%son Ray:\n%s", tables[0], tables[1])
	}
	t.Log(tables[1])
}
