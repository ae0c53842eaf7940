package study

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gobnn/bayes/compute"

	"github.com/google/renameio/v2"
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
}

// Store keeps repetitions, a file each. Files are written whole or not at all; one that cannot be read is computed
// again.
type Store struct {
	dir   string
	fresh bool
	say   func(format string, args ...any)
	tell  func(Repetition) // nil: none
}

// Repetition is where a study stands: at one repetition of a method on a data set.
type Repetition struct {
	Study, Data, Method string
	Number, Of          int     // from 1
	Done                bool    // it ended; else it begins
	Kept                bool    // it was computed before
	Seconds             float64 // that it took, where it is done
}

// OpenStore is the store that the options name.
func OpenStore(o Options) (*Store, error) {
	dir, err := o.ResultDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder for results (set GOBNN_CACHE to a folder that can be written): %w", err)
	}
	return &Store{dir: dir, fresh: o.Fresh, say: o.say, tell: o.Repetition}, nil
}

// ResultDir is the folder where repetitions are kept.
func (o Options) ResultDir() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	cache, err := compute.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "results"), nil
}

// Repeat runs those of repetitions 0 to reps-1 that are not kept, and keeps each; it fills in their Seconds. If run
// fails or the context ends, it returns those that are done with the error.
func (s *Store) Repeat(
	ctx context.Context, key Key, reps int, run func(ctx context.Context, repetition int) (Result, error),
) ([]Result, error) {
	if err := s.sayOthers(key); err != nil {
		return nil, err
	}
	var results []Result
	at := Repetition{Study: key.Study, Data: key.Data, Method: key.Method, Of: reps}
	tell := func(done, kept bool, seconds float64) {
		if at.Done, at.Kept, at.Seconds = done, kept, seconds; s.tell != nil {
			s.tell(at)
		}
	}
	for repetition := range reps {
		at.Number = repetition + 1
		result, kept, err := s.load(key, repetition)
		if err != nil {
			return results, err
		}
		if kept {
			tell(true, true, result.Seconds)
			results = append(results, result)
			continue
		}
		if err := ctx.Err(); err != nil {
			return results, context.Cause(ctx)
		}
		tell(false, false, 0)
		start := time.Now()
		result, err = run(ctx, repetition)
		if err != nil {
			return results, fmt.Errorf("%s, %s, %s, repetition %d: %w", key.Study, key.Data, key.Method, repetition, err)
		}
		result.Seconds = time.Since(start).Seconds()
		if err := s.save(key, repetition, result); err != nil {
			return results, err
		}
		results = append(results, result)
		tell(true, false, result.Seconds)
		s.say("%s %s %s: repetition %d of %d, %.1f s", key.Study, key.Data, key.Method, repetition+1, reps, result.Seconds)
	}
	return results, nil
}

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
	Sum        string              `json:"sum"` // SHA-256 of the record with Sum empty
}

func (r record) sum() (string, error) {
	r.Sum = ""
	data, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

var plain = regexp.MustCompile(`[^a-zA-Z0-9._-]+`)

// path is the file of a repetition, and the settings as JSON.
func (s *Store) path(key Key, repetition int) (string, json.RawMessage, error) {
	settings, err := json.Marshal(key.Settings)
	if err != nil {
		return "", nil, fmt.Errorf("settings of %s: %w", key.Study, err)
	}
	sum := sha256.Sum256(settings)
	name := func(part string) string { return strings.TrimLeft(plain.ReplaceAllString(part, "_"), ".") } // no ".."
	return filepath.Join(s.dir, name(key.Study), name(key.Data), name(key.Method), hex.EncodeToString(sum[:6]),
		strconv.Itoa(repetition)+".json"), settings, nil
}

// sayOthers reports if there are results of the key for other settings only, which are not used.
func (s *Store) sayOthers(key Key) error {
	path, _, err := s.path(key, 0)
	if err != nil || s.fresh {
		return err
	}
	own := filepath.Dir(path)
	versions, err := os.ReadDir(filepath.Dir(own))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("kept results: %w", err)
	}
	for _, v := range versions {
		if v.Name() == filepath.Base(own) {
			return nil
		}
	}
	if len(versions) > 0 {
		s.say("%s %s %s: what is kept is of other settings (another version, or other flags): computed again",
			key.Study, key.Data, key.Method)
	}
	return nil
}

