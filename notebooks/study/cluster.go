package study

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gobnn/bayes/cluster"
	"gobnn/bayes/compute"
)

// Distribute does the repetitions of experiments that are not kept by package cluster, and keeps them: on says where,
// see cluster.Options.On. Afterwards Run finds them. What has no repetitions (a figure that trains as it draws), or has
// some that need others' results, is left to Run. On a node of the cluster it does one repetition, and does not return.
func Distribute(ctx context.Context, on string, all []Experiment, o Options) error {
	var tasks []cluster.Task
	gather := map[string]func(folder string) error{}
	store, err := OpenStore(o)
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.run != nil || e.trials == nil {
			continue
		}
		_, some, err := e.asked(o)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(some, func(t *trial) bool { return t.always }) {
			continue
		}
		for _, t := range some {
			at, err := store.place(t.Key)
			if err != nil {
				return err
			}
			for repetition := range t.reps {
				name, err := taskName(store.dir, at, repetition)
				if err != nil {
					return err
				}
				if _, again := gather[name]; again { // experiments share repetitions
					continue
				}
				if _, kept, err := store.load(t.Key, at, repetition); err != nil {
					return err
				} else if kept && !cluster.OnNode() {
					continue
				}
				tasks = append(tasks, cluster.Task{Name: name, CPUs: t.cpus, Do: func(ctx context.Context, folder string) error {
					_, err := t.in(folder, o).one(ctx, t.Key, t.within(folder), repetition, t.run)
					return err
				}})
				gather[name] = func(folder string) error {
					result, kept, err := t.in(folder, o).load(t.Key, t.within(folder), repetition)
					if err != nil || !kept {
						return err
					}
					result.Commit = o.Commit
					return store.save(t.Key, at, repetition, result)
				}
			}
		}
	}
	cache, err := compute.CacheDir()
	if err != nil {
		return err
	}
	begun, done := time.Now(), 0
	where := cluster.Options{On: on, Folder: filepath.Join(cache, "cluster"), Progress: func(task, line string) {
		if line == cluster.TaskDone {
			done++
			left := time.Since(begun) / time.Duration(done) * time.Duration(len(tasks)-done)
			line += fmt.Sprintf(", %d of %d, about %v left", done, len(tasks), left.Round(time.Second))
		}
		o.say("%s", strings.TrimPrefix(task+": "+line, ": "))
	}}
	failed := cluster.Run(ctx, where, tasks)
	for _, t := range tasks {
		folder := filepath.Join(where.Folder, t.Name)
		if !where.Done(t.Name) {
			continue
		}
		if err := gather[t.Name](folder); err != nil {
			return err
		}
		if err := where.Forget(t.Name); err != nil {
			return err
		}
	}
	return failed
}

// in is a store in a task's folder, and within the trial's place there.
func (t *trial) in(folder string, o Options) *Store {
	return &Store{dir: folder, say: func(string, ...any) {}, commit: o.Commit}
}

func (t *trial) within(folder string) place {
	settings, _ := (&Store{dir: folder, fresh: true}).place(t.Key)
	settings.dir = folder
	return settings
}

// taskName names a repetition by the place where it is kept.
func taskName(dir string, at place, repetition int) (string, error) {
	name, err := filepath.Rel(dir, at.dir)
	return strings.ReplaceAll(name, string(os.PathSeparator), " ") + " " + strconv.Itoa(repetition+1), err
}
