package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"gobnn/notebooks/program"
)

// makeVenv makes the Python environment in dir.
func (s *Setup) makeVenv(ctx context.Context, python, dir string) error {
	return program.Run(ctx, program.Command{Args: []string{python, "-m", "venv", dir}, Env: s.environ(nil), Hold: s.lock})
}

// labSettings are JupyterLab's own settings, where a user has not set others: no search for newer versions, as its
// version is pinned, and no question about news. Tab waits 10 s for gopls, which needs more than the second that Lab
// waits by default when a cell has changed, such as for the fields of a struct: Lab would offer nothing.
const labSettings = `{
	"@jupyterlab/apputils-extension:notification": {"checkForUpdates": false, "fetchNews": "false"},
	"@jupyterlab/completer-extension:manager": {"providerTimeout": 10000}
}
`

// serverSettings has the settings of JupyterLab's server. Lab learns the state of the kernel from the kinds of messages
// that the server tracks. Lab sends a new kernel two messages first. The server does not track one of them, and the
// kernel does not answer the other. So Lab did not know that the kernel was idle until it had run a cell, and could
// skip that cell.
const serverSettings = `from jupyter_server.services.kernels.kernelmanager import MappingKernelManager as manager

c.MappingKernelManager.untracked_message_types = [
    kind for kind in manager.untracked_message_types.default() if kind != "kernel_info_request"
]
`

// downloading is pip's line about a file: its size and unit are the groups.
var downloading = regexp.MustCompile(`^\s*Downloading \S+ \(([0-9.]+) (kB|MB|GB)`)

// installPackages installs the requirements with pip, which checks every file's hash.
func (s *Setup) installPackages(ctx context.Context, dir string, p *progress) error {
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, []byte(requirements), 0o644); err != nil {
		return err
	}
	packages, bytes, err := s.pip(ctx, dir, list, p)
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"share/jupyter/lab/settings/overrides.json": labSettings, "etc/jupyter/jupyter_server_config.py": serverSettings,
	} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	p.update("%d packages, %s downloaded, %s installed", packages, megabytes(int64(bytes)), megabytes(sizeOf(dir)))
	if runtime.GOOS != "darwin" {
		return nil
	}
	// The index has no plugin for macOS: go-xla's installer fetches one.
	p.update("XLA plugin")
	return program.Run(ctx, program.Command{
		Args: []string{"go", "run", "./cpuplugin", filepath.Join(dir, "plugin")},
		Dir:  s.tools(), Env: s.environ(nil), Hold: s.lock, Line: func(line string) { p.update("XLA plugin: %s", line) },
	})
}

// pip installs a list of requirements with the pip of the environment in env, which checks every file's hash, and says
// how many packages and bytes it downloaded. more are further arguments.
func (s *Setup) pip(
	ctx context.Context, env, list string, p *progress, more ...string,
) (packages int, bytes float64, err error) {
	line := func(line string) {
		if strings.HasPrefix(line, "Collecting ") {
			packages++
		}
		bytes += downloadSize(line)
		p.update("%d packages, %s downloaded", packages, megabytes(int64(bytes)))
		if strings.HasPrefix(line, "Installing collected") {
			p.update("%d packages, %s downloaded, installing", packages, megabytes(int64(bytes)))
		}
	}
	args := []string{filepath.Join(env, "bin", "python"), "-m", "pip", "install", "--require-hashes", "--no-deps",
		"--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=2", "-r", list}
	err = program.Run(ctx, program.Command{Args: append(args, more...), Env: s.environ(nil), Hold: s.lock, Line: line})
	return packages, bytes, err
}

// downloadSize is the bytes of the file that a line of pip's says it downloads, else 0.
func downloadSize(line string) float64 {
	match := downloading.FindStringSubmatch(line)
	if match == nil {
		return 0
	}
	size, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		return 0
	}
	return size * map[string]float64{"kB": 1e3, "MB": 1e6, "GB": 1e9}[match[2]]
}

