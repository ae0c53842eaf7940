package dataset

import (
	"fmt"
	"math"
	"sync"
)

// Batch is one mini-batch of M places.
type Batch struct {
	Rows  []int32 // [M] rows of the training part; 0 where padded
	Count int     // the number of real rows; they come first
}

// Batches gives the mini-batch of each step. At depends on the seed and the step only, not on earlier calls.
type Batches interface {
	// At is the batch of the step, counted from 0. A negative step panics.
	At(step int) Batch
	// PerEpoch returns the number of batches in one pass over the data.
	PerEpoch() int
}

// epochBatches are the batches of NewEpochBatches.
type epochBatches struct {
	rows, size int
	seed       uint64

	mu    sync.Mutex
	epoch int     // the epoch whose order is kept; -1 before the first
	order []int32 // [rows]
}

// NewEpochBatches visits every row once an epoch, in an order shuffled anew each epoch. The last batch of an epoch is
// padded where the batch size, from 1 to rows, does not divide the number of rows. Several goroutines may use it.
func NewEpochBatches(rows, size int, seed uint64) (Batches, error) {
	if err := checkBatch(rows, size); err != nil {
		return nil, err
	}
	return &epochBatches{rows: rows, size: size, seed: seed, epoch: -1, order: make([]int32, rows)}, nil
}

// PerEpoch is the number of rows divided by the batch size, rounded up.
func (b *epochBatches) PerEpoch() int { return (b.rows + b.size - 1) / b.size }

// At is batch step mod PerEpoch of epoch step / PerEpoch, whose order depends on (seed, epoch) only.
func (b *epochBatches) At(step int) Batch {
	checkStep(step)
	epoch, k := step/b.PerEpoch(), step%b.PerEpoch()
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch != b.epoch {
		identity(b.order)
		newRand("epoch", b.seed, uint64(epoch)).Shuffle(b.rows, func(i, j int) {
			b.order[i], b.order[j] = b.order[j], b.order[i]
		})
		b.epoch = epoch
	}
	return newBatch(b.order[k*b.size:min((k+1)*b.size, b.rows)], b.size)
}

func newBatch(rows []int32, size int) Batch {
	b := Batch{Rows: make([]int32, size), Count: len(rows)}
	copy(b.Rows, rows)
	return b
}

func identity(order []int32) {
	for i := range order {
		order[i] = int32(i)
	}
}

func checkBatch(rows, size int) error {
	switch {
	case size < 1:
		return fmt.Errorf("dataset: the batch size is %d: it must be at least 1", size)
	case size > rows:
		return fmt.Errorf("dataset: the batch size is %d but there are %d rows: take a batch size of at most %d",
			size, rows, rows)
	case rows > math.MaxInt32:
		return fmt.Errorf("dataset: %d rows are more than the %d that a row number in a batch can hold", rows, math.MaxInt32)
	}
	return nil
}

func checkStep(step int) {
	if step < 0 {
		panic(fmt.Sprintf("dataset: batch of step %d: steps are counted from 0", step))
	}
}
