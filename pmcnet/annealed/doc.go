// Package annealed samples all weights of a network by importance sampling from a mixture that is fitted to the
// particles of tempered sequential Monte Carlo (SMC), and estimates the evidence. It is a method of fit.Fit and
// fit.Sample, the one for networks. The type Annealed has its six steps.
//
// # Three estimates
//
// A run gives up to three estimates of the evidence, which fail for different reasons: the SMC from the prior if its
// moves do not mix, the weighted draws of the mixture if it does not fit, which k-hat shows, and the bridge, an SMC
// from the mixture to the posterior, if its moves do not mix. Details has them all. All fail together, unseen,
// where the first SMC has found no particle and the mixture's wide component does not reach.
//
// # Symmetries
//
// Exchanging two hidden units does not change the function of a network, and neither does changing the signs of all
// weights into and out of a tanh unit. So the posterior has |G| identical images, with |G| = n! for a layer of n units,
// times 2^n for tanh, multiplied over the layers. Annealed replaces each particle by its image in canonical order, and
// fits the mixture in the region R of parameters in this order. Draws outside R have weight 0, so log p(y) = log |G| +
// log mean w. Predictions do not depend on the order. There is one for an nn.MLP with a prior of this library. For
// others |G| is 1, and Details.Order says why; also where fewer than a twentieth of the draws are in R, as for layers
// of many units.
//
// # Which estimate is the result
//
// In order of preference:
//
//  1. the weighted draws, if k-hat plus its standard error is at most .5 and their ESS at least 100;
//  2. the bridge, if it has no warnings;
//  3. the weighted draws, if k-hat is at most .7 and their ESS at least 100;
//  4. the first SMC, if there is no bridge or it has warnings.
//
// The result is the first of these whose log evidence no other of them exceeds by more than three standard errors,
// since an estimate that has missed a part of the posterior is too low. Result.Warnings reports estimates that differ
// by more. Above .5 weights have no variance, and their stated error means nothing. Measured
// values are in notebooks/results/pmcnet.md, at pmcnet.evidence.
package annealed
