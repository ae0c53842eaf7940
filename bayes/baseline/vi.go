package baseline

import (
	"context"
	"fmt"
	"math"

	"gobnn/bayes"
	"gobnn/bayes/compute"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/fit"
	"gobnn/bayes/limits"
	"gobnn/bayes/nn"

	. "github.com/gomlx/gomlx/core/graph"
)

// VI is mean-field variational inference by reparameterised gradients (Graves 2011; Blundell, Cornebise, Kavukcuoglu
// and Wierstra 2015, "Bayes by backprop"). The stochastic parameters have q(phi) = N(mu, diag sigma^2) with sigma =
// log(1 + exp rho); the shared parameters psi are a point. mu, rho and psi maximise the evidence lower bound together,
// as in Zhao et al. 2024. A draw is phi = mu + sigma z (Kingma and Welling 2014); each step evaluates Draws of them as
// particles. The Kullback-Leibler divergence from a Normal prior is exact; from any other prior it is estimated from
// the draws.
//
// One draw serves all rows of a batch. Kingma, Salimans and Welling 2015 and Wen, Vicol, Ba, Tran and Grosse 2018 draw
// separately for each row, and need one draw a step; here particles are cheap, and more Draws reduce the gradient's
// variance as well.
type VI struct {
	Training      `json:"training,omitzero"`
	Draws         int     `json:"draws"`           // S, of each step; default 10. Zhao et al. take 100
	Samples       int     `json:"samples"`         // particles of the posterior, and of each validation; default 100
	InitialStdDev float64 `json:"initial_std_dev"` // starting value of every sigma; default 0.1
	// ZeroMean starts every mu at 0, as Zhao et al. do, with an InitialStdDev of 1; by default mu starts at draws of the
	// parameters' initialisers, since a network with all layers stochastic and all mu = 0 would begin at a saddle point.
	ZeroMean bool `json:"zero_mean"`
}

var _ fit.Method = VI{}

// Title implements fit.Method.
func (VI) Title() string {
	return "mean-field variational inference, reparameterised (Blundell et al. 2015)"
}

// Prepare implements fit.Method.
func (m VI) Prepare(j *fit.Job) (_ fit.Method, err error) {
	if m.Training, err = m.Training.Prepared("baseline", j.Rows()); err != nil {
		return nil, err
	}
	decay := m.Optimiser.WeightDecay
	return m, limits.Fill("baseline: VI",
		limits.Int("Draws", &m.Draws, 10).From(1),
		limits.Int("Samples", &m.Samples, 100).From(1),
		limits.Float("InitialStdDev", &m.InitialStdDev, 0.1).Positive(),
		limits.Field("Optimiser.WeightDecay", decay, decay == 0,
			"0: it would pull every rho to 0, and so every sigma to 0.69; the prior is what holds the weights"),
	)
}

// Run implements fit.Method.
func (m VI) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	family := meanField{m.InitialStdDev, m.ZeroMean, j.Bound, j.DType}
	return fitFamily(ctx, j, m.Training, family, m.Draws, m.Samples)
}

// meanField is the variational family: lambda is mu and rho, [2 D].
type meanField struct {
	initialStdDev float64
	zeroMean      bool
	bound         *bayes.BoundModel
	dtype         compute.DType
}

func (f meanField) name() string {
	return fmt.Sprintf("mean-field normal, initial %v, zero mean %t", f.initialStdDev, f.zeroMean)
}
func (f meanField) width() int { return 2 * f.bound.D }

func (f meanField) initial(rng random.Stream) *Node {
	mu := initialStochastic(f.bound, rng, f.dtype)
	if f.zeroMean {
		mu = ZerosLike(mu)
	}
	rho := BroadcastToShape(ConstAs(mu, math.Log(math.Expm1(f.initialStdDev))), mu.Shape())
	return Concatenate([]*Node{mu, rho}, 0)
}

// moments returns mu and sigma, [D].
func (f meanField) moments(lambda *Node) (mu, sigma *Node) {
	rho := Slice(lambda, AxisRange(f.bound.D))
	return Slice(lambda, AxisRange(0, f.bound.D)), nn.Softplus.Apply(nil, nn.Value{Node: rho}).Node
}

func (f meanField) draw(lambda *Node, rng random.Stream, count int) *Node {
	mu, sigma := f.moments(lambda)
	z := rng.Normal(f.dtype, count, f.bound.D)
	return Add(ExpandAxes(mu, 0), Mul(ExpandAxes(sigma, 0), z))
}

func (f meanField) negativeKL(lambda, phi *Node) *Node {
	mu, sigma := f.moments(lambda)
	entropy := AddScalar(ReduceAllSum(Log(sigma)), 0.5*float64(f.bound.D)*math.Log(2*math.Pi*math.E))
	if _, normal := f.bound.Model.Prior.(bayes.Normal); !normal {
		return Add(ReduceAllMean(f.bound.LogPrior(phi)), entropy)
	}
	// E_q log N(phi; 0, s^2) is the density at mu, less sigma^2 / (2 s^2) for each coordinate.
	spread := Div(sigma, ConvertDType(Const(sigma.Graph(), f.bound.Scales()), f.dtype))
	atMean := Reshape(f.bound.LogPrior(ExpandAxes(mu, 0)))
	return Add(Sub(atMean, MulScalar(ReduceAllSum(Square(spread)), 0.5)), entropy)
}
