//go:build !cgo || !linux

package compute

// withoutSignals calls f.
func withoutSignals(f func()) { f() }
