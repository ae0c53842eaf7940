package study

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"gonum.org/v1/gonum/stat"
)

// Key identifies what is repeated. Settings, as JSON, must hold everything that the numbers depend on: results are kept
// separately for different settings.
type Key struct {
	Study, Data, Method string
	Settings            any
}

// Result is one repetition: its scores by metric, series recorded along the way, and the seconds it took.
type Result struct {
	Values  map[string]float64
	Series  map[string][]float64 // by name; nil: none
	Seconds float64
	Commit  string // of the code that computed it; empty: unknown
	Machine string // that computed it, see machine; empty: unknown
}

// Store keeps repetitions, a file each. Files are written whole or not at all; one that cannot be read is computed
// again.
type Store struct {
	dir    string
	fresh  bool
	commit string
	say    func(format string, args ...any)
	event  func(event) // nil: none
}

// event is a repetition of a method on a data set that begins, is done or was kept.
type event struct {
	Study, Data, Method string
	Number, Of          int     // from 1
	Done                bool    // it ended; else it begins
	Kept                bool    // it was computed before
	Seconds             float64 // that it took, where it is done
}

// OpenStore is the store that the options name.
func OpenStore(o Options) (s *Store, err error) {
	defer caught(&err)
	dir := must(o.ResultDir())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder for results (set GOBNN_CACHE to a folder that can be written): %w", err)
	}
	return &Store{dir: dir, fresh: o.Fresh, commit: o.Commit, say: o.say, event: o.event}, nil
}

// ResultDir is the folder where repetitions are kept.
func (o Options) ResultDir() (string, error) { return folder(o.CacheDir, "results") }

// Repeat runs those of repetitions 0 to reps-1 that are not kept, and keeps each; it fills in their Seconds. If run
// fails or the context ends, it returns those that are done with the error.
func (s *Store) Repeat(
	ctx context.Context, key Key, reps int, run func(ctx context.Context, repetition int) (Result, error),
) (results []Result, err error) {
	for repetition := range reps {
		result, err := s.once(ctx, key, repetition, reps, run)
		if err != nil {
			return results, err
		}
		results = append(results, result)
	}
	return results, nil
}

// once is one repetition of so many: it is kept, or else is run and kept.
func (s *Store) once(
	ctx context.Context, key Key, repetition, of int, run func(context.Context, int) (Result, error),
) (result Result, err error) {
	defer caught(&err)
	at := must(s.place(key))
	result, kept, err := s.load(key, at, repetition)
	failOn(err)
	now := event{Study: key.Study, Data: key.Data, Method: key.Method, Number: repetition + 1, Of: of}
	if !kept {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		s.report(now)
		start, scratch := time.Now(), filepath.Join(at.dir, strconv.Itoa(repetition)+".run")
		if s.fresh {
			_ = os.RemoveAll(scratch) // what is left of it is of another run, or is read again
		}
		within := context.WithValue(context.WithValue(ctx, scratchOf{}, scratch), keeperOf{}, s)
		guarded := func() (result Result, err error) {
			defer caught(&err)
			return run(within, repetition)
		}
		if result, err = guarded(); err != nil {
			return Result{}, fmt.Errorf("%s, %s, %s, repetition %d: %w", key.Study, key.Data, key.Method, repetition+1, err)
		}
		result.Seconds, result.Commit, result.Machine = time.Since(start).Seconds(), s.commit, machine()
		failOn(s.save(key, at, repetition, result))
		_ = os.RemoveAll(scratch) // the result is kept
		s.say("%s %s %s: repetition %d of %d, %.1f s", key.Study, key.Data, key.Method, now.Number, of, result.Seconds)
	}
	now.Done, now.Kept, now.Seconds = true, kept, result.Seconds
	s.report(now)
	return result, nil
}

// report passes an event on.
func (s *Store) report(e event) {
	if s.event != nil {
		s.event(e)
	}
}

