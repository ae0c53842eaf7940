// Package terminal writes the line that shows where a program stands: on a terminal in place, below the lines that
// stay; in a file or a pipe, as of a batch job, a plain line every half a minute.
package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Line is the line. It may be used by several goroutines.
type Line struct {
	out     io.Writer
	columns func() int // of the terminal; nil: out is none
	now     func() time.Time

	mu      sync.Mutex
	text    string    // in place now
	written time.Time // the last plain line
}

// New is a line on out.
func New(out io.Writer) *Line { return &Line{out: out, columns: columns(out), now: time.Now} }

// columns is the width of a terminal; nil: out is none, or one that cannot write a line again in place.
func columns(out io.Writer) func() int {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil
	}
	width := func() int {
		size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0
		}
		return max(20, int(size.Col)) // some report 0
	}
	if width() == 0 {
		return nil
	}
	return width
}

// Width is the number of columns of the terminal out, and 100 where it is none.
func Width(out io.Writer) int {
	if width := columns(out); width != nil {
		return width()
	}
	return 100
}

// plainEvery is the time between two lines where a line cannot be written again in place.
const plainEvery = 30 * time.Second

// Show puts a text in place of the one before. What is too long for the terminal is cut.
func (l *Line) Show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	if now := l.now(); l.columns == nil && now.Sub(l.written) >= plainEvery {
		l.written = now
		fmt.Fprintln(l.out, text)
	}
	l.draw()
}

// Print writes a text that stays, above the line.
func (l *Line) Print(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	fmt.Fprintln(l.out, text)
	l.draw()
}

// Clear removes the line.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = ""
	l.erase()
}

func (l *Line) erase() {
	if l.columns != nil {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}

func (l *Line) draw() {
	if l.columns == nil || l.text == "" {
		return
	}
	letters := []rune(l.text) // of which more than the width would scroll at each update
	fmt.Fprintf(l.out, "\r\x1b[K%s", string(letters[:min(len(letters), l.columns()-1)]))
}

// EachSecond calls show each second until stop is called, which waits for the last call.
func EachSecond(show func()) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				show()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}
