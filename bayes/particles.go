package bayes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"gobnn/bayes/compute"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
)

// Prune is the posterior without its particles of smallest weight, which together hold at most the given probability
// mass; Prune(0) drops those of weight 0. The others' weights are normalised. Predict evaluates no particle of weight 0
// anyway. Markov chains stay chains if equally many draws of each are left; else the draws count as independent, and
// errors are too small.
func (p *Posterior) Prune(mass float64) (*Posterior, error) {
	if !(mass >= 0 && mass < 1) {
		return nil, fmt.Errorf("bayes: Prune of a mass of %v: it must be at least 0 and below 1", mass)
	}
	weights := p.logWeights.Weights()
	order := make([]int, len(weights))
	floats.ArgsortStable(slices.Clone(weights), order)
	dropped, cut := 0.0, 0
	for cut < len(order)-1 && dropped+weights[order[cut]] <= mass {
		dropped += weights[order[cut]]
		cut++
	}
	if cut == 0 {
		return p, nil
	}
	kept := slices.Sorted(slices.Values(order[cut:]))
	logWeights := make([]float64, len(kept))
	for i, j := range kept {
		logWeights[i] = p.logWeights.At(j)
	}
	return p.picked(kept, logWeights, p.chainsOf(kept))
}

// chainsOf is the number of chains of the kept particles, ascending: 0 if these are not from chains, or not equally
// many from each.
func (p *Posterior) chainsOf(kept []int) int {
	if p.chains == 0 || len(kept)%p.chains != 0 {
		return 0
	}
	for i, j := range kept {
		if j/(p.Particles()/p.chains) != i/(len(kept)/p.chains) {
			return 0
		}
	}
	return p.chains
}

// Thin keeps every n-th draw of each chain, the last one included; if the particles are not from chains, every n-th
// particle. Use it for strongly autocorrelated chains: fewer particles then predict nearly as well at a part of the
// cost.
func (p *Posterior) Thin(every int) (*Posterior, error) {
	chains := max(p.chains, 1)
	draws := p.Particles() / chains
	if every < 1 || every > draws {
		return nil, fmt.Errorf("bayes: Thin to every %d-th of %d draws: it must lie between 1 and %d", every, draws, draws)
	}
	var kept []int
	var logWeights []float64
	for chain := range chains {
		for draw := (draws - 1) % every; draw < draws; draw += every {
			j := chain*draws + draw
			kept, logWeights = append(kept, j), append(logWeights, p.logWeights.At(j))
		}
	}
	return p.picked(kept, logWeights, p.chains)
}

// Resample draws n particles with probabilities equal to their weights, by systematic resampling: particle j is drawn n
// w_j times, rounded up or down. The n particles have equal weights. Use it where draws of equal weight are needed; to
// predict, the weighted particles are better.
//
// Of C Markov chains each gives n/C draws, in their order, and they stay chains: errors are then still those of
// autocorrelated draws. It is an error if C does not divide n, or if the chains' weights differ.
func (p *Posterior) Resample(n int, seed uint64) (*Posterior, error) {
	if n < 1 {
		return nil, fmt.Errorf("bayes: Resample to %d particles: there must be at least 1", n)
	}
	chains := max(p.chains, 1)
	if n%chains != 0 {
		return nil, fmt.Errorf("bayes: Resample to %d particles of %d chains: each chain must give equally many, or their "+
			"autocorrelation would be forgotten and errors be too small: take a multiple of %d, such as %d", n, chains, chains,
			(n/chains+1)*chains)
	}
	weights := p.logWeights.Weights()
	draws, each := len(weights)/chains, n/chains
	u := rand.New(rand.NewPCG(seed, 0x5245534d)).Float64()
	kept := make([]int, 0, n)
	for chain := range chains {
		own := weights[chain*draws : (chain+1)*draws]
		share := 1.
		if chains > 1 {
			share = floats.Sum(own)
		}
		if math.Abs(share*float64(chains)-1) > 1e-6 && p.chains > 0 {
			return nil, fmt.Errorf("bayes: Resample of %d chains: chain %d has the weight %.4g and not 1/%d, so that equally "+
				"many draws of each are no draws of the posterior: predict with the weighted particles", chains, chain, share,
				chains)
		}
		for _, j := range systematic(own, share, each, u) {
			kept = append(kept, chain*draws+j)
		}
	}
	return p.picked(kept, EqualLogWeights(n), p.chains)
}

