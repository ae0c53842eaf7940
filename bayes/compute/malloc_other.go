//go:build !cgo || !linux

package compute

// keepFreedMemory does nothing: only glibc's allocator needs it.
func keepFreedMemory() {}

// returnFreedMemory does nothing: no memory is kept.
func returnFreedMemory() {}
