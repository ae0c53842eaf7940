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
// with what it would say after all states; where they are not it goes on. Its cost has the warm-ups. Student's t with 3
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
			problem.Part = func(rows int, _ []float64) (Part, error) {
				return Part{
					Rows: rows, Of: 1000, Name: "the same", Target: func(compute.Nodes) density.Target { return c.target },
				}, nil
			}
			w, err := whiteningOf(t.Context(), problem, make([]float64, d), engine)
			if err != nil {
				t.Fatal(err)
			}
			p := pilotOf(t, problem, w, 2, engine, .1)
			if p.states != c.states || !strings.HasPrefix(p.Reason, c.reason) || (p.Rows > 0) != (c.states > 40) {
				t.Errorf("%d states, %d rows: %s", p.states, p.Rows, p)
			}
			// Of each step that was tried 10 transitions of 4 chains and 10 before; of the last 50 more.
			want := 0
			for _, kernel := range pilotSteps {
				want += 20 * 4 * kernel.Steps
				if kernel.StepSize == p.target.StepSize {
					break
				}
			}
			if c.states > 40 {
				want += 50 * 4 * p.target.Steps
			}
			if p.cost.FullGradients != want {
				t.Errorf("%d gradients, want %d: %+v", p.cost.FullGradients, want, p.target)
			}
		})
	}
}
