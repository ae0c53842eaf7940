package ohsmc

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// The gradient of K of J particles is that of all in the mean over draws (a probability of 6e-7 outside of five
// standard errors), for each of two shared numbers, and equal to it where all J of equal weight are drawn.
func TestGradientOfSomeParticles(t *testing.T) {
	const particles, rows, streams = 12, 5, 300
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: .8},
		Stochastic: bayes.Names("layer1/weights")}
	bound, err := model.Bind(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	phi, logWeights := make([]float64, particles*bound.D), make([]float64, particles)
	equal := make([]float64, particles)
	for j := range logWeights {
		logWeights[j], equal[j] = math.Log(float64(1+j)/78), -math.Log(particles)
		phi[2*j], phi[2*j+1] = math.Sin(float64(j)), math.Cos(float64(3*j))
	}
	x, y := make([]float64, 2*rows), make([]float64, rows)
	for n := range y {
		x[2*n], x[2*n+1], y[n] = math.Cos(float64(n)), .3*float64(n), float64(n%2)
	}
	gradients := func(k int, logWeights []float64, streams int) (all []float64) {
		run := computetest.Compile(t, computetest.Go(t), func(g *Graph, a []*Node) []*Node {
			plan, err := compute.NewPlan(particles, 1, 0)
			if err != nil {
				panic(err)
			}
			c := &Core{Training: Training{Particles: particles, GradientParticles: k}, Bound: bound,
				Target: density.MiniBatch{Likelihood: density.Likelihood{Model: bound, Plan: plan}, Rows: rows}}
			s := State{Phi: Reshape(a[0], particles, -1), LogWeights: a[1], Psi: a[2]}
			batch := density.Batch{X: Reshape(a[3], rows, -1), Y: a[4]}
			step := ConvertDType(a[5], dtypes.Uint32)
			return []*Node{c.gradientOfSome(s, batch, random.New(g, 7).At(step))}
		})
		for i := range streams {
			all = append(all, run(phi, logWeights, []float64{.2}, x, y, float64(i))[0]...)
		}
		return all
	}
	exact := func(logWeights []float64) (sum float64) {
		for j, w := range logWeights {
			for n := range y {
				sum += math.Exp(w) * (y[n] - phi[2*j]*x[2*n] - phi[2*j+1]*x[2*n+1] - .2) / (.8 * .8)
			}
		}
		return sum
	}
	computetest.Near(t, "gradient of all particles", gradients(particles, equal, 1), []float64{exact(equal)}, 1e-9)
	drawn := gradients(3, logWeights, streams)
	mean, deviation := stat.MeanStdDev(drawn, nil)
	want := exact(logWeights)
	if off := math.Abs(mean - want); off > 5*deviation/math.Sqrt(streams) || deviation == 0 {
		t.Errorf("mean %v +- %v of %d draws, want %v", mean, deviation/math.Sqrt(streams), streams, want)
	}
}

// What a setting of the gradient or of pictures cannot do is refused, and with them training learns: a regression's
// validation NLPD falls, with its gradient from 5 of 100 particles as with all.
func TestGradientParticlesLearn(t *testing.T) {
	parts, err := linear(100).Split(dataset.Fractions{Train: .8, Validation: .2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model := bayes.Model{Network: nn.MLP{Hidden: []int{8}}, Likelihood: bayes.Gaussian{StdDev: .5},
		Stochastic: bayes.Layers(1)}
	training := Training{Particles: 100, GradientParticles: 5, Epochs: 30, BatchSize: 20, ValidateEvery: 4}
	settings := run.Settings{Seed: 1, Engine: computetest.Go(t)}
	for _, method := range []fit.Method{OpenHorizon{Training: training}, Guided{Training: training}} {
		r, err := fit.Fit(t.Context(), model, method, parts, settings)
		if err != nil {
			t.Fatal(err)
		}
		validated := fit.Details[*Details](r).Validated
		if first, last := validated[0].NLPD, validated[len(validated)-1].NLPD; !(last < first-.2) {
			t.Errorf("%T: validation NLPD from %v to %v", method, first, last)
		}
	}
	for _, c := range []struct {
		method fit.Method
		want   string
	}{
		{OpenHorizon{Training: Training{Particles: 10, GradientParticles: 11}}, "GradientParticles is 11"},
		{OpenHorizon{Training: Training{GradientParticles: -1}}, "GradientParticles is -1"},
		{SMC{Training: Training{GradientParticles: 2}}, "takes psi's gradient from all particles"},
		{SMC{Training: Training{Augment: train.Augment{Height: 1, Width: 2, Flip: true}}}, "pictures as they are"},
		{Guided{Training: Training{Augment: train.Augment{Height: 2, Width: 2, Flip: true}}}, "which have 4 features"},
		{baseline.MAP{Training: baseline.Training{Augment: train.Augment{Height: 2, Width: 2}}}, "which have 4 features"},
	} {
		_, err := fit.Fit(t.Context(), model, c.method, parts, settings)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.method, err, c.want)
		}
	}
}
