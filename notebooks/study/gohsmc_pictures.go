package study

import (
	"context"
	"fmt"
	"math"
	"sync"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/dataset/mnist"
	"gobnn/bayes/dataset/pictures"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"
	"gobnn/bayes/train"
	"gobnn/ohsmc"
)

// Tables 2 to 5, 7, 10 and 11 and figures 2 to 7 of Millard et al. 2025 (section 4.2, appendices B and C): pictures, of
// which the first convolution is stochastic with prior N(0, I). Where the paper is silent, our choices are:
//
//   - The validation part: a sixth of the training part, the test part being the makers'.
//   - The networks' other sizes. "LeNet-5" with a first convolution of 160 numbers has 16 kernels of 3 x 3, where
//     LeNet-5's own has 6 of 5 x 5; the rest is LeNet-5's. FashionMNIST's network has 32 kernels of 3 x 3, 320 numbers,
//     then 64, and dense layers of 128 and 10.
//   - Batch normalisation, which FashionMNIST's network has in the paper, would stand behind the stochastic layer,
//     where rows depend on each other and the likelihood is no product over rows, so that no weight is defined. Filter
//     response normalisation with its thresholded unit is in its place, as the paper has it for CIFAR-10.
//   - The guided proposals' weights: those of a batch alone, and the paper's form of Langevin, as the equations are
//     printed.
//   - SGHMC's learning rate is of the mean over rows. It is, as VI, of the whole network. Half of its epochs are a
//     training by Adam, the other half are its chains.
//   - AdamW's weight decay for CIFAR-10: 1e-4, the default of the paper's software.
type pictureSet struct {
	data      string
	load      loader
	model     bayes.Model
	particles int
	batches   []int
	sghmc, vi []float64 // learning rates by batch size, the paper's Tables 8 and 9
	annealed  bool      // AdamW along a cosine, for CIFAR-10; else Adam at 0.002
	paper     pictureSize
	reduced   pictureSize
}

// pictureSize is an extent: rows of the three parts, epochs and repetitions.
type pictureSize struct {
	train, validation, test int
	extent
}

// size is the paper's, or the reduced one, with the user's repetitions and epochs.
func (s pictureSet) size(o Options) pictureSize {
	size := s.reduced
	if o.Full {
		size = s.paper
	}
	size.extent = o.extent(size.extent, size.extent)
	return size
}

// The metrics of the tables.
var (
	pictureMetrics   = []string{"test loss", "accuracy", "ECE", "ESS"}
	equalMetrics     = []string{"test loss", "accuracy", "epochs", "seconds"}
	detectionMetrics = []string{"accuracy", "F1", "precision", "recall", "specificity", "AUROC", "AUPR", "FPR95",
		"AUROC by entropy", "AUROC by mutual information", "AUROC by maximum probability"}
)

// contenders returns the paper's methods with its settings, at one batch size.
func (s pictureSet) contenders(batch, rows, epochs int) (all []contender) {
	guided := func(proposal ohsmc.Proposal) []attempt {
		a := attempt{Method: ohsmc.Guided{Proposal: proposal, StepSize: train.Constant(.01)},
			Particles: s.particles, Rate: .002}
		if s.annealed {
			steps := (rows + s.batches[batch] - 1) / s.batches[batch] * epochs
			a.Optimiser = &train.Adam{Schedule: train.Cosine(.01, steps), WeightDecay: 1e-4}
		}
		return []attempt{a}
	}
	all = []contender{
		{"Random Walk", guided(ohsmc.RandomWalk{})},
		{"Langevin", guided(ohsmc.Langevin{PaperForm: true})},
	}
	if s.sghmc == nil {
		return all
	}
	perRow := s.sghmc[batch] / float64(rows)
	return append(all,
		contender{"SGHMC", []attempt{{Method: baseline.SGHMC{LearningRate: perRow}, Rate: .002, Whole: true,
			Within: true}}},
		contender{"VI", []attempt{{Method: baseline.VI{}, Rate: s.vi[batch], Whole: true}}})
}

