// Package smc has sequential Monte Carlo: samplers over any log-density, with the evidence, and the parts that every
// such sampler shares: log-weights, effective sample size, resampling.
//
// Particles approximate a distribution by draws phi_j with weights w_j. As data come in, a weight is multiplied by
// how well its particle explains them, and after a while few particles hold all the weight. The effective sample
// size, 1 / sum w_j^2, says how many equally weighted draws the particles are worth. Resampling replaces the
// particles by J draws from themselves: heavy ones are copied, light ones vanish, weights become equal. Copies are of
// no use until they part: so particles are then moved, by a Markov kernel that leaves the distribution invariant
// which they approximate.
//
// # SMC samplers
//
// A posterior that no draw from the prior comes near is reached by a sequence of distributions in between (Del Moral,
// Doucet and Jasra 2006): weigh the particles of one by what the next has more, resample, move, and go on. The
// product of the mean weights estimates the evidence p(y), unbiased for every number of particles where the sequence
// is given beforehand. [Sample] does this for a problem of package mcmc, with any of its kernels that accepts or
// rejects. There are two ways to go:
//
//   - LikelihoodTempering: p(phi) p(y | phi)^power, the power from 0 to 1. The ladder of powers is found as the
//     particles go: each is the largest at which the effective sample size is at least a share of the particles. All
//     rows are evaluated at each move. It is the better way to a posterior at hand. It needs a [Factored] target.
//   - DataTempering: p(phi | y_1 .. y_n), one row after another (IBIS: Chopin 2002), with moves where the weights have
//     become too unequal, which is rarer and rarer as rows come in. It gives the evidence of every first part of the
//     data on its way. An outlier takes nearly all weight at once. It needs a [Sequential] target.
//
// Networks of package target are both. For a log-density of one's own there are [Posterior] and [RowPosterior].
//
// # Waste-free
//
// The usual sampler moves each particle some times and keeps where it ends. Settings.WasteFree keeps all places: J/P
// particles are resampled, and each makes a chain of P places, which are the J new particles (Dau and Chopin 2022).
// For the same number of moves it has many more particles. It is best where a kernel mixes within P moves; chains of
// fewer than some hundred starts leave few families, and with them little to tell the error from.
//
// # Which kernel, how many particles
//
// Step sizes, the scales of the coordinates, the length of trajectories and the number of moves are found from the
// particles at each temperature, so that kernels need no tuning: mcmc.HMC{} where there is a gradient (DefaultKernel),
// mcmc.RandomWalkMetropolis{} in a handful of dimensions, mcmc.PreconditionedCrankNicolson where the prior is a
// Gaussian that the data change little.
//
// Scales are those about a particle (LocalScale), since those over all particles are of how far modes lie apart, and
// a step that suits the weights, a hundredth of it, leaves the noise's standard deviation where it is. Measured on
// Gal's first split of yacht, ten tanh units with learnt noise, 200 particles: by standard deviations, with at most 20
// moves of 5 steps, the log evidence came to 226 and the test NLPD to 1.16; by local scales to 383 to 414 and .22 to
// .71 with five seeds, for as many gradients; with trajectories whose length is chosen, and at most 5 moves, to 511 to
// 535 and -.30 to .31 with four seeds, for 2 million gradients. The log evidence still rises with more moves: on such
// data it is no number to compare models by, and the result warns. Chains of NUTS have an NLPD of .37 there, over two
// splits. The shortest trajectories (15 steps) and their jitter were chosen on one split of boston with two tanh units
// and on the curve below, so that tables of boston are not independent of them; 500 particles there state an error of
// .16 to .18 either way, for 1.3 times the gradients.
//
// The error of the log evidence falls as 1/sqrt(J), and so does that of Result.LogEvidenceStdErr's own. The number of
// temperatures grows with what the data say, about as sqrt(D).
//
// # Where it goes wrong
//
// Where moves do not mix, particles stay copies of few, and the evidence comes out too low in most runs and far too
// high in few: look at Result.Warnings, at Correlation, Acceptance and First in the trace, and run twice. Of a network
// with two tanh units and 2000 particles, three moves at each temperature gave the log evidence with a standard
// deviation of .28, and as many as it took, 4 to 33, with one of .06 for four times the work. More temperatures, by a
// higher Threshold, are no substitute: with .9 and three moves it was too low by .1, which is more than its error.
//
// A region that the prior hardly knows and the posterior prefers has few particles while the likelihood's power is
// low, and later only moves lead there. The bulk of the particles has forgotten where it was long before these few
// are as many as they should be, step sizes fall to what the narrow region allows, and the log evidence is too low.
// Drift sees it, by a second estimate of each step that looks back from the moved particles; the stated error has it,
// and a warning says so, but not all of it. On twelve points of a curve, two tanh units and 1000 particles with
// mcmc.HMC{}, 8 runs were .19 too low in the mean, and up to .35; their squared errors, in units of those stated,
// summed to 32, where 8 are expected. Longer trajectories mend it: with HMC{Steps: 20} it was 24, and more particles
// do not: with 2000, which state a smaller error, it was 48. A mode that no particle and no move finds is still not
// known: package pmcnet has an estimate that is independent of it, and so has ReplicaExchange. The prior must be
// normalised and be what Problem.Initial draws: the evidence is relative to it. A vague prior costs temperatures, and
// an improper one has no evidence.
//
// # Replica exchange
//
// ReplicaExchange goes the same way with replicas that stay at their powers and change places (Geyer 1991). What
// Sample meets once, each replica meets again and again, so that a region which only moves lead to has its share in
// the end. On the curve above 6 runs with 13 powers and HMC{Steps: 10} gave -34.97 to -34.87, errors .05 to .06
// stated and found, 4 s of two processors each; the exact value is -34.927. On boston's seventh split, a network of
// four layers of four tanh units had -289.64 ± .04, where Sample gives -289.7 ± .2, and a mixture fitted to its
// particles misleads. Take Sample to get particles quickly, and ReplicaExchange to be sure of an evidence or of the
// shares of modes.
//
// All replicas begin at the prior, and what they have not found by the end of the warm-up is missing from the evidence,
// which is then too low by more than the stated error: look at ExchangeResult.Arrivals, of which a warning speaks where
// they are few. For four layers of two ReLU units and 150 sweeps of warm-up, trajectories of 5 steps gave a mean over
// boston's splits of -282.10 ± .05, of 3 steps -282.57 ± .14, and of 2 steps -283.41 ± .27, the last two with that
// warning; 5 steps and 1000 sweeps of warm-up -281.90 ± .04. So take a longer WarmUp, or longer trajectories, until
// the evidence rises no more.
//
// The package is held to a benchmark of networks' evidences: see TestEvidenceLong, which the build tag long adds.
//
// # Which scheme
//
// [Sample] takes Multinomial, from whose genealogy alone the error of the evidence is known (see Genealogy).
// Elsewhere take Stratified if you do not know. Systematic is often quieter still, but there are orders of the
// particles for which it is not even consistent (Gerber, Chopin and Whiteley 2019).
//
// Weights live in logs everywhere. NaN counts as weight 0 and is counted.
package smc
