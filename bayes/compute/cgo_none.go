//go:build !cgo

package compute

const withCgo = false
