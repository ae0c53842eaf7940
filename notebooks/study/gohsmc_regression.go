package study

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/train"
	"gobnn/ohsmc"
)

// Tables 1 and 6 and figure 1 of Millard et al. 2025 (section 4.1, appendix B): red wine and California regressionData,
// three dense layers with GELU, the first one stochastic with prior N(0, I) and 240 or 450 numbers, so d-20-?-1 and
// d-50-?-1; 100 particles, Adam 0.01, splits 60/30/10, 200 epochs, five runs, the best validation kept. Where the paper
// is silent, our choices and their reasons are:
//
//   - The second hidden layer's width, which is the same for both data sets: 20.
//   - The likelihood: noise variance 1 of the standardised target, as the OHSMC paper has it.
//   - The loss. Both data sets have the same settings, so one loss must explain .41 to .45 on the one and .29 to .43 on
//     the other. Half the squared error of standardised targets would mean 82 % of red wine's variance, where linear
//     regression leaves 65 %; the squared error of standardised targets 41 %, which no method reaches on these splits.
//     The mean squared error in the target's own units (scores, and 100,000 USD), whose variances are .65 and 1.33,
//     means 63 % and 22 %, where our values lie: so it is the loss here, of the predictive mean.
//   - The random walk's scale, 0.01: a standard deviation here, as Langevin's h, though the paper's section on MNIST
//     calls it a variance, which would be a step of .1. On red wine, batch 50, 60 epochs, 15
//     splits, its loss is .443, .438 and .464 at .01, .03 and .1, and Langevin's .448 at .01 (each +- .02 between
//     splits; the differences of random walk and Langevin are -.005 +- .005, -.010 +- .010, .016 +- .009); on
//     California, batch 200, 40 epochs, two splits, .312, .351 and .423, and .318. Longer steps are worse, and at equal
//     steps Langevin gains nothing as long as the weights are those of a batch.
//   - The target of the weights. Equations 12 and 13 have N/M before the gradient of psi only, and the weights take
//     p(y_S | theta; psi) alone: the first attempt of each proposal. With N/M in the weights and in the drift
//     (ohsmc.Guided.AllRows), the effective sample size falls from about 55 of 100 to between 3 and
//     10. On red wine, batch 50, 60 epochs, four splits, the loss hardly changes (random walk: .433 without and .435
//     with N/M, Langevin: .433 and .432). On California it falls: batch 50, 20 epochs, three splits, Langevin's is
//     .363 at .01 without, .335 at .003 without, and .317 at .003 with N/M; the validation NLPDs of the standardised
//     target are 1.063, 1.052 and 1.039. So N/M is the second attempt, and validation chooses. With it Langevin
//     led, as in the paper, on California, 40 epochs, four splits, by .022 +- .003, .011 +- .002 and .007 +- .003 at
//     batches of 50, 100 and 200; with other random numbers by .008 +- .012, .010 +- .002 and .002 +- .001, or, on
//     two splits, by -.007 +- .020, .006 +- .001 and .000 +- .001. Without it, on five splits of red wine, by -.017
//     +- .012, -.022 +- .009 and .004 +- .005 at 20, 50 and 100. More epochs do not replace it: at .01 without N/M
//     the loss is .354 +- .012 after 40 (batch 50) and .352 +- .013 after 200.
type regressionData struct {
	data    string
	batches []int
	width   int     // of the first layer
	rate    float64 // SGHMC's learning rate, the paper's Table 8
	large   bool    // fewer epochs and repetitions
}

var regressions = []regressionData{
	{"wine_red", []int{20, 50, 100}, 20, .01, false}, {"california", []int{50, 100, 200}, 50, .001, true},
}

// regressionVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const regressionVersion = 1

// The repetitions and epochs of red wine and of the paper, and by default of California.
var (
	regressionExtent      = extent{reps: 5, epochs: 200}
	regressionLargeExtent = extent{reps: 2, epochs: 40}
)

// guided returns attempts of a proposal: the paper's step size and equations, and a smaller step with N/M in the
// weights and the drift.
func guided(proposal ohsmc.Proposal) []attempt {
	return variants(100,
		ohsmc.Guided{Proposal: proposal, StepSize: train.Constant(.01)},
		ohsmc.Guided{Proposal: proposal, StepSize: train.Constant(.003), AllRows: true},
	)
}

// tuned begins the name of a paper's method in whose place the better of two settings stands, as validation finds.
const tuned = "tuned "

// paperRegressionMethods are the first contenders: the paper's methods with its settings.
const paperRegressionMethods = 4

