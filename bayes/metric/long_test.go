//go:build long

package metric_test

import "testing"

// TestStandardErrorsAreCalibratedLong is TestStandardErrorsAreCalibrated with particles of equal weight.
func TestStandardErrorsAreCalibratedLong(t *testing.T) {
	standardErrorsAreCalibrated(t, world{seed: 1, rows: 60}, world{seed: 3, rows: 60, classes: 3})
}
