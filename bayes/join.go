package bayes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Join is one posterior of several runs of a method on the same data, from different seeds: the particles of all, one
// run after another.
//
//   - Markov chains of equal length are then the chains of one run, which package diag compares with each other.
//   - Runs that estimate the evidence, as SMC and importance sampling do, are islands (Vergé, Dubarry, Del Moral and
//     Moulines 2015) that never met: each weighs by its own estimate Z_m. Where the Z_m are unbiased (a fixed ladder
//     and kernel), so are the joined evidence, their mean, and the weighted sums. Its standard error is by the spread
//     of the Z_m. Diagnostics has [IslandsESS].
//   - Of other runs, such as those of ensembles, each counts alike.
func Join(runs ...*Posterior) (*Posterior, error) {
	if len(runs) == 0 || slices.Contains(runs, nil) {
		return nil, errors.New("bayes: Join needs posteriors")
	}
	first := runs[0]
	for i, p := range runs[1:] {
		if err := first.joins(p); err != nil {
			return nil, fmt.Errorf("bayes: Join: run %d does not go with run 1: %w", i+2, err)
		}
	}
	copied, err := clones(first.psi, first.expansionPoint)
	if err != nil {
		return nil, err
	}
	draws := Draws{Psi: copied[0], LinearisedAt: copied[1]}
	weighs, total := first.chains == 0 && first.evidence.Known(), 0
	logs := make([]float64, len(runs)) // of the runs' weights
	for m, p := range runs {
		switch {
		case weighs:
			logs[m] = p.evidence.Value
		case p.chains > 0:
			logs[m] = math.Log(float64(p.Particles()))
		}
		draws.Chains += p.chains
		total += p.Particles()
	}
	most := floats.LogSumExp(logs)
	for m, p := range runs {
		for _, w := range p.logWeights {
			draws.LogWeights = append(draws.LogWeights, w+logs[m]-most)
		}
	}
	if weighs {
		shares := make([]float64, len(runs)) // Z_m over their mean
		for m, z := range logs {
			shares[m] = math.Exp(z-most) * float64(len(runs))
		}
		draws.Evidence = Evidence{Value: most - math.Log(float64(len(runs))),
			StdErr: stat.StdDev(shares, nil) / math.Sqrt(float64(len(runs)))}
		if len(runs) == 1 {
			draws.Evidence = first.evidence
		}
		draws.Diagnostics = map[string]float64{
			IslandsESS: float64(len(runs)*len(runs)) / floats.Dot(shares, shares)}
	}
	draws.Phi = tensors.FromShape(shapeOf(first.phi, []int{total, first.bound.D}))
	from := 0
	for _, p := range runs {
		if err := copyBytes(draws.Phi, p.phi, func(target, source []byte, size int) {
			copy(target[from*first.bound.D*size:], source)
		}); err != nil {
			return nil, err
		}
		from += p.Particles()
	}
	origin := first.Origin()
	seeds := make([]uint64, len(runs))
	origin.Provenance.Warnings = nil
	for m, p := range runs {
		seeds[m] = p.origin.Provenance.Seed
		for _, w := range p.origin.Provenance.Warnings {
			origin.Provenance.Warnings = append(origin.Provenance.Warnings, fmt.Sprintf("run %d: %s", m+1, w))
		}
		if p.origin.Provenance.Status != origin.Provenance.Status {
			origin.Provenance.Status = "some runs: " + p.origin.Provenance.Status
		}
	}
	origin.Provenance.Settings, err = json.Marshal(map[string]any{"joined seeds": seeds,
		"settings": origin.Provenance.Settings})
	if err != nil {
		return nil, err
	}
	return NewPosterior(first.bound, draws, origin)
}

// IslandsESS is the entry of Posterior.Diagnostics for the effective number of joined runs that weigh by their
// evidence: as many as there are if all estimates agree, and 1 if one run has all the weight.
const IslandsESS = "effective number of islands"

// joins is an error if the runs are not of one model and data, or are the same run.
func (p *Posterior) joins(q *Posterior) error {
	models := [2][]byte{}
	for i, r := range []*Posterior{p, q} {
		text, err := json.Marshal([]any{r.bound.Model, r.origin.Extractor})
		if err != nil {
			return err
		}
		models[i] = text
	}
	a, b := p.origin.Provenance, q.origin.Provenance
	switch {
	case !bytes.Equal(models[0], models[1]) || p.bound.D != q.bound.D || p.bound.W != q.bound.W:
		return errors.New("its model is another")
	case a.DataHash != b.DataHash:
		return errors.New("it was trained on other rows")
	case a.Algorithm != b.Algorithm || a.Power() != b.Power() || a.Approximation != b.Approximation:
		return fmt.Errorf("its method is %s, of the other %s", b.Algorithm, a.Algorithm)
	case a.Seed == b.Seed && a.DataHash != "":
		return fmt.Errorf("both have seed %d, so that their draws are the same", a.Seed)
	case p.phi.DType() != q.phi.DType():
		return fmt.Errorf("its particles are of type %s, of the other %s", q.phi.DType(), p.phi.DType())
	case (p.chains == 0) != (q.chains == 0) || p.chains > 0 && p.Particles()*q.chains != q.Particles()*p.chains:
		return fmt.Errorf("its %d particles are of %d chains, those of the other %d of %d: chains must have one length",
			q.Particles(), q.chains, p.Particles(), p.chains)
	case p.chains == 0 && p.evidence.Known() != q.evidence.Known():
		return fmt.Errorf("its evidence is %s, of the other %s", q.evidence, p.evidence)
	}
	for _, pair := range [][2]*tensors.Tensor{{p.psi, q.psi}, {p.expansionPoint, q.expansionPoint}} {
		if (pair[0] == nil) != (pair[1] == nil) || pair[0] != nil && !pair[0].Equal(pair[1]) {
			return errors.New("its shared parameters (or its point of linearisation) are others, and a posterior has one set: " +
				"train them once, and begin the runs there (fit.From)")
		}
	}
	return nil
}
