package pmcnet

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/density"
	"gobnn/bayes/smc"

	. "github.com/gomlx/gomlx/core/graph"
)

// fixture is one iteration by an independent implementation (JAX, float64).
type fixture struct {
	M, K        int
	X           [][]float64
	Y           []float64 `json:"y"`
	PriorVar    float64   `json:"prior_var"`
	Mu          [][]float64
	Sigma       [][][]float64
	T           int
	Beta        float64
	Theta       [][]float64 `json:"x"`
	LogPi, LogQ []float64
	Cases       map[string]struct {
		Frac    float64
		Weights []float64 `json:"out_logw"`
		Index   []int     `json:"idx"`
		Sigma   [][][]float64
		Mu      [][]float64
		ESS     float64 `json:"ess_out"`
		LogZ    float64
	}
}

func readFixture(t *testing.T) (f fixture) {
	t.Helper()
	text, err := os.ReadFile("testdata/step_fixture.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// network is the fixture's: 2-2-1, tanh, Bernoulli likelihood, prior N(0, PriorVar).
func (f fixture) network(g *Graph) density.Target {
	x, y := Const(g, f.X), Const(g, f.Y)
	return density.Func(func(theta *Node) *Node {
		part := func(from, to int, dims ...int) *Node {
			return Reshape(Slice(theta, AxisRange(), AxisRange(from, to)), append([]int{theta.Shape().Dim(0)}, dims...)...)
		}
		hidden := Tanh(Add(Einsum("ni,jio->jno", x, part(0, 4, 2, 2)), part(4, 6, 1, 2)))
		out := Add(Einsum("jno,jo->jn", hidden, part(6, 8, 2)), part(8, 9, 1))
		softplus := Add(Max(out, ZerosLike(out)), Log1P(Exp(Neg(Abs(out)))))
		logLik := ReduceSum(Sub(Mul(out, ExpandAxes(y, 0)), softplus), 1)
		square := ReduceSum(Square(theta), 1)
		d := float64(theta.Shape().Dim(1))
		return Add(logLik, AddScalar(MulScalar(square, -.5/f.PriorVar), -d/2*math.Log(2*math.Pi*f.PriorVar)))
	})
}

// An iteration on given draws agrees with the fixture to 1e-10: target, mixture, weights, covariances, means, effective
// sample size and evidence, for honest and for tempered weights.
func TestFixture(t *testing.T) {
	f := readFixture(t)
	d := len(f.Mu[0])
	for name, weights := range map[string]Weights{"honest": honestWeights, "tempered": Tempered} {
		t.Run(name, func(t *testing.T) {
			want := f.Cases[name]
			a := PMC{Proposals: f.M, Draws: f.K, Weights: weights, Covariance: fullCovariance}
			got := computetest.Run(t, computetest.Go(t), func(g *Graph, args []*Node) []*Node {
				q := proposals{mean: args[0], family: full{}, covariance: fullOf(args[1])}
				n := now{rng: random.New(g, 1), global: Const(g, false), beta: args[3], eta: args[4]}
				w := a.weigh(q, Reshape(args[2], f.M, f.K, d), f.network(g))
				w.weights, w.exponent = a.weights(w.honest, want.Frac)
				next := a.adapt(q, w, args[5], n)
				mean := a.ascend(next.proposals, f.network(g), 1)
				normalised, _ := smc.Normalise(Reshape(w.weights, f.M*f.K))
				return []*Node{
					w.logPi, Sub(w.logPi, w.honest), lessMax(w.weights), next.covariance[covarianceName], mean,
					smc.EffectiveSampleSize(normalised), w.honest, a.resample(w, n), next.covariance[lowerName],
				}
			}, f.Mu, f.Sigma, f.Theta, f.Beta, 1/float64(f.T), int32s(want.Index))
			logZ, _ := smc.LogEvidence(got[6])
			for _, c := range []struct {
				what      string
				got, want []float64
			}{
				{"log pi", got[0], f.LogPi},
				{"log q", got[1], f.LogQ},
				{"weights", got[2], want.Weights},
				{"covariances", got[3], flat3(want.Sigma)},
				{"means", got[4], flat2(want.Mu)},
				{"effective sample size", got[5], []float64{want.ESS}},
				{"log evidence", []float64{logZ}, []float64{want.LogZ}},
			} {
				computetest.Near(t, c.what, c.got, c.want, 1e-10)
			}
			for m, i := range got[7] {
				if int(i)/f.K != m {
					t.Errorf("local resampling gives proposal %d the draw %v, another's", m, i)
				}
			}
		})
	}
}

// fullOf keeps Sigma, [M, D, D], as the family of full covariances does: by an update that forgets what was before.
func fullOf(sigma *Node) compute.Nodes {
	zero := scatter{
		before: OnesLike(Squeeze(Slice(sigma, AxisElem(0), AxisElem(0), AxisElem(0)))),
		rows:   Zeros(sigma.Graph(), sigma.Shape()), less: Zeros(sigma.Graph(), sigma.Shape()),
	}
	zero.weights, zero.less = ReduceSum(zero.rows, 2), ReduceSum(zero.less, 2)
	c, _ := full{}.update(compute.Nodes{covarianceName: sigma}, zero)
	return c
}

func lessMax(l *Node) *Node { return Sub(l, ReduceAllMax(l)) }

func int32s(x []int) []int32 {
	out := make([]int32, len(x))
	for i, v := range x {
		out[i] = int32(v)
	}
	return out
}

func flat2(x [][]float64) (out []float64) {
	for _, row := range x {
		out = append(out, row...)
	}
	return out
}

func flat3(x [][][]float64) (out []float64) {
	for _, m := range x {
		out = append(out, flat2(m)...)
	}
	return out
}