// parts are the parts of a repetition, which is the seed of the split.
func (size pictureSize) parts(load loader, seed uint64) (parts dataset.Parts, err error) {
	defer caught(&err)
	train, test, err := load()
	failOn(err)
	parts = must(train.Split(dataset.Fractions{Train: 5. / 6, Validation: 1. / 6}, seed))
	return dataset.Parts{Train: firstOf(parts.Train, size.train), Validation: firstOf(parts.Validation, size.validation),
		Test: firstOf(test, size.test)}, nil
}

// loader gives the makers' parts of a data set.
type loader func() (train, test *dataset.Dataset, err error)

// once reads pictures when they are first asked for.
func once(load loader) loader {
	parts := sync.OnceValues(func() (parts dataset.Parts, err error) {
		parts.Train, parts.Test, err = load()
		return parts, err
	})
	return func() (train, test *dataset.Dataset, err error) {
		all, err := parts()
		return all.Train, all.Test, err
	}
}

// digits are MNIST's pictures.
var digits = once(mnist.Load)

// pictureVersion is part of the key of kept results: it changes when the code gives other numbers for the same
// settings.
const pictureVersion = 1

// trial is one method at one batch size. walk, if not nil, took the seconds that each repetition's fit has.
func (s pictureSet) trial(o Options, study string, batch int, c contender, walk *trial) *trial {
	size := s.size(o)
	b := newBench(s.model, s.batches[batch], size.epochs, o.say)
	b.timed, b.observe = true, true
	if walk != nil {
		b.epochs *= 10 // the time is the limit
	}
	key := Key{Study: study, Data: fmt.Sprintf("%s, batch %d", s.data, s.batches[batch]), Method: c.name,
		Settings: map[string]any{
			"version": pictureVersion, "model": s.model, "rows": []int{size.train, size.validation, size.test},
			"epochs": b.epochs, "attempts": c.attempts,
		}}
	run := func(ctx context.Context, repetition int) (Result, error) {
		parts := must(size.parts(s.load, uint64(repetition)))
		if walk != nil {
			b.seconds = walk.results[repetition].Values["seconds"]
		}
		return b.pictureScores(ctx, c, parts, uint64(repetition))
	}
	table := "gohsmc"
	if study == equalPictures {
		table = "gohsmc.equal"
	}
	return &trial{Key: key, set: s.data, reps: size.reps, run: run, paper: reportedIn(table, key.Data)[c.name]}
}

// The studies under which repetitions are kept.
const (
	allPictures   = "gohsmc.pictures"
	equalPictures = "gohsmc.pictures.equal"
)

// pictureTrials returns the trials of the paper's methods on the sets, at each batch size.
func pictureTrials(sets ...pictureSet) func(o Options) ([]*trial, error) {
	return func(o Options) (all []*trial, err error) {
		for _, s := range sets {
			for batch := range s.batches {
				for _, c := range s.contenders(batch, s.size(o).train, s.size(o).epochs) {
					all = append(all, s.trial(o, allPictures, batch, c, nil))
				}
			}
		}
		return all, nil
	}
}

// equalPictureTrials returns the trials of Tables 10 and 11 (appendix C): the random walk makes its epochs, and
// Langevin gets, repetition by repetition, the seconds that it took.
func equalPictureTrials(s pictureSet) func(o Options) ([]*trial, error) {
	return func(o Options) (all []*trial, err error) {
		for batch := range s.batches {
			both := s.contenders(batch, s.size(o).train, s.size(o).epochs)[:2]
			walk := s.trial(o, equalPictures, batch, both[0], nil)
			walk.always = true
			all = append(all, walk, s.trial(o, equalPictures, batch, both[1], walk))
		}
		return all, nil
	}
}

