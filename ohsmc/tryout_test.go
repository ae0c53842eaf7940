package ohsmc_test

import (
	"math"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/compute/random"
	"gobnn/bayes/dataset"
	"gobnn/bayes/density"
	"gobnn/bayes/fit"
	"gobnn/bayes/mcmc"
	"gobnn/bayes/nn"
	"gobnn/bayes/run"
	"gobnn/ohsmc"

	"github.com/gomlx/gomlx/core/graph"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"
)

// The library's proposals as a user's own, so that Guided tries them.
type (
	ownWalk     struct{ ohsmc.Proposal }
	ownLangevin struct{ ohsmc.Langevin }
	ownHMC      struct{ ohsmc.HMC }
)

// madeOf is a proposal by a function.
type madeOf struct {
	gradient bool
	propose  func(rng random.Stream, from mcmc.State, h *graph.Node) ohsmc.Proposed
}

func (p madeOf) NeedsGradient() bool { return p.gradient }
func (madeOf) Check() error          { return nil }
func (p madeOf) Propose(rng random.Stream, from mcmc.State, _ density.Target, h *graph.Node) ohsmc.Proposed {
	return p.propose(rng, from, h)
}

func noise(rng random.Stream, x *Node) *Node { return rng.Normal(x.DType(), x.Shape().Dimensions...) }
func squares(x *Node) *Node                  { return MulScalar(ReduceSum(Square(x), 1), .5) } // [J]
func like(row, x *Node) *Node                { return BroadcastToShape(ExpandAxes(row, 0), x.Shape()) }

// ratio is a LogRatio, [J], that is known before the particles are evaluated.
func ratio(phi, logRatio *Node) ohsmc.Proposed {
	return ohsmc.Proposed{Phi: phi, LogRatio: func(of density.Evaluated, _ *Node) *Node { return of.Of(logRatio) }}
}

// spoilt are the proposals of proposal.go, and others that are right, with faults.
func spoilt(fault string) ohsmc.Proposal {
	crank := func(rng random.Stream, from mcmc.State, h *Node) ohsmc.Proposed {
		shrink := Sqrt(OneMinus(Square(h)))
		phi := Add(Mul(from.Phi, shrink), Mul(noise(rng, from.Phi), h))
		logRatio := Sub(squares(phi), squares(from.Phi))
		switch fault {
		case "crank, no ratio":
			return ohsmc.Proposed{Phi: phi}
		case "crank, ratio swapped":
			logRatio = Neg(logRatio)
		case "crank, ratio halved":
			logRatio = MulScalar(logRatio, .5)
		}
		return ratio(phi, logRatio)
	}
	langevin := func(rng random.Stream, from mcmc.State, h *Node) ohsmc.Proposed {
		z := noise(rng, from.Phi)
		step := Mul(OnesLike(from.Phi), h)
		phi := Add(Add(from.Phi, MulScalar(Mul(Square(step), from.Gradient), .5)), Mul(step, z))
		inRatio := step
		if fault == "Langevin, another step in the ratio" {
			inRatio = MulScalar(step, 1.3)
		}
		return ohsmc.Proposed{Phi: phi, NeedsGradient: true, LogRatio: func(of density.Evaluated, gradient *Node) *Node {
			start, step := of.Of(from.Phi), of.Of(inRatio)
			here := of.Of(phi)
			switch fault {
			case "Langevin, gradient's sign":
				gradient = Neg(gradient)
			case "Langevin, the start's gradient":
				gradient = of.Of(from.Gradient)
			case "Langevin, the likelihood's gradient":
				gradient = of.Gradient
			}
			back := Div(Sub(Sub(start, here), MulScalar(Mul(Square(step), gradient), .5)), step)
			if fault == "Langevin, no forward density" {
				return Neg(squares(back))
			}
			if fault == "Langevin, ratio swapped" {
				return Sub(squares(back), squares(of.Of(z)))
			}
			return Sub(squares(of.Of(z)), squares(back))
		}}
	}
	walk := func(rng random.Stream, from mcmc.State, h *Node) ohsmc.Proposed {
		z := noise(rng, from.Phi)
		width := Mul(OnesLike(from.Phi), h)
		size := func(phi *Node) *Node { return Mul(Sqrt(AddScalar(Square(phi), .5)), h) }
		switch fault {
		case "walk, steps grow with |phi|", "walk, steps grow with |phi|, in the ratio":
			width = size(from.Phi)
		case "walk, a scale of all particles":
			width = Mul(width, BroadcastToShape(ReduceAndKeep(Abs(from.Phi), ReduceMean, 0), z.Shape()))
		case "walk, its own numbers":
			z = noise(random.New(z.Graph(), 7), z)
		case "walk, one number for all":
			z = BroadcastToShape(rng.Normal(z.DType(), 1, z.Shape().Dim(1)), z.Shape())
		case "walk, a step of 20":
			width = MulScalar(OnesLike(z), 20)
		}
		phi := Add(from.Phi, Mul(width, z))
		switch fault {
		case "walk, steps grow with |phi|, in the ratio":
			back := size(phi)
			logs := ReduceSum(Log(Div(width, back)), 1)
			return ratio(phi, Add(Sub(squares(z), squares(Div(Sub(phi, from.Phi), back))), logs))
		case "walk, half of phi' NaN":
			phi = Where(GreaterThan(z, ZerosLike(z)), phi, MulScalar(phi, math.NaN()))
		case "walk, a constant":
			return ratio(phi, AddScalar(ZerosLike(squares(phi)), -.05))
		case "walk, NaN":
			return ratio(phi, MulScalar(squares(phi), math.NaN()))
		case "walk, +Inf":
			return ratio(phi, AddScalar(squares(phi), math.Inf(1)))
		case "walk, ratios of all":
			return ohsmc.Proposed{Phi: phi, LogRatio: func(density.Evaluated, *Node) *Node { return ZerosLike(squares(phi)) }}
		}
		return ohsmc.Proposed{Phi: phi}
	}
	// stretched is a map without random numbers.
	stretched := func(_ random.Stream, from mcmc.State, h *Node) ohsmc.Proposed {
		phi := Mul(from.Phi, OnePlus(h))
		logDet := MulScalar(Mul(Log(OnePlus(h)), OnesLike(squares(phi))), float64(phi.Shape().Dim(1)))
		if fault == "map, no Jacobian" {
			return ohsmc.Proposed{Phi: phi}
		}
		return ratio(phi, logDet)
	}
	// independent draws from N(0, 2^2), whatever phi is.
	independent := func(rng random.Stream, from mcmc.State, _ *Node) ohsmc.Proposed {
		z := noise(rng, from.Phi)
		logRatio := Sub(squares(z), MulScalar(squares(from.Phi), .25))
		if fault == "independent, another constant in q" {
			logRatio = AddScalar(logRatio, 2*math.Log(2))
		}
		return ratio(MulScalar(z, 2), logRatio)
	}
	switch kind, _, _ := strings.Cut(fault, ","); kind {
	case "crank":
		return madeOf{propose: crank}
	case "Langevin":
		return madeOf{gradient: true, propose: langevin}
	case "map":
		return madeOf{propose: stretched}
	case "independent":
		return madeOf{propose: independent}
	}
	return madeOf{propose: walk}
}

