package compute

import (
	"github.com/gomlx/gomlx/core/graph"
)

// Plan divides the particles into chunks, so that the activations of one chunk fit a budget. Make one with NewPlan: the
// zero value is not usable. Chunks are those for a CPU; unless the user has set their size, an accelerator evaluates
// larger ones (see Over).
type Plan struct {
	Particles  int   // J
	Chunk      int   // particles per chunk; the last may be smaller
	Bytes      int64 // estimated activations of one chunk, on one device
	Concurrent int   // how many chunks may be evaluated at a time; 0 means 1
	// Devices that share each chunk equally; 0 means 1. With several there must be one chunk: of smaller ones, of
	// consecutive particles, each would be on one device and leave the others idle.
	Devices int
	Parts   int // parts of the rows, of which a chunk evaluates one after another; 0 means 1. Bytes are those of one

	chosen bool // Chunk was not set by the user
}

// The budget of one chunk's activations. On a CPU whose allocator keeps freed memory (see GOBNN_MALLOC), smaller
// chunks, which fit the caches, are no faster, and larger ones only take more memory. maxUnrolled bounds the number of
// unrolled chunks if there can be no loop (see CanLoop).
const (
	chunkBudget = 32 << 20
	maxUnrolled = 32
)

// NewPlan divides the particles so that a chunk's activations take at most 32 MiB, into equal chunks if possible.
// bytesPerParticle estimates one particle's activations, forward and backward. A chunk above 0 is used as the chunk
// size. There must be at least one particle.
func NewPlan(particles int, bytesPerParticle int64, chunk int) Plan {
	chosen := chunk == 0
	if chosen {
		fit := int(max(1, chunkBudget/max(1, bytesPerParticle)))
		chunk = equalChunks(particles, (particles+fit-1)/fit, 1)
	}
	chunk = min(chunk, particles)
	return Plan{Particles: particles, Chunk: chunk, Bytes: int64(chunk) * bytesPerParticle, chosen: chosen}
}

// acceleratorShare is the part of an accelerator's free memory, 1/8, that the activations of a chunk may take. The
// activations are an estimate, and XLA's further needs have no bound. Smaller chunks would be evaluated one after
// another, and each leaves most of the accelerator idle. In chunks of 32 MiB a step of OHSMC with 10 000 particles took
// 1.4 to 1.8 times as long on an H200, and HMC with 1000 chains on 927 rows 1.8 times.
const acceleratorShare = 8

// acceleratorBudget is what a chunk's activations may take on a graph's device; not known of processors.
func acceleratorBudget(g *graph.Graph) (bytes int64, known bool) {
	limit, held, known := roomOf(g, 1)
	if !known || engineOf(g.Backend()).OnCPU() {
		return 0, false
	}
	return max((limit.bytes-held)/acceleratorShare, chunkBudget), true
}

// on is the plan on the device of a graph. On an accelerator whose memory is known, chunks that the user has not set
// are as large as its memory allows, and one is evaluated at a time.
func (p Plan) on(g *graph.Graph) Plan {
	budget, known := acceleratorBudget(g)
	if !known || !p.chosen || p.Devices > 1 {
		return p
	}
	bytesPerParticle := p.Bytes / int64(p.Chunk)
	chunks := int(max((int64(p.Particles)*bytesPerParticle+budget-1)/budget, 1))
	p.Chunk, p.Concurrent = equalChunks(p.Particles, min(chunks, p.Particles), 1), 1
	p.Bytes = bytesPerParticle * int64(p.Chunk)
	return p
}

// equalChunks is the chunk size for at least `least` chunks, a multiple of `multiple` of them: equal ones if there are
// such with fewer than twice as many chunks; else the last one is smaller.
func equalChunks(particles, least, multiple int) int {
	for count := least; count < 2*least; count += multiple {
		if particles%count == 0 {
			return particles / count
		}
	}
	return (particles + least - 1) / least
}

// inFewChunks is the plan for a graph with unrolled chunks: with at most 32, unless the user has set the chunk size.
func (p Plan) inFewChunks() Plan {
	if !p.chosen || p.chunks()*max(p.Parts, 1) <= max(maxUnrolled, p.Concurrent) {
		return p
	}
	bytesPerParticle := p.Bytes / int64(p.Chunk)
	most := max(maxUnrolled/max(p.Parts, 1), 1) // chunks
	p.Chunk = (p.Particles + most - 1) / most
	p.Bytes = bytesPerParticle * int64(p.Chunk)
	return p
}

// Networks with all layers stochastic consist of products of each particle's own large matrices. XLA runs these on one
// processor a chunk, so their plan has several chunks at a time.
const (
	maxConcurrent   = 8
	worthConcurrent = 4 << 20 // activations of all particles below which one processor is as fast
)

// NewParallelPlan is a plan for particles that multiply large matrices of their own: as many chunks at a time as
// Threads, at most 8. density.NewPlan chooses between it and NewPlan.
func NewParallelPlan(particles int, bytesPerParticle int64) Plan {
	concurrent := min(Threads(), maxConcurrent, particles)
	total := int64(particles) * bytesPerParticle
	if total < worthConcurrent {
		concurrent = 1
	}
	chunks := concurrent
	for total/int64(chunks) > chunkBudget && chunks+concurrent <= particles {
		chunks += concurrent
	}
	plan := NewPlan(particles, bytesPerParticle, equalChunks(particles, chunks, concurrent))
	plan.Concurrent, plan.chosen = concurrent, true
	return plan
}

// For is the plan for all particles phi, [J, D], of a graph, such as all of a sampler where it was made for those that
// move: in chunks of the same size, or of as many particles as there are, and with the parts of the rows that the graph
// evaluates. On an accelerator whose memory is known these are as few as its memory allows. On GoMLX's Go backend,
// which cannot cut tensors at a place that the graph computes, there is one.
func (p Plan) For(phi *graph.Node) Plan {
	particles, parts := phi.Shape().Dim(0), max(p.Parts, 1)
	bytesPerParticle := p.Bytes * int64(parts) / int64(max(p.Chunk, 1))
	if p.Chunk = min(p.Chunk, particles); p.Devices > 1 {
		p.Chunk = particles
	}
	p.Particles = particles
	if budget, known := acceleratorBudget(phi.Graph()); known {
		parts = max(min(parts, int((bytesPerParticle+budget-1)/budget)), 1)
	}
	if phi.Graph().Backend().Name() != "xla" {
		parts = 1
	}
	p.Parts, p.Bytes = parts, bytesPerParticle*int64(p.Chunk)/int64(parts)
	return p
}

// before is the chunk that must be finished before chunk i begins, i-Concurrent, counted from 0; -1: none.
func (p Plan) before(i int) int { return max(i-max(p.Concurrent, 1), -1) }

// chunks is the number of chunks.
func (p Plan) chunks() int { return (p.Particles + p.Chunk - 1) / p.Chunk }

// barrier is x, but computed after `before`: it orders chunks, so that the activations of one are freed before those of
// the next are allocated. GoMLX's own barrier waits for the first element only, which must be finite, since it adds
// zero times it: here it waits for a finite scalar to which every element contributes. A maximum in place of the sum
// takes XLA hours to compile where `before` is joined from a hundred tensors, as a ResNet20's gradient is: its kernel
// then takes each of two numbers twice, a hundred times over.
func barrier(x, before *graph.Node) *graph.Node {
	sum := graph.ReduceAllSum(graph.StopGradient(before))
	return graph.SchedulingBarrier(x, graph.Where(graph.IsFinite(sum), sum, graph.ZerosLike(sum)))
}
