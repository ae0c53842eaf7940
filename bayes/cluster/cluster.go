// Package cluster does parts of a program's work on other machines: a list of tasks, each of which writes its result
// into a folder of its own, is done in the process, or on a cluster by Ray (ray.io, Apache-2.0) or Slurm.
//
//	tasks := []cluster.Task{{Name: "chain 1", Do: func(ctx context.Context, folder string) error { ... }}, ...}
//	err := cluster.Run(ctx, cluster.Options{On: "ray://head:10001", Folder: "chains"}, tasks)
//
// The program itself is what the nodes run: it is sent to them with its arguments, and executed once for each task.
// There it goes as far as Run, which does the one task that is asked for and ends the program. So everything before Run
// happens on each node too: it reads its data, which it embeds or which lie where all nodes find them, and decides the
// same list. [Fit] makes runs of a method that are joined to one posterior.
//
// A task that keeps checkpoints in its folder goes on from the last one wherever it is done again: what lies in the
// folder is brought home as it changes. The same call of Run, after an interruption, does what is not done yet.
//
// Who can start a node of a Ray cluster can run programs on its other machines and on this one: Ray trusts its nodes,
// and belongs into a network of your own.
//
// Random numbers of this library are counted by particle and depend on the seed alone. So a task gives the same bits
// wherever it runs, on one model of processor, and where the processors differ, results that agree within their Monte
// Carlo errors.
package cluster

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/environment"
	"gobnn/bayes/run"

	"github.com/google/renameio/v2"
)

// Task is a part of the work.
type Task struct {
	// Name is unique in a list, and the name of the task's folder.
	Name string
	// Do writes the result into the folder, which may have what an earlier try has left, such as checkpoints. What it
	// writes to os.Stderr is progress. On a Ray cluster the folder may hold 1 GiB, which goes through the memory of a
	// node and of this machine: what is larger belongs on a disk that they share.
	Do func(ctx context.Context, folder string) error
	// CPUs are what it needs of a node; default one. On a cluster XLA takes as many threads for it (NPROC), so that its
	// bits and checkpoints are the same on every node. A task that asks a Ray cluster for more than any of its nodes has
	// is refused, and the others are done.
	CPUs int
}

// Options say where tasks are done.
type Options struct {
	// On is empty (in this process, one after another), "ray" (on a cluster of this machine's processors, which is started
	// and ended) or the address of a running one, such as "ray://head:10001". Ray is installed by `go run ./notebooks
	// setup -ray`. "slurm" writes the scripts of array jobs, of at most 1000 tasks each, into Folder, which all nodes must
	// share, and Run returns ErrSubmit, until a call finds all tasks done.
	On string
	// Folder has a folder for each task's result.
	Folder string
	// Progress is called with lines: of a task, the last of which is TaskDone, or of none. nil: none.
	Progress func(task, line string)

	rows   string          // the hash of the training rows of a Fit, which its nodes must have
	engine *compute.Engine // of a Fit
	driver *driver         // for several lists; nil: each has its own
}

// TaskDone is the last line of a task's progress.
const TaskDone = "done"

// The environment of a program that is to do one task.
const (
	taskEntry   = "GOBNN_TASK"
	listEntry   = "GOBNN_TASK_LIST"
	folderEntry = "GOBNN_TASK_FOLDER"
	rowsEntry   = "GOBNN_TASK_ROWS"   // the hash of the training rows of a Fit
	engineEntry = "GOBNN_TASK_ENGINE" // the engine's name, which nodes must have too: others would give other bits
	stdinEntry  = "GOBNN_TASK_STDIN"  // set: the caller has died when stdin ends
)

// ErrOtherList is what Run returns on a node whose task is of another list: there the results of this one are not to be
// had. A program with several lists goes on without them, or is one program for each list.
var ErrOtherList = errors.New("this node does a task of another list")

// list names the list: the folder as the program gives it, or the last part of an absolute one, which may lie elsewhere
// on a node.
func (o Options) list() string {
	if filepath.IsAbs(o.Folder) {
		return filepath.Base(o.Folder)
	}
	return filepath.ToSlash(filepath.Clean(o.Folder))
}

// Done says whether a task's result is in its folder.
func (o Options) Done(task string) bool {
	_, err := os.Stat(filepath.Join(o.Folder, task+doneSuffix))
	return err == nil
}

const doneSuffix = ".done"