// try prepares Guided with a proposal, for a model of six parameters.
func try(t *testing.T, p ohsmc.Proposal) error {
	t.Helper()
	model := bayes.Model{Network: nn.MLP{}, Likelihood: bayes.Gaussian{StdDev: 1}, Stochastic: bayes.All()}
	rows := &dataset.Dataset{
		X: mat.NewDense(2, 5, nil), Y: []float64{0, 1}, Features: strings.Split("abcde", ""), Target: "y",
	}
	data, err := fit.New("ohsmc", model, dataset.Parts{Train: rows})
	if err != nil {
		t.Fatal(err)
	}
	settings, err := run.Settings{}.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	_, err = ohsmc.Guided{Proposal: p}.Prepare(&fit.Job{Settings: settings, Data: data})
	return err
}

// perParameter is a walk with a step size for each of a model's six parameters.
type perParameter struct{ ratio float64 }

func (perParameter) NeedsGradient() bool { return false }
func (perParameter) Check() error        { return nil }
func (p perParameter) Propose(rng random.Stream, from mcmc.State, _ density.Target, h *graph.Node) ohsmc.Proposed {
	z := noise(rng, from.Phi)
	phi := Add(from.Phi, Mul(Mul(z, h), like(Const(z.Graph(), []float32{1, 1, .5, .5, .7, 1}), z)))
	return ratio(phi, MulScalar(squares(from.Phi), p.ratio))
}

// Proposals that are right pass, the library's as a user's own among them: with any backward kernel, as maps, with
// large steps, and with numbers for each of the model's parameters.
func TestTriedGoodProposals(t *testing.T) {
	for name, p := range map[string]ohsmc.Proposal{
		"walk": ownWalk{ohsmc.RandomWalk{}}, "Langevin": ownLangevin{},
		"paper": ownLangevin{ohsmc.Langevin{PaperForm: true}}, "HMC": ownHMC{}, "longer": ownHMC{ohsmc.HMC{Steps: 20}},
		"own walk": spoilt("walk"), "backwards": spoilt("Langevin, gradient's sign"),
		"likelihood": spoilt("Langevin, the likelihood's gradient"), "own Langevin": spoilt("Langevin"),
		"crank": spoilt("crank"), "grow": spoilt("walk, steps grow with |phi|, in the ratio"), "map": spoilt("map"),
		"independent": spoilt("independent"), "step of 20": spoilt("walk, a step of 20"), "per parameter": perParameter{},
	} {
		if err := try(t, p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Proposals that contradict themselves are refused, with what disagrees.
func TestTriedBadProposals(t *testing.T) {
	const mean = "should be 1 in the mean"
	for _, c := range [][]string{
		{"crank, no ratio", mean}, {"crank, ratio swapped", mean}, {"crank, ratio halved", mean},
		{"Langevin, the start's gradient", mean}, {"Langevin, no forward density", mean},
		{"Langevin, ratio swapped", mean}, {"Langevin, another step in the ratio", mean},
		{"walk, steps grow with |phi|", mean}, {"walk, a constant", mean},
		{"walk, NaN", "32768 have weight 0"}, {"walk, +Inf", "32768 have weight 0"},
		{"walk, half of phi' NaN", "have weight 0"},
		{"walk, ratios of all", "LogRatio", "one number for each of these", "of.Of(values)"},
		{"walk, a scale of all particles", "where the other particles are", "each particle for itself"},
		{"walk, its own numbers", "the same in each step", "from rng"},
		{"walk, one number for all", "a row for each particle"},
		{"map, no Jacobian", mean}, {"independent, another constant in q", mean},
	} {
		err := try(t, spoilt(c[0]))
		for _, word := range append(c[1:], "proposal ohsmc_test.madeOf") {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: error %v does not say %q", c[0], err, word)
			}
		}
	}
	err := try(t, perParameter{.1})
	if err == nil || !strings.Contains(err.Error(), "posterior of 6 dimensions") {
		t.Errorf("in the model's dimensions: %v", err)
	}
}
