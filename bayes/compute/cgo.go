//go:build cgo

package compute

const withCgo = true
