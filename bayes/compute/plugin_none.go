//go:build !cgo || noxla || !((linux && (amd64 || arm64)) || (darwin && arm64))

package compute

import (
	"runtime"

	backends "github.com/gomlx/compute"
)

// withoutXLA says why this build has no XLA, and the cure.
func withoutXLA() string {
	switch served := map[string]bool{"linux/amd64": true, "linux/arm64": true, "darwin/arm64": true}; {
	case !served[runtime.GOOS+"/"+runtime.GOARCH]:
		return "this build has no XLA: there is none for " + runtime.GOOS + "/" + runtime.GOARCH
	case !withCgo:
		return "this build has no XLA, since it was built without cgo: install a C compiler (gcc or clang) and build with " +
			"CGO_ENABLED=1"
	default:
		return "this build has no XLA, since it was built with the tag noxla"
	}
}

// installedPlugins is empty: this build has no XLA in it, since it was built without cgo, with the tag noxla or for a
// platform that go-xla does not serve.
func installedPlugins() []string { return nil }

func openXLA(string, int) (backends.Backend, error) { return nil, errUnknownBackend }
