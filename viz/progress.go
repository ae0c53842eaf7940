package viz

import (
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"gobnn/bayes/run"

	"github.com/janpfeifer/gonb/gonbui"
)

// Progress is a progress bar: in a notebook it is updated in place, elsewhere it is a line on standard error. It may be
// used by several goroutines. Pass its Show as the Progress of any sampler's Settings.
type Progress struct {
	title string
	out   io.Writer // nil in a notebook

	mu sync.Mutex
	id string
}

// NewProgress is a bar with a title. It is drawn at once, as "compiling": a run's first step needs a program first,
// which can take longer than the steps.
func NewProgress(title string) *Progress {
	if gonbui.IsNotebook {
		return newProgress(title, nil)
	}
	return newProgress(title, os.Stderr)
}

// newProgress is a bar in a notebook, or a line on out where that is not nil.
func newProgress(title string, out io.Writer) *Progress {
	p := &Progress{title: title, out: out}
	if out == nil {
		p.id = "gobnn-progress-" + gonbui.UniqueId()
	}
	p.Update(0, 0, "compiling")
	return p
}

// Show shows where a run stands: its stage, steps and scores, the time so far and the time that is left.
func (p *Progress) Show(now run.Progress) {
	var notes []string
	if now.Stage != "" {
		notes = append(notes, now.Stage)
	}
	for _, score := range now.Scores {
		if math.IsNaN(score.Value) {
			continue // not known yet
		}
		notes = append(notes, fmt.Sprintf("%s %.4g", score.Name, score.Value))
	}
	if now.Elapsed >= time.Second {
		notes = append(notes, fmt.Sprintf("%v so far", now.Elapsed.Round(time.Second)))
	}
	if now.Remaining > 0 {
		notes = append(notes, fmt.Sprintf("%v left", now.Remaining.Round(time.Second)))
	}
	p.Update(now.Step, now.Steps, strings.Join(notes, ", "))
}

// Update shows that `done` of `total` steps are made, with a note beside it. A total of 0 means that it is unknown; it
// is then not shown.
func (p *Progress) Update(done, total int, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		gonbui.UpdateHTML(p.id, bar(p.title, done, total, note))
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s: %s%s", p.title, steps(done, total), note)
	if total > 0 && done >= total {
		fmt.Fprintln(p.out)
	}
}

// bar is the HTML of a bar, which has no length where the total is not known.
func bar(title string, done, total int, note string) string {
	length := ""
	if total > 0 {
		length = fmt.Sprintf(` value="%d" max="%d"`, done, total)
	}
	return fmt.Sprintf(`%s <progress%s></progress> %s%s`, html.EscapeString(title), length, steps(done, total),
		html.EscapeString(note))
}

// steps are how many are made, of how many where that is known; empty before the first.
func steps(done, total int) string {
	switch {
	case total > 0:
		return fmt.Sprintf("%d of %d: ", done, total)
	case done > 0:
		return fmt.Sprintf("%d: ", done)
	}
	return ""
}
