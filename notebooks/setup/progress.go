package setup

import (
	"fmt"
	"io"
	"sync"
	"time"

	"gobnn/notebooks/program"
)

// progress prints the steps of a set-up: a line when one ends and, while it runs, its state: rewritten in place on a
// terminal, now and then elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	steps    int

	mu      sync.Mutex
	number  int
	name    string
	state   string
	start   time.Time
	printed time.Time
	stop    chan struct{}
}

// quiet is the time between two lines about a running step where lines cannot be rewritten.
const quiet = 15 * time.Second

func newProgress(out io.Writer, steps int) *progress {
	return &progress{out: out, terminal: program.Terminal(out), steps: steps}
}

// begin starts the next step and keeps its line alive until done.
func (p *progress) begin(name string) {
	p.mu.Lock()
	p.number++
	p.name, p.state, p.start, p.printed, p.stop = name, "", time.Now(), time.Now(), make(chan struct{})
	stop := p.stop
	p.mu.Unlock()
	p.refresh()
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				p.refresh()
			}
		}
	}()
}

// update sets the running step's state.
func (p *progress) update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = fmt.Sprintf(format, args...)
}

func (p *progress) refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop == nil {
		return
	}
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s, %.0f s", p.line(), time.Since(p.start).Seconds())
	} else if time.Since(p.printed) >= quiet {
		fmt.Fprintf(p.out, "%s, %.0f s so far\n", p.line(), time.Since(p.start).Seconds())
		p.printed = time.Now()
	}
}

func (p *progress) line() string {
	line := fmt.Sprintf("[%d/%d] %s", p.number, p.steps, p.name)
	if p.state != "" {
		line += ": " + p.state
	}
	return line
}

// done ends the running step, with its last state and its seconds.
func (p *progress) done() { p.end(true) }

// fail ends the running step silently, before an error is shown.
func (p *progress) fail() { p.end(false) }

func (p *progress) end(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop == nil {
		return
	}
	close(p.stop)
	p.stop = nil
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	if ok {
		fmt.Fprintf(p.out, "%s, %.1f s\n", p.line(), time.Since(p.start).Seconds())
	}
}

// megabytes is a size as text.
func megabytes(bytes int64) string {
	if bytes >= 1e9 {
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	}
	return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
}
