package fbnn

import "testing"

// outputsAtOnce makes blocks of rows in memory smaller for a test.
func outputsAtOnce(t testing.TB, most int) {
	before := mostOutputs
	mostOutputs = most
	t.Cleanup(func() { mostOutputs = before })
}

// ReadAtOnce makes blocks of a source smaller for a test.
func ReadAtOnce(t testing.TB, rows int) {
	before := blockRows
	blockRows = rows
	t.Cleanup(func() { blockRows = before })
}
