// Package plugin stands between go-xla and XLA's plugins, of whose C interface (PJRT) it replaces single functions: for
// this machine's processors the one that compiles (OnHost), and for accelerators those after which go-xla waits
// (Async).
//
// OnHost compiles small programs for one processor, and keeps on disk what XLA compiled, so that a program that was
// compiled once on a machine starts at once. A file's name is a hash of all on which the machine code depends: the
// program and how it is to be compiled, the plugin, the processor and XLA_FLAGS. The files are run as they are: the
// folder must belong to the user and be writable by nobody else, and what was cut off or altered by accident is not
// loaded. The folder's size is limited; what was not used for longest goes first. Nothing that goes wrong here ends a
// program: it compiles instead.
package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// Store is a folder of compiled programs.
type Store struct {
	Folder string
	Limit  int64 // bytes

	looked, trimmed sync.Once
	usable          bool // nobody else can put machine code into the folder
}

var loaded, compiled atomic.Int64

// Counts returns the numbers of programs that this process has loaded and compiled.
func Counts() (fromDisk, anew int64) { return loaded.Load(), compiled.Load() }

// magic begins a file; the digest of the content and the content follow. It changes with the way keys are made.
const magic = "gobnn executable 1\n"

const suffix = ".xla"

// keyOf is a hash of parts.
func keyOf(parts ...[]byte) string {
	h := sha256.New()
	h.Write([]byte(magic))
	for _, p := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// identify says on which plugin and processor machine code depends.
func identify(plugin string) ([]byte, error) {
	info, err := os.Stat(plugin)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %d %d\n%s", plugin, info.Size(), info.ModTime().UnixNano(), processor(string(text))), nil
}

// processor is the lines of /proc/cpuinfo that say what one processor can do, not how fast it runs at the moment.
func processor(cpuinfo string) string {
	first, _, _ := strings.Cut(cpuinfo, "\n\n")
	var lines []string
	for line := range strings.SplitSeq(first, "\n") {
		name, _, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "vendor_id", "cpu family", "model", "model name", "stepping", "flags", // x86
			"Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision": // ARM
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func (s *Store) file(key string) string { return filepath.Join(s.Folder, key+suffix) }

// ready makes the folder if need be, and says whether nobody else can put machine code into it.
func (s *Store) ready() bool {
	s.looked.Do(func() {
		if err := os.MkdirAll(s.Folder, 0o700); err != nil {
			return
		}
		info, err := os.Stat(s.Folder)
		if err != nil || info.Mode().Perm()&0o022 != 0 {
			return
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		s.usable = ok && int(owner.Uid) == os.Geteuid()
	})
	return s.usable
}

// get reads what is kept under a key, and notes that it was used.
func (s *Store) get(key string) (kept []byte, ok bool) {
	if !s.ready() {
		return nil, false
	}
	raw, err := os.ReadFile(s.file(key))
	if err != nil {
		return nil, false
	}
	rest, whole := bytes.CutPrefix(raw, []byte(magic))
	if !whole || len(rest) <= sha256.Size {
		s.drop(key)
		return nil, false
	}
	kept = rest[sha256.Size:]
	if sum := sha256.Sum256(kept); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		s.drop(key)
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(s.file(key), now, now) // without the time it is only removed earlier
	return kept, true
}

// put keeps an executable. The first time it looks through the folder too.
func (s *Store) put(key string, executable []byte) {
	if !s.ready() {
		return
	}
	s.trimmed.Do(s.trim)
	sum := sha256.Sum256(executable)
	raw := slices.Concat([]byte(magic), sum[:], executable)
	_ = renameio.WriteFile(s.file(key), raw, 0o600, renameio.WithTempDir(s.Folder)) // else it is compiled again
}

// drop removes what is kept under a key.
func (s *Store) drop(key string) { _ = os.Remove(s.file(key)) }

// trim removes what was not used for longest until three quarters of the limit are left, if there is more than the
// limit.
func (s *Store) trim() {
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		return
	}
	var kept []os.FileInfo
	total := int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			kept, total = append(kept, info), total+info.Size()
		}
	}
	if total <= s.Limit {
		return
	}
	slices.SortFunc(kept, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range kept {
		if total <= s.Limit*3/4 {
			return
		}
		if os.Remove(filepath.Join(s.Folder, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