// systematic draws n indices, ascending, with probabilities equal to the weights over their sum: index j n w_j times,
// rounded up or down. u, from 0 to 1, is the random number.
func systematic(weights []float64, sum float64, n int, u float64) []int {
	last := len(weights) - 1
	for weights[last] == 0 {
		last--
	}
	drawn := make([]int, n)
	j, below := 0, weights[0]
	for i := range drawn {
		for below <= sum*(float64(i)+u)/float64(n) && j < last {
			j++
			below += weights[j]
		}
		drawn[i] = j
	}
	return drawn
}

// picked is the posterior of the given particles alone, with the given log-weights.
func (p *Posterior) picked(particles []int, logWeights []float64, chains int) (*Posterior, error) {
	copied, err := p.copies()
	if err != nil {
		return nil, err
	}
	phi := tensors.FromShape(shapeOf(p.phi, []int{len(particles), p.bound.D}))
	if err := copyRows(phi, p.phi, particles, p.bound.D); err != nil {
		return nil, err
	}
	return NewPosterior(p.bound, Draws{
		Phi: phi, Psi: copied[1], LinearisedAt: copied[2], LogWeights: logWeights,
		Chains: chains, Evidence: p.evidence, Diagnostics: p.diagnostics,
	}, p.origin)
}

// Join pools the particles of several runs. Each run is weighted by its evidence, so that a run that found a better
// mode counts for more. All must be posteriors of the same model given the same data, with the same shared parameters,
// and have an estimate of the evidence; the same run twice is an error. The joined evidence is the mean of the runs'
// evidences p(y). A posterior that is joined already counts for all of its runs, Provenance.Runs, so that runs may be
// joined in any order. For runs without an evidence use JoinWeighted.
func Join(posteriors ...*Posterior) (*Posterior, error) {
	logWeights, runs := make([]float64, len(posteriors)), 0
	for i, p := range posteriors {
		if p == nil {
			return nil, fmt.Errorf("bayes: Join: posterior %d is nil", i)
		}
		if !p.evidence.Known() {
			return nil, fmt.Errorf("bayes: Join: posterior %d, of %q, does not know its evidence: use JoinWeighted, with a "+
				"weight for each posterior",
				i, p.origin.Provenance.Algorithm)
		}
		if a, b := posteriors[0].origin.Provenance, p.origin.Provenance; a.DataHash != b.DataHash {
			return nil, fmt.Errorf("bayes: Join: posterior %d is given the data %q (%s), the first %q (%s): their evidences "+
				"cannot be compared",
				i, b.Data, b.DataHash, a.Data, a.DataHash)
		}
		for k, other := range posteriors[:i] {
			same, err := p.shares(other)
			if err != nil {
				return nil, err
			}
			if same {
				return nil, fmt.Errorf("bayes: Join: posteriors %d and %d, of the seeds %d and %d, are of the same run: copies "+
					"would make the evidence look surer than it is; give each run a seed of its own", k, i,
					other.origin.Provenance.Seed, p.origin.Provenance.Seed)
			}
		}
		own := p.origin.Provenance.runs()
		logWeights[i] = p.evidence.Value + math.Log(float64(own)) // that of the sum of its runs
		runs += own
	}
	joined, err := join(logWeights, posteriors)
	if err != nil {
		return nil, err
	}
	sum, variance := floats.LogSumExp(logWeights), 0.0
	joined.evidence.Value = sum - math.Log(float64(runs))
	for i, p := range posteriors {
		share := math.Exp(logWeights[i]-sum) * p.evidence.StdErr
		variance += share * share
	}
	joined.evidence.StdErr = math.Sqrt(variance)
	return joined, nil
}

// shares says whether all particles of one of two posteriors are among the other's, one after another: it is a copy, or
// the other is joined of it and more.
func (p *Posterior) shares(other *Posterior) (bool, error) {
	few, many, d := p, other, p.bound.D
	if few.Particles() > many.Particles() {
		few, many = many, few
	}
	if few.bound.D != many.bound.D {
		return false, nil
	}
	part, err := compute.Float64s(few.phi)
	if err != nil {
		return false, err
	}
	whole, err := compute.Float64s(many.phi)
	if err != nil {
		return false, err
	}
	for from := 0; from+len(part) <= len(whole); from += d {
		if slices.Equal(whole[from:from+len(part)], part) {
			return true, nil
		}
	}
	return false, nil
}

// JoinWeighted pools the particles of several runs with the given weights: one for each run, not negative; they need
// not sum to 1. Chains of equal length and weight stay chains; others count as independent draws, and errors are too
// small.
func JoinWeighted(weights []float64, posteriors ...*Posterior) (*Posterior, error) {
	if len(weights) != len(posteriors) {
		return nil, fmt.Errorf("bayes: JoinWeighted: %d weights for %d posteriors", len(weights), len(posteriors))
	}
	logWeights := make([]float64, len(weights))
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			return nil, fmt.Errorf("bayes: JoinWeighted: the weight of posterior %d is %v: it must be finite and not negative",
				i, w)
		}
		logWeights[i] = math.Log(w)
	}
	return join(logWeights, posteriors)
}

