package study

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

type settings struct{ Epochs int }

// scores is a repetition that counts how often it runs.
func scores(count *int) func(context.Context, int) (Result, error) {
	return func(_ context.Context, repetition int) (Result, error) {
		*count++
		return Result{Values: map[string]float64{"NLPD": float64(repetition) + .1, "odd": math.NaN()},
			Series: map[string][]float64{"loss": {1, math.Inf(1), .25}}}, nil
	}
}

func TestRepeatResumes(t *testing.T) {
	var said []string
	o := Options{CacheDir: t.TempDir(), Progress: func(line string) { said = append(said, line) }}
	key := Key{"ohsmc.table8", "yacht", "OHSMC", settings{200}}
	count := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopping := func(ctx context.Context, repetition int) (Result, error) {
		if repetition == 1 {
			cancel()
		}
		return scores(&count)(ctx, repetition)
	}
	results, err := must(OpenStore(o)).Repeat(ctx, key, 4, stopping)
	if !errors.Is(err, context.Canceled) || len(results) != 2 {
		t.Fatalf("%d results, error %v; want the two that were done and context.Canceled", len(results), err)
	}
	all, err := must(OpenStore(o)).Repeat(t.Context(), key, 4, scores(&count))
	if err != nil || count != 4 || len(all) != 4 {
		t.Fatalf("%d results after %d runs, error %v; want 4 after 4", len(all), count, err)
	}
	for i, r := range all {
		if r.Values["NLPD"] != float64(i)+.1 || !math.IsNaN(r.Values["odd"]) || !math.IsInf(r.Series["loss"][1], 1) {
			t.Errorf("repetition %d: %v", i, r.Values)
		}
	}
	if !reflect.DeepEqual(all[0].Seconds, results[0].Seconds) {
		t.Errorf("kept %v s, measured %v s", all[0].Seconds, results[0].Seconds)
	}
	if len(said) != 4 {
		t.Errorf("said %q, want a line for each repetition that ran", said)
	}
	o.Fresh = true
	if _, err := must(OpenStore(o)).Repeat(t.Context(), key, 4, scores(&count)); err != nil || count != 8 {
		t.Errorf("fresh: %d runs in all, %v; want 8", count, err)
	}
	o.Fresh = false
	for _, other := range []Key{
		{"ohsmc.table8", "yacht", "OHSMC", settings{100}},
		{"ohsmc.table8", "boston", "OHSMC", settings{200}},
		{"ohsmc.table8", "yacht", "VB", settings{200}},
		{"ohsmc.table3", "yacht", "OHSMC", settings{200}},
	} {
		before := count
		must(must(OpenStore(o)).Repeat(t.Context(), other, 1, scores(&count)))
		if count != before+1 {
			t.Errorf("%+v takes another key's result", other)
		}
	}
	if text := strings.Join(said, "\n"); strings.Count(text, "of other settings") != 1 {
		t.Errorf("results of other settings are there, and it reports %q", said)
	}
}

func TestRepeatFailure(t *testing.T) {
	fault := errors.New("diverged")
	key := Key{"s", "d", "m", nil}
	results, err := must(OpenStore(Options{CacheDir: t.TempDir()})).Repeat(t.Context(), key, 3,
		func(_ context.Context, repetition int) (Result, error) {
			if repetition == 1 {
				return Result{}, fault
			}
			return Result{Values: map[string]float64{"x": 1}}, nil
		})
	if !errors.Is(err, fault) || !strings.Contains(err.Error(), "s, d, m, repetition 2") || len(results) != 1 {
		t.Errorf("%d results, error %v", len(results), err)
	}
}

// TestDamaged: a file that is cut, changed or another's is computed again, and said.
func TestDamaged(t *testing.T) {
	for name, damage := range map[string]func(string) string{
		"cut": func(text string) string { return text[:len(text)/2] },
		"changed repetition": func(text string) string {
			return strings.Replace(text, `"repetition": 0`, `"repetition": 1`, 1)
		},
		"nothing in it": func(string) string { return "{}" },
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			o := Options{CacheDir: t.TempDir(), Progress: func(line string) { said = append(said, line) }}
			key := Key{"s", "d", "m", settings{1}}
			count := 0
			store := must(OpenStore(o))
			if _, err := store.Repeat(t.Context(), key, 1, scores(&count)); err != nil {
				t.Fatal(err)
			}
			at := must(store.place(key))
			path := at.file(0)
			text := must(os.ReadFile(path))
			changed := damage(string(text))
			if changed == string(text) {
				t.Fatal("the test changed nothing")
			}
			failOn(os.WriteFile(path, []byte(changed), 0o644))
			results, err := store.Repeat(t.Context(), key, 1, scores(&count))
			if err != nil || count != 2 || results[0].Values["NLPD"] != .1 {
				t.Errorf("%d runs, %v, %v; want it computed again", count, results, err)
			}
			if len(said) != 3 || !strings.Contains(said[1], path) || !strings.Contains(said[1], "computed again") {
				t.Errorf("said %q", said)
			}
			if _, err := store.Repeat(t.Context(), key, 1, scores(&count)); err != nil || count != 2 {
				t.Errorf("%d runs, %v: the repaired file is not used", count, err)
			}
		})
	}
}

func TestStoreFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	failOn(os.WriteFile(file, nil, 0o644))
	if _, err := OpenStore(Options{CacheDir: filepath.Join(file, "results")}); err == nil ||
		!strings.Contains(err.Error(), "GOBNN_CACHE") {
		t.Errorf("error %v for a folder that cannot be, want one that says what to do", err)
	}
	store := must(OpenStore(Options{CacheDir: t.TempDir()}))
	at, err := store.place(Key{"..", "../../x y", "m/n", nil})
	path := at.file(3)
	if err != nil || !strings.HasPrefix(path, store.dir+string(filepath.Separator)) || filepath.Base(path) != "3.json" {
		t.Errorf("path %s (%v) of strange names, want one within %s", path, err, store.dir)
	}
}

func TestCells(t *testing.T) {
	results := []Result{
		{Values: map[string]float64{"NLPD": 1, "RMSE": 2}, Seconds: 10},
		{Values: map[string]float64{"NLPD": 2, "RMSE": 2}, Seconds: 20},
		{Values: map[string]float64{"NLPD": 6, "RMSE": 2}, Seconds: 30},
	}
	key := Key{"s", "d", "m", nil}
	cells := Cells(key, results, map[string]Reported{"NLPD": {3.5, .5}, "RMSE": {Value: 1}})
	if len(cells) != 2 {
		t.Fatalf("%d cells, want 2", len(cells))
	}
	// By hand: the mean of 1, 2, 6 is 3, the sum of squares about it 4 + 1 + 9 = 14, so the variance is 7 and the SE
	// sqrt(7/3).
	nlpd := cells[0]
	if nlpd.Metric != "NLPD" || nlpd.Ours != 3 || math.Abs(nlpd.SE-math.Sqrt(7./3)) > 1e-12 || nlpd.Reps != 3 ||
		*nlpd.Paper != 3.5 || *nlpd.PaperSE != .5 || nlpd.Seconds != 60 {
		t.Errorf("NLPD: %+v", nlpd)
	}
	if rmse := cells[1]; rmse.Ours != 2 || rmse.SE != 0 || *rmse.Paper != 1 || rmse.PaperSE != nil {
		t.Errorf("RMSE: %+v", rmse)
	}
	if one := Cells(key, results[:1], nil)[0]; !math.IsNaN(one.SE) || one.Paper != nil {
		t.Errorf("a single repetition: %+v, want no standard error", one)
	}
	if none := Cells(key, nil, nil); len(none) != 0 {
		t.Errorf("cells of nothing: %+v", none)
	}
}

// What an earlier version has kept is found where a field that was not set is gone, or one is in another struct, or a
// type in another package; with another value, or of another type, it is not.
func TestKeptByEarlierVersion(t *testing.T) {
	old := map[string]any{"method": "pmcnet.Annealed", "attempts": []any{map[string]any{"Method": map[string]any{
		"Sampling": map[string]any{"Chains": 4, "Thin": 0}, "step_size": .01}, "Keep": "", "Poisson": nil}},
		"sampler": "pbnn.AllRows{Target:pbnn.TargetFullData{}, Kernel:mcmc.HMC{StepSize:0.5, Steps:0, Rule:\"\", AtOnce:0}}"}
	now := func(target string, steps int) map[string]any {
		return map[string]any{"method": "annealed.Annealed", "attempts": []any{map[string]any{"Chains": 4, "StepSize": .01}},
			"sampler": fmt.Sprintf("pbnn.AllRows{Target:pbnn.%s{}, Kernel:mcmc.HMC{StepSize:0.5, Steps:%d}}", target, steps)}
	}
	for name, c := range map[string]struct {
		settings any
		runs     int
	}{
		"the same": {now("TargetFullData", 0), 1}, "another type": {now("TargetFull", 0), 2},
		"another value": {now("TargetFullData", 3), 2},
	} {
		o, count := Options{CacheDir: t.TempDir()}, 0
		for _, settings := range []any{old, c.settings} {
			if _, err := must(OpenStore(o)).Repeat(t.Context(), Key{"s", "d", "m", settings}, 1, scores(&count)); err != nil {
				t.Fatal(err)
			}
		}
		if count != c.runs {
			t.Errorf("%s: %d runs, want %d", name, count, c.runs)
		}
	}
}

// The results that earlier versions have kept are still found: the keys of every experiment mean what they meant. A
// change on purpose counts up the experiment's version, and writes testdata/keys.txt anew (KEYS=write).
func TestKeysStay(t *testing.T) {
	var now strings.Builder
	for _, e := range All() {
		all := must(e.trials(Options{}))
		sum := sha256.New()
		for _, c := range all {
			settings := must(json.Marshal(c.Settings))
			fmt.Fprintln(sum, c.Study, c.Data, c.Method, meaning(settings))
		}
		fmt.Fprintf(&now, "%s %x\n", e.ID, sum.Sum(nil)[:8])
	}
	file := filepath.Join("testdata", "keys.txt")
	if os.Getenv("KEYS") == "write" {
		failOn(os.WriteFile(file, []byte(now.String()), 0o644))
	}
	was := must(os.ReadFile(file))
	for line := range strings.Lines(now.String()) {
		if !strings.Contains(string(was), line) {
			t.Errorf("kept results are not found any more: %s", line)
		}
	}
}