// installTools builds the notebooks' Go tools from the pinned tool module into dir/bin.
func (s *Setup) installTools(ctx context.Context, dir string, p *progress) error {
	bin := filepath.Join(dir, "bin")
	for _, tool := range []string{"github.com/janpfeifer/gonb", "golang.org/x/tools/cmd/goimports"} {
		p.update("%s", filepath.Base(tool))
		err := program.Run(ctx, program.Command{Args: []string{"go", "install", tool}, Dir: s.tools(),
			Env: s.environ([]string{"GOBIN=" + bin}), Hold: s.lock})
		if err != nil {
			return err
		}
	}
	p.update("gobnn-kernel")
	err := program.Run(ctx, program.Command{
		Args: []string{"go", "build", "-o", filepath.Join(bin, launcher), "./notebooks/cells"}, Dir: s.Root,
		Env: s.environ([]string{"CGO_ENABLED=0"}), Hold: s.lock,
	})
	if err != nil {
		return err
	}
	cells := filepath.Join(dir, "cells")
	if err := os.MkdirAll(cells, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join("..", "bin", launcher), filepath.Join(cells, "go")); err != nil {
		return err
	}
	p.update("gonb, goimports, %s", launcher)
	return nil
}

// launcher is the program that starts the kernel, of package notebooks/cells.
const launcher = "gobnn-kernel"

// The linker's flags for cells: without symbols and DWARF, which panics do not need to name their lines, linking takes
// half the time; by Go's own linker, where that can link cgo on this machine, half of that.
const (
	stripped = "-s"
	internal = "-s -linkmode=internal"
)

// chooseLinker finds the linker's flags that work here and writes them where the kernel reads them.
func (s *Setup) chooseLinker(ctx context.Context, dir string) error {
	cells := filepath.Join(dir, "cells")
	flags := internal
	err := program.Run(ctx, program.Command{
		Args: []string{"go", "build", "-ldflags=" + internal, "-o", filepath.Join(cells, "tried"),
			"./notebooks/reproduce"},
		Dir: s.Root, Env: s.environ(nil), Hold: s.lock,
	})
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		flags = stripped
	} else if err := os.Remove(filepath.Join(cells, "tried")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(cells, "ldflags"), []byte(flags+"\n"), 0o644)
}

// complete says whether the environment in dir has what help while typing needs.
func complete(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "lab", "gopls"))
	return err == nil
}

// addHelp builds gopls, by which Tab completes in JupyterLab. It takes a minute of processor time, which a notebook
// that runs by itself does not wait for.
func (s *Setup) addHelp(ctx context.Context, dir string) error {
	if err := s.hold(ctx, filepath.Dir(dir)); err != nil {
		return err
	}
	defer s.lock.Close()
	if complete(dir) { // another set-up made it while this one waited
		return nil
	}
	p := newProgress(s.Out, 1)
	defer p.fail()
	p.begin("gopls, for help while typing (once)")
	// Beside its place first: a killed build leaves no half program.
	making := filepath.Join(dir, "lab.next")
	if err := os.RemoveAll(making); err != nil {
		return unwritable(dir, err)
	}
	err := program.Run(ctx, program.Command{Args: []string{"go", "install", "golang.org/x/tools/gopls"},
		Dir: filepath.Join(s.tools(), "gopls"),
		Env: s.environ([]string{"GOBIN=" + filepath.Join(making, "server")}), Hold: s.lock})
	if err == nil {
		err = os.Symlink(filepath.Join("..", "bin", launcher), filepath.Join(making, "gopls"))
	}
	if err == nil {
		err = os.Rename(making, filepath.Join(dir, "lab"))
	}
	if err != nil {
		return fmt.Errorf("gopls: %w", Explain(err))
	}
	p.done()
	return nil
}

// warm compiles what cells link, so that the first cell of a notebook does not take a minute, and links no program. A
// library that does not compile is reported, but does not fail the set-up.
func (s *Setup) warm(ctx context.Context, dir string, p *progress) error {
	fetched := 0
	err := program.Run(ctx, program.Command{
		Args: []string{"go", "build", "./bayes/...", "./viz/...", "./pbnn/...", "./notebooks/study"},
		Dir:  s.Root, Env: s.environ(nil), Hold: s.lock,
		Line: func(line string) {
			if strings.HasPrefix(line, "go: downloading ") {
				fetched++
				p.update("%d modules downloaded", fetched)
			}
		},
	})
	if err = Explain(err); ctx.Err() != nil || isFault(err) {
		return err
	}
	if err != nil {
		p.update("it does not build")
		p.line.Print(fmt.Sprintf("gobnn: the notebooks will fail until the library builds: %v", err))
	}
	return s.chooseLinker(ctx, dir)
}

// tools is the folder of the tool module.
func (s *Setup) tools() string { return filepath.Join(s.Root, "notebooks", "tools") }
