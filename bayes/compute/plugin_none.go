//go:build !cgo || noxla || !((linux && (amd64 || arm64)) || (darwin && arm64))

package compute

import backends "github.com/gomlx/compute"

// withoutXLA says why this build has no XLA, and the cure.
const withoutXLA = "this build has no XLA, which takes Linux, or macOS on ARM, a C compiler (gcc or clang) with " +
	"CGO_ENABLED=1, and no tag noxla"

// installedPlugins is empty: this build has no XLA in it.
func installedPlugins() []string { return nil }

func openXLA(string, int) (backends.Backend, error) { return nil, errUnknownBackend }
