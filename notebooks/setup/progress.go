package setup

import (
	"fmt"
	"io"
	"sync"
	"time"

	"gobnn/viz/terminal"
)

// progress prints the steps of a set-up: a line when one ends and, while it runs, its state.
type progress struct {
	line  *terminal.Line
	steps int
	stop  func() // ends the updates of the running step; nil: none runs

	mu     sync.Mutex
	number int
	name   string
	state  string
	start  time.Time
}

func newProgress(out io.Writer, steps int) *progress {
	return &progress{line: terminal.New(out), steps: steps}
}

// begin starts the next step and keeps its line alive until it ends.
func (p *progress) begin(name string) {
	p.mu.Lock()
	p.number++
	p.name, p.state, p.start = name, "", time.Now()
	p.mu.Unlock()
	show := func() { p.line.Show(p.text("%.0f s")) }
	show()
	p.stop = terminal.EachSecond(show)
}

// update sets the running step's state.
func (p *progress) update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = fmt.Sprintf(format, args...)
}

// text is the step, its state and its seconds.
func (p *progress) text(seconds string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("[%d/%d] %s", p.number, p.steps, p.name)
	if p.state != "" {
		line += ": " + p.state
	}
	return line + ", " + fmt.Sprintf(seconds, time.Since(p.start).Seconds())
}

// done ends the running step, with its last state and its seconds.
func (p *progress) done() {
	p.fail()
	p.line.Print(p.text("%.1f s"))
}

// fail ends the running step, if there is one, before an error is shown.
func (p *progress) fail() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
		p.line.Clear()
	}
}

// megabytes is a size as text.
func megabytes(bytes int64) string {
	if bytes >= 1e9 {
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	}
	return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
}
