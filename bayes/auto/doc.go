// Package auto is what to take if you do not know which method: one setting, a budget in seconds. Importing it makes
// its Method the default of fit.Fit:
//
//	model, err := bayes.ModelFor(parts.Train)
//	result, err := fit.Fit(ctx, model, nil, parts, run.Settings{})
//	fmt.Println(fit.Details[*auto.Details](result))
//
// It trains a deep ensemble by cross-validation, samples from each of its members as Microcanonical Langevin Ensembles
// do (Sommer, Robnik, Nozadze, Seljak and Rügamer 2025), and keeps of the draws what predicts the left out rows better.
//
//  1. The rows of the training and the validation part are cut into five folds, by dataset.Dataset's Group or Order if
//     there is one. For each, four networks are trained on the other four fifths by maximum likelihood, each from its
//     own start, and each stops at its own best score on the fold. So every row trains some networks, and scores others
//     that have not seen it. Where the time that is left would not do for a draw, the networks of a fold are trained
//     once more, for as long as it bears, and the better ones are kept.
//  2. From each network a chain of mcmc.MCLMC samples the posterior given the same four fifths, for as long as the fold
//     gains and the budget lasts. The prior is the model's; where that is bayes.Normal by width, as ModelFor proposes,
//     a layer's standard deviation is at least one and a half times the root mean square of its trained weights. Steps
//     are shorter than the kernel's authors have: their bias costs more than they save on most tables.
//  3. The two mixtures, of all networks and of all draws, are weighed by the density that they give the left out rows
//     (stacking: Yao, Vehtari, Simpson and Gelman 2018). Draws that raise the log-density of all these rows together by
//     less than a nat, half of which the weight gains by chance, are left out, so that the answer is not worse than the
//     ensemble.
//  4. The chains go on, on all rows, and the posterior's draws are these, where the budget leaves time for them. (On
//     the tables that chose the defaults NLPD fell by .05 nats on epa and .02 on deliveries, where draws have most
//     weight, and by nothing on cars, where the networks have.)
//
// The particles of the result are the networks and the draws, with these weights. All their parameters are their own,
// whatever the model's partition, so that the whole model is stochastic.
//
// From 20 000 rows on there is one split instead of five folds: the given one, or a tenth of the rows is left out. The
// networks are then trained with the prior as well, and the better ones are kept: 4000 rows that are left out can tell.
// (Of the tables that chose the defaults, those of five folds, three were clearly worse by such a choice, and none
// clearly better.)
package auto
