//go:build cgo && linux && !noxla && (amd64 || arm64)

package plugin

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "pjrt.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"github.com/gomlx/go-xla/pjrt"
)

// hook is one plugin some of whose functions are replaced.
type hook struct {
	plugin   *C.api
	store    *Store // nil: nothing is kept
	identity []byte
}

var (
	hooksMu sync.RWMutex
	hooks   []hook
	hooked  = map[string]*C.api{} // by the file's own path
	names   = map[string]bool{}   // that go-xla knows
)

// Keep has what the plugin at path, of this machine's processors, compiles from now on kept in the store, and taken
// from there where it was compiled before. It is to be called before go-xla opens the plugin.
func Keep(path string, store *Store) error { return register(path, store) }

// Async has the plugin at path, of an accelerator, return sooner from two functions after which go-xla waits for the
// device: an execution is only begun, and the host's few numbers are copied before an upload returns, not when they
// reach the device. The device does all in order, so that the first result that is read is what is waited for; an error
// of an execution is then that of reading its results. Waits are a large part of a short step: on an H200 a call
// with one result to read took .23 ms, and one with three inputs beside it .47, of the .6 to .7 of OHSMC's step with
// 1000 particles. It is to be called before go-xla opens the plugin.
func Async(path string) error { return register(path, nil) }

func register(path string, store *Store) error {
	hooksMu.Lock()
	defer hooksMu.Unlock()
	if names[path] {
		return nil
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("plugin: %w", err)
	}
	if hooked[file] == nil {
		if hooked[file], err = install(file, store); err != nil {
			return fmt.Errorf("plugin: %s: %w", path, err)
		}
	}
	if err := pjrt.RegisterPreloadedPlugin(path, uintptr(unsafe.Pointer(hooked[file]))); err != nil {
		return fmt.Errorf("plugin: %s: %w", path, err)
	}
	names[path] = true
	return nil
}

// install opens a plugin and gives it the next hook: one that keeps what is compiled in the store, or without a store
// one that waits less.
func install(file string, store *Store) (*C.api, error) {
	if len(hooks) == C.SLOTS {
		return nil, fmt.Errorf("more than %d plugins", C.SLOTS)
	}
	h := hook{store: store}
	if store != nil {
		var err error
		if h.identity, err = identify(file); err != nil {
			return nil, err
		}
	}
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	var message *C.char
	if h.plugin = C.open_plugin(name, &message); h.plugin == nil {
		return nil, errors.New(C.GoString(message))
	}
	hooks = append(hooks, h)
	slot := C.int(len(hooks) - 1)
	if store == nil {
		return C.async(h.plugin, slot), nil
	}
	return C.kept(h.plugin, slot), nil
}

//export gobnn_compile
func gobnn_compile(slot C.int, args *C.compile_args) *C.error { //nolint:revive // the name is C's
	hooksMu.RLock()
	h := hooks[slot]
	hooksMu.RUnlock()
	program := args.program
	machine := fmt.Appendf(nil, "%d devices, %d processors", C.call_devices(h.plugin, args.client), runtime.NumCPU())
	key := keyOf(h.identity, machine, []byte(os.Getenv("XLA_FLAGS")),
		C.GoBytes(unsafe.Pointer(program.format), C.int(program.format_size)),
		unsafe.Slice((*byte)(unsafe.Pointer(program.code)), int(program.code_size)),
		unsafe.Slice((*byte)(unsafe.Pointer(args.options)), int(args.options_size)))
	if kept, ok := h.store.get(key); ok {
		wrong := C.call_load(h.plugin, args.client, unsafe.Pointer(unsafe.SliceData(kept)), C.size_t(len(kept)),
			&args.executable)
		if wrong == nil {
			loaded.Add(1)
			return nil
		}
		C.free(unsafe.Pointer(wrong))
		h.store.drop(key)
	}
	compiled.Add(1)
	if failure := C.call_compile(h.plugin, args); failure != nil {
		return failure
	}
	var serialized C.serialize_args
	if wrong := C.call_serialize(h.plugin, args.executable, &serialized); wrong != nil {
		C.free(unsafe.Pointer(wrong)) // not everything that compiles can be kept
		return nil
	}
	h.store.put(key, unsafe.Slice((*byte)(unsafe.Pointer(serialized.bytes)), int(serialized.bytes_size)))
	C.free_serialized(&serialized)
	return nil
}
