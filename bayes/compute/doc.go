// Package compute is the machine below the samplers: which backend computes, where a run's state lives, and how the
// particles are cut into chunks.
//
// An Engine is an open backend of GoMLX: XLA through a PJRT plugin, or GoMLX's own Go backend. Default chooses one by a
// fixed policy and shares it; nothing is downloaded. A sampler's step is a Program: a function that builds a graph from
// the tensors of a State to their next values and a small record. The State stays on the device from step to step, and
// what a step replaces is donated to it; only the record comes to the host. Several devices may share a state: the
// particles are cut over them, by name, as a Sharding says, all else lies whole on each, and the same step is compiled
// for what it finds. A Plan cuts the particle axis so that the activations of one chunk fit a budget; After puts the
// chunks into a chain.
//
// Random numbers are in the package random below this one: stateless, so that nothing about a result depends on chunks,
// devices or interruptions. Files of tensors are in tensorfile.
//
// What XLA compiles for a CPU is kept on disk (Linux): a program that was compiled once on a machine, for the same
// shapes, starts without compiling.
//
// Memory, on the CPU: the state twice, once for what a step reads and once for what it writes, one chunk's activations,
// and what the XLA plugin takes for itself, about 250 MB.
//
// # Environment
//
//   - GOMLX_BACKEND is the backend to use, and no other: xla:/path/to/plugin.so, or go:ops_sequential. By default it is
//     an XLA plugin that is installed, such as that of `go run ./notebooks setup`, else GoMLX's own Go backend, which
//     needs nothing and is 10 to 20 times slower. A CPU is one device, which uses all cores: ",cpu_devices=4" behind
//     the plugin makes it four, which gains little.
//   - GOBNN_CACHE is where the notebooks' environment, results and checkpoints are kept; by default "gobnn" in the
//     user's cache folder.
//   - GOBNN_EXECUTABLES is the folder for what XLA compiled for this machine's processor, at most 512 MiB; by default
//     "executables" in the cache folder; "off" compiles at each start.
//   - GOBNN_MALLOC=system leaves glibc's allocator alone: less memory, slower steps.
package compute
