//go:build long

package metric_test

import "testing"

// TestStandardErrorsAreCalibratedLong is TestStandardErrorsAreCalibrated with classes and with equal weights.
func TestStandardErrorsAreCalibratedLong(t *testing.T) {
	standardErrorsAreCalibrated(t, world{seed: 1, rows: 60}, world{seed: 3, rows: 60, classes: 3},
		world{seed: 4, rows: 60, classes: 3, unequal: true})
}
