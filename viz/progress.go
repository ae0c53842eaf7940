package viz

import (
	"fmt"
	"html"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"gobnn/bayes/run"
	"gobnn/viz/terminal"

	"github.com/janpfeifer/gonb/gonbui"
)

// Progress is a progress bar. In a notebook it is updated in place; elsewhere it is the line of package terminal on
// standard error. It may be used by several goroutines. Pass its Show as the Progress of any sampler's Settings.
type Progress struct {
	title string
	line  *terminal.Line // nil in a notebook
	id    string         // in a notebook
	mu    sync.Mutex
}

// NewProgress is a bar with a title. It is drawn at once, as "compiling": a run's first step needs a program first,
// which can take longer than the steps.
func NewProgress(title string) *Progress {
	p := &Progress{title: title}
	if gonbui.IsNotebook {
		p.id = "gobnn-progress-" + gonbui.UniqueId()
	} else {
		p.line = terminal.New(os.Stderr)
	}
	p.Update(0, 0, "compiling")
	return p
}

// Show shows where a run stands: its steps, the time that is left, its stage and scores, and the time so far. The time
// that is left comes first: what is too long for the line is cut at its end. When the run has ended it shows how.
func (p *Progress) Show(now run.Progress) { p.draw(now.Step, now.Steps, noteOf(now), now.Status) }

// noteOf is the text beside the bar of a run.
func noteOf(now run.Progress) string {
	var notes []string
	switch {
	case now.Status != "":
		notes = append(notes, string(now.Status))
	case now.Remaining > 0:
		notes = append(notes, fmt.Sprintf("%v left", now.Remaining.Round(time.Second)))
	}
	if now.Stage != "" && now.Status == "" {
		notes = append(notes, now.Stage)
	}
	for _, score := range now.Scores {
		if math.IsNaN(score.Value) {
			continue // not known yet
		}
		notes = append(notes, fmt.Sprintf("%s %.4g", score.Name, score.Value))
	}
	if now.Elapsed >= time.Second {
		until := "so far"
		if now.Status != "" {
			until = "in all"
		}
		notes = append(notes, fmt.Sprintf("%v %s", now.Elapsed.Round(time.Second), until))
	}
	return strings.Join(notes, ", ")
}

// Update shows that `done` of `total` steps are made, with a note beside it. A total of 0 means that it is unknown; it
// is then not shown.
func (p *Progress) Update(done, total int, note string) {
	var status run.Status
	if total > 0 && done >= total {
		status = run.Completed
	}
	p.draw(done, total, note, status)
}

// Print writes a line that stays above the bar. In a notebook it does nothing.
func (p *Progress) Print(text string) {
	if p.line != nil {
		p.line.Print(text)
	}
}

// draw draws the bar; status is empty while the run goes on.
func (p *Progress) draw(done, total int, note string, status run.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.title + ": " + steps(done, total) + note
	switch {
	case p.line == nil:
		gonbui.UpdateHTML(p.id, bar(p.title, done, total, note, status))
		if status != "" {
			_ = syncNotebook() // else a program that ends now could end before it is shown
		}
	case status != "":
		p.line.Clear()
		p.line.Print(text)
	default:
		p.line.Show(text)
	}
}

// bar is the HTML of a bar, which has no length where the total is not known. It stays one line with a bar of one
// width, whatever stands beside it: what is too long is cut, and shown where the mouse is. The bar of a run that has
// ended is full, and gone where the run did not come to its end.
func bar(title string, done, total int, note string, status run.Status) string {
	length := ""
	if total > 0 {
		length = fmt.Sprintf(` value="%d" max="%d"`, done, total)
	}
	if status != "" {
		length = ` value="1" max="1"`
	}
	progress := `<progress style="flex: none; width: 14em"` + length + `></progress>`
	if status != "" && status.Err() != nil {
		progress = ""
	}
	beside := html.EscapeString(steps(done, total) + note)
	return fmt.Sprintf(`<div style="display: flex; gap: .5em; white-space: nowrap"><span>%s</span>%s`+
		`<span style="overflow: hidden; text-overflow: ellipsis" title="%s">%s</span></div>`,
		html.EscapeString(title), progress, beside, beside)
}

// steps returns the number of steps done, and the total where it is known; empty before the first.
func steps(done, total int) string {
	switch {
	case total > 0:
		return fmt.Sprintf("%d of %d: ", done, total)
	case done > 0:
		return fmt.Sprintf("%d: ", done)
	}
	return ""
}
