package setup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"gobnn/notebooks/program"
)

// Faults that set-up names. Each message names the cure.
var (
	errPython   = errors.New("no usable Python")
	errVenv     = errors.New("the venv module of Python is missing")
	errCompiler = errors.New("no C compiler")
	errDiskFull = errors.New("not enough room on the disk")
	errHash     = errors.New("a download does not match its pinned hash")
	errNetwork  = errors.New("the package server cannot be reached")
	errReadOnly = errors.New("the cache folder cannot be written")
)

// signs are the words in messages of pip, Go and the system by which a fault is recognised; the first match counts.
var signs = []struct {
	words []string // in small letters
	fault error
	mend  string
}{
	{[]string{"no space left on device", "disk quota exceeded"}, errDiskFull,
		"free some room, or set GOBNN_CACHE to a folder on a larger disk (Go's build cache: GOCACHE, pip's: " +
			"PIP_CACHE_DIR), then run the command again"},
	{[]string{"do not match the hashes", "checksum mismatch"}, errHash,
		"nothing of it was installed; empty the caches (`python3 -m pip cache purge`, `go clean -modcache`) and run the " +
			"command again; if it stays, " +
			"the package server alters files: use another one"},
	{[]string{"failed to establish a new connection", "name resolution", "max retries exceeded", "connecttimeouterror",
		"readtimeouterror", "proxyerror",
		"connection refused", "no such host", "i/o timeout", "network is unreachable", "proxyconnect",
		"disabled by goproxy=off", "handshake timeout"}, errNetwork,
		"set-up needs the network once: check the connection and, behind a proxy or with a mirror, HTTPS_PROXY, " +
			"PIP_INDEX_URL and GOPROXY, then run the command again"},
	{[]string{"no matching distribution found"}, errPython,
		"a pinned package has no build for this Python or platform: use Python 3.10 to 3.13 on Linux or on an Apple " +
			"silicon Mac (`-python python3.12` picks one)"},
}

// briefly is the number of lines that are shown of what a program said before a fault that is recognised: pip says
// twenty others.
const briefly = 2

// Explain wraps an error of a program or a file operation with the fault behind it and its cure, which come first;
// other errors stay as they are.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %s\n%w", errDiskFull, signs[0].mend, err)
	}
	var failed *program.Error
	if !errors.As(err, &failed) {
		return err
	}
	said := strings.ToLower(failed.Output)
	for _, sign := range signs {
		for _, word := range sign.words {
			if strings.Contains(said, word) {
				lines := strings.Split(failed.Output, "\n")
				brief := *failed
				brief.Output = strings.Join(lines[max(0, len(lines)-briefly):], "\n")
				return fmt.Errorf("%w: %s\n%w", sign.fault, sign.mend, &brief)
			}
		}
	}
	return err
}

// isFault says whether an error wraps one that Explain names.
func isFault(err error) bool {
	for _, sign := range signs {
		if errors.Is(err, sign.fault) {
			return true
		}
	}
	return false
}

// unwritable is the error for a cache folder that cannot be written, unless the disk is full.
func unwritable(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return Explain(err)
	}
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w\nset GOBNN_CACHE to a folder of your own: `GOBNN_CACHE=$HOME/gobnn-cache go run "+
			"./notebooks setup`", errReadOnly, err)
	}
	return fmt.Errorf("cache folder %s: %w", dir, err)
}

// command returns the command that installs a system package here, from its names in Debian, Fedora and Homebrew.
func command(debian, fedora, mac string) string {
	if runtime.GOOS == "darwin" {
		return mac
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		if _, err := exec.LookPath("dnf"); err == nil {
			return "sudo dnf install " + fedora
		}
	}
	return "sudo apt install " + debian
}
