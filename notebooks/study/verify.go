package study

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gobnn/bayes/compute"

	"gonum.org/v1/gonum/stat/distuv"
)

// rowRecord is what is recorded of a method on a data set besides its cells: the key of its settings, and its cheapest
// repetition, which Verify computes again.
type rowRecord struct {
	Data       string               `json:"data"`
	Method     string               `json:"method"`
	Key        string               `json:"key"` // a digest of the settings, the study's version among them
	Full       bool                 `json:"full,omitempty"`
	Epochs     int                  `json:"epochs,omitempty"` // that were asked for
	Repetition int                  `json:"repetition"`
	Reps       int                  `json:"reps"` // that are recorded
	Seconds    float64              `json:"seconds"`
	Values     map[string][2]string `json:"values"`         // by metric: exact, and the standard error of the mean
	Each       map[string][]string  `json:"each,omitempty"` // all repetitions' values of metrics that claims are about
	Machine    string               `json:"machine"`
	Commit     string               `json:"commit"`
	Verified   string               `json:"verified,omitempty"` // the last commit whose code gave the values again
}

// machine names what decides the bits of a result besides its settings: backend, threads, kind of processor, versions.
var machine = sync.OnceValue(func() string {
	parts := []string{"no backend"}
	if engine, err := compute.Default(); err == nil {
		parts = []string{fmt.Sprintf("%s, %d threads", engine.Name(), engine.Threads())}
		if _, plugin, _ := strings.Cut(engine.String(), ":"); engine.IsXLA() {
			if file, err := os.Stat(plugin); err == nil {
				parts[0] += fmt.Sprintf(", plugin of %d bytes", file.Size()) // no plugin tells its version
			}
		}
		if !engine.OnCPU() {
			parts = append(parts, engine.Backend().DeviceDescription(0))
		}
	}
	text, _ := os.ReadFile("/proc/cpuinfo") // there is none but on Linux
	var kind []string
	for _, name := range []string{"model name", "cpu family", "model", "stepping"} {
		if found := regexp.MustCompile(`(?m)^` + name + `\s*: *(.+)$`).FindSubmatch(text); found != nil {
			kind = append(kind, string(found[1]))
		}
	}
	parts = append(parts, strings.Join(kind, " "), runtime.Version())
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if name, own := strings.CutPrefix(module.Path, "github.com/gomlx/"); own {
				parts = append(parts, name+" "+module.Version)
			}
		}
	}
	return strings.Join(parts, ", ")
})

// timed says whether a metric is of seconds, which no second run has again.
func timed(metric string) bool { return timeUnit.MatchString(metric) }

var timeUnit = regexp.MustCompile(`seconds|a second|speed-up|\[m?s\]`)

// rows are those of the repetitions that are kept, with all values of the metrics that claims are about. A figure that
// shows a table's repetitions leaves them to it.
func (e Experiment) rows(o Options, claimed []string) (all []rowRecord, err error) {
	defer caught(&err)
	if e.bySeconds {
		return nil, nil
	}
	o.Fresh, o.Progress = false, nil
	store := must(OpenStore(o))
	done, _, err := e.asked(o)
	failOn(err)
	for _, t := range done {
		if e.draw != nil && t.Study != e.ID {
			continue
		}
		at := must(store.place(t.Key))
		var kept []Result
		for number := range t.reps {
			result, found, err := store.load(t.Key, at, number)
			failOn(err)
			if !found {
				break
			}
			kept = append(kept, result)
		}
		if len(kept) == 0 {
			continue
		}
		r := slices.MinFunc(kept, func(a, b Result) int { return cmp.Compare(a.Seconds, b.Seconds) })
		cheapest := slices.IndexFunc(kept, func(a Result) bool { return a.Seconds == r.Seconds })
		now := rowRecord{Data: t.Data, Method: t.Method, Key: at.digest, Full: o.Full, Epochs: o.Epochs, Repetition: cheapest,
			Reps: len(kept), Seconds: r.Seconds, Values: map[string][2]string{}, Each: map[string][]string{},
			Machine: r.Machine, Commit: cmp.Or(r.Commit, o.Commit)}
		for _, c := range Cells(t.Key, kept, nil) {
			value, has := r.Values[c.Metric]
			if has && !timed(c.Metric) && (len(e.metrics) == 0 || slices.Contains(e.metrics, c.Metric)) {
				now.Values[c.Metric] = [2]string{exact(value), strconv.FormatFloat(c.SE, 'g', 3, 64)}
			}
		}
		for _, metric := range claimed {
			if _, has := r.Values[metric]; has && len(kept) > 1 {
				for _, one := range kept {
					now.Each[metric] = append(now.Each[metric], strconv.FormatFloat(one.Values[metric], 'g', 6, 64))
				}
			}
		}
		if len(now.Values)+len(now.Each) > 0 {
			all = append(all, now)
		}
	}
	return all, nil
}

