// Command cells starts GoNB, the kernel that runs a notebook's cells, so that a cell takes a second: it links without
// what only a debugger reads, without a second linker, and asks no proxy for packages. Set-up installs it in the
// environment's folder bin, as gobnn-kernel, as the go command in the folder cells, and as gopls in the folder lab,
// where GoNB finds them first.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"gobnn/notebooks/program"
)

// goVariable names the variable with the path of the real go command.
const goVariable = "GOBNN_GO"

// headlessVariable says, when set, that nobody types: GoNB then starts no gopls, which would use a processor for some
// seconds.
const headlessVariable = "GOBNN_HEADLESS"

func main() {
	if filepath.Base(os.Args[0]) == "go" {
		os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
	}
	self, err := os.Executable() // in bin, also when it is called by another name
	if err == nil {
		env := filepath.Dir(filepath.Dir(self))
		if filepath.Base(os.Args[0]) == "gopls" {
			err = help(env, os.Args)
		} else {
			err = start(env, os.Args[1:])
		}
	}
	fmt.Fprintln(os.Stderr, "gobnn-kernel:", err)
	os.Exit(1)
}

// niceness is the priority of gopls: while cells compute it gets a tenth of a processor. It reads all modules when a
// notebook is opened, for ten seconds of a processor, which the first cells would lack.
const niceness = 10