// joinedOf stands in the algorithm of joined runs, after their number.
const joinedOf = " runs joined, the first "

func join(logWeights []float64, posteriors []*Posterior) (*Posterior, error) {
	if len(posteriors) == 0 {
		return nil, errors.New("bayes: there are no posteriors to join")
	}
	first := posteriors[0]
	var phi, all []float64
	var provenances []Provenance
	chains, perChain, runs := 0, 0, 0
	chained := true
	for i, p := range posteriors {
		if err := first.joins(p); err != nil {
			return nil, fmt.Errorf("bayes: posterior %d cannot be joined with the first: %w", i, err)
		}
		values, err := compute.Float64s(p.phi)
		if err != nil {
			return nil, err
		}
		phi = append(phi, values...)
		for _, l := range p.normalisedLogWeights() {
			all = append(all, logWeights[i]+l)
		}
		provenances = append(provenances, p.origin.Provenance)
		runs += p.origin.Provenance.runs()
		if p.chains == 0 || i > 0 && p.Particles()/p.chains != perChain || math.Abs(all[len(all)-1]-all[0]) > 1e-9 {
			chained = false
		} else {
			chains, perChain = chains+p.chains, p.Particles()/p.chains
		}
	}
	if !chained {
		chains = 0
	}
	copied, err := first.copies()
	if err != nil {
		return nil, err
	}
	origin := first.Origin()
	from := &origin.Provenance
	_, algorithm, nested := strings.Cut(from.Algorithm, joinedOf)
	if from.Runs == 0 || !nested {
		algorithm = from.Algorithm
	}
	from.Algorithm, from.Runs = fmt.Sprint(runs, joinedOf, algorithm), runs
	from.Created, from.Versions = provenances[0].Created, provenances[0].Versions
	var approximations []string
	for _, p := range provenances {
		if p.DataHash != from.DataHash {
			from.Data, from.DataHash, from.Rows = "of several runs", "", 0
		}
		if a := p.Approximation; a != "" && !slices.Contains(approximations, a) {
			approximations = append(approximations, a)
		}
	}
	from.Approximation = strings.Join(approximations, "; ")
	if from.Settings, err = json.Marshal(map[string]any{"joined": provenances}); err != nil {
		return nil, fmt.Errorf("bayes: writing the provenance of the joined posteriors: %w", err)
	}
	return NewPosterior(first.bound, Draws{
		Phi: compute.Floats(first.phi.DType(), phi, len(all), first.bound.D), Psi: copied[1], LinearisedAt: copied[2],
		LogWeights: all, Chains: chains,
	}, origin)
}

// joins is an error if the particles of another posterior cannot be pooled with those of p.
func (p *Posterior) joins(other *Posterior) error {
	if other == nil {
		return errors.New("it is nil")
	}
	a, err := json.Marshal(p.bound.Model)
	if err != nil {
		return err
	}
	b, err := json.Marshal(other.bound.Model)
	if err != nil {
		return err
	}
	same := func(what string, a, b any) error {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return fmt.Errorf("its %s is %v, not %v", what, b, a)
	}
	named := func(what string, a, b []string) error { // without names on both sides nothing can be compared
		if a == nil || b == nil {
			return nil
		}
		return same(what, a, b)
	}
	for _, err := range []error{
		same("model", string(a), string(b)),
		same("number of features", p.bound.Inputs, other.bound.Inputs),
		same("number of outputs", p.bound.Outputs, other.bound.Outputs),
		same("type of number", p.phi.DType(), other.phi.DType()),
		same("likelihood's power", p.origin.Provenance.Power(), other.origin.Provenance.Power()),
		same("scaler of features", p.origin.Features, other.origin.Features),
		same("scaler of the target", p.origin.Target, other.origin.Target),
		same("classes", p.origin.Classes, other.origin.Classes),
		named("order of features", p.origin.FeatureNames, other.origin.FeatureNames),
		named("order of targets", p.origin.TargetNames, other.origin.TargetNames),
	} {
		if err != nil {
			return err
		}
	}
	for _, c := range []struct {
		what string
		a, b *tensors.Tensor
	}{{"shared parameters", p.psi, other.psi}, {"point of linearisation", p.expansionPoint, other.expansionPoint}} {
		if (c.a == nil) != (c.b == nil) || c.a != nil && !c.a.Equal(c.b) {
			return fmt.Errorf("it differs in the %s", c.what)
		}
	}
	return nil
}
