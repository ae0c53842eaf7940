package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"gobnn/notebooks/commandline"
	"gobnn/notebooks/setup"
)

// labVerb replaces this process by JupyterLab, which so has the terminal, Ctrl-C and the exit status.
func labVerb(ctx context.Context, root string, args []string) error {
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	s := setup.Setup{Root: root, Out: os.Stdout, Help: true}
	environmentFlags(flags, &s)
	port := flags.Int("port", 0, "the port to listen on (default: JupyterLab's, 8888 or the next free one)")
	noBrowser := flags.Bool("no-browser", false, "do not open a browser: print the address only")
	rest, err := commandline.Parse(flags, `usage: go run ./notebooks lab [flags] [-- JUPYTERLAB-FLAGS]

Opens JupyterLab on the project's notebooks, with the Go kernel "Go (gobnn)". What stands after -- goes to JupyterLab
as it is.
`, args)
	if err != nil {
		return err
	}
	if *port < 0 || *port > 65535 {
		return fmt.Errorf("-port %d: a port is a number from 1 to 65535", *port)
	}
	env, err := s.Ensure(ctx)
	if err != nil {
		return err
	}
	python := filepath.Join(env, "bin", "python")
	command := []string{python, "-m", "jupyterlab", "--ServerApp.root_dir=" + filepath.Join(root, "notebooks")}
	if *port != 0 {
		command = append(command, "--port="+strconv.Itoa(*port), "--port-retries=0")
	}
	if *noBrowser {
		command = append(command, "--no-browser")
	}
	if os.Geteuid() == 0 {
		command = append(command, "--allow-root") // as in a container; JupyterLab would refuse
	}
	command = append(command, rest...)
	if err := os.Chdir(filepath.Join(root, "notebooks")); err != nil {
		return err
	}
	err = syscall.Exec(python, command, s.JupyterEnviron(env))
	return fmt.Errorf("start JupyterLab: %w", err)
}
