// Package particles runs any method that moves weighted particles over mini-batches, and learns what they share.
//
// Of a partial Bayesian network f(x; phi, psi) the particles phi_1, ..., phi_J, with weights that add up to 1, stand
// for the posterior of the stochastic parameters; psi, the shared ones, are a point estimate that Adam moves by the
// gradient that the particles give. A method is an [Algorithm]: what happens to the particles in a step. The package
// does what is the same for all:
//
//   - the settings, [Training], their defaults and bounds;
//   - the first particles, from the prior, and batches of the training part;
//   - the step, compiled once for a kind of run, and repeated; a refusal where no particle has a weight any more;
//   - validation, early stopping, and the state of the best validation as the result;
//   - checkpoints that resume to the same bits, progress, and a record of each step, [StepRecord];
//   - the posterior, with what makes it doubtful.
//
// # A method of one's own
//
// It is a type that embeds Training, with the three functions of fit.Method, and Compile:
//
//	type mine struct{ particles.Training }
//
//	func (a mine) Prepare(j *fit.Job) (m fit.Method, err error) {
//		a.Training, err = a.Training.Prepared(j, 1, smc.Stratified)
//		return a, err
//	}
//
//	func (a mine) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
//		return particles.Run(ctx, j, a.Training, a)
//	}
//
// Compile builds the step from a [Core], which has the likelihood of a batch, and moves psi. If the step is one graph
// it is a function from a [State] to the next, which [NewStepper] compiles. If it is several programs it is a [Stepper]
// of one's own, with their entries in the [Session]'s state. The examples of this package are importance sampling in
// ten lines, and that of fit.Method is Stein variational gradient descent; package ohsmc has three algorithms of
// papers.
package particles
