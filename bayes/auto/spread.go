package auto

import (
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/metric"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/floats"
)

// left are rows that the folds of a regression leave out, by which its mixture is judged: how many its intervals hold,
// and whether its noise should be wider or narrower. A mixture of networks, each with its own noise, can be wider than
// what they leave unexplained. The scale is one number for all particles, exp(t), by which the posterior's parameters
// are changed.
type left struct {
	folds   []bayes.Prediction // of some of the rows of each fold, by its mixture
	targets [][]float64        // of each fold's rows
	weights []float64          // of all these rows; nil: all are alike
	noise   noise
	t       float64 // log of the scale
	gain    float64 // of the log-density of a row
}

const (
	leftRows   = 2000 // that are looked at, at most, since the scale is one number
	mostSpread = 1    // of |t|
)

// noise is where the outputs for the noise have their biases: in each particle from one coordinate on.
type noise struct{ from, size int }

// noiseOf is the noise of a network with an output layer, whose outputs are a centre and a log-scale for each target.
func noiseOf(bound *bayes.BoundModel) (of noise, ok bool) {
	switch bound.Model.Likelihood.(type) {
	case bayes.HeteroscedasticT, bayes.Heteroscedastic:
	default:
		return of, false
	}
	if _, mlp := bound.Model.Network.(nn.MLP); !mlp {
		return of, false
	}
	last := -1
	for _, slot := range bound.Slots {
		if slot.Kind == nn.Biases && slot.Layer > last {
			last, of = slot.Layer, noise{slot.Offset + slot.Size()/2, slot.Size() / 2}
		}
	}
	return of, last >= 0
}

// newLeft predicts rows that the folds leave out by their mixtures, and finds the scale of the noise. It is nil if the
// target is not a number, known for each row.
func newLeft(bound *bayes.BoundModel, all []*fold, d *Details) (*left, error) {
	first, rows := all[0].parts.Validation, 0
	if first.Task != dataset.Regression || first.Censored != nil || bayes.IsCounted(bound.Model.Likelihood) {
		return nil, nil
	}
	l := &left{}
	for _, one := range all {
		rows += one.parts.Validation.Rows()
	}
	stride := (rows + leftRows - 1) / leftRows
	for _, one := range all {
		var some []int
		for r := 0; r < one.parts.Validation.Rows(); r += stride {
			some = append(some, r)
		}
		chosen, err := one.parts.Validation.Subset(some)
		if err != nil {
			return nil, err
		}
		var whole bayes.Prediction
		for k, p := range []*particles{one.networks, one.shrunk, one.sampled} {
			share := d.weights(one)[k]
			if p == nil || share == 0 {
				continue
			}
			part, err := predict(p.Posterior, chosen)
			if err != nil {
				return nil, err
			}
			part.Outputs, part.Own = append(whole.Outputs, part.Outputs...), append(whole.Own, part.Own...)
			part.Weights = append(whole.Weights, floats.ScaleTo(make([]float64, part.Particles), share, part.Weights)...)
			part.Particles, part.Chains = len(part.Weights), 0
			whole = part
		}
		l.folds, l.targets = append(l.folds, whole), append(l.targets, chosen.Y)
		l.weights = append(l.weights, chosen.Weights...)
	}
	var ok bool
	if l.noise, ok = noiseOf(bound); !ok {
		return l, nil
	}
	return l, l.fit()
}

// fit climbs to the scale by which the rows have the largest density, and takes it if it adds more than a nat to all of
// them together.
func (l *left) fit() error {
	before, err := l.density(0)
	if err != nil {
		return err
	}
	best, at := mean(before, l.weights).Value, 0.
	for _, step := range []float64{.2, -.2, .04, -.04} {
		for math.Abs(at+step) <= mostSpread {
			rows, err := l.density(at + step)
			if err != nil {
				return err
			}
			density := mean(rows, l.weights).Value
			if !(density > best) {
				break
			}
			best, at = density, at+step
		}
	}
	if gain := best - mean(before, l.weights).Value; gain*float64(len(before)) > 1 {
		l.t, l.gain = at, gain
	}
	return nil
}

// scaled is a prediction whose noise is wider by exp(t).
func (l *left) scaled(p bayes.Prediction, t float64) bayes.Prediction {
	p.Outputs = slices.Clone(p.Outputs)
	for i := range p.Outputs {
		if i%p.Width >= p.Width/2 {
			p.Outputs[i] += t
		}
	}
	return p
}

// density is the log-density of each row, if the noise is wider by exp(t).
func (l *left) density(t float64) (all []float64, err error) {
	for f, p := range l.folds {
		rows, err := l.scaled(p, t).LogDensity(l.targets[f])
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// widen changes the noise of particles, [J, D], row-major.
func (l *left) widen(phi []float64, dim int) {
	for j := 0; j < len(phi); j += dim {
		floats.AddConst(l.t, phi[j+l.noise.from:j+l.noise.from+l.noise.size])
	}
}

// covered is the share of the targets that the mixtures' 90 % intervals hold, with the noise as it is now, and the
// number of rows.
func (l *left) covered() (share float64, rows int, err error) {
	held, targets := 0., 0
	for f, p := range l.folds {
		p, columns := l.scaled(p, l.t), p.Columns()
		rows += p.Rows
		for k := range columns {
			one, err := p.Of(k)
			if err != nil {
				return 0, 0, err
			}
			y := make([]float64, p.Rows)
			for n := range y {
				y[n] = l.targets[f][n*columns+k]
			}
			fold, err := metric.Coverage(one, y, .9)
			if err != nil {
				return 0, 0, err
			}
			held, targets = held+fold.Value*float64(len(y)), targets+len(y)
		}
	}
	return held / float64(targets), rows, nil
}
