package particles

import (
	"gobnn/bayes/compute"
	"gobnn/bayes/density"
	"gobnn/bayes/run"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// validation is the program that scores the particles on the validation part and keeps the best.
type validation struct {
	*Core
	likelihood density.Likelihood
	program    *compute.Program
}

func newValidation(c *Core, rows int) (*validation, error) {
	plan, err := planOf(c.Bound, c.Training, c.Settings, rows, true)
	if err != nil {
		return nil, err
	}
	v := &validation{Core: c, likelihood: density.Likelihood{Model: c.Bound, Plan: plan}}
	best := run.BestEntries(c.kept()...)
	reads := append(append(c.kept(), best...), "valid_x", "valid_y")
	v.program, err = compute.NewProgram(c.Engine, "particles validation", reads, best, v.step)
	return v, err
}

// step computes NLPD = -mean_n log sum_j w_j p(y_n | phi_j; psi) and keeps the state if it is the lowest so far. The
// record is the NLPD.
func (v *validation) step(s compute.Nodes, _ []*Node) (compute.Nodes, *Node) {
	batch := density.Batch{X: s["valid_x"], Y: s["valid_y"]}
	density := v.likelihood.LogPredictive(s[phiName], s[psiName], s[weightsName], batch)
	nlpd := Neg(ReduceAllMean(ConvertDType(density, dtypes.Float64)))
	return run.KeepBest(s, nlpd, nil, v.kept()...), Reshape(nlpd, 1)
}
