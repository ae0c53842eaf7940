// Package check tests Markov kernels and sequential samplers against known distributions. Call it from a test:
//
//	func TestMyKernel(t *testing.T) {
//		check.Kernel(t, MyKernel{StepSize: 0.5}, check.Options{})
//	}
//
// [Kernel] fails the test with a table of what is wrong; [Run] gives the whole [Report]. [Sequential] and
// [RunSequential] do the same for samplers that estimate an evidence.
//
// # What a kernel is tested on
//
// All targets, and all ways to begin on them, are rows of one [J, D]: one compiled move, called again and again from
// the host, tests everything. By default the targets are [Targets]: a correlated Gaussian, a skewed distribution, a
// banana, a mixture of two modes, a bounded distribution with jumps and NaNs outside, and a conjugate regression in
// which every particle has data of its own. All have two coordinates with unlike scales, since what is symmetric hides
// mistakes of sign and order. Standard deviations are 0.5 to 1.7: a step size of 0.3 to 1.2 suits most kernels. Kernels
// that take several Moves for a transition are followed by Info.Complete: a particle that has completed waits for the
// others.
//
// # What each test detects, and what it cannot
//
// Invariant: chains that begin as exact draws must be exact draws after every number of transitions. Each coordinate
// is turned into a uniform given those before it (Rosenblatt 1952), which is compared in distribution (Kolmogorov and
// Smirnov), mean, variance and dependence; the log-density is compared with that of fresh draws. It detects a wrong
// acceptance, proposal ratio, Jacobian, reference distribution or temper. It cannot detect a kernel that does
// nothing, nor one whose proposals are bad but whose acceptance is right, as Langevin's with the gradient's sign
// flipped throughout.
//
// Converged: chains that all begin at one point away from the centre must be exact draws at the end. It detects these
// two faults, and moves that do not reach the whole space. It cannot tell a wrong kernel from a slow one: if Invariant
// passes and Converged fails, try another step size or more transitions, and set Options.Slow for a kernel that need
// not arrive.
//
// Balance: if the kernel is in detailed balance with its target, start x and end y of a transition can change places,
// so f(x, y) - f(y, x) has mean 0 for every f. It detects probability that flows in circles, which Invariant does
// not. Kernels that do not claim it say Options.NotReversible: those with a velocity that lasts, with a fixed order
// of updates, or with step sizes that change in time.
//
// Rank: the rank of a parameter drawn from the prior among a path under the posterior of data drawn given it must be
// uniform (simulation-based calibration; Talts et al. 2018). The path is that of Gandy and Scott (2021): the parameter
// stands at a random place in it, the chain runs from there both ways, and so the rank is uniform however slowly the
// chain mixes. It needs detailed balance. It is the only test of whole paths: it sees momenta that are not refreshed
// and steps that depend on the past. To test a model with its own likelihood, write a [Target] with that LogDensity, or
// change [Regression]'s: a factor N/n that is missing shows here and in Invariant.
//
// Info and State: Acceptance is in [0, 1]; Accepted and NonFinite are 0 or 1; particles move exactly where Accepted
// says; the log-density and gradient carried along are those of phi. And one particle that is NaN leaves all others the
// same bit for bit, and is counted.
//
// # The false-alarm rate
//
// A call makes some 140 comparisons. Options.FalseAlarm, 0.001 by default, bounds the probability that a right kernel
// fails any of them, by Holm's rule (1979) over their p-values, which holds however they depend on one another. Seeds
// are fixed, so that a test passes always or never. Those of dependence and balance rest on the central limit, those of
// distributions on the limit for many chains, and they may: with 300 seeds of a right kernel at 500 chains, 278 of 27
// 900 comparisons were below 0.01, 23 below 0.001 and none below 0.0001, and 11 of the 300 calls failed at a FalseAlarm
// of 0.05.
//
// # The power
//
// By the rule a single comparison must lie 4.5 standard errors out. With the default of 2000 chains that is a tenth of
// a standard deviation for a mean, and 7 % for a standard deviation. Measured over 20 seeds each, by kernels that are
// invariant for a Gaussian other than their target: a mean off by 0.05, 0.1 and 0.15 standard deviations is found by 2,
// 18 and 20 calls, a standard deviation off by 3, 6 and 10 % by 1, 10 and 20. Langevin's kernel without accepting or
// rejecting is found at steps of 0.3, 0.4 and 0.5 by 1, 16 and 20. Four times the Particles find half of that.
//
// # Biased kernels
//
// Kernels such as mcmc.ULA and mcmc.SGLD leave the target only nearly invariant: they fail at large steps, and pass
// where their bias is below what can be detected. There is no option that excuses them; choose the step, and read a
// pass as a bound on the bias.
//
// # Sequential samplers
//
// [RunSequential] runs a sampler with many seeds on a linear regression, a [Linear], whose posterior and evidence are
// exact. It detects wrong weights, ancestors, increments of the evidence and moves, and standard errors that do not
// cover. It makes as many runs as it takes to find an evidence that is wrong by SequentialOptions.Factor, 1.4 by
// default: with 200 particles on [Line] 105 runs, which find it in 19 calls of 20; 60 runs do in 10. Since estimates
// stay unbiased, it does not detect what only wastes particles, such as weights that stay with their places when
// particles are resampled, unless SequentialOptions.StdDev says how precise the evidence should be.
package check