// Forget removes a task's result, which is then done anew.
func (o Options) Forget(task string) error {
	folder := filepath.Join(o.Folder, task)
	if err := os.RemoveAll(folder + doneSuffix); err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

// OnNode says whether this process is for one task: the program's call of Run will do it and not return.
func OnNode() bool {
	_, ok := os.LookupEnv(taskEntry)
	return ok
}

// otherList is an error on a node whose task is of another list.
func (o Options) otherList() error {
	if asked := os.Getenv(listEntry); OnNode() && asked != o.list() {
		return fmt.Errorf("cluster: folder %q: %w, %q", o.Folder, ErrOtherList, asked)
	}
	return nil
}

// Run does the tasks that are not done. On a Ray cluster, a task whose program fails is tried three times, or twice if
// it fails in the same way, and one whose node dies is done elsewhere, from its last checkpoint. A program that ends
// before its task is done has failed, whatever its status. The errors of tasks that failed are joined: the others are
// done. A node that computes by another engine does none, and on Ray ends the call. One call at a time does the tasks
// of a folder: another call, of this program or another, is an error.
func Run(ctx context.Context, o Options, tasks []Task) error {
	if err := o.check(tasks); err != nil {
		return err
	}
	if err := o.otherList(); err != nil {
		return err
	}
	if OnNode() {
		o.doOne(ctx, os.Getenv(taskEntry), tasks)
	}
	if err := os.MkdirAll(o.Folder, 0o755); err != nil {
		return fmt.Errorf("cluster: folder of the tasks: %w", err)
	}
	// A lock of the system, which ends with this program, however that ends.
	unlock, free := run.Lock(filepath.Join(o.Folder, "tasks"))
	if !free {
		return fmt.Errorf("cluster: folder %s: another call is doing its tasks: wait until that call has ended, or name "+
			"another folder", o.Folder)
	}
	defer unlock()
	left := slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool { return o.Done(t.Name) })
	if len(left) == 0 {
		return nil
	}
	switch o.On {
	case "":
		return o.here(ctx, left)
	case "slurm":
		return o.onSlurm(left, len(tasks))
	}
	return o.onRay(ctx, left)
}

// check is an error for what cannot be done.
func (o Options) check(tasks []Task) error {
	if o.Folder == "" {
		return errors.New("cluster: Options.Folder is empty: name the folder for the results")
	}
	if o.On != "" && o.On != "ray" && o.On != "slurm" && !strings.HasPrefix(o.On, "ray://") {
		return fmt.Errorf("cluster: Options.On is %q: it must be empty, \"ray\", an address such as ray://head:10001, or "+
			"\"slurm\"", o.On)
	}
	known := map[string]bool{}
	for _, t := range tasks {
		switch {
		case t.Name == "" || t.Name[0] == '.' || strings.HasSuffix(t.Name, doneSuffix) ||
			strings.ContainsFunc(t.Name, func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }):
			return fmt.Errorf("cluster: a task is called %q: it must be the name of a folder, without a dot at its start, %s "+
				"at its end or special characters", t.Name, doneSuffix)
		case known[t.Name]:
			return fmt.Errorf("cluster: two tasks are called %q", t.Name)
		}
		known[t.Name] = true
	}
	return nil
}

