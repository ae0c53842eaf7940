//go:build !cgo || !linux || noxla || !(amd64 || arm64)

package plugin

import "errors"

// Keep keeps nothing in this build.
func Keep(string, *Store) error { return errors.ErrUnsupported }

// Async changes nothing in this build.
func Async(string) error { return errors.ErrUnsupported }
