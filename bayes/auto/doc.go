// Package auto is what to take if you do not know which method: one setting, a budget in seconds:
//
//	model, err := bayes.ModelFor(parts.Train)
//	result, err := fit.Fit(ctx, model, auto.Method{}, parts, run.Settings{})
//	fmt.Println(fit.Details[*auto.Details](result))
//
// It trains a deep ensemble by cross-validation, samples from each of its members as Microcanonical Langevin Ensembles
// do (Sommer, Robnik, Nozadze, Seljak and Rügamer 2025), and keeps of the draws what predicts the left out rows better.
//
//  1. The rows of the training and the validation part are cut into five folds, by dataset.Dataset's Group or Order if
//     there is one. For each, four networks are trained on the other four fifths by maximum likelihood, each from its
//     own start, and each stops at its own best score on the fold. So every row trains some networks, and scores others
//     that have not seen it. Where there is time, four more are trained with the model's prior, which is better on few
//     rows. Where the time that is left would not do for a draw, the better ones are trained once more, for as long as
//     it bears, and kept if they are better so.
//  2. From each of the better networks a chain of mcmc.MCLMC samples the posterior given the same four fifths, for as
//     long as the fold gains and the budget lasts; none where the draws of the folds before add nothing. The prior is
//     the model's; where that is bayes.Normal by width, as ModelFor proposes, a layer's standard deviation is at least
//     one and a half times the root mean square of its trained weights. Steps are shorter than the kernel's authors
//     have: their bias costs more than they save on most tables.
//  3. The mixtures of all networks of the two kinds, and then these and that of all draws, are weighed by the density
//     that they give the left out rows (stacking: Yao, Vehtari, Simpson and Gelman 2018). A part that raises the
//     log-density of all these rows together by less than a nat, half of which the weight gains by chance, is left out,
//     so that the answer is not worse than the ensemble.
//  4. The chains go on, on all rows, and the posterior's draws are these, where the budget leaves time for them. Few
//     draws join those of the folds, if left out rows lose where the folds' chains have as few.
//  5. The noise of a regression with a scale for each row, as ModelFor proposes, is multiplied by the number that gives
//     the rows left out the largest density, if that raises it by more than a nat.
//
// The particles of the result are the networks and the draws, with these weights. All their parameters are their own,
// whatever the model's partition, so that the whole model is stochastic. The result's warnings say what the budget has
// cut, what the folds' trainings doubt, and if the 90 % intervals of the rows left out hold clearly too few or too many
// of them.
//
// From 20 000 rows on there is one split instead of five folds: the given one, or a tenth of the rows is left out.
//
// There is always a posterior: the first training goes on to the end of its first epoch, though the budget is over,
// unless that takes longer than the budget once more. Folds that the budget leaves less than an epoch do not count.
package auto
