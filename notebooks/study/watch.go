package study

import (
	"fmt"
	"sync"
	"time"

	"gobnn/bayes/dataset"
	"gobnn/viz"
)

// Watch shows in a progress bar with a title, each second, which repetition of which data set and method runs, how long
// it has run, and what is left of this method by the repetitions before it. Call done at the end, which says how many
// were computed and how many kept.
func (o Options) Watch(title string) (watched Options, done func()) {
	w := &watch{bar: viz.NewProgress(title), began: time.Now(), now: time.Now}
	before := o.Repetition
	o.Repetition = func(r Repetition) {
		if before != nil {
			before(r)
		}
		w.note(r)
		w.show()
	}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				w.show()
			}
		}
	}()
	return o, func() {
		close(ended)
		<-gone
		w.bar.Update(w.computed+w.kept, w.computed+w.kept, w.summary())
	}
}

// watch is what a bar knows of a study.
type watch struct {
	bar *viz.Progress
	now func() time.Time

	mu             sync.Mutex
	at             Repetition // the last one that began
	running        bool
	began          time.Time // of the study, and since then of the repetition
	computed, kept int
	mean           float64 // seconds of a repetition of this method
	measured       int
}

// note takes a repetition that begins, is done, or was kept.
func (w *watch) note(r Repetition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Data != w.at.Data || r.Method != w.at.Method {
		w.mean, w.measured = 0, 0
	}
	switch {
	case r.Kept:
		w.kept++
	case r.Done:
		w.computed++
		w.measured++
		w.mean += (r.Seconds - w.mean) / float64(w.measured)
		w.running = false
	default:
		w.running, w.began = true, w.now()
	}
	w.at = r
}

func (w *watch) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		w.bar.Update(w.at.Number-1, w.at.Of, w.line())
	}
}

// line is what stands beside the bar.
func (w *watch) line() string {
	elapsed := w.now().Sub(w.began)
	line := fmt.Sprintf("%s, %s, %v", dataset.Label(w.at.Data), w.at.Method, elapsed.Round(time.Second))
	if w.measured > 0 {
		left := max(w.mean-elapsed.Seconds(), 0) + w.mean*float64(w.at.Of-w.at.Number)
		line += fmt.Sprintf(", about %v left of this method", time.Duration(left*float64(time.Second)).Round(time.Second))
	}
	return line
}

func (w *watch) summary() string {
	if w.computed == 0 {
		return "from kept results"
	}
	return fmt.Sprintf("%d computed, %d kept from before", w.computed, w.kept)
}
