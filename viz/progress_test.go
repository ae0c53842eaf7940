package viz

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/run"
)

func TestProgressOutsideNotebook(t *testing.T) {
	var out strings.Builder
	p := newProgress("training", &out)
	if got := out.String(); !strings.HasSuffix(got, "training: compiling") {
		t.Errorf("before the first step %q", got)
	}
	p.Update(1, 2, "half")
	p.Update(2, 2, "done")
	if got := out.String(); !strings.Contains(got, "training: 1 of 2: half") ||
		!strings.HasSuffix(got, "training: 2 of 2: done\n") {
		t.Errorf("got %q", got)
	}
}

// A run that does not know how many steps it takes, such as up a ladder that is found on the way, shows no total, and
// its line does not end with each of them.
func TestProgressWithoutTotal(t *testing.T) {
	var out strings.Builder
	p := newProgress("bridge", &out)
	p.Update(4, 0, "power 0.5")
	if got := out.String(); !strings.HasSuffix(got, "bridge: 4: power 0.5") {
		t.Errorf("got %q", got)
	}
	if got := bar("bridge", 4, 0, "<"); got != "bridge <progress></progress> 4: &lt;" {
		t.Errorf("in a notebook %q", got)
	}
	if got := bar("bridge", 0, 0, "compiling"); got != "bridge <progress></progress> compiling" {
		t.Errorf("in a notebook %q before the first step", got)
	}
	if got := bar("bridge", 4, 8, ""); got != `bridge <progress value="4" max="8"></progress> 4 of 8: ` {
		t.Errorf("in a notebook %q", got)
	}
}

func TestShow(t *testing.T) {
	var out strings.Builder
	p := newProgress("sampling", &out)
	scores := []run.Score{{Name: "acceptance", Value: .65}, {Name: "step size", Value: .01},
		{Name: "R-hat", Value: math.NaN()}}
	p.Show(run.Progress{Stage: "draws", Step: 3, Steps: 9, Elapsed: 5400 * time.Millisecond,
		Remaining: 61600 * time.Millisecond, Scores: scores})
	if want := "sampling: 3 of 9: draws, acceptance 0.65, step size 0.01, 5s so far, 1m2s left"; !strings.Contains(
		out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestMarkdownOutsideNotebook(t *testing.T) {
	if err := Markdown("*text*"); !errors.Is(err, ErrNotNotebook) {
		t.Errorf("Markdown outside a notebook: error %v", err)
	}
}