// compare is an error where a repetition that was computed again is not the recorded one: by each bit on the same
// machine. Elsewhere sums are rounded in another order, after which a chain may be another chain: there the two may
// differ as far as repetitions do, by Student's t, with a false alarm in a million numbers; how far a single repetition
// may be off is not known, and it is not judged. The text says how near it is.
func (r rowRecord) compare(again Result) (text string, judged bool, err error) {
	var off []string
	text, judged = "the same bits", true
	worst, here := 0., r.Machine == machine()
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		was, now := r.Values[name][0], "nothing"
		if value, has := again.Values[name]; has {
			now = exact(value)
		}
		if was == now {
			continue
		}
		a, _ := strconv.ParseFloat(was, 64) // what cannot be read differs
		b, unread := strconv.ParseFloat(now, 64)
		se, _ := strconv.ParseFloat(r.Values[name][1], 64)
		errors, most := math.Abs(b-a)/se, math.Inf(1)
		if n := float64(r.Reps); n > 1 && se > 0 {
			most = math.Sqrt(2*n) * distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1-.5e-6)
			worst, judged = max(worst, errors), true
			text = fmt.Sprintf("off by at most %.2g standard errors", worst)
		} else if worst == 0 {
			text, judged = "other digits, and no spread of repetitions to judge them by", false
		}
		if here || unread != nil || math.IsNaN(b) || errors > most {
			off = append(off, fmt.Sprintf("%s %s was %s (%.2g standard errors)", name, now, was, errors))
		}
	}
	if len(off) > 0 {
		what := map[bool]string{true: "not the same bits", false: "further off than repetitions are"}[here]
		return "", true, fmt.Errorf("%s: %d of %d: %s", what, len(off), len(r.Values),
			strings.Join(off[:min(3, len(off))], ", "))
	}
	return text, judged, nil
}

// Limits say which rows are verified.
type Limits struct {
	Under  float64 // seconds of a row; 0: any
	Within float64 // seconds of all rows, the cheapest of each study in turn; 0: any
}

// Verify computes the cheapest repetition of each row again, without what is kept, and compares it with what is
// recorded. Rows that come out again are marked with the options' commit, which Save keeps. The error names those that
// do not.
func (r *Records) Verify(ctx context.Context, some []Experiment, o Options, limits Limits) error {
	dir, err := os.MkdirTemp("", "verify")
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	defer os.RemoveAll(dir)
	v := verifier{store: &Store{dir: dir, commit: o.Commit, say: func(string, ...any) {}},
		listed: map[string][]*trial{}}
	o.say("this machine: %s", machine())
	type again struct {
		e    Experiment
		row  *rowRecord
		turn int // among its study's rows, of which the cheapest is first
	}
	var queue []again
	for _, e := range some {
		if e.bySeconds {
			o.say("%s: its runs end by seconds, so that no two are the same: not verified", e.ID)
		}
		s, _ := r.of(e.ID)
		var rows []*rowRecord
		for n := range s.Rows {
			if one := &s.Rows[n]; len(one.Values) > 0 && (limits.Under == 0 || one.Seconds < limits.Under) {
				rows = append(rows, one) // the others have seconds alone, or take too many
			}
		}
		slices.SortStableFunc(rows, func(a, b *rowRecord) int { return cmp.Compare(a.Seconds, b.Seconds) })
		for turn, row := range rows {
			queue = append(queue, again{e, row, turn})
		}
	}
	slices.SortStableFunc(queue, func(a, b again) int { return a.turn - b.turn })
	var failed []string
	count, open, spent := 0, 0, 0.
	for _, one := range queue {
		if limits.Within > 0 && spent+one.row.Seconds > limits.Within {
			continue
		}
		count, spent = count+1, spent+one.row.Seconds
		text, judged, err := v.verify(ctx, one.e, one.row)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := strings.Join([]string{one.e.ID, one.row.Data, one.row.Method}, ", ")
		if err != nil {
			failed = append(failed, name)
			o.say("%s: NOT VERIFIED: %v (recorded on %s)", name, err, one.row.Machine)
			continue
		}
		if judged {
			one.row.Verified = o.Commit
		} else {
			open++
		}
		o.say("%s: %s (repetition %d, %.1f s; measured at %s)", name, text, one.row.Repetition+1, one.row.Seconds,
			one.row.Commit)
	}
	o.say("%d rows verified, %d not, %d with nothing to judge them by", count-open-len(failed), len(failed), open)
	if len(failed) > 0 {
		return fmt.Errorf("not verified: %s", strings.Join(failed, "; "))
	}
	return nil
}

// verifier computes rows again.
type verifier struct {
	store  *Store              // of nothing else: studies that share repetitions compute them once
	listed map[string][]*trial // of a study, options and repetition
}

// verify computes a row again.
func (v verifier) verify(ctx context.Context, e Experiment, r *rowRecord) (text string, judged bool, err error) {
	defer caught(&err)
	o := Options{Full: r.Full, Epochs: r.Epochs, Reps: r.Repetition + 1, CacheDir: v.store.dir}
	id := fmt.Sprint(e.ID, r.Full, r.Epochs, r.Repetition)
	if v.listed[id] == nil {
		v.listed[id] = must(e.trials(o))
	}
	again := fmt.Errorf("it is no longer the study's (other settings, or another version): go run ./notebooks "+
		"reproduce %s -record", e.ID)
	i := slices.IndexFunc(v.listed[id], func(t *trial) bool { return t.Data == r.Data && t.Method == r.Method })
	if i < 0 {
		return "", false, again
	}
	t := v.listed[id][i]
	if key := must(v.store.place(t.Key)).digest; key != r.Key {
		return "", false, again
	}
	result := must(v.store.once(ctx, t.Key, r.Repetition, r.Repetition+1, t.run))
	return r.compare(result)
}

// caption is the line below a figure in a notebook: its ID, and a key of how it is drawn and of what it shows, its
// cells, or the settings of its repetitions. TestNotebooksShowPictures compares it.
func (e Experiment) caption(cells []Cell) (text string, err error) {
	defer caught(&err)
	words := []string{e.ID, strconv.Itoa(e.drawing)}
	if e.plot != nil {
		for _, c := range cells {
			words = append(words, c.Data, c.Method, c.Metric, exact(c.Ours))
		}
	} else {
		for _, t := range must(e.trials(Options{})) {
			words = append(words, t.Study, t.Data, t.Method, meaning(must(json.Marshal(t.Settings))))
		}
	}
	return fmt.Sprintf("%s, key %s", e.ID, digest(strings.Join(words, "\n"))), nil
}
