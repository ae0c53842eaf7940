package viz

import (
	"fmt"
	"html"
	"io"
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

// NewProgress is a bar with a title; it is drawn at the first Update.
func NewProgress(title string) *Progress {
	p := &Progress{title: title}
	if gonbui.IsNotebook {
		p.id = "gobnn-progress-" + gonbui.UniqueId()
	} else {
		p.out = os.Stderr
	}
	return p
}

// Show shows where a run stands: its stage, steps and scores, and the time that is left.
func (p *Progress) Show(now run.Progress) {
	var notes []string
	if now.Stage != "" {
		notes = append(notes, now.Stage)
	}
	for _, score := range now.Scores {
		notes = append(notes, fmt.Sprintf("%s %.4g", score.Name, score.Value))
	}
	if now.Remaining > 0 {
		notes = append(notes, fmt.Sprintf("%v left", now.Remaining.Round(time.Second)))
	}
	p.Update(now.Step, now.Steps, strings.Join(notes, ", "))
}

// Update shows that done of total steps are made, and a note beside it.
func (p *Progress) Update(done, total int, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		gonbui.UpdateHTML(p.id, fmt.Sprintf(`%s <progress value="%d" max="%d"></progress> %d of %d: %s`,
			html.EscapeString(p.title), done, total, done, total, html.EscapeString(note)))
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s: %d of %d: %s", p.title, done, total, note)
	if done >= total {
		fmt.Fprintln(p.out)
	}
}
