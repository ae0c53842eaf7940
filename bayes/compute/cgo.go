//go:build cgo && (noxla || !((linux && (amd64 || arm64)) || (darwin && arm64)))

package compute

const withCgo = true
