package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gobnn/bayes/compute/environment"
	"gobnn/notebooks/program"
	"gobnn/notebooks/setup"
)

// labVerb replaces this process by JupyterLab, which so has the terminal, Ctrl-C and the exit status.
func labVerb(ctx context.Context, root string, args []string) error {
	flags := flag.NewFlagSet("lab", flag.ContinueOnError)
	s := setup.Setup{Root: root, Out: os.Stdout} // what helps while typing is built beside it
	environmentFlags(flags, &s)
	port := flags.Int("port", 0, "the port to listen on (default: JupyterLab's, 8888 or the next free one)")
	noBrowser := flags.Bool("no-browser", false, "do not open a browser: print the address only")
	rest, err := program.Parse(flags, `usage: go run ./notebooks lab [flags] [-- JUPYTERLAB-FLAGS]

Opens JupyterLab with the Go kernel "Go (gobnn)" on your work folder: $GOBNN_WORK, or gobnn in your home folder. It
has a template for a notebook of your own and copies of the project's notebooks. You may change or remove the copies:
one that you have changed is never overwritten, and one that you have removed is made again by the next lab. Arguments
after -- are passed on to JupyterLab.
`, args)
	if err != nil {
		return err
	}
	if *port < 0 || *port > 65535 {
		return fmt.Errorf("-port %d: a port is a number from 1 to 65535", *port)
	}
	folder, err := workFolder(root)
	if err != nil {
		return err
	}
	env, err := s.Ensure(ctx)
	if err != nil {
		return err
	}
	if ready, err := setup.Ready(root, true); err == nil && !ready {
		self, err := os.Executable()
		if err == nil {
			err = helpLater(self, root)
		}
		if err != nil {
			return err
		}
	}
	environ, err := s.JupyterEnviron(env)
	if err != nil {
		return err
	}
	python := filepath.Join(env, "bin", "python")
	command := []string{python, "-m", "jupyterlab", "--ServerApp.root_dir=" + folder}
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
	if err := os.Chdir(folder); err != nil {
		return err
	}
	err = syscall.Exec(python, command, environ)
	return fmt.Errorf("start JupyterLab: %w", err)
}

// helpLater installs gopls, by which Tab completes, while JupyterLab already runs: it takes a minute. It does so by the
// verb setup of the program self, at a low priority, which goes on when JupyterLab ends.
func helpLater(self, root string) error {
	cache, err := environment.CacheDir()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(cache, "gopls.log"))
	if err != nil {
		return fmt.Errorf("the log of set-up: %w", err)
	}
	defer log.Close()
	later := exec.Command("nice", self, "setup")
	later.Dir, later.Stdout, later.Stderr = root, log, log
	later.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for JupyterLab
	if err := later.Start(); err != nil {
		return fmt.Errorf("install gopls: %w", err)
	}
	fmt.Printf("gobnn: gopls is being installed, for Tab and Shift-Tab in notebooks that you open in about a minute; "+
		"its log is %s\n", log.Name())
	return nil
}

// workFolder is the user's folder, with the project's notebooks. One within the source tree, as somebody has who works
// on the notebooks themselves, gets no copies.
func workFolder(root string) (string, error) {
	folder, err := workDir()
	if err != nil {
		return "", err
	}
	if inside(root, folder) {
		if _, err := os.Stat(folder); err != nil {
			return "", fmt.Errorf("%s=%s lies in the source tree, and is not there: %w", workVariable, folder, err)
		}
		fmt.Printf("gobnn: %s lies in the source tree: what you save there changes it\n", folder)
		return folder, nil
	}
	older, err := fillWork(filepath.Join(root, "notebooks"), folder)
	if err != nil {
		return "", err
	}
	fmt.Printf("gobnn: your notebooks are in %s (%s names another folder)\n", folder, workVariable)
	if len(older) > 0 {
		fmt.Printf("gobnn: changed by you, and so not brought up to date: %s; remove one to have it anew\n",
			strings.Join(older, ", "))
	}
	return folder, nil
}