// doOne does the one task that this process is for, and ends it.
func (o Options) doOne(ctx context.Context, name string, tasks []Task) {
	if os.Getenv(stdinEntry) != "" {
		go func() { // Do may not see that its context ends
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
	}
	for _, t := range tasks {
		if t.Name != name {
			continue
		}
		if err := o.checkBackend(os.Getenv(engineEntry)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(69) // as the driver knows a node that can do none of the tasks
		}
		if err := t.do(ctx, os.Getenv(folderEntry)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "cluster: the program that is to do task %q has no such task here: what it does before "+
		"cluster.Run must give the same list on every machine\n", name)
	os.Exit(1)
}

// do does the task and notes that it is done. Nothing else does: a program may end before, with any status.
func (t Task) do(ctx context.Context, folder string) error {
	if err := t.Do(ctx, folder); err != nil {
		return err
	}
	return renameio.WriteFile(folder+doneSuffix, nil, 0o644)
}

// checkBackend is an error on a node that computes by another engine than it must.
func (o Options) checkBackend(want string) error {
	engine, err := o.engine.Or()
	if err != nil || engine.Name() == want {
		return err
	}
	host, _ := os.Hostname()
	return fmt.Errorf("cluster: node %s computes by %q, and the program that sent the tasks by %q: `go run ./notebooks "+
		"setup` there installs XLA; if GOMLX_BACKEND is set, it must be the same on all machines", host, engine.Name(), want)
}

// here does tasks in this process.
func (o Options) here(ctx context.Context, tasks []Task) error {
	var failed []error
	for _, t := range tasks {
		if ctx.Err() != nil {
			return errors.Join(append(failed, context.Cause(ctx))...)
		}
		folder := filepath.Join(o.Folder, t.Name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("cluster: folder of task %q: %w", t.Name, err)
		}
		if err := t.do(ctx, folder); err != nil {
			failed = append(failed, fmt.Errorf("task %q: %w", t.Name, err))
			continue
		}
		o.report(t.Name, TaskDone)
	}
	return errors.Join(failed...)
}

//go:embed driver.py
var driverText string

// job is the request to the driver, the same for all tasks of a call.
type job struct {
	Address string            `json:"address"` // of the cluster, for ray.init
	Folder  string            `json:"folder"`
	Program string            `json:"program"` // its path
	Hash    string            `json:"hash"`    // its SHA-256
	Args    []string          `json:"args"`
	Environ map[string]string `json:"environ"`
}

// event is a line of the driver's output.
type event struct {
	Event string `json:"event"`
	Task  string `json:"task"`
	Text  string `json:"text"`
}

// driver is the driver's process, as long as there are lists for it.
type driver struct {
	command *exec.Cmd // nil: not started yet
	lists   io.WriteCloser
	events  *bufio.Scanner
	stderr  strings.Builder
}

// onRay does tasks by the driver.
func (o Options) onRay(ctx context.Context, tasks []Task) error {
	d := o.driver
	if d == nil {
		d = &driver{}
		defer d.end()
	}
	if d.command == nil {
		if err := o.start(d); err != nil {
			return err
		}
	}
	var list [][2]any // names and CPUs
	for _, t := range tasks {
		list = append(list, [2]any{t.Name, max(t.CPUs, 1)})
	}
	stop := context.AfterFunc(ctx, func() { d.lists.Close() })
	defer stop()
	// the error of a driver that has ended is reported at its end
	go func() { _ = json.NewEncoder(d.lists).Encode(list) }()
	failed, ended := o.listen(d.events)
	switch {
	case ctx.Err() != nil:
		return errors.Join(append(failed, context.Cause(ctx))...)
	case !ended:
		failed = append(failed, fmt.Errorf("cluster: Ray's driver ended (%v): %s", d.end(), lastLines(d.stderr.String())))
	}
	return errors.Join(failed...)
}

// start starts the driver.
func (o Options) start(d *driver) error {
	python, packages, err := ray()
	if err != nil {
		return err
	}
	j, err := o.job()
	if err != nil {
		return err
	}
	command := exec.Command(python, "-c", driverText)
	command.Env = append(os.Environ(), "RAY_BACKEND_LOG_LEVEL=error", "RAY_USAGE_STATS_ENABLED=0",
		"RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S=20", "PYTHONPATH="+packages) // a busy head takes its time
	command.Stderr = &d.stderr
	if d.lists, err = command.StdinPipe(); err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	d.events = bufio.NewScanner(out)
	d.events.Buffer(nil, 64<<20)
	if err := command.Start(); err != nil {
		return fmt.Errorf("cluster: Ray's driver: %w", err)
	}
	d.command = command
	_ = json.NewEncoder(d.lists).Encode(j) // the error of a driver that has ended is reported at its end
	return nil
}

// end waits for the driver's end.
func (d *driver) end() error {
	if d.command == nil {
		return nil
	}
	d.lists.Close()
	err := d.command.Wait()
	d.command = nil
	return err
}

// ray is the Python interpreter of the private environment, and the folder with Ray's packages.
func ray() (python, packages string, err error) {
	env, err := environment.Dir()
	if err != nil {
		return "", "", err
	}
	if packages, err = environment.Extra("ray"); err != nil {
		return "", "", err
	}
	python = filepath.Join(env, "bin", "python")
	if _, err := os.Stat(filepath.Join(packages, "ray")); err != nil {
		return "", "", fmt.Errorf("cluster: Ray is not installed (%w): `go run ./notebooks setup -ray` does it", err)
	}
	return python, packages, nil
}

// job is the request of a call.
func (o Options) job() (j job, err error) {
	if j.Program, err = os.Executable(); err != nil {
		return j, fmt.Errorf("cluster: the path of this program, which nodes execute, is not known: %w", err)
	}
	program, err := os.ReadFile(j.Program)
	if err != nil {
		return j, fmt.Errorf("cluster: the program for the nodes: %w", err)
	}
	if j.Folder, err = filepath.Abs(o.Folder); err != nil {
		return j, err
	}
	engine, err := o.engine.Or()
	if err != nil {
		return j, fmt.Errorf("cluster: %w", err)
	}
	j.Args, j.Hash = os.Args[1:], fmt.Sprintf("%x", sha256.Sum256(program))
	j.Environ = map[string]string{listEntry: o.list(), rowsEntry: o.rows, engineEntry: engine.Name(), stdinEntry: "1"}
	if j.Address = o.On; o.On == "ray" {
		j.Address = "local" // a cluster of its own
	}
	return j, nil
}

// report passes a line on to Options.Progress.
func (o Options) report(task, line string) {
	if o.Progress != nil {
		o.Progress(task, line)
	}
}

// listen passes the driver's events on; ended is false where it ended before all tasks were over.
func (o Options) listen(events *bufio.Scanner) (failed []error, ended bool) {
	for events.Scan() {
		var e event
		if json.Unmarshal(events.Bytes(), &e) != nil {
			continue // Ray's own words
		}
		switch e.Event {
		case "line":
			o.report(e.Task, e.Text)
		case "again":
			o.report(e.Task, "it failed, and is tried again: "+lastLines(e.Text))
		case "lost":
			o.report(e.Task, "it is lost, and goes on elsewhere: "+e.Text)
		case "done":
			o.report(e.Task, TaskDone)
		case "failed":
			failed = append(failed, fmt.Errorf("task %q failed: %s", e.Task, lastLines(e.Text)))
		case "broken":
			return append(failed, fmt.Errorf("cluster: on %s: %s", o.On, lastLines(e.Text))), true
		case "end":
			return failed, true
		}
	}
	return failed, false
}

// lastLines are the last ten lines of a text.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
