//go:build long

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gobnn/bayes/cluster"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/fit"
)

// Three nodes on one machine: a task that fails in one way is tried twice and told with its words, and one that no node
// can do is refused, while others are done. A call that is stopped, whose driver or whose program is killed, goes
// on from the tasks that are kept, and from their checkpoints; so does one whose node is killed, or freezes and wakes
// when the head has given it up. The results have the bits of one process.
func TestRayLong(t *testing.T) {
	address, do := nodes(t)

	said := map[string][]string{}
	on := func(folder string) cluster.Options {
		clear(said)
		return cluster.Options{On: address, Folder: folder, Progress: func(task, line string) {
			t.Logf("%s %s: %s", time.Now().Format("15:04:05"), task, line)
			said[task] = append(said[task], line)
		}}
	}

	t.Run("stopped", func(t *testing.T) { interrupted(t, address, on, said) })
	t.Run("fit", func(t *testing.T) { likeHere(t, on) })
	t.Run("lost", func(t *testing.T) { lost(t, on, said, do) })
}

// interrupted stops and kills calls and what they have started.
func interrupted(t *testing.T, address string, on func(string) cluster.Options, said map[string][]string) {
	folder, tasks := filepath.Join(t.TempDir(), "counting"), counting(3, 0)
	stopped, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go when(t, folder, tasks, func(_, begun int) bool { return begun > 0 }, func() { stop(enough) })
	if err := cluster.Run(stopped, on(folder), tasks); !errors.Is(err, enough) {
		t.Fatalf("a call that was stopped: %v", err)
	}

	var kept []string
	keep := func() {
		for _, task := range tasks {
			if (cluster.Options{Folder: folder}).Done(task.Name) {
				kept = append(kept, task.Name)
			}
		}
	}
	call := exec.Command(os.Args[0])
	call.Env = append(os.Environ(), callEntry+"="+address+" in "+folder)
	computetest.NoError(t, call.Start())
	var driver int
	when(t, folder, tasks, func(done, begun int) bool { return done > 0 && begun > 0 }, func() {
		if driver = driverOf(t, call.Process.Pid); driver == 0 {
			t.Error("a program's driver is not found")
		}
		if err := cluster.Run(t.Context(), on(folder), tasks); err == nil ||
			!strings.Contains(err.Error(), "another call") {
			t.Errorf("a second call at once: %v", err)
		}
		if err := call.Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	_ = call.Wait() // it was killed
	for t.Context().Err() == nil && driver > 0 && syscall.Kill(driver, 0) == nil {
		time.Sleep(50 * time.Millisecond) // until the driver of the killed program ends
	}
	keep()

	killed := on(folder)
	tell := killed.Progress
	killed.Progress = func(task, line string) {
		tell(task, line)
		if pid := driverOf(t, os.Getpid()); task != "" && pid > 0 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	err := cluster.Run(t.Context(), killed, tasks)
	if err == nil || !strings.Contains(err.Error(), "Ray's driver ended (signal: killed)") {
		t.Errorf("a driver that was killed: %v", err)
	}
	undone := func() {
		for _, name := range kept {
			if len(said[name]) > 0 {
				t.Errorf("%s was kept, and is done again: %q", name, said[name])
			}
		}
	}
	undone()
	keep()
	before := fmt.Sprint(said)

	wide := cluster.Task{Name: "wide", Do: large.Do, CPUs: 2}
	err = cluster.Run(t.Context(), on(folder), append(slices.Clone(tasks), failing, large, wide))
	tries := strings.Count(fmt.Sprint(said["fails"]), "tried again") + 1
	if err == nil || strings.Count(err.Error(), "no such prior") != 1 || tries != 2 {
		t.Errorf("a task that fails: %v, %q", err, said["fails"])
	}
	if !strings.Contains(fmt.Sprint(err), "task \"wide\" failed: it asks for 2 CPUs, and no node of this cluster has "+
		"more than 1") {
		t.Errorf("a task for two processors: %v", err)
	}
	if info, err := os.Stat(filepath.Join(folder, "large", "result")); err != nil || info.Size() != 120<<20 {
		t.Errorf("a result larger than the object store: %v, %v", info, err)
	}
	undone()
	if len(kept) == 0 || !strings.Contains(before+fmt.Sprint(said), "goes on from") {
		t.Errorf("%q were kept; then they said %q and %q", kept, before, said)
	}
	alike(t, folder, tasks)
}

// likeHere compares fits on the cluster and in this process.
func likeHere(t *testing.T, on func(string) cluster.Options) {
	for name, list := range map[string]func(context.Context, cluster.Options) (*fit.Result, error){
		"chains": chains, "islands": islands,
	} {
		var draws [2]string
		for i, o := range []cluster.Options{on(filepath.Join(t.TempDir(), name)),
			{Folder: filepath.Join(t.TempDir(), name)}} {
			result := computetest.Must(list(t.Context(), o))
			first := computetest.Must(result.Posterior.Coordinate(0))
			draws[i] = fmt.Sprint(first, result.Posterior.LogWeights(), result.Posterior.Evidence())
		}
		if draws[0] != draws[1] {
			t.Errorf("%s: other bits on the cluster than here", name)
		}
	}
}

// lost freezes a node, and kills another.
func lost(t *testing.T, on func(string) cluster.Options, said map[string][]string, do func(what string)) {
	for i, what := range []string{"freeze", "kill"} {
		folder, tasks := filepath.Join(t.TempDir(), "counting"), counting(2+i, 0)
		both := func(_, begun int) bool { return begun == 2 } // one of them is on that node
		go when(t, folder, tasks, both, func() {
			do(what)
			if what == "freeze" {
				do("thaw") // Ray tells that the task is lost when the node wakes and is told so
			}
		})
		computetest.NoError(t, cluster.Run(t.Context(), on(folder), tasks))
		all := fmt.Sprint(said)
		if !strings.Contains(all, "it is lost, and goes on elsewhere") || !strings.Contains(all, "goes on from") {
			t.Errorf("%s: they said %q", what, said)
		}
		alike(t, folder, tasks)
		if what == "freeze" {
			do("add")
		}
	}
}

// driverOf is the driver's process, which a program has started; 0: none runs.
func driverOf(t *testing.T, program int) (pid int) {
	stats := computetest.Must(filepath.Glob("/proc/[0-9]*/stat"))
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		command, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "cmdline"))
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(program) &&
			strings.Contains(string(command), "Does lists of tasks on a Ray cluster") {
			pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		}
	}
	return pid
}

// when does something as soon as so many tasks are done, and so many others have a checkpoint at home.
func when(t *testing.T, folder string, tasks []cluster.Task, ready func(done, begun int) bool, then func()) {
	for t.Context().Err() == nil {
		done, begun := 0, 0
		for _, task := range tasks {
			if (cluster.Options{Folder: folder}).Done(task.Name) {
				done++
			} else if _, err := os.Stat(filepath.Join(folder, task.Name, "checkpoint")); err == nil {
				begun++
			}
		}
		if ready(done, begun) {
			then()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
