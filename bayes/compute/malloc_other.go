//go:build !cgo || !linux

package compute

// keepFreedMemory does nothing: only glibc's allocator needs it.
func keepFreedMemory() {}

// returnFreedMemory does nothing: nothing was kept.
func returnFreedMemory() {}
