//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package run

import (
	"errors"
	"os"
)

// tryLock has no lock to give on this system.
func tryLock(*os.File) (taken bool, err error) { return false, errors.ErrUnsupported }
