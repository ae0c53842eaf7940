package fbnn

import "testing"

// ReadAtOnce makes blocks of a source smaller for a test.
func ReadAtOnce(t testing.TB, rows int) {
	before := blockRows
	blockRows = rows
	t.Cleanup(func() { blockRows = before })
}
