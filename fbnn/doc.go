// Package fbnn samples all weights of a network by calibration, emulation and sampling (CES), and reports where this
// fails.
//
// The cost of sampling the posterior of a network is in the data: each log-likelihood is a pass over all N rows. The
// fast Bayesian neural network of Moslemi, Meng, Lan and Shahbaba (2024) replaces this pass by a second, small network,
// the emulator, which predicts from the weights theta what the network would predict. With G(X; theta) the network's
// outputs on all rows and the potential Phi(theta) = -log p(y | theta), its Algorithm 3 is
//
//  1. calibration: a short run of a sampler on the true posterior, of which J = 200 pairs (theta_j, G(X; theta_j)) are
//     kept;
//  2. emulation: a network G^e is trained on the pairs, and Phi^e(theta) = -log p(y | G^e(theta)) (equation 10);
//  3. sampling: a Markov chain on the emulated posterior p(theta) exp(-Phi^e(theta)), from the last pair, by pCN
//     (Algorithm 1): v = sqrt(1 - beta^2) theta + beta xi with xi from the prior, accepted with probability min(1,
//     exp(Phi^e(theta) - Phi^e(v))).
//
// CES is that algorithm; its kernels, emulator and step sizes are settings. Fit runs it.
//
// # The emulator
//
// The emulator learns from the first four fifths of the pairs, in the order of their chain; the last fifth is held out.
// The chain keeps moving to new regions, and only pairs held out in this way show whether the emulator follows: on a
// random fifth R^2 may be .9999, and far below 0 on the next draws.
//
// The outputs on all rows are N numbers for each pair, but J pairs span at most J - 1 dimensions. So the emulator
// learns the scores z of the pairs' principal components, G = mean + V z, which follow from the inner products of the
// pairs' outputs, summed over blocks of rows. For a regression with known noise s the likelihood needs no more than
// |G - y|^2 = |b - z|^2 + a constant, b = V'(y - mean): N numbers are never in memory, whatever N is. Other likelihoods
// need V, [N, R], and the outputs of all rows for each chain. With Emulates: LogLikelihood the emulator predicts one
// number, the log-likelihood, and no memory grows with N.
//
// Network is the paper's regressor, with the activation whose values and gradients are nearest to the true ones on the
// held-out pairs. RandomNetwork makes CES the RNS-HMC of the paper's baselines. GaussianProcess is the classical
// emulator, for few dimensions (Cleary et al. 2021), and Linear is exact for linear models.
//
// FitSource does all of this with rows that do not fit into memory, block by block: the calibration takes mini-batches
// from the blocks; Phi, gradients, the pairs' inner products and the true posterior that corrects a draw are sums over
// the blocks.
//
// # Where it works, and where it does not
//
// 200 pairs span at most 199 of 3000 directions. In all others the emulator has learnt nothing, and there the emulated
// posterior is as wide as the prior. So either the emulated chain takes steps that it accepts with probability .3,
// mixes well, and samples the prior; or its steps are as short as the true posterior requires, and it stands still for
// as long as the true chain does. The paper's errors and its speed-ups do not belong to the same predictions of the
// network itself; both appear if the emulator's outputs are called predictions, whatever theta they come from.
//
// Measured on Boston, Gal's first split, 13-64-32-1 ReLU units, D = 3009, prior N(0, .3^2), noise .25, with 200 pairs
// by SGHMC; Phi is 63 over the pairs and 16 700 at draws from the prior:
//
//	                              beta   Phi     emulated  median ESS   NLPD of the network   of the emulator
//	the pairs themselves                   63                             2.31
//	PaperMode, 3-32 units         .86    22113        -1    122 of 2000   3.90                  2.33
//	Uncorrected                   .022    3061       -20      2 of 2000   2.99
//	default, delayed acceptance   .022      -3       -20      2 of 1000   2.42
//
// So Fit does not do this unless it is asked to:
//
//   - a pCN has at most the step that the true chain accepts with probability .3, which is measured;
//   - each draw is accepted or rejected by the true posterior once more (mcmc.DelayedAcceptance), so that the draws are
//     exact for any emulator, at one pass over the data each; Result.SecondStage is the share that is accepted. A
//     second stage that never accepts ends the run, with its numbers;
//   - predictions are the network's. PaperMode is the paper's algorithm with the emulator's predictions, to reproduce
//     its tables;
//   - Phi is taken at 100 draws at least, and compared with the emulated one (Result.Truth); Result.Distance says how
//     far the draws are from the pairs. Result.Warnings says in words if the chain samples the prior, stands still or
//     has left the emulator's domain. Look at them before anything else.
//
// In few dimensions, where the pairs span all directions, the emulator can be right: on a linear regression of 4
// coefficients a linear emulator is exact to rounding, and a Gaussian process of the log-likelihood is right within
// .02, such that the second stage accepts 99.7 %.
package fbnn