// regressionContenders returns the paper's methods with its settings, one attempt each, and then those with two: the
// paper's methods with another setting beside it, and ours. SGHMC and VI are of the whole network, as the paper's
// discussion has it. Its learning rate for SGHMC is taken to be of the mean over rows; half of SGHMC's epochs are a
// training by Adam, the other half its chains.
func regressionContenders(s regressionData, rows int) []contender {
	adapted := func(acceptance float64) ohsmc.Guided {
		return ohsmc.Guided{Proposal: ohsmc.HMC{Steps: 5}, StepSize: train.Constant(.01), Adapt: acceptance}
	}
	perRow := s.rate / float64(rows)
	sghmc := variants(0, baseline.SGHMC{LearningRate: perRow}, baseline.SGHMC{LearningRate: 10 * perRow})
	vi := variants(0, baseline.VI{}, baseline.VI{})
	vi[0].Rate = .001 // the paper's Table 9
	for i := range sghmc {
		sghmc[i].Whole, sghmc[i].Within, vi[i].Whole = true, true, true
	}
	nuts := guided(ohsmc.Langevin{})
	for i := range nuts {
		nuts[i].Chains = &mcmc.Chains{Kernel: mcmc.NUTS{MaxDepth: 5}, Chains: 4, Draws: 25, WarmUp: 30}
	}
	papers := []contender{
		{"Random Walk", guided(ohsmc.RandomWalk{})},
		{"Langevin", guided(ohsmc.Langevin{PaperForm: true})},
		{"SGHMC", sghmc},
		{"VI", vi},
	}
	var all []contender
	for _, c := range papers {
		all = append(all, contender{c.name, c.attempts[:1]})
	}
	for _, c := range papers {
		all = append(all, contender{tuned + c.name, c.attempts})
	}
	return append(all,
		contender{"exact Langevin", guided(ohsmc.Langevin{})},
		contender{"adapted HMC", variants(100, adapted(.9), adapted(.65))},
		contender{"NUTS", nuts},
	)
}

func (s regressionData) extent(o Options) extent {
	if s.large {
		return o.extent(regressionLargeExtent, regressionExtent)
	}
	return o.extent(regressionExtent, regressionExtent)
}

// model is the paper's net.
func (s regressionData) model() bayes.Model {
	return bayes.Model{
		Network:    nn.MLP{Hidden: []int{s.width, 20}, Activation: nn.GELU},
		Likelihood: bayes.Gaussian{StdDev: 1}, Prior: bayes.Normal{StdDev: 1}, Stochastic: bayes.Layers(1),
	}
}

// regressionTrials returns the trials of all contenders at each batch size; the repetition is the seed of the split and
// of the method.
func regressionTrials(o Options) (all []*trial, err error) {
	for _, s := range regressions {
		data := must(load(s.data))
		first := must(data.Split(table8Split, 0))
		for _, batch := range s.batches {
			b := newBench(s.model(), batch, s.extent(o).epochs, o.say)
			b.timed = true
			for _, c := range regressionContenders(s, first.Train.Rows()) {
				key := Key{Study: "gohsmc.regression", Data: fmt.Sprintf("%s, batch %d", s.data, batch), Method: c.name,
					Settings: map[string]any{
						"version": regressionVersion, "model": b.model, "data": data.Hash(), "epochs": b.epochs,
						"split": table8Split, "attempts": c.attempts,
					}}
				run := func(ctx context.Context, repetition int) (Result, error) {
					parts := must(data.Split(table8Split, uint64(repetition)))
					return b.regressionScores(ctx, c, parts, uint64(repetition))
				}
				all = append(all, &trial{Key: key, set: s.data, reps: s.extent(o).reps, run: run,
					paper: reportedIn("gohsmc", key.Data)[c.name]})
			}
		}
	}
	return all, nil
}

// printedTrials are those of the paper's methods with its settings.
func printedTrials(o Options) ([]*trial, error) {
	all, err := regressionTrials(o)
	some := map[string]bool{}
	for _, c := range regressionContenders(regressions[0], 1)[:paperRegressionMethods] {
		some[c.name] = true
	}
	return slices.DeleteFunc(all, func(t *trial) bool { return !some[t.Method] }), err
}

// regressionScores returns a contender's scores on the test part, in the target's units, with the seconds and epochs of
// the kept fit, and its validations as losses. A loss is twice the standardised target's NLPD minus the NLPD of a
// perfect mean, in the target's squared units. If all particles agree it is the mean squared error.
func (b *bench) regressionScores(ctx context.Context, c contender, parts dataset.Parts, seed uint64) (Result, error) {
	f, r, err := b.along(ctx, c, parts, seed)
	if f == nil {
		return r, err
	}
	prediction := must(f.posterior.Predict(ctx, parts.Test.X))
	loss := must(metric.MSE(prediction, parts.Test.Y))
	nlpd := must(metric.NLPD(prediction.Standardised(), prediction.StandardiseTarget(parts.Test.Y)))
	r.Values["test loss"], r.Values["NLPD"] = loss.Value, nlpd.Value
	_, stdDev := prediction.Scale(0)
	variance := stdDev * stdDev
	for i, v := range r.Series["loss"] {
		r.Series["loss"][i] = variance * (2*v - math.Log(2*math.Pi*variance))
	}
	return r, nil
}