// pictureScores returns a contender's scores on the test part, with the seconds and epochs of the kept fit, and its
// validations.
func (b *bench) pictureScores(ctx context.Context, c contender, parts dataset.Parts, seed uint64) (Result, error) {
	f, r, err := b.along(ctx, c, parts, seed)
	if f == nil {
		return r, err
	}
	table := must(metric.Of(ctx, f.posterior, parts.Test))
	for _, s := range table {
		r.Values[s.Name] = s.Value
	}
	r.Values["test loss"] = r.Values["NLPD"]
	delete(r.Values, "NLPD")
	for _, v := range f.curve {
		r.Series["accuracy"] = append(r.Series["accuracy"], v.accuracy)
	}
	return r, nil
}

// along chooses an attempt, and returns it with its seconds, epochs, effective sample size and validations. If every
// attempt diverged, or on an error, it returns no attempt.
func (b *bench) along(ctx context.Context, c contender, parts dataset.Parts, seed uint64) (*fitted, Result, error) {
	f := must(b.choose(ctx, c, parts, seed))
	if f == nil {
		return nil, Result{Values: map[string]float64{"test loss": math.Inf(1), "seconds": math.NaN()}}, nil
	}
	r := Result{Values: map[string]float64{"seconds": f.seconds, "epochs": f.epochs}, Series: map[string][]float64{}}
	if !math.IsNaN(f.ess) {
		r.Values["ESS"] = f.ess
	}
	for _, v := range f.curve {
		r.Series["epoch"] = append(r.Series["epoch"], v.epoch)
		r.Series["seconds"] = append(r.Series["seconds"], v.seconds)
		r.Series["loss"] = append(r.Series["loss"], v.nlpd)
	}
	return f, r, nil
}

// firstStochastic is a classification's model whose first convolution is stochastic.
func firstStochastic(network nn.Network) bayes.Model {
	return bayes.Model{Network: network, Likelihood: bayes.Categorical{}, Prior: bayes.Normal{StdDev: 1},
		Stochastic: bayes.Layers(1)}
}

// guidedDigits is MNIST: Tables 2, 7 and 10.
var guidedDigits = pictureSet{
	data: "mnist", load: digits, particles: 100, batches: []int{100, 500, 1000},
	model: firstStochastic(nn.CNN{Height: mnist.Side, Width: mnist.Side, Activation: nn.Tanh, Init: nn.GlorotUniform,
		Hidden:       []int{120, 84},
		Convolutions: []nn.Conv{{Filters: 16, Pool: 2}, {Filters: 16, Kernel: 5, Valid: true, Pool: 2}}}),
	sghmc: []float64{.001, .001, .0005}, vi: []float64{.001, .001, .0002},
	paper:   pictureSize{50_000, 10_000, 10_000, extent{reps: 10, epochs: 30}},
	reduced: pictureSize{3000, 500, 2000, extent{reps: 1, epochs: 6}},
}

// guidedFashion is FashionMNIST: Tables 3, 7 and 11.
var guidedFashion = pictureSet{
	data: "fashion_mnist", load: once(pictures.FashionMNIST), particles: 50, batches: []int{100, 500, 1000},
	model: firstStochastic(largerNetwork),
	sghmc: []float64{.001, .001, .0002}, vi: []float64{.001, .001, .0002},
	paper:   pictureSize{50_000, 10_000, 10_000, extent{reps: 10, epochs: 30}},
	reduced: pictureSize{1500, 500, 1000, extent{reps: 1, epochs: 4}},
}

// largerNetwork is the network for FashionMNIST, and for the detection of its pictures among MNIST's.
var largerNetwork = nn.CNN{Height: mnist.Side, Width: mnist.Side, Init: nn.GlorotUniform,
	Normalised: true, Hidden: []int{128},
	Convolutions: []nn.Conv{{Filters: 32, Pool: 2, MaxPool: true}, {Filters: 64, Pool: 2, MaxPool: true}}}

// guidedCIFAR is CIFAR-10: Table 4.
var guidedCIFAR = pictureSet{
	data: "cifar10", load: once(pictures.CIFAR10), particles: 10, batches: []int{100}, annealed: true,
	model:   firstStochastic(nn.ResNet20{Height: 32, Width: 32, Channels: 3, Init: nn.GlorotUniform}),
	paper:   pictureSize{50_000, 10_000, 10_000, extent{reps: 5, epochs: 200}},
	reduced: pictureSize{3000, 500, 1000, extent{reps: 1, epochs: 6}},
}

