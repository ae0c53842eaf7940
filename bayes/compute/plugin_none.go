//go:build !cgo || noxla || !((linux && (amd64 || arm64)) || (darwin && arm64))

package compute

import backends "github.com/gomlx/compute"

// installedPlugins is empty: this build has no XLA in it, since it was built without cgo, with the tag noxla or for a
// platform that go-xla does not serve.
func installedPlugins() []string { return nil }

func openXLA(string, int) (backends.Backend, error) { return nil, ErrUnknownBackend }
