// Package random draws random numbers inside a compiled graph, without state.
//
// A number is a function of four things: the seed of the run, its purpose, the step, and its place (which particle,
// which coordinate). No state is carried from one draw to the next, so a result depends neither on how the particles
// are chunked, nor on how many devices share them, nor on where a run was interrupted. The function is Threefry-2x32
// with 20 rounds (Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"), a block cipher
// with fewer rounds than encryption needs: it passes the same batteries of tests as generators with a state. It is
// written in graph operations, which XLA fuses into the loops that use the numbers; if several loops use them, they are
// computed once and stored (compute.Materialise).
//
//	rng := random.New(g, seed).At(step)               // the stream of one step
//	u := rng.Named("resample").Uniform(dtype, J)      // [J]
//	z := rng.Named("move").Normal(dtype, J, D)        // [J, D]; row j is particle j's own
//
// A compiled step takes values that change from call to call as inputs. The host knows the seed and the step: it can
// compute the [Key] of a stream, and FromKey makes the same stream from it in the graph, which then does not compute
// the key itself.
//
// The words, the uniforms and the draws by Categorical are the same bits on every backend. Normals are rounded
// differently where a backend multiplies and adds in one instruction, so between backends they agree to a few units in
// the last place; on one backend they are the same bits always.
package random

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/bits"
	"path/filepath"
	"runtime"
	"strings"

	"gobnn/bayes/compute"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
)

// Stream is a family of random numbers, named by a key of two words. Its functions build graph and panic like GoMLX's
// own.
type Stream struct {
	key0, key1 *Node // uint32 scalars
	drawn      *Drawn
	name       string // how the stream was derived from the one that Drawn records
}

// New is the stream of a run.
func New(g *Graph, seed uint64) Stream {
	return Stream{key0: word(g, uint32(seed)), key1: word(g, uint32(seed>>32))}
}

// FromKey is the stream whose key is an input of the graph, so that one compiled graph serves all seeds and steps: two
// words, [2], as Key.Words returns them.
func FromKey(words *graph.Node) Stream {
	half := func(i int) *Node { return Reshape(Slice(words, AxisElem(i))) }
	return Stream{key0: half(0), key1: half(1)}
}

// Key is the key of a stream, computed on the host. Its methods mirror those of Stream and return the same streams'
// keys.
type Key [2]uint32

// KeyOf is the key of a run's stream, as of New.
func KeyOf(seed uint64) Key { return Key{uint32(seed), uint32(seed >> 32)} }

// At is the key of one step's stream.
func (k Key) At(step uint32) Key { return k.derive(step, ofStep) }

// Named is the key of the stream for one purpose.
func (k Key) Named(purpose string) Key { return k.derive(labelOf(purpose), ofPurpose) }

func (k Key) derive(label, kind uint32) Key {
	x0, x1 := encipher[uint32](hostWords{}, k[0], k[1], label, kind)
	return Key{x0, x1}
}

// Words returns the two words that FromKey takes as input.
func (k Key) Words() []uint32 { return k[:] }

// Graph is the graph in which the stream's numbers are computed.
func (s Stream) Graph() *Graph { return s.key0.Graph() }

// At is the stream of one step. The step is a uint32 scalar, and may be part of a compiled step's state.
func (s Stream) At(step *graph.Node) Stream {
	return s.derive(step, ofStep, fmt.Sprintf("step %d", step.Id()))
}

// Named is the stream for one purpose, independent of the streams of other names. The same name again is the same
// stream, with the same numbers, as if the first draw had been used twice: give every draw that is to be independent a
// name of its own, in a loop by fmt.Sprint("noise ", i). Draws of other shapes from one stream are not independent
// either. Nothing refuses this, since both parts of a choice, or all chunks of the data, may be meant to see the same
// numbers; but of a kernel of your own the result of a sampler warns of it, see Drawn.
func (s Stream) Named(purpose string) Stream {
	return s.derive(word(s.key0.Graph(), labelOf(purpose)), ofPurpose, fmt.Sprintf("%q", purpose))
}

// The kinds of streams derived from a stream: the number of a step and the label of a purpose may be equal, but give
// different streams.
const (
	ofStep    = 0
	ofPurpose = 1
)

func labelOf(purpose string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(purpose))
	return h.Sum32()
}

// derive enciphers (label, kind) under the stream's key; the result is the key of the derived stream.
// name is the step or the purpose, for Drawn.
func (s Stream) derive(label *Node, kind uint32, name string) Stream {
	k0, k1 := threefry2x32(s.key0, s.key1, label, word(label.Graph(), kind))
	next := Stream{key0: k0, key1: k1, drawn: s.drawn}
	if s.drawn != nil {
		next.name = strings.TrimPrefix(s.name+", then "+name, ", then ")
	}
	return next
}

// Drawn records the draws from a stream and from all that are derived from it, while a graph is built.
type Drawn struct {
	places map[string][]string // where each stream was drawn from
	order  []string            // its keys
}

