// Package compute is the layer below the samplers: it opens the backend, keeps a run's state on the device, and divides
// the particles into chunks.
//
// An Engine is an open backend of GoMLX: XLA through a PJRT plugin, or GoMLX's own Go backend. Default chooses one by a
// fixed policy and shares it; nothing is downloaded. A sampler's step is a Program: a function that builds a graph from
// the tensors of a State to their next values and a small record. The State stays on the device from step to step, and
// entries that a step replaces are donated to it; only the record is copied to the host. Several devices may share a
// state: a Sharding names the entries whose particles are divided between them, all other entries are whole on each
// device, and the same step is compiled for one device or several. A Plan divides the particles so that the activations
// of one chunk fit in a memory budget; Plan.Over evaluates the chunks one after another.
//
// Random numbers come from the package bayes/compute/random. They are stateless, so that results do not depend on
// chunks, devices or interruptions. Tensors are written to files by bayes/compute/tensorfile.
//
// On a CPU a program gives the same bits each time. A GPU may add up in another order: there two runs with one seed, or
// a resumed one and one that was not interrupted, can differ in a last digit, and then in all that follows from it.
//
// Programs that XLA compiled for a CPU are cached on disk (Linux), so that a program of the same shapes is compiled
// only once on a machine.
//
// A run on the CPU needs memory for the state twice, once for a step's inputs and once for its outputs, for one chunk's
// activations, and about 250 MB for the XLA plugin.
//
// # Environment
//
//   - GOMLX_BACKEND is the backend to use: xla:cuda, xla:tpu, xla:cpu, xla:/path/to/plugin.so, or go.
//     If it does not work, that is an error. Without the variable, an installed XLA plugin is used, such as that of `go
//     run ./notebooks setup`; one for an accelerator (setup -cuda, setup -tpu) comes first. If there is none, GoMLX's
//     own Go backend is used, which needs no installation and is 10 to 20 times slower. "xla:cuda,visible_devices=1"
//     selects one of several GPUs; CUDA_VISIBLE_DEVICES works too. XLA takes at most three quarters of a GPU's memory;
//     ",memory_fraction=.9" lets it take more. Matrix products of float32 are computed in full float32 on a GPU;
//     "xla:cuda,tf32=true" makes them faster and less precise. A CPU is one device, which uses all cores;
//     ",cpu_devices=4" after the plugin makes it four devices, which is hardly faster.
//   - GOBNN_CACHE is where the notebooks' environment, results and checkpoints are kept; by default "gobnn" in the
//     user's cache folder.
//   - GOBNN_EXECUTABLES is the folder of the programs that XLA compiled for this machine's processor, at most 512 MiB;
//     by default "executables" in the cache folder. "off" means that nothing is cached.
//   - XLA_FLAGS are XLA's own settings. On processors with AVX-512 "--xla_cpu_prefer_vector_width=512" is added, unless
//     they choose the width or the instruction set (--xla_cpu_max_isa).
//   - GOBNN_MALLOC=system keeps glibc's default allocator settings: steps need less memory and are slower.
package compute
