// Package fbnn samples all weights of a network by calibration, emulation and sampling (CES), and reports where this
// fails.
//
// Let theta, in R^D, be all weights of a network, G(X; theta) its outputs on the N rows of the training part, and
// Phi(theta) = -log p(y | theta) the potential, which costs a pass over all rows. The fast Bayesian neural network
// (FBNN) of Moslemi, Meng, Lan and Shahbaba (2024) replaces this pass by an emulator: a small network whose input is
// theta. Its Algorithm 3 is
//
//  1. calibration: a short run of a sampler on the true posterior, of which J = 200 pairs (theta_j, G(X; theta_j)) are
//     kept;
//  2. emulation: a network G^e learns from the pairs, which gives Phi^e(theta) = -log p(y | G^e(theta)) (equation 10);
//  3. sampling: a Markov chain on p(theta) exp(-Phi^e(theta)), by preconditioned Crank-Nicolson (pCN, Algorithm 1).
//
// CES is that algorithm, Chain a chain on the true posterior alone, Prior draws of the prior.
// Rows that do not fit into memory are given as Parts.Source.
//
// # The emulator
//
// It learns from the first four fifths of the pairs, in the order of their chain, and its errors are measured on the
// last fifth: only later pairs show whether it is right where the chain goes. It predicts the principal components of
// the pairs' outputs, or, with Emulates: LogLikelihood, one number. CES.Regressor learns them: Network is the paper's,
// RandomNetwork makes CES the paper's RNS-HMC.
//
// # Where it fails
//
// 200 pairs span at most 199 of, say, 3000 directions. In the others the emulated posterior is as wide as the prior. A
// chain that it accepts often samples the prior there; one with steps as short as the true posterior requires hardly
// moves. By default
//
//   - the beta of a pCN is at most the one that a chain on the true posterior would accept with probability .3;
//   - each transition is accepted or rejected a second time, by the true posterior (mcmc.DelayedAcceptance). This makes
//     the draws exact for any emulator, and costs a pass over the data each time;
//   - predictions are the network's. PaperMode has the paper's steps and the emulator's predictions.
//
// Look at the result's Warnings first: they say where Phi differs from Phi^e at 100 draws (Details.Truth). In few
// dimensions the emulator can be right.
package fbnn
