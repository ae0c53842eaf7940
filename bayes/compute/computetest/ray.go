package computetest

import (
	"os"
	"path/filepath"
	"testing"

	"gobnn/bayes/compute/environment"
)

// Ray gives the folders of the private environment and of Ray's packages. Where Ray is not installed the test is
// skipped.
func Ray(t testing.TB) (env, packages string) {
	t.Helper()
	env, err := environment.Dir()
	if err != nil {
		t.Fatal(err)
	}
	if packages, err = environment.Extra("ray"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "ray")); err != nil {
		t.Skip("Ray is not installed: go run ./notebooks setup -ray")
	}
	return env, packages
}
