//go:build long

package exchange_test

import (
	"testing"

	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/mcmc"
)

// Replica exchange with a kernel of one move, without gradients and scales.
func TestIsExactLong(t *testing.T) {
	exchangeIsExact(t, computetest.Go(t), mcmc.RandomWalkMetropolis{}, 60, .25)
}
