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
	"golang.org/x/sys/unix"
)

// Progress is a progress bar. In a notebook it is updated in place; on a terminal it is a line of standard error that
// is rewritten in place. Where standard error is a file or a pipe, as in a batch job, it writes a plain line at the
// beginning, one each half a minute, and one at the end. It may be used by several goroutines. Pass its Show as the
// Progress of any sampler's Settings.
type Progress struct {
	title string
	out   io.Writer  // nil in a notebook
	width func() int // of the terminal; nil: out is none
	now   func() time.Time

	mu   sync.Mutex
	id   string
	said time.Time // last plain line
}

// NewProgress is a bar with a title. It is drawn at once, as "compiling": a run's first step needs a program first,
// which can take longer than the steps.
func NewProgress(title string) *Progress {
	if gonbui.IsNotebook {
		return newProgress(title, nil, nil, time.Now)
	}
	return newProgress(title, os.Stderr, columns(os.Stderr), time.Now)
}

// columns is the width of a terminal; nil: the file is none, or one that cannot write a line again in place.
func columns(file *os.File) func() int {
	width := func() int {
		size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0
		}
		return max(20, int(size.Col)) // some say 0
	}
	if os.Getenv("TERM") == "dumb" || width() == 0 {
		return nil
	}
	return width
}

// newProgress is a bar in a notebook, or on out where that is not nil: a terminal where it has a width.
func newProgress(title string, out io.Writer, width func() int, now func() time.Time) *Progress {
	p := &Progress{title: title, out: out, width: width, now: now}
	if out == nil {
		p.id = "gobnn-progress-" + gonbui.UniqueId()
	}
	p.Update(0, 0, "compiling")
	return p
}

// Show shows where a run stands: its steps, the time that is left, its stage and scores, and the time so far. The time
// that is left comes first: what is too long for the line is cut at its end. When the run has ended it shows how.
func (p *Progress) Show(now run.Progress) {
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
	p.draw(now.Step, now.Steps, strings.Join(notes, ", "), now.Status)
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

// plainEvery is the time between two lines where a line cannot be written again in place.
const plainEvery = 30 * time.Second

// draw draws the bar; status is empty while the run goes on.
func (p *Progress) draw(done, total int, note string, status run.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		gonbui.UpdateHTML(p.id, bar(p.title, done, total, note, status))
		if status != "" {
			_ = syncNotebook() // else a program that ends now could end before it is shown
		}
		return
	}
	line := p.title + ": " + steps(done, total) + note
	if p.width == nil {
		if now := p.now(); status != "" || now.Sub(p.said) >= plainEvery {
			p.said = now
			fmt.Fprintln(p.out, line)
		}
		return
	}
	if at := []rune(line); len(at) >= p.width() { // a longer one would take a second line at each update
		line = string(at[:p.width()-1])
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	if status != "" {
		fmt.Fprintln(p.out)
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
