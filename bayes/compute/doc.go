// Package compute is the layer below the samplers: it opens the backend, keeps a run's state on the device, and divides
// the particles into chunks.
//
// An Engine is an open backend of GoMLX: XLA through a PJRT plugin, or GoMLX's own Go backend. Default chooses one by a
// fixed policy and shares it; nothing is downloaded. A sampler's step is a Program: a function that builds a graph from
// the tensors of a State to their next values and a small record. The State stays on the device from step to step, and
// entries that a step replaces are donated to it; only the record is copied to the host. Several devices may share a
// state: a Sharding names the entries whose particles are divided between them, all others are whole on each, and the
// same step is compiled for either. A Plan divides the particles so that the activations of one chunk fit a budget;
// Barrier evaluates the chunks one after another.
//
// Random numbers are in the package random below this one: stateless, so that results do not depend on chunks, devices
// or interruptions. Files of tensors are in tensorfile.
//
// Programs compiled by XLA for a CPU are kept on disk (Linux): one that was compiled before on the machine, for the
// same shapes, starts without compiling.
//
// Memory, on the CPU: the state twice, once for a step's inputs and once for its outputs, one chunk's activations, and
// about 250 MB for the XLA plugin.
//
// # Environment
//
//   - GOMLX_BACKEND is the backend to use, and no other: xla:cuda, xla:tpu or xla:cpu, xla:/path/to/plugin.so, or
//     "go:ops_sequential". By default it is an XLA plugin that is installed, such as that of `go run ./notebooks
//     setup`, an accelerator's first (setup -cuda, setup -tpu), else GoMLX's own Go backend, which needs nothing and is
//     10 to 20 times slower. "xla:cuda,visible_devices=1" is one of several GPUs; CUDA_VISIBLE_DEVICES works too.
//     Products of float32 are float32 on a GPU: ",tf32=true" makes them faster and coarser. A CPU is one device, which
//     uses all cores: ",cpu_devices=4" behind the plugin makes it four, which gains little.
//   - GOBNN_CACHE is where the notebooks' environment, results and checkpoints are kept; by default "gobnn" in the
//     user's cache folder.
//   - GOBNN_EXECUTABLES is the folder for what XLA compiled for this machine's processor, at most 512 MiB; by default
//     "executables" in the cache folder; "off" compiles at each start.
//   - GOBNN_MALLOC=system leaves glibc's allocator alone: less memory, slower steps.
package compute
