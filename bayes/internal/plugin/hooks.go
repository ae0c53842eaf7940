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
	"runtime"
	"sync"
	"unsafe"

	"github.com/gomlx/go-xla/pjrt"
)

// hook is one plugin some of whose functions are replaced.
type hook struct {
	plugin   *C.api
	host     bool   // of this machine's processors, not of an accelerator
	store    *Store // nil: nothing is kept
	identity []byte
}

var (
	hooksMu sync.RWMutex
	hooks   []hook
	hooked  = map[string]bool{} // plugins, by their paths
)

// OnHost has the plugin at path, of this machine's processors, compile small programs for one processor. With a store
// what it compiles is kept there, and taken from there where it was compiled before. It is to be called before go-xla
// opens the plugin.
func OnHost(path string, store *Store) error { return register(path, hook{host: true, store: store}) }

// Async makes an accelerator's plugin, at path, return sooner from two functions after which go-xla waits for the
// device. An execution is only begun. An upload copies the host's few numbers and returns, before they reach the
// device. The device does all in order, so the wait moves to the first result that is read, and reading it returns the
// error of a failed execution. Waits are a large part of a short step: on an H200 a call with one result to read took
// .23 ms, and one with three inputs beside it .47, of the .6 to .7 of OHSMC's step with 1000 particles. It is to be
// called before go-xla opens the plugin.
func Async(path string) error { return register(path, hook{}) }

func register(path string, h hook) error {
	hooksMu.Lock()
	defer hooksMu.Unlock()
	if hooked[path] {
		return nil
	}
	api, err := install(path, h)
	if err == nil {
		err = pjrt.RegisterPreloadedPlugin(path, uintptr(unsafe.Pointer(api)))
	}
	if err != nil {
		return fmt.Errorf("plugin: %s: %w", path, err)
	}
	hooked[path] = true
	return nil
}

// install opens a plugin and gives it the next hook.
func install(file string, h hook) (*C.api, error) {
	if len(hooks) == C.SLOTS {
		return nil, fmt.Errorf("more than %d plugins", C.SLOTS)
	}
	if h.store != nil {
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
	if h.host {
		return C.on_host(h.plugin, slot), nil
	}
	return C.async(h.plugin, slot), nil
}

//export gobnn_compile
func gobnn_compile(slot C.int, args *C.compile_args) *C.error { //nolint:revive // the name is C's
	hooksMu.RLock()
	h := hooks[slot]
	hooksMu.RUnlock()
	program := C.GoBytes(unsafe.Pointer(args.program.code), C.int(args.program.code_size))
	options := C.GoBytes(unsafe.Pointer(args.options), C.int(args.options_size))
	if undividable(program) {
		options = undivided(options)
		given, size := args.options, args.options_size
		args.options, args.options_size = (*C.char)(C.CBytes(options)), C.size_t(len(options))
		defer func() {
			C.free(unsafe.Pointer(args.options))
			args.options, args.options_size = given, size
		}()
	}
	if h.store == nil {
		compiled.Add(1)
		return C.call_compile(h.plugin, args)
	}
	machine := fmt.Appendf(nil, "%d devices, %d processors%s", C.call_devices(h.plugin, args.client),
		runtime.NumCPU(), os.Getenv("NPROC"))
	format := C.GoBytes(unsafe.Pointer(args.program.format), C.int(args.program.format_size))
	key := keyOf(h.identity, machine, []byte(os.Getenv("XLA_FLAGS")), format, program, options)
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
