package baseline

import (
	"math"
	"slices"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/run"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Of the linear model a member's optimum is w = P^-1 (X' y + a / tau^2) about the means, with P the posterior's
// precision: so each member shows what its anchor was. Over 150 chains, with two weights each, these are draws of the
// prior, N(0, tau^2), in the first members and in the last ones, and neighbours are a step of the walk apart: their
// mean is 0 and their variance tau^2, each within 4 standard errors (the two weights' anchors are independent). The
// bias, which has no prior, makes the residuals sum to 0. Without anchors all members would be the same, and with the
// posterior's draws instead of these optima what looks like anchors would be wider by a factor of 4 and more.
func TestSAEIsExact(t *testing.T) {
	membersTrainFor(t, 1)
	const chains, members, size = 100, 3, .4
	data := fittest.Data(rows)
	computetest.Pair(t, func(t *testing.T, engine *compute.Engine, dtype compute.DType) {
		training := converging
		training.Epochs, training.Optimiser.Schedule.Every = 600, 60
		result, details := fitted(t, lineModel, SAE{Training: training, Chains: chains, Members: members, StepSize: size},
			dataset.Parts{Train: data}, run.Settings{Engine: engine, DType: dtype})
		w, b := parameters(t, result.Posterior)
		if len(b) != chains*members || details.Steps != members*training.Epochs {
			t.Fatalf("%d members after %d steps", len(b), details.Steps)
		}
		anchors := mat.NewDense(chains*members, 2, nil)
		x, y := mat.DenseCopyOf(data.X), slices.Clone(data.Y)
		centre := func(column []float64) {
			mean := stat.Mean(column, nil)
			for i := range column {
				column[i] -= mean
			}
		}
		centre(y)
		for c := range 2 {
			column := mat.Col(nil, c, x)
			centre(column)
			x.SetCol(c, column)
		}
		for j := range b {
			residual := 0.
			gradient := []float64{0, 0}
			for n := range rows {
				residual += data.Y[n] - b[j] - w[2*j]*data.X.At(n, 0) - w[2*j+1]*data.X.At(n, 1)
				e := y[n] - w[2*j]*x.At(n, 0) - w[2*j+1]*x.At(n, 1)
				gradient[0] += e * x.At(n, 0) / (sd * sd)
				gradient[1] += e * x.At(n, 1) / (sd * sd)
			}
			if !(math.Abs(residual)/rows < 5*tolerance(dtype)) {
				t.Fatalf("member %d: the residuals' mean is %v", j, residual/rows)
			}
			anchors.SetRow(j, []float64{w[2*j] - tau*tau*gradient[0], w[2*j+1] - tau*tau*gradient[1]})
		}
		for _, k := range []int{0, members - 1} {
			var all []float64
			for c := range chains {
				all = append(all, anchors.At(c*members+k, 0), anchors.At(c*members+k, 1))
			}
			n := float64(len(all))
			mean, variance := stat.MeanVariance(all, nil)
			if math.Abs(mean) > 4*tau/math.Sqrt(n) || math.Abs(variance/(tau*tau)-1) > 4*math.Sqrt(2/n) {
				t.Errorf("member %d: the anchors have mean %.4f and variance %.4f, not 0 and %.4f", k+1, mean, variance, tau*tau)
			}
		}
		// A step is at most 4.5 standard deviations |N(0, size^2 tau^2)|, or none; about 7 in 10 are accepted.
		moved := 0
		for c := range chains {
			for k := range members - 1 {
				d := math.Abs(anchors.At(c*members+k+1, 0) - anchors.At(c*members+k, 0))
				if d > 4.5*size*tau+.05 {
					t.Errorf("chain %d: the anchor jumps by %.3f", c, d)
				}
				if d > .2*size*tau {
					moved++
				}
			}
		}
		if share := float64(moved) / (chains * (members - 1)); share < .5 || share > .95 {
			t.Errorf("%.2f of the anchors' steps were made", share)
		}
	})
}

// membersTrainFor has the members after the first train for Epochs over share.
func membersTrainFor(t *testing.T, share int) {
	before := memberShare
	memberShare = share
	t.Cleanup(func() { memberShare = before })
}

// The guided walk leaves the normal where it is, from draws of it: over 20 000 coordinates, in two scales, mean and
// variance stay within 4 standard errors, and so does the share beyond two standard deviations. A coordinate goes on in
// its direction more often than it turns.
func TestGuidedWalk(t *testing.T) {
	const n, steps = 20_000, 7
	scales := []float64{2, .5}
	start := newGuidedWalk(make([]float64, n), scales, 1, 3)
	for i := range start.anchors {
		start.anchors[i] = scales[i%2] * start.rng.NormFloat64()
	}
	w := newGuidedWalk(start.anchors, scales, .8, 4)
	var before []float64
	for range steps {
		before = slices.Clone(w.anchors)
		w.step()
	}
	for c, s := range scales {
		var z []float64
		beyond, turned := 0., 0.
		for i := c; i < n; i += 2 {
			z = append(z, w.anchors[i]/s)
			if math.Abs(w.anchors[i]) > 2*s {
				beyond++
			}
			if w.anchors[i] == before[i] {
				turned++
			}
		}
		count := float64(len(z))
		mean, variance := stat.MeanVariance(z, nil)
		const tail = .0455
		if math.Abs(mean) > 4/math.Sqrt(count) || math.Abs(variance-1) > 4*math.Sqrt(2/count) ||
			math.Abs(beyond/count-tail) > 4*math.Sqrt(tail/count) {
			t.Errorf("scale %v: mean %.4f, variance %.4f, %.4f beyond 2 standard deviations", s, mean, variance, beyond/count)
		}
		if turned == 0 || turned > .4*count {
			t.Errorf("scale %v: %.2f of the steps turned", s, turned/count)
		}
	}
}

// Patience ends the training of a member, and not the chain of members.
func TestSAEWithPatience(t *testing.T) {
	method := SAE{Training: Training{Epochs: 200, BatchSize: 8, Patience: 2}, Chains: 2, Members: 5}
	r, d := fitted(t, fittest.Small, method, fittest.Parts(t, 60), run.Settings{})
	if most := (200 + 4*10) * d.PerEpoch; r.Status.Err() != nil || r.Posterior.Particles() != 10 || d.Steps >= most {
		t.Errorf("%s with %d members after %d steps of at most %d: want 10 members, and an early end of some", r.Status,
			r.Posterior.Particles(), d.Steps, most)
	}
}
