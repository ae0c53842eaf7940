package dataset

import (
	"fmt"
	"sync"
)

// Batch is one mini-batch of M places.
type Batch struct {
	Rows  []int32 // [M] rows of the training part; 0 where padded
	Count int     // the number of real rows; they come first
}

// Batches are the mini-batches of each step. Every row comes once an epoch, in an order shuffled anew each epoch. The
// last batch of an epoch is padded where the batch size does not divide the number of rows. Several goroutines may use
// them.
type Batches struct {
	rows, size int
	seed       uint64

	mu    sync.Mutex
	epoch int     // the epoch whose order is kept; -1 before the first
	order []int32 // [rows]
}

// NewBatches makes batches of a size from 1 to the number of rows.
func NewBatches(rows, size int, seed uint64) (*Batches, error) {
	switch {
	case size < 1:
		return nil, fmt.Errorf("dataset: the batch size is %d: it must be at least 1", size)
	case size > rows:
		return nil, fmt.Errorf("dataset: the batch size is %d but there are %d rows: take a batch size of at most %d",
			size, rows, rows)
	}
	return &Batches{rows: rows, size: size, seed: seed, epoch: -1, order: make([]int32, rows)}, nil
}

// PerEpoch is the number of rows divided by the batch size, rounded up.
func (b *Batches) PerEpoch() int { return (b.rows + b.size - 1) / b.size }

// At is the batch of a step, counted from 0: batch step mod PerEpoch of epoch step / PerEpoch, whose order depends on
// (seed, epoch) only, not on earlier calls. A negative step panics.
func (b *Batches) At(step int) Batch {
	epoch, k := step/b.PerEpoch(), step%b.PerEpoch()
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch != b.epoch {
		for i := range b.order {
			b.order[i] = int32(i)
		}
		newRand("epoch", b.seed, uint64(epoch)).Shuffle(b.rows, func(i, j int) {
			b.order[i], b.order[j] = b.order[j], b.order[i]
		})
		b.epoch = epoch
	}
	rows := b.order[k*b.size : min((k+1)*b.size, b.rows)]
	batch := Batch{Rows: make([]int32, b.size), Count: len(rows)}
	copy(batch.Rows, rows)
	return batch
}
