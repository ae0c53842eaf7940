package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lock takes the cache folder's lock and returns the file that holds it: closing it releases the lock. While another
// set-up holds it, lock waits and says so once. The kernel releases the lock of a killed process; programs that set-up
// starts hold it as well, so that a new set-up waits for those that a killed one left running.
func lock(ctx context.Context, cache string, say func(string)) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(cache, "setup.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, unwritable(cache, err)
	}
	for said := false; ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		if !said {
			say("another set-up is at work: waiting for it")
			said = true
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("waiting for another set-up: %w", context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
