package random

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Subsets draws count subsets of size of the numbers 0 to rows-1, each without replacement and independent of the
// others: int32 [count, size], each row in random order. It panics unless 1 <= size <= rows.
//
// If size is small compared with rows, a subset consists of the first distinct numbers of a sequence drawn with
// replacement, which is long enough that it has too few distinct ones with a probability of at most 1e-12. All numbers
// are treated alike, so all ordered subsets are equally likely. Otherwise a subset consists of the rows with the
// smallest random keys, one key for each row. The random words are the same on every backend, and so are the subsets.
func (s Stream) Subsets(count, rows, size int) *graph.Node {
	checkSubsets(count, rows, size)
	if !sparse(rows, size) {
		_, indices := BottomK(s.Uniform(dtypes.Float64, count, rows), size, 1)
		return indices
	}
	if size == 1 {
		return s.below(rows, count, 1)
	}
	drawn := sequence(rows, size, 1e-12)
	x := s.below(rows, count, drawn)
	along := func(x *Node, axis int, n int) *Node { return BroadcastToDims(ExpandAxes(x, axis), count, n, drawn) }
	place := func(n, axis int) *Node { return Iota(s.Graph(), shapes.Make(dtypes.Int32, count, n, drawn), axis) }

	earlier := GreaterThan(place(drawn, 1), place(drawn, 2))
	same := Equal(BroadcastToDims(ExpandAxes(x, 2), count, drawn, drawn), along(x, 1, drawn))
	isNew := ConvertDType(Not(LogicalAny(LogicalAnd(same, earlier), 2)), dtypes.Int32) // [count, drawn]
	before := ReduceSum(Mul(along(isNew, 1, drawn), ConvertDType(earlier, dtypes.Int32)), 2)
	wanted := LogicalAnd(Equal(along(before, 1, size), place(size, 1)),
		GreaterThan(along(isNew, 1, size), ZerosLike(place(size, 1))))
	return ReduceSum(Mul(ConvertDType(wanted, dtypes.Int32), along(x, 1, size)), 2)
}

// Subsets draws on the host the subsets that Subsets of the key's stream draws in a graph: flat [count, size]. A graph
// is compiled for one count and size; here nothing is compiled. It panics unless 1 <= size <= rows.
func (k Key) Subsets(count, rows, size int) []int32 {
	checkSubsets(count, rows, size)
	all := make([]int32, 0, count*size)
	if !sparse(rows, size) {
		type keyed struct {
			key uint64 // its order is that of Stream.Uniform
			row int32
		}
		draws := make([]keyed, rows)
		for i := range count {
			for row := range draws {
				draws[row] = keyed{k.bits52(i, row), int32(row)}
			}
			slices.SortFunc(draws, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.row, b.row)) })
			for _, d := range draws[:size] {
				all = append(all, d.row)
			}
		}
		return all
	}
	seen := make([]bool, rows)
	for i := range count {
		for column := 0; len(all) < (i+1)*size; column++ {
			u := (float64(k.bits52(i, column)) + 0.5) * 0x1p-52 // as Stream.Uniform
			if row := min(int(u*float64(rows)), rows-1); !seen[row] {
				seen[row] = true
				all = append(all, int32(row))
			}
		}
		for _, row := range all[i*size:] {
			seen[row] = false
		}
	}
	return all
}

// bits52 returns the 52 bits from which Stream.Uniform makes a float64.
func (k Key) bits52(row, column int) uint64 {
	x0, x1 := encipher[uint32](hostWords{}, k[0], k[1], uint32(row), uint32(column))
	return uint64(x0>>12)<<32 | uint64(x1)
}

func checkSubsets(count, rows, size int) {
	if size < 1 || size > rows || count < 1 {
		panic(fmt.Errorf("random: %d subsets of %d of %d rows: there must be a subset, and from 1 to all rows in it", count,
			size, rows))
	}
}

// below draws integers from 0 to n-1, int32, whose probabilities differ by a fraction of at most 2^-52 n.
func (s Stream) below(n int, dims ...int) *Node {
	u := MulScalar(s.Uniform(dtypes.Float64, dims...), float64(n))
	return MinScalar(ConvertDType(u, dtypes.Int32), float64(n-1)) // rounded down
}

// sparse says whether subsets are drawn with replacement first: comparing all pairs must be cheaper than sorting all
// rows.
func sparse(rows, size int) bool { return size <= 1024 && 4*size <= rows }

// sequence returns the number of draws with replacement from the rows that hold at least size distinct rows, except
// with at most the given probability.
func sequence(rows, size int, probability float64) int {
	differ := make([]float64, size) // [d]: probability of d distinct rows; size or more have the rest
	differ[0] = 1
	for n := 0; ; n++ {
		left := 0.0
		for d := size - 1; d >= 0; d-- {
			known := float64(d) / float64(rows)
			differ[d] *= known
			if d > 0 {
				differ[d] += differ[d-1] * (1 - float64(d-1)/float64(rows))
			}
			left += differ[d]
		}
		if left <= probability {
			return n + 1
		}
	}
}
