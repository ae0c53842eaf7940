package surrogate

import (
	"strings"
	"testing"

	"gobnn/bayes/compute"
	"gobnn/bayes/compute/computetest"
	"gobnn/bayes/density"

	. "github.com/gomlx/gomlx/core/graph"
)

// Where the chains that look for a step are clearly outside the ball of the Laplace approximation the pilot ends there,
// with what it would say after all states; where they are not it goes on. Student's t with 3
// degrees of freedom has the curvature 4/3 at its mode and the variance 3, so that |z|^2/D is about 4.
func TestPilotEndsEarly(t *testing.T) {
	const d = 50
	engine := computetest.Go(t)
	student := density.Func(func(phi *Node) *Node {
		return MulScalar(ReduceSum(Log(AddScalar(DivScalar(Square(phi), 3), 1)), 1), -2)
	})
	for name, c := range map[string]struct {
		target density.Target
		states int
		reason string
	}{
		"wide":     {student, 40, "surrogate off: |z|^2/D is"},
		"Gaussian": {normalAt(0, 1), 200, "surrogate on"},
	} {
		t.Run(name, func(t *testing.T) {
			problem := problemOf(d, c.target)
			problem.Rows = 1000
			problem.part = func(rows int, _ []float64) (subset, error) {
				return subset{
					rows: rows, of: 1000, name: "the same", target: func(compute.Nodes) density.Target { return c.target },
				}, nil
			}
			w, err := whitenedAt(t.Context(), problem, make([]float64, d), engine)
			if err != nil {
				t.Fatal(err)
			}
			p := pilotOf(t, problem, w, 2, engine, .1)
			if p.states != c.states || !strings.HasPrefix(p.reason, c.reason) || (p.best >= 0) != (c.states > 40) {
				t.Errorf("%d states: %s", p.states, p.reason)
			}
		})
	}
}
