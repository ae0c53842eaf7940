// Package surrogate samples posteriors near a mode by Hamiltonian Monte Carlo in whitened coordinates, if it pays on a
// cheap surrogate of the target. The draws are exact in both cases.
//
// [Chains] does all, as a method of package fit: it searches the mode, evaluates the Hessian there, which gives the
// coordinates, runs a short pilot chain that finds the step and says whether a surrogate from a part of the rows pays,
// and then chains of split HMC. A density of your own (fit.Sample) has no rows, and is sampled by its own gradient.
//
// # When to take it
//
// Where the posterior is near the Gaussian of its mode: thousands of rows, and at most some hundred parameters that the
// rows identify. There a gradient buys many times the effective draws of HMC or NUTS, whose step the narrowest
// direction limits. The more rows there are, the smaller the share of them is that a surrogate needs. In other cases
// take mcmc.NUTS.
//
// # How it fails
//
//   - No mode: the error says what is wrong there. Let Problem.Start be nearer to one.
//   - The posterior is wider than the Gaussian of its mode, as with two hidden layers or few rows. The pilot then takes
//     no surrogate, with a warning, and steps that are accepted; expect no gain over NUTS.
//   - Chains stick where the surrogate is wrong: a warning says which stood still. Compare Details.Pilot's predicted
//     acceptance with that of Details.Chains.
//   - Chains do not change modes. Compare with package smc, or begin elsewhere.
//   - ReLU networks have no Hessian. Take mcmc.NUTS.
package surrogate
