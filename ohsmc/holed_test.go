package ohsmc

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/fit/fittest"
	"gobnn/bayes/nn"
	"gobnn/bayes/particles"
	"gobnn/bayes/run"
	"gobnn/bayes/train"

	"github.com/gomlx/gomlx/core/graph"
)

// holed is a network of one layer, f = phi + psi whatever the features. If it is broken, the gradient with respect to
// phi, and nothing else, is NaN in the hole, from 0.4 to 0.7; if it is blind, f is, and so the likelihood.
type holed struct{ Broken, Blind bool }

const hole, wide = .55, .15

func inHole(phi float64) bool { return math.Abs(phi-hole) < wide }

func (h holed) Layers(int, int) ([]nn.Layer, error) { return []nn.Layer{h}, nil }

func (holed) Parameters() []nn.Parameter {
	var parameters []nn.Parameter
	for i, name := range []string{"phi", "psi"} {
		parameters = append(parameters, nn.Parameter{Name: name, Layer: i + 1, Kind: nn.Biases, Shape: []int{1}, FanIn: 1,
			FanOut: 1})
	}
	return parameters
}

func (h holed) Apply(leaves nn.Params, in nn.Value) nn.Value {
	phi := leaves["phi"].Node // [J/c, 1, c]
	f := graph.Add(phi, graph.ExpandAxes(leaves["psi"].Node, 0, -1))
	zero := graph.MulScalar(phi, 0)
	within := graph.LessThan(graph.Abs(graph.AddScalar(phi, -hole)), graph.ConstAs(phi, wide))
	switch {
	case h.Blind:
		f = graph.Where(within, graph.ConstAs(f, math.NaN()), f)
	case h.Broken:
		root := graph.Sqrt(graph.Where(within, zero, graph.OnesLike(phi)))
		f = graph.Add(f, graph.MulScalar(root, 0)) // 0 everywhere, with the derivative 0/0 where the root is 0
	}
	return nn.Value{Node: graph.BroadcastToDims(graph.ExpandAxes(f, 2), f.Shape().Dim(0), 1, in.Node.Shape().Dim(1),
		f.Shape().Dim(2)), PerParticle: true}
}

func init() { bayes.Register(holed{}) }

func (h holed) model() bayes.Model {
	return fittest.Raw(bayes.Model{Network: h, Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.Names("phi")})
}

