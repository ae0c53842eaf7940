// Package compute is the layer below the samplers: it opens the backend, keeps a run's state on the device, and divides
// the particles into chunks.
//
// An [Engine] is an open backend of GoMLX: XLA through a PJRT plugin, or GoMLX's own Go backend. [Default] chooses one,
// and downloads nothing. A sampler's step is a [Program]: it builds a graph from the tensors of a [State] to their next
// values and a small record, which alone is copied to the host. Several devices may share a state by a [Sharding]. A
// [Plan] divides the particles so that the activations of one chunk fit in memory.
//
// Random numbers, of package bayes/compute/random, do not depend on chunks, devices or interruptions. Package
// bayes/compute/tensorfile writes tensors to files.
//
// # Which to take
//
// XLA is 10 to 20 times faster than the Go backend, which needs no installation. `go run ./notebooks setup` installs
// XLA for the CPU, with -cuda or -tpu also for an accelerator. Environment variables:
//
//   - GOMLX_BACKEND names the backend: xla:cuda, xla:tpu, xla:cpu, xla:/path/to/plugin.so, or go. If it does not work,
//     that is an error. Without it Default takes the best one that is installed. [Open] has the options that may follow
//     a comma, such as "xla:cuda,visible_devices=1".
//   - GOBNN_CACHE is the folder for the notebooks' environment, results, checkpoints and downloaded data; by default
//     "gobnn" in the user's cache folder.
//   - GOBNN_DATA is a folder of data that are not part of the project (package bayes/dataset/pictures says which).
//   - GOBNN_EXECUTABLES is the folder of the programs that XLA compiled for this machine's CPU (Linux), at most 512
//     MiB; by default "executables" in GOBNN_CACHE's folder. "off": nothing is kept, and each process compiles anew.
//   - XLA_FLAGS are XLA's own settings. On processors with AVX-512 "--xla_cpu_prefer_vector_width=512" is added, unless
//     they choose the width or the instruction set (--xla_cpu_max_isa).
//   - NPROC is the number of threads with which XLA computes on a CPU; by default the number of processors that the
//     process may use (which taskset and Slurm set).
//   - GOBNN_MALLOC=system keeps glibc's default allocator settings: steps need less memory and are slower.
//
// # Where it fails
//
//   - Memory: a run on the CPU needs its state twice, for a step's inputs and its outputs, one chunk's activations, and
//     about 250 MB for the XLA plugin. An error says what to reduce.
//   - Bits: on a CPU a program gives the same bits each time that it runs with as many threads. With other numbers XLA
//     divides sums otherwise, which changes their last digits, and then all that follows. So a checkpoint of XLA on a
//     CPU is gone on with by as many threads alone: set NPROC to their number on a machine that has other processors.
//     They may share processors. GoMLX's Go backend does not depend on it. A GPU may add up in another order. Two runs
//     with one seed, or a resumed run and an uninterrupted one, can differ there in a last digit, and then in all that
//     follows.
package compute
