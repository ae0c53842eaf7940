// Package fbnn samples all weights of a network by calibration, emulation and sampling (CES), and reports where this
// fails.
//
// Let theta, in R^D, be all weights of a network, G(X; theta) its outputs on the N rows of the training part, and
// Phi(theta) = -log p(y | theta) the potential. The posterior is proportional to p(theta) exp(-Phi(theta)), and each
// value of Phi costs a pass over all rows. The fast Bayesian neural network (FBNN) of Moslemi, Meng, Lan and Shahbaba
// (2024) replaces this pass by the emulator: a second, small network whose input is theta, and which predicts G(X;
// theta). Its Algorithm 3 is
//
//  1. calibration: a short run of a sampler on the true posterior, of which J = 200 pairs (theta_j, G(X; theta_j)) are
//     kept;
//  2. emulation: a network G^e is trained on the pairs, which gives the emulated potential Phi^e(theta) = -log p(y |
//     G^e(theta)) (equation 10);
//  3. sampling: a Markov chain on the emulated posterior, proportional to p(theta) exp(-Phi^e(theta)), which begins at
//     the theta of the last pair. Its kernel is preconditioned Crank-Nicolson (pCN, Algorithm 1): it proposes v =
//     sqrt(1 - beta^2) theta + beta xi with xi from the prior, and accepts with probability min(1, exp(Phi^e(theta) -
//     Phi^e(v))).
//
// CES is that algorithm; its kernels, emulator and step sizes are settings. Fit runs it. By default Fit adds a second
// accept/reject step by the true posterior, for the reasons below.
//
// # The emulator
//
// The emulator learns from the first four fifths of the pairs, in the order of their chain, and its errors are measured
// on the last fifth. This order matters: the chain keeps moving to new regions, and only later pairs show whether the
// emulator is still right there. On a random fifth R^2 may be .9999, and far below 0 on the next draws.
//
// For each theta the emulator has to predict N outputs, but J pairs of them span at most J - 1 dimensions. So it
// predicts the scores z, [R], of the R leading principal components V, [N, R], of the pairs' outputs: G = mean + V z.
// The scores follow from the inner products of the pairs' outputs, which are sums over the rows, computed block by
// block. For a regression with known noise s the likelihood needs no more than |G - y|^2 = |b - z|^2 + a constant, with
// b = V'(y - mean), so that no array of N outputs is kept, whatever N is. Other likelihoods need V itself, and the
// outputs of all rows for each chain. With Emulates: LogLikelihood the emulator predicts the log-likelihood, one
// number, and no array grows with N.
//
// CES.Regressor is the model that learns the scores:
//
//   - Network, the default, is the paper's dense network. It is trained with several activations, and the one whose
//     values and gradients are nearest to the true ones on the held-out pairs is taken.
//   - RandomNetwork makes CES the RNS-HMC (random network surrogate) of the paper's baselines.
//   - GaussianProcess is the emulator of the classical CES, for few dimensions (Cleary et al. 2021).
//   - Linear is exact if the network is linear in theta.
//
// FitSource does the same with rows that do not fit into memory, block by block: the calibration takes mini-batches
// from the blocks; Phi, gradients, the pairs' inner products and the true posterior of the second step are sums over
// the blocks.
//
// # Where it works, and where it does not
//
// 200 pairs span at most 199 of, say, 3000 directions. In the other directions the emulator has learnt nothing, and the
// emulated posterior is as wide as the prior. So there are two cases. If beta is such that the emulated chain accepts
// with probability .3, the chain mixes well, but samples the prior in these directions. If beta is as small as the true
// posterior requires, the chain hardly moves, as a chain on the true posterior with that beta would. The paper's errors
// and its speed-ups do not appear together if predictions are made by the network itself. They do appear together if
// the outputs of the emulator are taken for predictions, whatever the theta of the draws is.
//
// Measured on Boston, Gal's first split, a network 13-64-32-1 of ReLU units, D = 3009, prior N(0, .3^2), noise .25,
// with 200 pairs by SGHMC. Phi and emulated are the means of Phi and of Phi^e over the draws; Phi is 16 700 at draws
// from the prior. The NLPD (negative log predictive density) is that of predictions by the network, or by the emulator:
//
//	                              beta   Phi     emulated  median ESS   NLPD of the network   of the emulator
//	the pairs themselves                   63                             2.31
//	PaperMode, 3-32 units         .86    22113        -1    122 of 2000   3.90                  2.33
//	Uncorrected                   .022    3061       -20      2 of 2000   2.99
//	default, delayed acceptance   .022      -3       -20      2 of 1000   2.42
//
// So Fit does the following unless it is told otherwise:
//
//   - the beta of a pCN is at most the one with which a chain on the true posterior would accept with probability .3,
//     which is measured;
//   - each transition is accepted or rejected a second time, by the true posterior (mcmc.DelayedAcceptance). This makes
//     the draws exact for any emulator, and costs a pass over the data each time. Result.SecondStage is the share
//     accepted. If the second stage never accepts, the run ends with an error that has the numbers;
//   - predictions are the network's. PaperMode is the paper's algorithm with the emulator's predictions, to reproduce
//     its tables;
//   - Phi is evaluated at 100 draws or more and compared with the emulated one (Result.Truth), and Result.Distance says
//     how far the draws are from the pairs. Result.Warnings says in words if the chain samples the prior, hardly moves,
//     has left the region where the emulator has learnt, or if chains, or the halves of one, disagree on what they
//     predict (diag.Mixing; not of FitSource). Look at the warnings before anything else.
//
// In few dimensions, where the pairs span all directions, the emulator can be right: on a linear regression of 4
// coefficients a linear emulator is exact to rounding, and a Gaussian process of the log-likelihood is right within
// .02, such that the second stage accepts 99.7 %.
package fbnn
