package compute

import (
	"sync"

	"gobnn/bayes/compute/accelerator"
)

// Faults of Open and of programs, for tests.
var (
	ErrNoPlugin       = errNoPlugin
	ErrUnknownBackend = errUnknownBackend
	ErrPluginLoad     = errPluginLoad
	ErrOutOfMemory    = errOutOfMemory
)

// Memory is memory of all of the engine's GPUs, for tests.
func (e *Engine) Memory() (bytes int64, known bool) {
	room, known := e.room(len(e.gpus))
	return room.bytes, known
}

// Chunks and Before are chunks and before, for tests.
func (p Plan) Chunks() int      { return p.chunks() }
func (p Plan) Before(i int) int { return p.before(i) }

// Barrier is barrier, for tests.
var Barrier = barrier

// InstalledPlugins is installedPlugins, for tests.
var InstalledPlugins = installedPlugins

// InFewChunks is inFewChunks, for tests.
func (p Plan) InFewChunks() Plan { return p.inFewChunks() }

// FullVectors is fullVectors, for tests.
var FullVectors = fullVectors

// SetMachine makes m the machine whose GPUs are looked for; the function that it returns undoes it.
func SetMachine(m accelerator.Machine) (restore func()) {
	before := machine
	machine = m
	return func() { machine = before }
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
	for _, v := range e.kept.free {
		v.value.Close()
	}
	e.kept.free = nil
	e.backend.Finalize()
}
