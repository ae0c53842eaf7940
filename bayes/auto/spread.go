package auto

import (
	"math"
	"slices"

	"gobnn/bayes"
	"gobnn/bayes/dataset"
	"gobnn/bayes/nn"

	"gonum.org/v1/gonum/floats"
)

// left are rows that the folds of a regression leave out, by which its mixture is judged: how many its intervals hold,
// and whether its noise should be wider or narrower. A mixture of networks, each with its own noise, can be wider than
// what they leave unexplained. The scale is one number for all particles, exp(t), by which the posterior's parameters
// are changed.
type left struct {
	parts   [][]bayes.Prediction // of each fold, of some of its rows
	shares  [][]float64          // of each fold's parts, logarithms
	targets [][]float64          // of each fold's rows
	weights []float64            // of all these rows; nil: all are alike
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

// newLeft predicts rows that the folds leave out by each of their parts with a weight, and finds the scale of the
// noise. It is nil if the target is not a number, known for each row.
func newLeft(bound *bayes.BoundModel, all []*fold, d *Details) (*left, error) {
	first, rows := all[0].parts.Validation, 0
	counts, ok := bound.Model.Likelihood.(bayes.Supporter)
	if first.Task != dataset.Regression || first.Censored != nil || ok && counts.Support() == bayes.Counts {
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
		var parts []bayes.Prediction
		var shares []float64
		for k, p := range []*particles{one.networks, one.shrunk, one.sampled} {
			if w := d.weights(one)[k]; p != nil && w > 0 {
				prediction, err := predict(p.Posterior, chosen)
				if err != nil {
					return nil, err
				}
				parts, shares = append(parts, prediction), append(shares, math.Log(w))
			}
		}
		l.parts, l.shares, l.targets = append(l.parts, parts), append(l.shares, shares), append(l.targets, chosen.Y)
		l.weights = append(l.weights, chosen.Weights...)
	}
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
	for f, parts := range l.parts {
		terms := make([]float64, len(parts))
		densities := make([][]float64, len(parts))
		for k, p := range parts {
			if densities[k], err = l.scaled(p, t).LogDensity(l.targets[f]); err != nil {
				return nil, err
			}
		}
		for i := range densities[0] {
			for k := range parts {
				terms[k] = l.shares[f][k] + densities[k][i]
			}
			all = append(all, floats.LogSumExp(terms))
		}
	}
	return all, nil
}

// widen changes the noise of particles, [J, D], row-major.
func (l *left) widen(phi []float64, dim int) {
	for j := 0; j < len(phi); j += dim {
		floats.AddConst(l.t, phi[j+l.noise.from:j+l.noise.from+l.noise.size])
	}
}

// covered counts the targets of the rows, and those that the mixture's 90 % intervals hold, with the noise as it is
// now.
func (l *left) covered() (inside, targets float64, rows int) {
	for f, parts := range l.parts {
		y := parts[0].StandardiseTarget(l.targets[f])
		rows += parts[0].Rows
		below := make([]float64, len(y))
		for k, p := range parts {
			p := l.scaled(p, l.t)
			columns, each := p.Columns(), math.Exp(l.shares[f][k])/float64(p.Particles) // whose weights are equal
			for i, v := range y {
				for j := range p.Particles {
					below[i] += each * p.Distribution(j, i/columns, i%columns).CDF(v)
				}
			}
		}
		for _, b := range below {
			if targets++; b >= .05 && b <= .95 {
				inside++
			}
		}
	}
	return inside, targets, rows
}