// detection is the network of FashionMNIST trained on MNIST, five times.
var detection = pictureSet{
	data: "mnist", load: digits, particles: 50, batches: []int{100}, model: firstStochastic(largerNetwork),
	sghmc: []float64{.001}, vi: []float64{.001},
	paper:   pictureSize{50_000, 10_000, 10_000, extent{reps: 5, epochs: 30}},
	reduced: pictureSize{2000, 500, 1000, extent{reps: 1, epochs: 6}},
}

// detectionTrials returns the trials of Table 5 and Figure 5 (section 4.2.4): FashionMNIST's network trained on MNIST
// tells MNIST's test pictures from FashionMNIST's by the energy of their outputs. The threshold is the one that 95 % of
// MNIST's validation part stay under, from which the paper's specificities of .95 are.
func detectionTrials(o Options) (all []*trial, err error) {
	s := detection
	size := s.size(o)
	b := newBench(s.model, s.batches[0], size.epochs, o.say)
	for _, c := range s.contenders(0, size.train, size.epochs) {
		key := Key{Study: "gohsmc.detection", Data: "FashionMNIST among MNIST", Method: c.name, Settings: map[string]any{
			"version": pictureVersion, "model": s.model, "rows": []int{size.train, size.validation, size.test},
			"epochs": size.epochs, "batch": s.batches[0], "attempts": c.attempts,
		}}
		run := func(ctx context.Context, repetition int) (Result, error) {
			parts := must(size.parts(s.load, uint64(repetition)))
			_, outside, err := guidedFashion.load()
			failOn(err)
			posterior := must(b.best(ctx, c, parts, uint64(repetition)))
			if posterior == nil {
				return diverged(), nil
			}
			return detected(ctx, posterior, parts, firstOf(outside, size.test)), nil
		}
		all = append(all, &trial{Key: key, reps: size.reps, run: run,
			paper: reportedIn("gohsmc.table5", key.Data)[c.name]})
	}
	return all, nil
}

// detected returns the scores of a posterior as a detector of pictures from outside, by energy, and the areas by the
// other scores.
func detected(
	ctx context.Context, posterior *bayes.Posterior, parts dataset.Parts, outside *dataset.Dataset,
) (r Result) {
	var predictions [3]bayes.Prediction
	for i, part := range []*dataset.Dataset{parts.Validation, parts.Test, outside} {
		predictions[i] = must(posterior.Predict(ctx, part.X))
	}
	r.Values = map[string]float64{}
	for _, score := range []struct {
		name string
		of   func(bayes.Prediction) ([]float64, error)
	}{
		{"", metric.Energy}, {"entropy", metric.Entropy}, {"mutual information", metric.MutualInformation},
		{"maximum probability", metric.LeastConfidence},
	} {
		var scores [3][]float64
		for i, p := range predictions {
			scores[i] = must(score.of(p))
		}
		detection := must(metric.Detect(scores[1], scores[2]))
		if score.name != "" {
			r.Values["AUROC by "+score.name] = detection.ROC.AUC()
			continue
		}
		threshold := must(metric.Threshold(scores[0]))
		found := must(metric.Decide(scores[1], scores[2], threshold))
		r.Values["accuracy"], r.Values["F1"], r.Values["precision"] = found.Accuracy(), found.F1(), found.Precision()
		r.Values["recall"], r.Values["specificity"] = found.Recall(), found.Specificity()
		r.Values["AUROC"], r.Values["FPR95"] = detection.ROC.AUC(), detection.FPR95
		r.Values["AUPR"] = detection.AUPROut
		r.Series = map[string][]float64{}
		for _, rate := range falsePositives() {
			r.Series["false positive rate"] = append(r.Series["false positive rate"], rate)
			r.Series["true positive rate"] = append(r.Series["true positive rate"], detection.ROC.At(rate))
		}
	}
	return r
}
