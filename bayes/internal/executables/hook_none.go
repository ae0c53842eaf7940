//go:build !cgo || !linux || noxla || !(amd64 || arm64)

package executables

import "errors"

// Keep keeps nothing in this build.
func Keep(string, *Store) error { return errors.ErrUnsupported }