// scratchOf is the context's key of a repetition's folder.
type scratchOf struct{}

// scratch is the folder in which the repetition of a context keeps what it resumes from where it is interrupted; it
// need not exist. Empty: there is none.
func scratch(ctx context.Context) string {
	folder, _ := ctx.Value(scratchOf{}).(string)
	return folder
}

// keeperOf is the context's key of the store that keeps a repetition.
type keeperOf struct{}

// keeper is the store that keeps the repetition of a context, where the repetition may keep parts of its own.
func keeper(ctx context.Context) *Store { return ctx.Value(keeperOf{}).(*Store) }

// record is a file of the store. Numbers are text, since JSON has no NaN.
type record struct {
	Study      string              `json:"study"`
	Data       string              `json:"data"`
	Method     string              `json:"method"`
	Settings   json.RawMessage     `json:"settings"`
	Repetition int                 `json:"repetition"`
	Values     map[string]string   `json:"values"`
	Series     map[string][]string `json:"series,omitempty"`
	Seconds    float64             `json:"seconds"`
	Commit     string              `json:"commit,omitempty"`
	Machine    string              `json:"machine,omitempty"`
}

var plain = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// place is where a key's repetitions are kept.
type place struct {
	dir      string
	settings json.RawMessage
	digest   string // of what the settings mean
}

// digest is a short name of a text, such as that of settings.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

func (p place) file(repetition int) string {
	return filepath.Join(p.dir, strconv.Itoa(repetition)+".json")
}

// place is a folder named by a digest of what the settings mean. It reports if there are results of the key for other
// settings only, which are not used.
func (s *Store) place(key Key) (p place, err error) {
	if p.settings, err = json.Marshal(key.Settings); err != nil {
		return p, fmt.Errorf("settings of %s: %w", key.Study, err)
	}
	p.digest = digest(meaning(p.settings))
	name := func(part string) string { return strings.TrimLeft(plain.ReplaceAllString(part, "_"), ".") } // no ".."
	all := filepath.Join(s.dir, name(key.Study), name(key.Data), name(key.Method))
	p.dir = filepath.Join(all, p.digest)
	if _, err := os.Stat(p.dir); err == nil || s.fresh {
		return p, nil
	}
	if others, _ := os.ReadDir(all); len(others) > 0 {
		s.say("%s %s %s: what is kept is of other settings (another version, or other flags): computed again",
			key.Study, key.Data, key.Method)
	}
	return p, nil
}

var (
	qualifier = regexp.MustCompile(`\b[a-z]+\.([A-Z])`)                // of a type
	goField   = regexp.MustCompile(`(?:(\w+):)?("[^"]*"|[\w.+\-()]+)`) // a field or a type of %#v
)

// meaning returns the values of settings that are not zero, by the names of their fields, sorted. It stays the same if
// an unset field is removed, a field moves to another struct, or a type to another package.
func meaning(settings json.RawMessage) string {
	var value any
	if json.Unmarshal(settings, &value) != nil {
		return string(settings)
	}
	var words []string
	add := func(name, value string) {
		name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
		words = append(words, fmt.Sprintf("%s=%q", name, qualifier.ReplaceAllString(value, "$1")))
	}
	var walk func(name string, value any)
	walk = func(name string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for field, item := range v {
				if name, ok := item.(string); !ok || field != "type" || !qualifier.MatchString(name) {
					walk(field, item) // types of packages were not always written
				}
			}
		case []any:
			for _, item := range v {
				walk(name, item)
			}
		case string:
			if !strings.Contains(v, "{") {
				if v != "" {
					add(name, v)
				}
				return
			}
			for _, field := range goField.FindAllStringSubmatch(v, -1) {
				if field[1] == "" || !slices.Contains([]string{"0", `""`, "false", "nil"}, field[2]) {
					add(field[1], field[2])
				}
			}
		case float64, bool:
			if v != 0. && v != false {
				add(name, fmt.Sprint(v))
			}
		}
	}
	walk("", value)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// load reads a repetition; kept is false if there is no usable one.
