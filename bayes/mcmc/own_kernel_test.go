package mcmc_test

import (
	"testing"

	"gobnn/bayes/mcmc/check"
)

// The kernel of the example passes the harness that its comment names.
func TestExampleKernel(t *testing.T) {
	check.Kernel(t, independence{StdDev: 2}, check.Options{Particles: 500, Transitions: 50, Slow: true})
}
