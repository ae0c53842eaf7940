package study

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gobnn/bayes/cluster"
)

// piece is a repetition of a trial that needs no other.
type piece struct {
	*trial
	number int
}

// do makes the repetition, unless it is kept, and keeps it.
func (p piece) do(ctx context.Context, store *Store) error {
	_, err := store.once(ctx, p.Key, p.number, p.reps, p.run)
	return err
}

// Distribute does the repetitions of experiments that are not kept by package cluster, and keeps them: on says where,
// see cluster.Options.On. Afterwards Run finds them. Experiments of which some repetitions need others' results are
// left to Run. On a node of the cluster it does one piece, and does not return.
func Distribute(ctx context.Context, on string, all []Experiment, o Options) (err error) {
	defer caught(&err)
	home := must(OpenStore(o))
	var tasks []cluster.Task
	known := map[string]bool{} // experiments share repetitions
	for _, e := range all {
		for _, p := range must(e.pieces(o)) {
			name := must(p.name())
			if known[name] || !cluster.OnNode() && p.kept(home) {
				continue
			}
			known[name] = true
			tasks = append(tasks, cluster.Task{Name: name, CPUs: p.cpus, Do: func(ctx context.Context, folder string) error {
				return p.do(ctx, &Store{dir: folder, say: o.say, commit: o.Commit})
			}})
		}
	}
	begun, done := time.Now(), 0
	where := cluster.Options{On: on, Folder: must(folder("", "cluster")), Progress: func(task, line string) {
		if line == cluster.TaskDone {
			done++
			left := time.Since(begun) / time.Duration(done) * time.Duration(len(tasks)-done)
			line += fmt.Sprintf(", %d of %d, about %v left", done, len(tasks), left.Round(time.Second))
		}
		o.say("%s", strings.TrimPrefix(task+": "+line, ": "))
	}}
	failed := cluster.Run(ctx, where, tasks)
	for _, t := range tasks {
		if where.Done(t.Name) {
			failOn(home.gather(filepath.Join(where.Folder, t.Name)))
			failOn(where.Forget(t.Name))
		}
	}
	return failed
}

// pieces are those that the options ask for.
func (e Experiment) pieces(o Options) (all []piece, err error) {
	_, some, err := e.asked(o)
	if err != nil || slices.ContainsFunc(some, func(t *trial) bool { return t.always }) {
		return nil, err
	}
	for _, t := range some {
		for repetition := range t.reps {
			all = append(all, piece{t, repetition})
		}
	}
	return all, nil
}

// name is of the place where the piece's repetitions are kept first, whatever is kept: it is the same on each node.
func (p piece) name() (string, error) {
	at, err := (&Store{fresh: true}).place(p.Key)
	return strings.ReplaceAll(at.dir, string(os.PathSeparator), " ") + " " + strconv.Itoa(p.number+1), err
}

// kept says whether there is nothing to do: then the piece ends well in a context that has ended.
func (p piece) kept(home *Store) bool {
	ended, end := context.WithCancel(context.Background())
	end()
	return p.do(ended, &Store{dir: home.dir, say: func(string, ...any) {}}) == nil
}

// gather keeps what a piece has left in a folder.
func (s *Store) gather(folder string) (err error) {
	defer caught(&err)
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		key, repetition, result, err := decode(must(os.ReadFile(path)))
		if err != nil {
			return fmt.Errorf("a node's result, %s: %w", path, err)
		}
		result.Commit = s.commit
		return s.save(key, must(s.place(key)), repetition, result)
	})
}
