package dataset

import (
	"reflect"
	"slices"
	"sync"
	"testing"
)

func epochs(t *testing.T, rows, size int, seed uint64) *Batches {
	t.Helper()
	b, err := NewBatches(rows, size, seed)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantPadding checks shape and padding of a batch and gives its real rows.
func wantPadding(t *testing.T, b Batch, size int) []int32 {
	t.Helper()
	if len(b.Rows) != size || b.Count < 1 || b.Count > size {
		t.Fatalf("got %d rows, count %d, want size %d", len(b.Rows), b.Count, size)
	}
	for i, row := range b.Rows[b.Count:] {
		if row != 0 {
			t.Fatalf("padding %d after %d real ones is row %d, not 0", i, b.Count, row)
		}
	}
	return b.Rows[:b.Count]
}

func TestEpochVisitsEachRowOnce(t *testing.T) {
	for _, tt := range []struct{ rows, size, perEpoch, last int }{{185, 20, 10, 5}, {100, 20, 5, 20}, {7, 7, 1, 7},
		{5, 1, 5, 1}, {8, 7, 2, 1}} {
		b := epochs(t, tt.rows, tt.size, 3)
		if b.PerEpoch() != tt.perEpoch {
			t.Fatalf("%+v: got %d batches an epoch", tt, b.PerEpoch())
		}
		for epoch := range 3 {
			seen := make([]int, tt.rows)
			for k := range tt.perEpoch {
				batch := b.At(epoch*tt.perEpoch + k)
				for _, r := range wantPadding(t, batch, tt.size) {
					seen[r]++
				}
				if k == tt.perEpoch-1 && batch.Count != tt.last {
					t.Errorf("%+v: the last batch has %d rows", tt, batch.Count)
				}
			}
			if slices.Max(seen) != 1 || slices.Min(seen) != 1 {
				t.Errorf("%+v: epoch %d visits the rows %v times", tt, epoch, seen)
			}
		}
	}
}

// TestBatchOfAStepIsTheSame: whatever was asked before, by whom ever, so that a resumed run sees the same batches.
func TestBatchOfAStepIsTheSame(t *testing.T) {
	make := func(seed uint64) *Batches { return epochs(t, 53, 10, seed) }
	run := make(11)
	var all []Batch
	for step := range 40 {
		all = append(all, run.At(step))
	}
	for _, step := range []int{39, 0, 17, 17, 5, 6, 38} {
		if resumed := make(11); !reflect.DeepEqual(resumed.At(step), all[step]) {
			t.Errorf("resumed at step %d, the batch is another", step)
		}
		if !reflect.DeepEqual(run.At(step), all[step]) {
			t.Errorf("asked again for step %d, the batch is another", step)
		}
	}
	if reflect.DeepEqual(make(12).At(0), all[0]) {
		t.Error("another seed gives the same batch")
	}
	if reflect.DeepEqual(all[0], all[6]) { // the first batches of two epochs of 6
		t.Error("two epochs have the same order")
	}
	all[0].Rows[0] = -1
	if run.At(0).Rows[0] == -1 {
		t.Error("batches share memory")
	}
	var wg sync.WaitGroup
	for step := 1; step < 40; step++ {
		wg.Go(func() {
			if !reflect.DeepEqual(run.At(step), all[step]) {
				t.Errorf("asked at the same time as others for step %d, the batch is another", step)
			}
		})
	}
	wg.Wait()
}

func TestBatchErrors(t *testing.T) {
	for _, tt := range []struct {
		rows, size int
		want       []string
	}{{10, 11, []string{"11", "10 rows"}}, {10, 0, []string{"batch size is 0", "at least 1"}}, {10, -3, []string{"-3"}},
		{0, 1, []string{"0 rows"}}} {
		_, err := NewBatches(tt.rows, tt.size, 0)
		wantError(t, err, tt.want...)
	}
	defer func() {
		if recover() == nil {
			t.Error("a negative step does not panic")
		}
	}()
	epochs(t, 10, 5, 0).At(-1)
}
