package study

import (
	"fmt"
	"sync"
	"time"

	"gobnn/bayes/dataset"
	"gobnn/bayes/run"
	"gobnn/viz"
)

// Watch shows a progress bar with a title, updated each second. It names the running repetition, its data set and
// method, the time it has run, and the time that is left for this method, estimated from the repetitions before. Call
// done at the end; it shows how many repetitions were computed and how many kept.
func (o Options) Watch(title string) (watched Options, done func()) {
	w := &watch{bar: viz.NewProgress(title), now: time.Now, began: time.Now()}
	before := o.Repetition
	o.Repetition = func(r Repetition) {
		if before != nil {
			before(r)
		}
		w.note(r)
		w.show()
	}
	stop := EachSecond(w.show)
	return o, func() {
		stop()
		steps, note := w.end()
		w.bar.Update(steps, steps, note)
	}
}

// watch feeds a progress bar with the state of a study.
type watch struct {
	bar   *viz.Progress
	now   func() time.Time
	began time.Time

	mu   sync.Mutex
	pace Pace
}

func (w *watch) note(r Repetition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace.Note(r, w.now())
}

func (w *watch) show() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pace.Running {
		w.bar.Update(w.pace.At.Number-1, w.pace.At.Of, w.line())
	}
}

// line returns the text beside the bar.
func (w *watch) line() string {
	now := w.now()
	line := fmt.Sprintf("%s, %s, %v", dataset.Label(w.pace.At.Data), w.pace.At.Method,
		w.pace.Elapsed(now).Round(time.Second))
	if left, known := w.pace.Left(now, 0); known {
		line += fmt.Sprintf(", about %v left of this method", time.Duration(left*float64(time.Second)).Round(time.Second))
	}
	return line
}

// end returns the number of repetitions, and the text beside the full bar.
func (w *watch) end() (steps int, note string) {
	switch steps = w.pace.Computed + w.pace.Kept; {
	case steps == 0: // such as a figure that trains as it draws: one step, or the bar would run on
		return 1, fmt.Sprintf("computed in %v, keeps no results", w.now().Sub(w.began).Round(time.Second))
	case w.pace.Computed == 0:
		return steps, "from kept results"
	}
	return steps, fmt.Sprintf("%d computed, %d kept from before", w.pace.Computed, w.pace.Kept)
}

// Show displays an experiment in a notebook, from its kept results or by running it: a figure, or a table, ours beside
// the paper's in brackets, with what was reduced. Of a table each of the metrics is shown by itself, data sets by
// methods; without metrics there is a row for each number. An error stops the cell.
func Show(id string, o Options, metrics ...string) {
	if err := show(id, o, metrics); err != nil {
		run.Fail(err)
	}
}

func show(id string, o Options, metrics []string) error {
	e, err := Find(id)
	if err != nil {
		return err
	}
	o, done := o.Watch(id)
	cells, err := e.Run(run.Context(), o)
	if err != nil {
		return err
	}
	done()
	if e.draw != nil {
		path, err := o.FigureFile(id)
		if err != nil {
			return err
		}
		return viz.ShowFile(path)
	}
	text := ""
	for _, name := range metrics {
		text += Matrix(cells, name) + "\n"
	}
	if len(metrics) == 0 {
		text = Markdown(cells) + "\n"
	}
	return viz.Markdown("**" + e.Title + "**\n\n" + text + e.Note)
}
