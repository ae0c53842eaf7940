package viz

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/run"
	"gobnn/viz/terminal"
)

// A run that does not know how many steps it takes, such as up a ladder that is found on the way, shows no total, and
// its line does not end with each of them.
func TestProgressWithoutTotal(t *testing.T) {
	for _, c := range []struct {
		done, total int
		note        string
		length      string
		beside      string
	}{
		{4, 0, "<", "", "4: &lt;"}, {0, 0, "compiling", "", "compiling"}, {4, 8, "", ` value="4" max="8"`, "4 of 8: "},
	} {
		got := bar("bridge", c.done, c.total, c.note, "")
		if !strings.Contains(got, c.length+"></progress>") || !strings.HasSuffix(got, ">"+c.beside+"</span></div>") {
			t.Errorf("in a notebook %q", got)
		}
		if !strings.Contains(got, "white-space: nowrap") || !strings.Contains(got, `<progress style="flex: none; width: `) {
			t.Errorf("in a notebook its line or its width is not kept: %q", got)
		}
	}
}

func TestShow(t *testing.T) {
	scores := []run.Score{{Name: "acceptance", Value: .65}, {Name: "step size", Value: .01},
		{Name: "R-hat", Value: math.NaN()}}
	got := noteOf(run.Progress{Stage: "draws", Step: 3, Steps: 9, Elapsed: 5400 * time.Millisecond,
		Remaining: 61600 * time.Millisecond, Scores: scores})
	if want := "1m2s left, draws, acceptance 0.65, step size 0.01, 5s so far"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The end of a run is written to a log at once. In a notebook the bar is then full, or gone where the run did not come
// to its end, wherever the last of its parts stood.
func TestShowEnd(t *testing.T) {
	for status, full := range map[run.Status]bool{
		run.Completed: true, run.StoppedEarly: true, run.Cancelled: false, run.Stopped: false,
	} {
		var log strings.Builder
		p := &Progress{title: "fit", line: terminal.New(&log)}
		p.Update(4, 0, "compiling")
		p.Show(run.Progress{Stage: "fold 5: draws", Step: 140, Steps: 1000, Remaining: 51 * time.Second})
		p.Show(run.Progress{Status: status, Elapsed: time.Minute})
		if want := fmt.Sprintf("fit: 4: compiling\nfit: %s, 1m0s in all\n", status); log.String() != want {
			t.Errorf("%s: in a log %q", status, log.String())
		}
		for _, steps := range []int{0, 1000} {
			got := bar("fit", steps/2, steps, "", status)
			if strings.Contains(got, ` value="1" max="1"></progress>`) != full || strings.Contains(got, "<progress") != full {
				t.Errorf("%s: %s", status, got)
			}
		}
	}
}
