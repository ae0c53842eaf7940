// Package smc draws weighted particles from a posterior by sequential Monte Carlo (SMC), and estimates the evidence.
//
// A particle is a draw phi_j with a weight w_j: sum_j w_j f(phi_j) estimates the mean of f. A sampler begins with J
// draws from the prior, and goes through a sequence of distributions to the posterior. Each step
//
//  1. weighs: w_j is multiplied by the ratio of the next density to the present one at phi_j;
//  2. resamples: particles are copied or dropped in proportion to their weights, which become equal;
//  3. moves: a Markov kernel that leaves the next distribution invariant takes the copies apart.
//
// The effective sample size, 1 / sum_j w_j^2, is the number of equally weighted draws that the particles are worth. The
// mean factors of the weights, multiplied over all steps, estimate the evidence.
//
// # Which to take
//
//   - [Tempered] goes through the sequence once.
//   - [Stages] are the steps of Tempered, for a sampler of your own.
//
// Leave the kernel at mcmc.HMC{}, the default, if there is a gradient, and take mcmc.RandomWalkMetropolis{} in a
// handful of dimensions. If the prior is a Gaussian that the data change little, take mcmc.PreconditionedCrankNicolson.
// What is 0 in HMC{} is found during the run, and so are scales and the number of moves.
//
// [Posterior] makes a target from functions of your own; those of networks are in package density.
//
// # Where it fails
//
// Read the result's Warnings, and run twice. The error of the log evidence falls as 1/sqrt(J). It is larger than stated
// where
//
//   - moves do not mix. Particles stay copies of a few ancestors, and most log evidences are too low. Details.Trace
//     shows it by Correlation, Acceptance and First. More moves help, more powers of the likelihood do not.
//   - particles come too late to a region of little prior probability: moves then raise the log evidence, see Drift in
//     Details.Trace. Longer trajectories help.
//   - a narrow mode is lost while the power is low, with fewer than some twenty particles in it. Nothing reports it:
//     run again with more particles.
//   - the prior is not normalised, or Problem.Initial draws from another. An improper prior has no evidence.
//
// notebooks/results/pmcnet.md has measured values, at pmcnet.evidence.
package smc
