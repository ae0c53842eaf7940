//go:build !cgo || !linux || noxla || !(amd64 || arm64)

package plugin

import "errors"

// OnHost changes nothing in this build.
func OnHost(string, *Store) error { return errors.ErrUnsupported }

// Async changes nothing in this build.
func Async(string) error { return errors.ErrUnsupported }
