package viz

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gobnn/bayes/run"
)

// terminal is a bar on a terminal of 80 columns.
func terminal(title string, out io.Writer) *Progress {
	return newProgress(title, out, func() int { return 80 }, time.Now)
}

// A terminal's line is written again in place, and cut to one line of the terminal.
func TestProgressOnTerminal(t *testing.T) {
	var out strings.Builder
	p := terminal("training", &out)
	if got := out.String(); !strings.HasSuffix(got, "training: compiling") {
		t.Errorf("before the first step %q", got)
	}
	p.Update(1, 2, strings.Repeat("wide ", 20))
	p.Update(2, 2, "done")
	const begin = "\r\x1b[Ktraining: "
	want := begin + "compiling" + begin + ("1 of 2: " + strings.Repeat("wide ", 20))[:69] + begin + "2 of 2: done\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A file or a pipe has whole lines without control characters: at the beginning, one each 30 s, and the end.
func TestProgressInLog(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := newProgress("training", &out, nil, func() time.Time { return now })
	const hour = 36000 // updates, ten a second
	for i := 1; i <= hour; i++ {
		now = now.Add(100 * time.Millisecond)
		p.Update(i, hour, fmt.Sprint("loss ", i))
	}
	want := "training: compiling\n"
	for i := 300; i <= hour; i += 300 {
		want += fmt.Sprintf("training: %d of %d: loss %d\n", i, hour, i)
	}
	if got := out.String(); got != want {
		t.Errorf("got %.300q, want %.300q", got, want)
	}
	out.Reset()
	p.Update(5, hour, "")
	if p.Update(8, 8, "quick"); out.String() != "training: 8 of 8: quick\n" {
		t.Errorf("at the end %q", out.String())
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing is written
	if columns(file) != nil {
		t.Error("a file is taken for a terminal")
	}
}

// A run that does not know how many steps it takes, such as up a ladder that is found on the way, shows no total, and
// its line does not end with each of them.
func TestProgressWithoutTotal(t *testing.T) {
	var out strings.Builder
	p := terminal("bridge", &out)
	p.Update(4, 0, "power 0.5")
	if got := out.String(); !strings.HasSuffix(got, "bridge: 4: power 0.5") {
		t.Errorf("got %q", got)
	}
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
	var out strings.Builder
	p := terminal("sampling", &out)
	scores := []run.Score{{Name: "acceptance", Value: .65}, {Name: "step size", Value: .01},
		{Name: "R-hat", Value: math.NaN()}}
	p.Show(run.Progress{Stage: "draws", Step: 3, Steps: 9, Elapsed: 5400 * time.Millisecond,
		Remaining: 61600 * time.Millisecond, Scores: scores})
	if want := "sampling: 3 of 9: 1m2s left, draws, acceptance 0.65, step size 0.01, 5s so far"; !strings.HasSuffix(
		out.String(), want) {
		t.Errorf("got %q, want it to end with %q", out.String(), want)
	}
}

// The end of a run ends the line of a terminal and is written to a log at once. In a notebook the bar is then full, or
// gone where the run did not come to its end, wherever the last of its parts stood.
func TestShowEnd(t *testing.T) {
	for status, full := range map[run.Status]bool{
		run.Completed: true, run.StoppedEarly: true, run.Cancelled: false, run.Stopped: false,
	} {
		var out, log strings.Builder
		for _, p := range []*Progress{terminal("fit", &out), newProgress("fit", &log, nil, time.Now)} {
			p.Show(run.Progress{Stage: "fold 5: draws", Step: 140, Steps: 1000, Remaining: 51 * time.Second})
			p.Show(run.Progress{Status: status, Elapsed: time.Minute})
		}
		want := fmt.Sprintf("fit: %s, 1m0s in all\n", status)
		if got := out.String(); !strings.HasSuffix(got, "\r\x1b[K"+want) || log.String() != "fit: compiling\n"+want {
			t.Errorf("%s: on a terminal %q, in a log %q", status, got, log.String())
		}
		for _, steps := range []int{0, 1000} {
			got := bar("fit", steps/2, steps, "", status)
			if strings.Contains(got, ` value="1" max="1"></progress>`) != full || strings.Contains(got, "<progress") != full {
				t.Errorf("%s: %s", status, got)
			}
		}
	}
}

func TestMarkdownOutsideNotebook(t *testing.T) {
	if err := Markdown("*text*"); !errors.Is(err, ErrNotNotebook) {
		t.Errorf("Markdown outside a notebook: error %v", err)
	}
}
