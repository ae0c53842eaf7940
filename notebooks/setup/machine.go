package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"gobnn/notebooks/program"
)

// machine describes this computer.
type machine struct {
	python        string // the interpreter that the venv is made with
	pythonVersion string
	compiler      string
}

// minPython is the oldest Python 3 that the requirements are pinned for.
const minPython = 10

// inspect looks for what set-up needs from the system: Python with its venv module and a C compiler.
func (s *Setup) inspect(ctx context.Context) (machine, error) {
	var m machine
	var err error
	if m.python, m.pythonVersion, err = s.findPython(ctx); err != nil {
		return m, err
	}
	m.compiler, err = findCompiler(ctx, s.Root)
	return m, err
}

// findPython is the first Python on PATH, or the one asked for, if it is new enough and can make a venv.
func (s *Setup) findPython(ctx context.Context) (path, version string, err error) {
	names := []string{"python3", "python3.13", "python3.12", "python3.11", "python3.10"}
	if s.Python != "" {
		names = []string{s.Python}
	}
	install := command("python3 python3-venv", "python3", "brew install python@3.13")
	var old []string
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version, err := program.Output(ctx, program.Command{Args: []string{path, "-c",
			"import sys; print('%d.%d.%d' % sys.version_info[:3])"}, Env: s.environ(nil)})
		if ctx.Err() != nil {
			return "", "", err
		}
		if err != nil {
			old = append(old, fmt.Sprintf("%s (does not run: %v)", path, err))
			continue
		}
		if minor, ok := pythonMinor(version); !ok || minor < minPython {
			old = append(old, fmt.Sprintf("%s (version %s)", path, version))
			continue
		}
		if _, err := program.Output(ctx, program.Command{Args: []string{path, "-c", "import venv, ensurepip"},
			Env: s.environ(nil)}); err != nil {
			if ctx.Err() != nil {
				return "", "", err
			}
			return "", "", fmt.Errorf("%w: %s (version %s) cannot import venv and ensurepip\nmend it with: %s",
				errVenv, path, version, command("python3-venv", "python3", "brew install python@3.13"))
		}
		return path, version, nil
	}
	if len(old) > 0 {
		return "", "", fmt.Errorf("%w: need Python 3.%d or later, found %s\ninstall a newer one (%s), or name one with "+
			"-python FILE",
			errPython, minPython, strings.Join(old, ", "), install)
	}
	return "", "", fmt.Errorf("%w: no %s on PATH\nmend it with: %s", errPython, names[0], install)
}

// pythonMinor is the y of "3.y.z".
func pythonMinor(version string) (int, bool) {
	parts := strings.Split(version, ".")
	if len(parts) < 2 || parts[0] != "3" {
		return 0, false
	}
	minor, err := strconv.Atoi(parts[1])
	return minor, err == nil
}

// findCompiler is the C compiler that cgo uses, which XLA's bindings need. It must find the C library's headers.
func findCompiler(ctx context.Context, root string) (string, error) {
	mend := "mend it with: " + command("gcc libc6-dev", "gcc", "xcode-select --install")
	if os.Getenv("CGO_ENABLED") == "0" {
		return "", fmt.Errorf("%w: CGO_ENABLED=0 turns cgo off, which XLA needs\nmend it with: unset CGO_ENABLED",
			errCompiler)
	}
	name, err := program.Output(ctx, program.Command{Args: []string{"go", "env", "CC"}, Dir: root})
	if err != nil {
		return "", fmt.Errorf("go env CC: %w", err)
	}
	fields := strings.Fields(name)
	if len(fields) == 0 {
		return "", fmt.Errorf("%w: Go names none (CC is empty)\n%s", errCompiler, mend)
	}
	path, err := exec.LookPath(fields[0])
	if err != nil {
		return "", fmt.Errorf("%w: %q, which Go would call, is not on PATH\n%s", errCompiler, fields[0], mend)
	}
	probe, err := os.CreateTemp("", "gobnn-*.c")
	if err != nil {
		return "", Explain(fmt.Errorf("probe of the C compiler: %w", err))
	}
	defer os.Remove(probe.Name())
	_, err = probe.WriteString("#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n")
	if err := errors.Join(err, probe.Close()); err != nil {
		return "", Explain(fmt.Errorf("probe of the C compiler: %w", err))
	}
	args := append(append([]string{path}, fields[1:]...), "-fsyntax-only", probe.Name())
	if err := program.Run(ctx, program.Command{Args: args}); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", fmt.Errorf("%w that works: %w\n%s", errCompiler, err, mend)
	}
	return filepath.Base(path), nil
}
