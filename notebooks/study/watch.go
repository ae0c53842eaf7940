package study

import (
	"fmt"
	"sync"
	"time"

	"gobnn/bayes/run"
	"gobnn/notebooks/results"
	"gobnn/notebooks/took"
	"gobnn/viz"
	"gobnn/viz/terminal"
)

// Watch shows where the study called id stands: a progress bar, updated each second, with the running repetition, its
// data set and method, the time that is left for this method, and the time that it has run. The lines of progress stay
// above it. Call done with the study's error at the end.
func (o Options) Watch(id string) (watched Options, done func(err error)) {
	w := &watch{bar: viz.NewProgress(id), id: id, now: time.Now, began: time.Now()}
	w.recorded, _ = took.Recorded(results.Files) // a test reads them; without them it estimates later
	o.Progress = w.bar.Print
	o.event = func(e event) {
		w.note(e)
		w.show()
	}
	stop := terminal.EachSecond(w.show)
	return o, func(err error) {
		stop()
		if err != nil {
			w.bar.Show(run.Progress{Status: run.Cancelled, Elapsed: time.Since(w.began)})
			return
		}
		steps, note := w.end()
		w.bar.Update(steps, steps, note)
	}
}

// watch feeds a progress bar with the state of a study.
type watch struct {
	bar      *viz.Progress
	id       string
	recorded took.Times
	now      func() time.Time
	began    time.Time // the study

	mu             sync.Mutex
	at             event // the last one
	running        bool
	computed, kept int
	since          time.Time // the repetition that runs
	mean           float64   // seconds of a repetition of this method that ran now
	measured       int
}

// note takes a repetition that begins, is done, or was kept.
func (w *watch) note(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Study != w.at.Study || e.Data != w.at.Data || e.Method != w.at.Method {
		w.mean, w.measured = 0, 0
	}
	w.at = e
	switch {
	case e.Kept:
		w.kept++
	case e.Done:
		w.running = false
		w.computed++
		w.measured++
		w.mean += (e.Seconds - w.mean) / float64(w.measured)
	default:
		w.running, w.since = true, w.now()
	}
}

func (w *watch) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		w.bar.Update(w.at.Number-1, w.at.Of, w.line())
	}
}

// line is the text beside the bar. The time that is left is estimated by the repetitions of this method that ran now,
// or else by those that are recorded; it is left out where neither is known.
func (w *watch) line() string {
	line := fmt.Sprintf("%s, %s", label(w.at.Data), w.at.Method)
	each, elapsed := w.mean, w.now().Sub(w.since)
	if w.measured == 0 {
		each = w.recorded.Repetition(w.id, w.at.Data, w.at.Method)
	}
	if each > 0 {
		left := max(each-elapsed.Seconds(), 0) + each*float64(w.at.Of-w.at.Number)
		line = fmt.Sprintf("about %s left of this method: %s", took.Text(left), line)
	}
	return fmt.Sprintf("%s, %v", line, elapsed.Round(time.Second))
}

// end returns the number of repetitions, and the text beside the full bar.
func (w *watch) end() (steps int, note string) {
	switch steps = w.computed + w.kept; {
	case steps == 0: // nothing was made: one step, or the bar would run on
		return 1, fmt.Sprintf("computed in %v, keeps no results", w.now().Sub(w.began).Round(time.Second))
	case w.computed == 0:
		return steps, "from kept results"
	}
	return steps, fmt.Sprintf("%d computed, %d kept from before", w.computed, w.kept)
}

// Show displays an experiment in a notebook, from its kept results or by running it: a figure with its ID and key, or
// a table of each of the metrics, ours beside the paper's in brackets, with what was reduced. An error stops the cell.
func Show(id string, o Options, metrics ...string) {
	if err := show(id, o, metrics); err != nil {
		run.Fail(err)
	}
}

func show(id string, o Options, metrics []string) (err error) {
	defer caught(&err)
	e := must(Find(id))
	o, done := o.Watch(id)
	cells, err := e.Run(run.Context(), o)
	done(err)
	failOn(err)
	if e.draw != nil || e.plot != nil {
		failOn(viz.ShowFile(must(o.FigureFile(id))))
		return viz.Markdown(must(e.caption(cells)))
	}
	if len(metrics) == 0 {
		metrics = distinct(cells, func(c Cell) string { return c.Metric })
	}
	text := "**" + e.Title + "**\n\n"
	for _, name := range metrics {
		text += Matrix(cells, name) + "\n"
	}
	return viz.Markdown(text + e.Note)
}
