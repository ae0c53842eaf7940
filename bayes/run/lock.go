package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrInUse says that another run, of this program or another, is writing the checkpoint.
var ErrInUse = errors.New("another run is using the checkpoint")

// lock reserves the checkpoint for this session, so that no second run writes over its file: each would go on, but only
// the state of the last to write would be kept.
func (r *Run) lock() error {
	if r.Checkpoint == "" {
		return nil
	}
	unlock, free := Lock(r.Checkpoint)
	if !free {
		return fmt.Errorf("%s: %w %s: wait until that run has ended, or set another Checkpoint (a * in its name becomes "+
			"a hash of the data, model, settings and seed, so that runs that differ in these have files of their own)",
			r.Owner, ErrInUse, r.Checkpoint)
	}
	r.unlock = unlock
	return nil
}

// Lock reserves a path, which need not exist, until unlock is called; free is false where it is reserved already, by
// this program or another. It holds an empty file beside it, .NAME.lock, which unlock removes. The lock is the
// system's, not the file: it ends with the program, however that ends, and a file that a killed program has left locks
// nothing. Where there can be no such file, as in a folder that cannot be written to, there is no lock: a finished run
// can still be read there, and another one fails as it writes its checkpoint.
func Lock(path string) (unlock func(), free bool) {
	path = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	for range 100 { // at most: on some file systems no file is ever seen to be the same
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return func() {}, true // no lock, see above
		}
		taken, err := tryLock(file)
		switch {
		case err != nil: // a file system without locks
			_ = file.Close()
			_ = os.Remove(path)
			return func() {}, true
		case !taken:
			_ = file.Close()
			return nil, false
		case isAt(file, path):
			return func() {
				_ = os.Remove(path) // first: whoever opens it from now on makes a new one
				_ = file.Close()    // releases the lock
			}, true
		}
		_ = file.Close() // the run that had it has ended meanwhile and removed the file
	}
	return func() {}, true
}

// isAt says whether an open file is still the one at path.
func isAt(file *os.File, path string) bool {
	held, err := file.Stat()
	there, gone := os.Stat(path)
	return err == nil && gone == nil && os.SameFile(held, there)
}
