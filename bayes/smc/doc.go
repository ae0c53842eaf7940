// Package smc has the parts of sequential Monte Carlo that every sampler shares: log-weights, effective sample size and
// resampling.
//
// Particles approximate a distribution by draws phi_j with weights w_j. As data come in, a weight is multiplied by
// how well its particle explains them, and after a while few particles hold all the weight. The effective sample
// size, 1 / sum w_j^2, says how many equally weighted draws the particles are worth. Resampling replaces the
// particles by J draws from themselves: heavy ones are copied, light ones vanish, weights become equal. It adds
// noise, so it should be done only when the effective sample size has fallen, and by a scheme that adds little: take
// Stratified if you do not know. Systematic is often quieter still, but there are orders of the particles for which
// it is not even consistent (Gerber, Chopin and Whiteley 2019). Multinomial is the noisiest, and there for
// comparison.
//
// Weights live in logs everywhere. NaN counts as weight 0 and is counted.
package smc
