//go:build long

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/cluster"
	"gobnn/bayes/fit"
)

// Three nodes on one machine: a task that fails each time is tried three times and told with its words, while others
// are done; a call that is stopped goes on from the tasks that are kept, and from their checkpoints; so does one whose
// node is killed. The results have the bits of one process.
func TestRayLong(t *testing.T) {
	address, kill := nodes(t)
	nowhere := cluster.Options{On: "ray://127.0.0.1:9", Folder: t.TempDir()}
	if err := cluster.Run(t.Context(), nowhere, counting(1, 0)); err == nil ||
		!strings.Contains(err.Error(), "no head of Ray answers at ray://127.0.0.1:9") {
		t.Errorf("a head that does not answer: %v", err)
	}

	said := map[string][]string{}
	on := func(folder string) cluster.Options {
		clear(said)
		return cluster.Options{On: address, Folder: folder, Progress: func(task, line string) {
			t.Logf("%s: %s", task, line)
			said[task] = append(said[task], line)
		}}
	}

	folder, tasks := filepath.Join(t.TempDir(), "counting"), counting(3, 0)
	stopped, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go when(t, folder, tasks, func(done, begun int) bool { return done > 0 && begun > 0 }, func() { stop(enough) })
	err := cluster.Run(stopped, on(folder), tasks)
	if !errors.Is(err, enough) {
		t.Fatalf("a call that was stopped: %v", err)
	}
	var kept []string
	for _, task := range tasks {
		if (cluster.Options{Folder: folder}).Done(task.Name) {
			kept = append(kept, task.Name)
		}
	}
	err = cluster.Run(t.Context(), on(folder), append(slices.Clone(tasks), failing, large))
	tries := strings.Count(fmt.Sprint(said["fails"]), "tried again") + 1
	if err == nil || strings.Count(err.Error(), "no such prior") != 1 || tries != 3 {
		t.Errorf("a task that fails: %v, %q", err, said["fails"])
	}
	if info, err := os.Stat(filepath.Join(folder, "large", "result")); err != nil || info.Size() != 120<<20 {
		t.Errorf("a result larger than the object store: %v, %v", info, err)
	}
	for _, name := range kept {
		if len(said[name]) > 0 {
			t.Errorf("%s was kept, and is done again: %q", name, said[name])
		}
	}
	if len(kept) == 0 || !strings.Contains(fmt.Sprint(said), "goes on from") {
		t.Errorf("after the stop %q were kept; then they said %q", kept, said)
	}
	alike(t, folder, tasks)

	for name, list := range map[string]func(context.Context, cluster.Options) (*fit.Result, error){
		"chains": chains, "islands": islands,
	} {
		var draws [2]string
		for i, o := range []cluster.Options{on(filepath.Join(t.TempDir(), name)),
			{Folder: filepath.Join(t.TempDir(), name)}} {
			result, err := list(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			first, err := result.Posterior.Coordinate(0)
			if err != nil {
				t.Fatal(err)
			}
			draws[i] = fmt.Sprint(first, result.Posterior.LogWeights().All(), result.Posterior.Evidence())
		}
		if draws[0] != draws[1] {
			t.Errorf("%s: other bits on the cluster than here", name)
		}
	}

	folder, tasks = filepath.Join(t.TempDir(), "counting"), counting(5, 0)
	go when(t, folder, tasks, func(_, begun int) bool { return begun == 2 }, kill) // one of them is on that node
	err = cluster.Run(t.Context(), on(folder), tasks)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(said), "its node is lost") || !strings.Contains(fmt.Sprint(said), "goes on from") {
		t.Errorf("of a node that was killed they said %q", said)
	}
	alike(t, folder, tasks)
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
