// Package smc provides sequential Monte Carlo (SMC): samplers that lead weighted draws from the prior to the posterior
// and also estimate the evidence, and the parts that every such sampler shares: log-weights, effective sample size
// (ESS), resampling.
//
// A particle is a draw phi_j, of dimension D, with a weight w_j. J particles whose weights sum to 1 approximate a
// distribution: sum_j w_j f(phi_j) estimates the mean of f. As data come in, each weight is multiplied by the
// likelihood of the new data at its particle, and after a while few particles have nearly all the weight. The effective
// sample size, 1 / sum_j w_j^2, says how many equally weighted draws the particles are worth: J if all weights are
// equal, 1 if one particle has all. Resampling draws J new particles from the old ones in proportion to their weights:
// heavy particles are copied, light ones vanish, and all weights become 1/J. Copies are of no use until they separate.
// So each particle is then moved by a Markov kernel that leaves the distribution which the particles approximate
// invariant: the particles spread, and their distribution does not change.
//
// # SMC samplers
//
// If draws from the prior hardly ever come near the posterior, it is reached by a sequence of distributions in between
// (Del Moral, Doucet and Jasra 2006). The step from one distribution to the next
//
//  1. weighs: each weight is multiplied by the ratio of the next density to the present one at its particle;
//  2. resamples the particles by these weights;
//  3. moves the particles by a kernel that leaves the next distribution invariant.
//
// The weighted mean of the factors in step 1 estimates the ratio of the two normalising constants. The product of these
// means over all steps therefore estimates the evidence p(y), without bias for every number of particles if the
// sequence and the moves are fixed in advance. [Sample] does all this for a problem of package mcmc, with any of its
// kernels that accepts or rejects. There are two kinds of sequence:
//
//   - LikelihoodTempering: the densities p(phi) p(y | phi)^power, with the power from 0, the prior, to 1, the
//     posterior. The ladder of powers (an inverse temperature is another name for a power) is chosen during the run:
//     the next power is the largest at which the effective sample size is at least a given share of the particles.
//     Every move evaluates all rows. It is the better way to a posterior given fixed data. It needs a [Factored]
//     target.
//   - DataTempering: the posteriors p(phi | y_1 .. y_n) of the first n rows, one row after another (IBIS: Chopin 2002).
//     Particles are resampled and moved only when the weights have become too unequal, which happens more and more
//     rarely as rows come in. On the way it gives the evidence of every initial part of the data. A single outlier
//     takes the weight of nearly all particles at once. It needs a [Sequential] target.
//
// Networks of package target are both kinds of target. For a log-density of your own there are [Posterior] and
// [RowPosterior].
//
// # Waste-free
//
// The usual sampler moves each particle several times and keeps only the last state. With Settings.WasteFree, P, it
// keeps all states: J/P particles are resampled, each starts a chain of P states, and the P states of all the chains
// are the J new particles (Dau and Chopin 2022). For the same number of moves there are many more particles. It is best
// where a kernel mixes within P moves. With fewer than some hundred chains there are few families of particles, and so
// little from which to estimate the error.
//
// # Which kernel, how many particles
//
// Step sizes, the scales of the coordinates, the length of trajectories and the number of moves are chosen from the
// particles, so kernels need no tuning: take mcmc.HMC{} if there is a gradient (DefaultKernel),
// mcmc.RandomWalkMetropolis{} in a handful of dimensions, and mcmc.PreconditionedCrankNicolson if the prior is a
// Gaussian that the data change little.
//
// A step size is in units of the scales, one for each coordinate. For kernels with a gradient these are local: how wide
// the density is around one particle (LocalScale). The standard deviation over all particles would not do, since with
// several modes it measures how far apart these lie. A step that suits a network's weights is a hundredth of that, and
// hardly moves the noise's standard deviation. On Gal's first split of yacht, with ten tanh units, learnt noise and 200
// particles:
//
//	scales                trajectories   moves at most   log evidence   test NLPD
//	standard deviations   5 steps        20              226            1.16
//	local                 5 steps        20              383 to 414     .22 to .71    five seeds, as many gradients
//	local                 chosen         5               511 to 535     -.30 to .31   four seeds, 2 million gradients
//
// Chains of NUTS have an NLPD of .37 there, over two splits. The log evidence still rises with more moves, so on such
// data it cannot be used to compare models, and the result warns. The shortest trajectories (15 steps) and their jitter
// were chosen on one split of boston with two tanh units and on the curve below, so that tables of boston are not
// independent of this choice; 500 particles there state an error of .16 to .18 either way, for 1.3 times the gradients.
//
// The error of the log evidence falls as 1/sqrt(J), and so does its estimate, Result.LogEvidenceStdErr. The number of
// temperatures grows with the information in the data, about as sqrt(D).
//
// # Where it goes wrong
//
// Moves that do not mix. Then particles stay copies of a few ancestors, and the evidence comes out too low in most runs
// and far too high in a few. Look at Result.Warnings, and in Result.Trace at Correlation, which is 1 if the moves
// changed nothing, at Acceptance, and at First, the effective number of first particles that all descend from; and run
// twice. For a network with two tanh units and 2000 particles, three moves at each temperature gave the log evidence
// with a standard deviation of .28; as many moves as it took, 4 to 33, gave one of .06 for four times the work. More
// temperatures, by a higher Threshold, are no substitute: with .9 and three moves the log evidence was too low by .1,
// which is more than its error.
//
// Regions that are found too late. A region of high posterior but very low prior probability has few particles while
// the likelihood's power is low, and later only moves lead there. But most particles are independent of where they were
// long before the few in the region are as many as they should be, so the moves end too soon. The log evidence is then
// too low. Drift detects this by a second estimate of each
// step, from the particles after the moves. The stated error includes what Drift detects, which is not all of it, and a
// warning says so. On twelve points of a curve, with two tanh units and 1000 particles moved by HMC{Steps: 5}, 8 runs
// were .19 too low in the mean; their squared errors, in units of the stated ones, summed to 29, where 8 are expected.
// Longer trajectories help: with HMC{Steps: 20} the sum was 3, and with mcmc.HMC{}, which chooses the length, 9.
//
// Modes of different widths. No step size suits all of them, so each particle draws its own, from the one that is
// adapted down to small shares of it, and moves go on until nearly all particles have moved. Over 64 runs with two
// modes in the plane, of standard deviations .1 and .3, the mean square of the log evidence's error over the stated one
// was 1.2 (ReplicaExchange: .8); with one step size for all it was 8, and the narrow mode was lost in half of the runs.
//
// Modes that are lost. While the power is low, a narrow mode has a share of the particles in proportion to its volume.
// If that is fewer than some twenty particles, as with widths of 1 : 30 in the plane, or 1 : 3 in ten dimensions, it is
// easily lost, and no step size helps. So new draws of the prior, the scouts, are moved under the posterior itself once
// the run is over; if they come to a region far above the particles, a warning says so, and that the stated error is
// not to be trusted. Scouts are sent where the step size and the length of trajectories are left to the sampler, as by
// mcmc.HMC{}. A mode in whose basin none of them begins goes unnoticed; package pmcnet has estimates that are
// independent of this one.
//
// A prior that is not what it seems. The evidence is relative to the prior, which must therefore be normalised, and
// must be the distribution that Problem.Initial draws from. A vague prior needs more temperatures, and an improper one
// has no evidence.
//
// # Replica exchange
//
// ReplicaExchange uses the same sequence of powers in another way: a replica, that is a Markov chain, stands at each
// power, and neighbours swap places now and then (Geyer 1991). Sample passes each power once, while each replica passes
// the powers again and again, so that a region which only moves lead to has its right share in the end. On the curve
// above 6 runs with 13 powers and HMC{Steps: 10} gave -34.97 to -34.87, with stated and actual errors of .05 to .06, in
// 4 s on two processors each; the exact value is -34.927. On boston's seventh split, a network of four layers of four
// tanh units had -289.64 ± .04, where Sample gives -289.7 ± .2, and a mixture fitted to its particles misleads. Take
// Sample to get particles quickly, and ReplicaExchange to be sure of an evidence or of the shares of modes.
//
// All replicas begin at the prior. A region that they have not found by the end of the warm-up is missing from the
// evidence, which is then too low by more than the stated error: look at ExchangeResult.Arrivals; a warning says if
// there are few. For four layers of two ReLU units and 150 sweeps of warm-up, trajectories of 5 steps gave a mean over
// boston's splits of -282.10 ± .05, of 3 steps -282.57 ± .14, and of 2 steps -283.41 ± .27, the last two with that
// warning; 5 steps and 1000 sweeps of warm-up gave -281.90 ± .04. So take a longer WarmUp, or longer trajectories,
// until the evidence no longer rises.
//
// The package is held to a benchmark of networks' evidences: see TestEvidenceLong, which the build tag long adds.
//
// # Which resampling scheme
//
// [Sample] resamples by Multinomial, the only scheme for which the error of the evidence can be estimated from the
// genealogy (see Genealogy). Elsewhere take Stratified if you do not know. Systematic often has an even smaller
// variance, but for some orders of the particles it is not even consistent (Gerber, Chopin and Whiteley 2019).
//
// Weights are kept as log-weights everywhere, since the likelihood of many rows is too small for a floating-point
// number. A log-weight of NaN counts as weight 0 and is counted.
package smc
