//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package run

import (
	"errors"
	"os"
)

// tryLock does nothing: this system has no file locks.
func tryLock(*os.File) (taken bool, err error) { return false, errors.ErrUnsupported }
