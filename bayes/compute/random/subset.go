package random

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Subsets draws count subsets of size of the numbers 0 to rows-1, each without replacement and independent of the others: int32 [count, size], each row in
// random order. It panics unless 1 <= size <= rows.
//
// Small parts of many rows are drawn with replacement, and what stands earlier in its subset already is drawn again, until the chance that anything
// stands there twice is below 1e-12. No value is treated unlike another in that, so all ordered subsets are equally likely. Larger parts are those of the smallest
// among rows random keys. The words are the same on every backend, and so are the subsets.
func (s Stream) Subsets(count, rows, size int) *Node {
	if size < 1 || size > rows || count < 1 {
		panic(fmt.Errorf("random: %d subsets of %d of %d rows: there must be a subset, and from 1 to all rows in it", count, size, rows))
	}
	if !sparse(rows, size) {
		_, indices := BottomK(s.Uniform(dtypes.Float64, count, rows), size, 1)
		return indices
	}
	rounds := redraws(count, rows, size)
	u := s.Uniform(dtypes.Float64, rounds+1, count, size)
	all := ConvertDType(MulScalar(u, float64(rows)), dtypes.Int32) // rounded down
	all = MinScalar(all, float64(rows-1))
	round := func(i int) *Node { return Squeeze(Slice(all, AxisElem(i)), 0) }

	square := []int{count, size, size}
	places := shapes.Make(dtypes.Int32, square...)
	earlier := LessThan(Iota(s.Graph(), places, 2), Iota(s.Graph(), places, 1))
	x := round(0)
	for i := range rounds {
		same := Equal(BroadcastToDims(ExpandAxes(x, 2), square...), BroadcastToDims(ExpandAxes(x, 1), square...))
		x = Where(LogicalAny(LogicalAnd(same, earlier), 2), round(i+1), x)
	}
	return x
}

// sparse says whether subsets are drawn by rejection: comparing all pairs must be cheaper than sorting all rows.
func sparse(rows, size int) bool { return size <= 512 && 16*size <= rows }

// redraws is after how many rounds no number stands twice: each leaves less than size/rows of those before it.
func redraws(count, rows, size int) int {
	if size == 1 {
		return 0
	}
	fraction := float64(size) / float64(rows)
	return int(math.Ceil(math.Log(1e-12/float64(count*size)) / math.Log(fraction)))
}