// Where the likelihood of some particles, or a gradient that the proposal needs, is NaN, where they begin, on their
// way or where they end, these alone are rejected, stay where they were without a weight, and are counted. Everything
// else, psi too, is as in a network without a hole in which the same particles have no weight from the start.
func TestSomeAreNotFinite(t *testing.T) {
	const count = 60
	engine := computetest.Go(t) // what is rejected is decided in the graph
	parts := dataset.Parts{Train: fittest.Data(6)}
	for _, c := range []struct {
		network         holed
		proposal        Proposal
		begins, ends    bool // whether NaN is met there
		between, adapts bool
		chunk           int
	}{
		{network: holed{Broken: true}, proposal: RandomWalk{}},
		{network: holed{Broken: true}, proposal: Langevin{PaperForm: true}, begins: true},
		{network: holed{Broken: true}, proposal: Langevin{}, begins: true, ends: true, chunk: 7},
		{network: holed{Broken: true}, proposal: Langevin{}, begins: true, ends: true, adapts: true},
		{network: holed{Broken: true}, proposal: HMC{Steps: 6}, begins: true, ends: true, between: true},
		{network: holed{Blind: true}, proposal: RandomWalk{}, begins: true, ends: true},
		{network: holed{Blind: true}, proposal: RandomWalk{}, begins: true, ends: true, adapts: true, chunk: 7},
		{network: holed{Blind: true}, proposal: Langevin{PaperForm: true}, begins: true, ends: true},
		{network: holed{Blind: true}, proposal: Langevin{}, begins: true, ends: true},
		{network: holed{Blind: true}, proposal: HMC{Steps: 6}, begins: true, ends: true, between: true},
	} {
		t.Run(fmt.Sprintf("%+v/%+v/%T", c.network, c.proposal, c.proposal), func(t *testing.T) {
			// step makes one, from the weights of the first batch or those given; it gives where the particles began,
			// with what weights, and all that it left.
			step := func(network holed, given []float64) (
				from, began, phi, logWeights, rest []float64, record particles.StepRecord,
			) {
				algorithm := Guided{Proposal: c.proposal, StepSize: train.Constant(.4), Training: particles.Training{
					Particles: count, BatchSize: 6, Epochs: 1, Threshold: 1e-9, Chunk: c.chunk,
				}}
				if c.adapts {
					algorithm.Adapt = .5
				}
				ctx := with(t.Context(), func(s *particles.Session, made *particles.StepRecord) {
					if made == nil {
						if given != nil {
							s.State.Set("log_weights", compute.Floats(compute.Float64, given, count))
						}
						from, began = values(t, s, "phi"), values(t, s, "log_weights")
						return
					}
					record, phi, logWeights = *made, values(t, s, "phi"), values(t, s, "log_weights")
					rest = slices.Concat(values(t, s, "psi"), values(t, s, "mean"),
						[]float64{record.LogEvidence, record.Loss, record.ESS})
					if c.adapts {
						rest = append(append(rest, record.Acceptance), values(t, s, "log_step")...)
					}
				})
				if _, err := fit.Fit(ctx, network.model(), watched{algorithm}, parts,
					run.Settings{Seed: 2, Engine: engine, DType: compute.Float64}); err != nil {
					t.Fatal(err)
				}
				return from, began, phi, logWeights, rest, record
			}
			_, _, sound, _, _, _ := step(holed{}, nil)
			from, began, phi, logWeights, rest, record := step(c.network, nil)
			var rejected []int
			onTheWay := 0
			for j, w := range logWeights {
				seen := c.begins && inHole(from[j]) || c.ends && inHole(sound[j])
				if seen && !math.IsInf(w, -1) {
					t.Errorf("particle %d met NaN between %v and %v, but has log-weight %v", j, from[j], sound[j], w)
				}
				if math.IsInf(w, -1) {
					rejected = append(rejected, j)
					began[j] = w
					if !seen {
						onTheWay++
					}
					if phi[j] != from[j] {
						t.Errorf("particle %d was rejected, but went from %v to %v", j, from[j], phi[j])
					}
				}
			}
			t.Logf("%d of %d particles were rejected, %d of them for what they met on their way", len(rejected), count,
				onTheWay)
			if (len(rejected) > 0) != c.begins || len(rejected) > count*3/4 || (onTheWay > 0) != c.between {
				t.Errorf("particles %v were rejected, %d of them neither for where they began nor for where they ended", rejected,
					onTheWay)
			}
			if record.NonFinite != len(rejected) || record.GradientRejected {
				t.Errorf("%d particles were rejected, and the record says %+v", len(rejected), record)
			}
			_, _, wantPhi, wantWeights, wantRest, _ := step(holed{}, began)
			computetest.Near(t, "phi", phi, wantPhi, 1e-12)
			computetest.Near(t, "log-weights", logWeights, wantWeights, 1e-12)
			computetest.Near(t, "psi, the mean of its gradient, evidence, loss and effective sample size", rest, wantRest, 1e-12)
		})
	}

	// Nor do particles without a weight disturb later steps.
	result, details := fitted(t, holed{Broken: true}.model(), Guided{
		Training: particles.Training{Particles: count, BatchSize: 6, Epochs: 30},
		Proposal: HMC{Steps: 3}, StepSize: train.Constant(.3),
	}, parts, run.Settings{})
	for i, r := range details.Trace {
		if r.NonFinite == count || r.GradientRejected || !(r.ESS >= 1) {
			t.Errorf("step %d: %+v", i+1, r)
		}
	}
	for i, v := range fittest.Numbers(t, result.Posterior)[:count+1] {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("parameter %d is %v", i, v)
		}
	}
}