// Recorded is the same stream, whose draws are recorded.
func (s Stream) Recorded() (Stream, *Drawn) {
	s.drawn, s.name = &Drawn{places: map[string][]string{}}, ""
	return s, s.drawn
}

// Repeated names the first stream that was drawn from more than once, so that the numbers were the same, and where;
// empty if there is none.
func (d *Drawn) Repeated() string {
	for _, name := range d.order {
		if places := d.places[name]; len(places) > 1 {
			return fmt.Sprintf("%s: %s", cmp.Or(name, "the move's own"), strings.Join(places, ", "))
		}
	}
	return ""
}

// record notes a draw from the stream.
func (s Stream) record() {
	if s.drawn == nil {
		return
	}
	if s.drawn.places[s.name] == nil {
		s.drawn.order = append(s.drawn.order, s.name)
	}
	s.drawn.places[s.name] = append(s.drawn.places[s.name], caller())
}

// caller is the file and line that draws, outside of this library's packages.
func caller() string {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	first, _ := frames.Next()
	own := strings.TrimSuffix(first.Function, "compute/random.caller")
	for {
		frame, more := frames.Next()
		inside := strings.HasPrefix(frame.Function, own) && !strings.HasSuffix(frame.File, "_test.go")
		if !more || !inside {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
}

// words is the raw output: two tensors of independent uint32, each of shape dims. The counter is (index on the first
// axis, index over the others).
func (s Stream) words(dims []int) (*Node, *Node) {
	g := s.key0.Graph()
	rows, columns := dims[0], 1
	for _, d := range dims[1:] {
		columns *= d
	}
	shape := shapes.Make(dtypes.Uint32, rows, columns)
	x0, x1 := threefry2x32(s.key0, s.key1, Iota(g, shape, 0), Iota(g, shape, 1))
	return Reshape(x0, dims...), Reshape(x1, dims...)
}

// Uniform draws from the open interval (0, 1): the middles of 2^23 (float32) or 2^52 (float64) equal cells, so that
// neither 0 nor 1 can occur.
func (s Stream) Uniform(dtype dtypes.DType, dims ...int) *graph.Node {
	return s.stored(dims, func(s Stream, dims []int) *Node {
		return compute.Materialise(s.uniform(dtype, dims), s.key0)
	})
}

// XLA for CPUs divides a loop among its threads by rows, and by columns too where there are fewer rows than threads. If
// the parts of the columns are not equal, each element is tested for whether it exists, and the loop has no vector
// instructions: 2761 normals took twice as long as 2816, 8191 three times as long as 8192. So from worthFilling columns
// on the columns are padded to a multiple of fullColumns, which the usual numbers of threads divide. With at least as
// many rows as threads columns are not divided, and removing the padding would cost a third more. The numbers are the
// same bits. See BenchmarkOdd.
const worthFilling, fullColumns = 1024, 64

// stored makes many numbers so that each is computed once; they equal the numbers of draw for the given dims. The last
// operation of draw must be one that the compiler does not repeat.
func (s Stream) stored(dims []int, draw func(s Stream, dims []int) *Node) *Node {
	s.record()
	last := len(dims) - 1
	if len(dims) != 2 || dims[0] >= compute.Threads() || dims[last] < worthFilling || dims[last]%fullColumns == 0 {
		return draw(s, dims)
	}
	full := []int{dims[0], (dims[last] + fullColumns - 1) / fullColumns * fullColumns}
	z := draw(s, full)
	// A second use of z, which changes nothing, since no number is NaN. Without it the compiler would compute z inside
	// the loop over the requested columns, its only use.
	first := Slice(z, AxisRange(), AxisRange(0, 1))
	nothing := Where(IsNaN(first), OnesLike(first), ZerosLike(first))
	return Add(Slice(z, AxisRange(), AxisRange(0, dims[last])), BroadcastToDims(nothing, dims...))
}

func (s Stream) uniform(dtype dtypes.DType, dims []int) *Node {
	x0, x1 := s.words(dims)
	g := x0.Graph()
	if dtype == dtypes.Float64 {
		high := ConvertDType(BitwiseShiftRightLogical(x0, word(g, 12)), dtype) // 20 bits
		low := ConvertDType(x1, dtype)                                         // 32 bits
		return MulScalar(AddScalar(Add(MulScalar(high, 1<<32), low), 0.5), 0x1p-52)
	}
	return uniform23(x0)
}

// uniform23 maps the high 23 bits k of a word to (k + 1/2) / 2^23: the bits become the mantissa of a float32 in [1, 2).
// One bit more, and the largest would round to 1.
func uniform23(x *Node) *Node {
	g := x.Graph()
	mantissa := BitwiseShiftRightLogical(x, word(g, 9))
	oneToTwo := Bitcast(BitwiseOr(mantissa, word(g, 0x3f800000)), dtypes.Float32)
	return AddScalar(SubScalar(oneToTwo, 1), 0x1p-24)
}

// Categorical draws n indices, int32 [n], from the categories with the given weights, [K], which need not sum to 1. A
// category of weight 0 is never drawn.
func (s Stream) Categorical(weights *graph.Node, n int) *graph.Node {
	cumulative := CumSum(ConvertDType(weights, dtypes.Float64), 0)
	return inverseCDF(cumulative, s.Uniform(dtypes.Float64, n))
}

// CategoricalEach draws an index for each of G sets of categories with the given weights, [G, K], which need not sum to
// 1: int32 [G]. A category of weight 0 is never drawn; where all are 0, or one is NaN, the index means nothing.
func (s Stream) CategoricalEach(weights *graph.Node) *graph.Node {
	sets, size := weights.Shape().Dim(0), weights.Shape().Dim(1)
	cumulative := CumSum(ConvertDType(weights, dtypes.Float64), 1)
	total := Slice(cumulative, AxisRange(), AxisElem(size-1)) // [G, 1]
	target := Mul(ExpandAxes(s.Uniform(dtypes.Float64, sets), 1), total)
	// Categories that end at or before the target; the last one of weight above 0 ends at the total, never before it.
	before := And(LessOrEqual(cumulative, target), LessThan(cumulative, total))
	return MinScalar(ReduceSum(ConvertDType(before, dtypes.Int32), 1), float64(size-1))
}

// inverseCDF gives for each u in (0, 1), [n], the category k, int32 [n], with C[k-1] <= u C[K-1] < C[k], where C,
// float64 [K], are cumulative sums of weights. It is a binary search, unrolled: log2 K gathers.
func inverseCDF(cumulative, u *graph.Node) *graph.Node {
	size := cumulative.Shape().Dim(0)
	g := cumulative.Graph()
	total := Reshape(Slice(cumulative, AxisElem(size-1)), 1)
	target := Mul(u, total)
	low := Zeros(g, shapes.Make(dtypes.Int32, u.Shape().Dim(0))) // the answer is at least low
	for span := highestPower(size); span >= 1; span /= 2 {
		probe := AddScalar(low, float64(span-1)) // is C[low+span-1] <= target? then the answer is at least low+span
		inside := LessThan(probe, ConstAs(probe, size-1))
		value := Gather(cumulative, ExpandAxes(MinScalar(probe, float64(size-1)), -1))
		low = Where(And(inside, LessOrEqual(value, target)), AddScalar(low, float64(span)), low)
	}
	return low
}

// highestPower is the largest power of two that is at most n.
func highestPower(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// threefry2x32 is encipher in the graph.
func threefry2x32(key0, key1, x0, x1 *Node) (*Node, *Node) {
	return encipher[*Node](graphWords{key0.Graph()}, key0, key1, x0, x1)
}

// encipher is Threefry-2x32: it enciphers the counter (x0, x1) under the key, in 20 rounds (Salmon et al. 2011, section
// 3.2; the constants are those of Random123), on the host or in a graph.
func encipher[W any](w wordsOf[W], key0, key1, x0, x1 W) (W, W) {
	rotations := [2][4]uint32{{13, 15, 26, 6}, {17, 29, 16, 24}}
	keys := [3]W{key0, key1, w.xor(w.xor(key0, key1), w.word(0x1BD11BDA))}
	x0, x1 = w.add(x0, keys[0]), w.add(x1, keys[1])
	for block := range 5 {
		for _, r := range rotations[block%2] {
			x0 = w.add(x0, x1)
			x1 = w.xor(w.rotateLeft(x1, r), x0)
		}
		x0 = w.add(x0, keys[(block+1)%3])
		x1 = w.add(x1, w.add(keys[(block+2)%3], w.word(uint32(block+1))))
	}
	return x0, x1
}

// wordsOf is the arithmetic of 32-bit words.
type wordsOf[W any] interface {
	word(v uint32) W
	add(a, b W) W
	xor(a, b W) W
	rotateLeft(x W, by uint32) W
}

type hostWords struct{}

func (hostWords) word(v uint32) uint32           { return v }
func (hostWords) add(a, b uint32) uint32         { return a + b }
func (hostWords) xor(a, b uint32) uint32         { return a ^ b }
func (hostWords) rotateLeft(x, by uint32) uint32 { return bits.RotateLeft32(x, int(by)) }

type graphWords struct{ g *Graph }

func (w graphWords) word(v uint32) *Node  { return word(w.g, v) }
func (w graphWords) add(a, b *Node) *Node { return Add(a, b) }
func (w graphWords) xor(a, b *Node) *Node { return BitwiseXor(a, b) }
func (w graphWords) rotateLeft(x *Node, by uint32) *Node {
	return BitwiseOr(BitwiseShiftLeft(x, w.word(by)), BitwiseShiftRightLogical(x, w.word(32-by)))
}

func word(g *Graph, v uint32) *Node { return Const(g, v) }
