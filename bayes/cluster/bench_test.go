package cluster_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"gobnn/bayes/cluster"
)

// empty are tasks of no work.
func empty(n int) (tasks []cluster.Task) {
	for k := range n {
		tasks = append(tasks, cluster.Task{Name: fmt.Sprintf("empty %d", k),
			Do: func(context.Context, string) error { return nil }})
	}
	return tasks
}

// BenchmarkEmptyTasks is what a task costs beside its work, on a Ray cluster of this machine that stands: take
// -benchtime 10000x.
func BenchmarkEmptyTasks(b *testing.B) {
	if testing.Short() {
		b.Skip("starts a cluster")
	}
	address, _ := nodes(b)
	o := cluster.Options{On: address, Folder: filepath.Join(b.TempDir(), "empty")}
	warm := cluster.Options{On: address, Folder: filepath.Join(b.TempDir(), "empty")}
	if err := cluster.Run(b.Context(), warm, empty(2)); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := cluster.Run(b.Context(), o, empty(b.N)); err != nil {
		b.Fatal(err)
	}
}