// help replaces this program by gopls.
func help(env string, args []string) error {
	runtime.LockOSThread() // a priority belongs to a thread, and the program inherits it from the thread that starts it
	err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
	if err != nil && !errors.Is(err, os.ErrPermission) { // that is: it has a lower one already
		return fmt.Errorf("gopls: its priority: %w", err)
	}
	work, err := narrow(os.Getenv("GONB_TMP_DIR"), os.Getenv(rootVariable))
	if err == nil {
		err = os.Setenv("GOWORK", work)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gopls sees the whole project:", err)
	}
	for name, value := range map[string]string{
		"GOMEMLIMIT": cmp.Or(os.Getenv("GOMEMLIMIT"), goplsMemory),
		// The module is not published: no links to its pages.
		"GOPRIVATE": strings.Trim(os.Getenv("GOPRIVATE")+",gobnn", ","),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	gopls := filepath.Join(env, "lab", "server", "gopls")
	// Without the flag it would outlive a kernel that is killed.
	args = append([]string{args[0], "-listen.timeout=1m"}, args[1:]...)
	return fmt.Errorf("%s: %w", gopls, syscall.Exec(gopls, args, os.Environ()))
}

// goplsMemory is the memory at which gopls collects its garbage, however much that costs.
const goplsMemory = "700MiB"

// rootVariable names the variable with the project's folder, which the kernel is given as -go_work.
const rootVariable = "GOBNN_ROOT"

// narrow makes a workspace for gopls in the cells' folder, beside the cells' own, and returns its go.work. The cells'
// workspace has the project as a module to work on, so that gopls would check all its packages, and hold them in
// memory. Here the project is a dependency, and gopls reads only the packages that a cell imports.
func narrow(cells, root string) (work string, err error) {
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut("\n"+string(module), "\nmodule gobnn\n")
	if !found {
		return "", fmt.Errorf("%s is not the module gobnn", root)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile(filepath.Join(cells, "go.mod"))
	if err != nil {
		return "", err
	}
	version := "" // of Go: a workspace's must not be older than its modules'
	for line := range strings.Lines(string(own)) {
		if strings.HasPrefix(line, "go ") {
			version = line
		}
	}
	folder := filepath.Join(cells, "gopls")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"go.mod":      "module gobnn_cells\n" + rest + "\nrequire gobnn v0.0.0\n",
		"go.work":     version + fmt.Sprintf("use (\n\t%q\n\t%q\n)\nreplace gobnn => %q\n", cells, folder, root),
		"go.work.sum": string(sums),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "go.work"), nil
}

// start replaces this program by GoNB; env is the environment's folder.
func start(env string, args []string) error {
	goPath, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("no go on PATH: %w", err)
	}
	gonb := filepath.Join(env, "bin", "gonb")
	linker, err := os.ReadFile(filepath.Join(env, "cells", "ldflags"))
	if err != nil {
		return fmt.Errorf("flags of the linker, which set-up writes: %w", err)
	}
	path := filepath.Join(env, "cells") + string(os.PathListSeparator)
	if os.Getenv(headlessVariable) == "" {
		path += filepath.Join(env, "lab") + string(os.PathListSeparator)
	}
	path += filepath.Join(env, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	root := ""
	for _, arg := range args {
		if folder, found := strings.CutPrefix(arg, "-go_work="); found {
			root = filepath.Clean(folder)
		}
	}
	for name, value := range map[string]string{
		goVariable:   goPath,
		rootVariable: root,
		"PATH":       path,
		"GOFLAGS": program.Linking(program.InWorkspace(os.Getenv("GOFLAGS")),
			strings.TrimSpace(string(linker))),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", gonb, syscall.Exec(gonb, append([]string{gonb}, args...), os.Environ()))
}

// howToAdd follows Go's message about a package that a cell imports and no module has.
const howToAdd = `
A cell fetches nothing by itself. To add a package, run a cell with the line
	!*go get %s
which needs the network once, and then this one again.
`

// interrupted is the exit status of a build that the stop button ended, as shells give it.
const interrupted = 128 + int(syscall.SIGINT)

// command is the go command as GoNB calls it. Before every cell GoNB runs "go get" without a package, which asks the
// proxy for some 25 lists; in GoNB's folder it does nothing. A build that fails because a package is missing says how
// to add it, and one that the stop button ended says that: Go itself says that its linker was killed.
func command(args []string, stdout, stderr io.Writer) int {
	goPath := os.Getenv(goVariable)
	if goPath == "" {
		fmt.Fprintf(stderr, "go: %s is not set: this go command is for the notebooks' kernel\n", goVariable)
		return 1
	}
	if inCells() && (len(args) == 1 && args[0] == "get" || len(args) == 2 && args[0] == "get" && args[1] == "-t") {
		return 0
	}
	if !inCells() || len(args) == 0 || args[0] != "build" && args[0] != "test" {
		err := syscall.Exec(goPath, append([]string{goPath}, args...), os.Environ())
		fmt.Fprintf(stderr, "%s: %v\n", goPath, err)
		return 1
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	defer signal.Stop(stop)
	var said bytes.Buffer
	build := exec.Command(goPath, args...)
	build.Stdin, build.Stdout, build.Stderr = os.Stdin, stdout, &said
	err := build.Run()
	select {
	case <-stop:
		fmt.Fprintln(stderr, "interrupted while the cell was compiled: run it again")
		return interrupted
	default:
	}
	_, _ = stderr.Write(said.Bytes())
	if err == nil {
		return 0
	}
	if path := wanted(said.String()); path != "" {
		fmt.Fprintf(stderr, howToAdd, path)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 1
}

// inCells says whether the working folder is that in which GoNB compiles cells.
func inCells() bool {
	here, err := os.Getwd()
	if err != nil {
		return false
	}
	cells, err := filepath.EvalSymlinks(os.Getenv("GONB_TMP_DIR"))
	if err != nil {
		return false
	}
	here, err = filepath.EvalSymlinks(here)
	return err == nil && here == cells
}

// wanted is the package that Go's message says no module provides; empty: another message.
func wanted(message string) string {
	for _, before := range []string{"no required module provides package ", "cannot find module providing package "} {
		if _, rest, found := strings.Cut(message, before); found {
			path, _, _ := strings.Cut(rest, "\n")
			path, _, _ = strings.Cut(path, " ")
			return strings.TrimRight(path, ":;,")
		}
	}
	return ""
}