func (s *Store) load(key Key, at place, repetition int) (result Result, kept bool, err error) {
	if s.fresh {
		return Result{}, false, nil
	}
	path := at.file(repetition)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, fmt.Errorf("kept result: %w", err)
	}
	of, number, result, fault := decode(data)
	if fault == nil && (of.Study != key.Study || of.Data != key.Data || of.Method != key.Method || number != repetition ||
		meaning(of.Settings.(json.RawMessage)) != meaning(at.settings)) {
		fault = errors.New("it holds another result")
	}
	if fault != nil {
		s.say("%s is damaged and is computed again: %v", path, fault)
		return Result{}, false, nil
	}
	return result, true, nil
}

// decode reads a file of the store; the key's settings are JSON.
func decode(data []byte) (key Key, repetition int, result Result, err error) {
	defer caught(&err)
	var r record
	failOn(json.Unmarshal(data, &r))
	result = Result{Values: map[string]float64{}, Seconds: r.Seconds, Commit: r.Commit, Machine: r.Machine}
	for name, text := range r.Values {
		result.Values[name] = must(strconv.ParseFloat(text, 64))
	}
	for name, texts := range r.Series {
		if result.Series == nil {
			result.Series = map[string][]float64{}
		}
		for _, text := range texts {
			result.Series[name] = append(result.Series[name], must(strconv.ParseFloat(text, 64)))
		}
	}
	return Key{r.Study, r.Data, r.Method, r.Settings}, r.Repetition, result, nil
}

// exact is a number as text that has each of its bits.
func exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func (s *Store) save(key Key, at place, repetition int, result Result) error {
	path := at.file(repetition)
	r := record{Study: key.Study, Data: key.Data, Method: key.Method, Settings: at.settings, Repetition: repetition,
		Values: map[string]string{}, Seconds: result.Seconds, Commit: result.Commit, Machine: result.Machine}
	for name, value := range result.Values {
		r.Values[name] = exact(value)
	}
	for name, values := range result.Series {
		if r.Series == nil {
			r.Series = map[string][]string{}
		}
		for _, value := range values {
			r.Series[name] = append(r.Series[name], exact(value))
		}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = renameio.WriteFile(path, append(data, '\n'), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("keep a result: %w", err)
	}
	return nil
}

// Cells returns the means of results over their repetitions, a cell for each metric, by name; reported are the paper's
// numbers by metric.
func Cells(key Key, results []Result, reported map[string]Reported) []Cell {
	if len(results) == 0 {
		return nil
	}
	var metrics, commits []string
	var seconds float64
	for _, r := range results {
		seconds += r.Seconds
		if commit := cmp.Or(r.Commit, "unknown"); !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
		for name := range r.Values {
			if !slices.Contains(metrics, name) {
				metrics = append(metrics, name)
			}
		}
	}
	slices.Sort(metrics)
	cells := make([]Cell, 0, len(metrics))
	for _, name := range metrics {
		c := Cell{Study: key.Study, Data: key.Data, Method: key.Method, Metric: name, Seconds: seconds,
			Commit: strings.Join(commits, ", ")}
		var values []float64
		for _, r := range results {
			if v, ok := r.Values[name]; ok {
				values = append(values, v)
			}
		}
		c.Reps = len(values)
		c.Ours, c.SE = meanSE(values)
		if p, ok := reported[name]; ok {
			c.Paper = &p.Value
			if p.SE > 0 {
				c.PaperSE = &p.SE
			}
		}
		cells = append(cells, c)
	}
	return cells
}

// meanSE is the mean of values and its standard error, the sample standard deviation over the root of their number.
func meanSE(values []float64) (mean, se float64) {
	mean, deviation := stat.MeanStdDev(values, nil)
	return mean, stat.StdErr(deviation, float64(len(values)))
}