// load reads a repetition; kept is false if there is no usable one.
func (s *Store) load(key Key, repetition int) (result Result, kept bool, err error) {
	path, settings, err := s.path(key, repetition)
	if err != nil || s.fresh {
		return Result{}, false, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, fmt.Errorf("kept result: %w", err)
	}
	result, fault := decode(data, key, settings, repetition)
	if fault != nil {
		s.say("%s is damaged and is computed again: %v", path, fault)
		return Result{}, false, nil
	}
	return result, true, nil
}

func decode(data []byte, key Key, settings json.RawMessage, repetition int) (Result, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return Result{}, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, r.Settings); err != nil {
		return Result{}, err
	}
	r.Settings = compact.Bytes()
	sum, err := r.sum()
	if err != nil {
		return Result{}, err
	}
	if sum != r.Sum {
		return Result{}, errors.New("its checksum does not fit")
	}
	if r.Study != key.Study || r.Data != key.Data || r.Method != key.Method || r.Repetition != repetition ||
		!bytes.Equal(r.Settings, settings) {
		return Result{}, errors.New("it holds another result")
	}
	result := Result{Values: map[string]float64{}, Seconds: r.Seconds}
	for name, text := range r.Values {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return Result{}, err
		}
		result.Values[name] = value
	}
	for name, texts := range r.Series {
		if result.Series == nil {
			result.Series = map[string][]float64{}
		}
		for _, text := range texts {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return Result{}, err
			}
			result.Series[name] = append(result.Series[name], value)
		}
	}
	return result, nil
}

func (s *Store) save(key Key, repetition int, result Result) error {
	path, settings, err := s.path(key, repetition)
	if err != nil {
		return err
	}
	r := record{Study: key.Study, Data: key.Data, Method: key.Method, Settings: settings, Repetition: repetition,
		Values: map[string]string{}, Seconds: result.Seconds}
	for name, value := range result.Values {
		r.Values[name] = strconv.FormatFloat(value, 'g', -1, 64)
	}
	for name, values := range result.Series {
		if r.Series == nil {
			r.Series = map[string][]string{}
		}
		for _, value := range values {
			r.Series[name] = append(r.Series[name], strconv.FormatFloat(value, 'g', -1, 64))
		}
	}
	if r.Sum, err = r.sum(); err != nil {
		return fmt.Errorf("keep a result: %w", err)
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

// Reported is a number of a paper's table.
type Reported struct {
	Value float64
	SE    float64 // its standard error; 0: unknown
}

// Cells are the means of results over their repetitions, a cell for each metric, by name; reported are the paper's
// numbers by metric.
func Cells(key Key, results []Result, reported map[string]Reported) []Cell {
	if len(results) == 0 {
		return nil
	}
	var metrics []string
	var seconds float64
	for _, r := range results {
		seconds += r.Seconds
		for name := range r.Values {
			if !slices.Contains(metrics, name) {
				metrics = append(metrics, name)
			}
		}
	}
	slices.Sort(metrics)
	cells := make([]Cell, 0, len(metrics))
	for _, name := range metrics {
		c := Cell{Study: key.Study, Data: key.Data, Method: key.Method, Metric: name, Seconds: seconds}
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

// mean is the mean of a metric over results.
func mean(results []Result, metric string) float64 {
	var values []float64
	for _, r := range results {
		if v, ok := r.Values[metric]; ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return math.NaN()
	}
	m, _ := meanSE(values)
	return m
}

// meanSE is the mean of values and its standard error, the sample standard deviation over the root of their number.
func meanSE(values []float64) (mean, se float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if n < 2 {
		return mean, math.NaN()
	}
	var sum float64
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / (n - 1) / n)
}
