package compute

import (
	"sync"

	"gobnn/bayes/compute/accelerator"
)

// Faults of Open and of programs, for tests.
var (
	ErrUnknownBackend = errUnknownBackend
	ErrPluginLoad     = errPluginLoad
	ErrOutOfMemory    = errOutOfMemory
)

// Memory is memory of all of the engine's GPUs, for tests.
func (e *Engine) Memory() (bytes int64, known bool) {
	memory, known := e.memory(len(e.gpus))
	return memory.bytes, known
}

// Chunks and Before are chunks and before, for tests.
func (p Plan) Chunks() int      { return p.chunks() }
func (p Plan) Before(i int) int { return p.before(i) }

// Barrier is barrier, for tests.
var Barrier = barrier

// NoticeOf and Terminal are noticeOf and terminal, for tests.
var (
	NoticeOf = noticeOf
	Terminal = terminal
)

// InstalledPlugins is installedPlugins, for tests.
var InstalledPlugins = installedPlugins

// InFewChunks is inFewChunks, for tests.
func (p Plan) InFewChunks() Plan { return p.inFewChunks() }

// FullVectors is fullVectors, for tests.
var FullVectors = fullVectors

// SetMachine makes m the machine whose GPUs are looked for; the function that it returns undoes it.
func SetMachine(m accelerator.Machine) (restore func()) {
	before := machine
	machine, silent = m, nil
	return func() { machine, silent = before, nil }
}

// NoticeAgain makes Default say again what it says once.
func NoticeAgain() { noticeOne = sync.Once{} }

// Close frees the backend with all its programs and tensors, for tests. All users of the configuration share it; a
// later Open opens it again.
func (e *Engine) Close() {
	enginesMu.Lock()
	defer enginesMu.Unlock()
	if engines[e.config] != e {
		return // closed before
	}
	delete(engines, e.config)
	owners.Delete(e.backend)
	e.kept.close()
	e.backend.Finalize()
}
