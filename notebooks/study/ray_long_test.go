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
	"gobnn/bayes/compute/environment"
)

// TestMain makes this program a node's, too: there it does its one repetition.
func TestMain(m *testing.M) {
	if !cluster.OnNode() {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, distributed(context.Background(), "ray"))
	os.Exit(1)
}

func tableOfYacht() (Experiment, Options, error) {
	e, err := Find("ohsmc.table8")
	return e, Options{Data: []string{"yacht"}, Methods: []string{"OHSMC", "MAP"}, Reps: 2, Epochs: 2}, err
}

func distributed(ctx context.Context, on string) error {
	e, o, err := tableOfYacht()
	if err != nil {
		return err
	}
	return Distribute(ctx, on, []Experiment{e}, o)
}

// A study's repetitions by Ray, on a cluster that is started and ended for it, have the bits of this process.
func TestRayLong(t *testing.T) {
	packages, err := environment.Extra("ray")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "ray")); err != nil {
		t.Skip("Ray is not installed: go run ./notebooks setup -ray")
	}
	env, err := environment.Dir()
	if err != nil {
		t.Fatal(err)
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
		if err := distributed(t.Context(), on); err != nil {
			t.Fatal(err)
		}
		e, o, err := tableOfYacht()
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		o.Repetition = func(r Repetition) {
			if r.Kept {
				kept++
			}
		}
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
