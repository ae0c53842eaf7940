package mcmc

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/stat"
)

// moment is the exact mean and standard deviation of a function of phi.
type moment struct {
	name     string
	of       func(phi []float64) float64
	mean, sd float64
}

// checkMoments compares the draws with exact moments. Chains are independent, so the spread of their means gives a
// right standard error.
func checkMoments(t *testing.T, draws *Draws, chains, perChain int, moments []moment) {
	t.Helper()
	for _, m := range moments {
		var means, squares []float64
		for chain := range chains {
			mean, square := 0.0, 0.0
			for i := range perChain {
				e := m.of(draws.At(chain, i)) - m.mean
				mean += e / float64(perChain)
				square += e * e / float64(perChain)
			}
			means, squares = append(means, mean), append(squares, square)
		}
		for _, c := range []struct {
			what   string
			values []float64
			want   float64
		}{{"mean", means, 0}, {"variance", squares, m.sd * m.sd}} {
			mean, sd := stat.MeanStdDev(c.values, nil)
			if z := (mean - c.want) / (sd / math.Sqrt(float64(chains))); !(math.Abs(z) <= zMax) {
				t.Errorf("%s: the %s is off by %.3g, %.1f standard errors", m.name, c.what, mean-c.want, z)
			}
			if c.what == "mean" && !(sd < m.sd) {
				t.Errorf("%s: the chains' means spread by %.3g, the posterior by %.3g: this tests little", m.name, sd, m.sd)
			}
		}
	}
}

// The eight schools (Rubin 1981; Gelman et al. 2013, section 5.5): effects y with standard errors sigma; theta ~ N(mu,
// tau^2), mu ~ N(0, 5^2), tau ~ half-Cauchy(5).
var (
	schoolsY     = []float64{28, 8, -3, 7, -1, 1, 18, 12}
	schoolsSigma = []float64{15, 10, 16, 11, 9, 11, 10, 18}
)

// schoolsMoments integrates mu and theta analytically and tau by the trapezoid rule in log tau. phi is (mu, log tau,
// (theta - mu)/tau).
func schoolsMoments() []moment {
	n := len(schoolsY)
	first, second := make([]float64, n+2), make([]float64, n+2) // of theta, mu, tau
	total := 0.0
	for u := -25.0; u < 15; u += .01 {
		tau := math.Exp(u)
		precision, weighted, log := 1./25, 0., u-math.Log1p(tau*tau/25)
		for j, y := range schoolsY {
			v := schoolsSigma[j]*schoolsSigma[j] + tau*tau
			precision += 1 / v
			weighted += y / v
			log -= (math.Log(v) + y*y/v) / 2
		}
		mu := weighted / precision
		log += (mu*mu*precision - math.Log(precision)) / 2
		weight := math.Exp(log + 30)
		total += weight
		add := func(k int, mean, variance float64) {
			first[k] += weight * mean
			second[k] += weight * (mean*mean + variance)
		}
		for j, y := range schoolsY {
			s2 := schoolsSigma[j] * schoolsSigma[j]
			shrink := s2 / (s2 + tau*tau) // towards mu
			add(j, (1-shrink)*y+shrink*mu, tau*tau*shrink+shrink*shrink/precision)
		}
		add(n, mu, 1/precision)
		add(n+1, tau, 0)
	}
	var moments []moment
	for k := range first {
		m := moment{
			name: fmt.Sprintf("theta %d", k+1), of: func(phi []float64) float64 { return phi[0] + math.Exp(phi[1])*phi[2+k] },
		}
		if k == n {
			m.name, m.of = "mu", func(phi []float64) float64 { return phi[0] }
		} else if k == n+1 {
			m.name, m.of = "tau", func(phi []float64) float64 { return math.Exp(phi[1]) }
		}
		m.mean = first[k] / total
		m.sd = math.Sqrt(second[k]/total - m.mean*m.mean)
		moments = append(moments, m)
	}
	return moments
}

func schools() density.Problem {
	return density.Problem{Name: "eight schools", Dim: 10, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node {
			mu, u, eta := Slice(
				phi, AxisRange(), AxisRange(0, 1),
			), Slice(phi, AxisRange(), AxisRange(1, 2)), Slice(phi, AxisRange(), AxisRange(2))
			tau := Exp(u)
			theta := Add(mu, Mul(tau, eta))
			residual := Div(Sub(row(eta, schoolsY), theta), row(eta, schoolsSigma))
			log := MulScalar(ReduceSum(Add(Square(residual), Square(eta)), 1), -.5)
			log = Sub(log, Squeeze(DivScalar(Square(mu), 50), 1))
			return Add(log, Squeeze(Sub(u, Log1P(DivScalar(Square(tau), 25))), 1))
		})
	}}
}

func TestNUTSPosteriors(t *testing.T) {
	posteriorsByNUTS(t, onNUTS{schools(), schoolsMoments(), computetest.Go(t), compute.Float32})
}

// onNUTS is a posterior whose moments are known.
type onNUTS struct {
	problem density.Problem
	moments []moment
	engine  *compute.Engine
	dtype   compute.DType
}

func posteriorsByNUTS(t *testing.T, cases ...onNUTS) {
	t.Helper()
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s/%s/%s", c.problem.Name, c.engine.Name(), c.dtype), func(t *testing.T) {
			chains, s := Chains{Chains: 60, Draws: 80, WarmUp: 100}, run.Settings{Seed: 1, DType: c.dtype, Engine: c.engine}
			if testing.Short() {
				chains.Chains, chains.Draws = 30, 40
			}
			_, result := sample(t, c.problem, with(chains, NUTS{MaxDepth: 7}), s)
			checkMoments(t, result.Draws, chains.Chains, chains.Draws, c.moments)
			acceptance := 0.0
			for _, chain := range result.Stats {
				acceptance += chain.Acceptance / float64(chains.Chains)
			}
			if math.Abs(acceptance-.8) > .1 {
				t.Errorf("mean acceptance %.3f, want about 0.8", acceptance)
			}
		})
	}
}

// Neal's funnel (2003, section 8): at the neck a fixed step diverges, which is counted, and the chains go on. Where
// every trajectory diverges there is no posterior.
func TestNUTSDivergences(t *testing.T) {
	const d = 5
	funnel := density.Problem{Name: "funnel", Dim: d, Target: func(compute.Nodes, []*Node) density.Target {
		return density.Func(func(phi *Node) *Node {
			v := Squeeze(Slice(phi, AxisRange(), AxisRange(0, 1)), 1)
			x := ReduceSum(Square(Slice(phi, AxisRange(), AxisRange(1))), 1)
			return MulScalar(Add(Add(DivScalar(Square(v), 9), Mul(x, Exp(Neg(v)))), MulScalar(v, d-1)), -.5)
		})
	}}
	chains, s := Chains{Chains: 10, Draws: 200, WarmUp: NoWarmUp}, run.Settings{Engine: computetest.Go(t)}
	_, result := sample(t, funnel, with(chains, NUTS{StepSize: .6, MaxDepth: 6}), s)
	divergences, moved := 0, 0
	for _, c := range result.Stats {
		divergences += c.Divergences
		moved += c.Accepted
	}
	if all := chains.Chains * chains.Draws; divergences < 5 || divergences > all/4 || moved < all/2 {
		t.Errorf("of %d transitions %d diverged and %d moved", all, divergences, moved)
	}
	_, err := fit.Sample(t.Context(), funnel, with(chains, NUTS{StepSize: 1e4, MaxDepth: 6}), s)
	if !errors.Is(err, ErrStuck) {
		t.Errorf("a step size of 10 000: error %v is not ErrStuck", err)
	}
}
