// Package check tests Markov kernels and sequential samplers against known distributions. Call it from a test:
//
//	func TestMyKernel(t *testing.T) {
//		check.Kernel(t, MyKernel{StepSize: 0.5}, check.Options{})
//	}
//
// [Kernel] fails the test with a table of what is wrong; [Run] gives the whole [Report]. [Sequential] fails the test of
// a sampler that estimates an evidence.
//
// # What is tested
//
// A kernel must leave [Targets] invariant, unless Options.Targets names others. Their standard deviations are 0.5 to
// 1.7: a step size of 0.3 to 1.2 suits most kernels. The tests are
//
//   - Invariant: chains that begin as exact draws stay exact draws.
//   - Converged: chains that begin at one point become exact draws. Options.Slow skips it.
//   - Balance: the kernel is in detailed balance with its target. Options.NotReversible skips it.
//   - Rank: whole paths have the right distribution. Options.NotReversible skips it too.
//   - Info and State: what the kernel reports of a move, and carries along, is true.
//
// [Run] says how each is tested, and what it detects. To test a model with its own likelihood, write a [Target].
//
// # What is not seen
//
//   - Invariant does not see a kernel that does nothing, nor bad proposals whose acceptance is right, such as
//     Langevin's with the sign of the gradient flipped.
//   - Converged cannot tell a wrong kernel from a slow one. If it fails alone, try another step size or more
//     Transitions.
//   - Small errors pass. With the default of 2000 chains a mean must be a tenth of a standard deviation off, or a
//     standard deviation 7 %. Four times the Particles find errors half as large.
//   - So biased kernels, such as mcmc.SGLD, fail at large steps and pass at small ones. No option excuses them: read a
//     pass as a bound on the bias.
//   - Of a sequential sampler, what only wastes particles passes, unless SequentialOptions.StdDev is set.
//
// Were seeds drawn, a right kernel would fail any of the tests with a probability of at most 0.001: Holm's rule (1979)
// keeps to it, however the p-values depend on one another. Most of them hold in the limit of many chains. The seed is
// fixed, so that a test passes always or never.
package check
