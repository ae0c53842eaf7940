package study

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// counted is an experiment of one row: its repetitions have the values that score gives.
func counted(version int, score func(repetition int) float64) Experiment {
	return Experiment{ID: "counted", trials: func(o Options) ([]*trial, error) {
		return []*trial{{Key: Key{"counted", "d", "m", map[string]int{"version": version}}, reps: 3,
			run: func(_ context.Context, repetition int) (Result, error) {
				return Result{Values: map[string]float64{"NLPD": score(repetition), "k-hat": math.NaN(), "seconds": 1}}, nil
			}}}, nil
	}}
}

// What is recorded of a row is computed again: it is the same, or is not, or is no longer the study's. On another
// machine it may differ as repetitions do. Seconds are not compared.
func TestVerify(t *testing.T) {
	first := counted(1, func(repetition int) float64 { return 1 + float64(repetition)/10 }) // standard error .058
	moved := func(by float64) Experiment {
		return counted(1, func(repetition int) float64 { return 1 + by + float64(repetition)/10 })
	}
	gone := Experiment{ID: "counted", trials: func(Options) ([]*trial, error) { return nil, nil }}
	for name, c := range map[string]struct {
		again     Experiment
		elsewhere bool
		says      string
		fails     bool
		alone     bool // is a single repetition, which nothing can judge
	}{
		"the same":           {first, false, "the same bits (repetition ", false, false},
		"the same elsewhere": {first, true, "the same bits", false, false},
		"a bit":              {moved(1e-15), false, "not the same bits: 1 of 2: NLPD 1.", true, false},
		"a bit elsewhere":    {moved(1e-15), true, "off by at most ", false, false},
		"much elsewhere":     {moved(200), true, "further off than repetitions are: 1 of 2: NLPD 20", true, false},
		"no number":          {moved(math.NaN()), true, "NLPD NaN was 1", true, false},
		"another version":    {counted(2, func(int) float64 { return 1 }), false, "no longer the study's", true, false},
		"alone elsewhere":    {moved(1e-15), true, "0 rows verified, 0 not, 1 with nothing", false, true},
		"without the row":    {gone, false, "no longer the study's", true, false},
	} {
		root, o := t.TempDir(), Options{CacheDir: t.TempDir(), Commit: "1111111"}
		records := must(OpenRecords(root))
		failOn(records.Record(first, o, must(first.Run(t.Context(), o)), o.Commit))
		if c.elsewhere {
			records.studies[0].Rows[0].Machine = "another"
		}
		if c.alone {
			records.studies[0].Rows[0].Reps = 1
		}
		failOn(records.Save())
		records = must(OpenRecords(root))
		var said []string
		o.Commit, o.Progress = "2222222", func(line string) { said = append(said, line) }
		err := records.Verify(t.Context(), []Experiment{c.again}, o, Limits{})
		if text := strings.Join(said, "\n"); !strings.Contains(text, c.says) || (err != nil) != c.fails ||
			c.fails && !strings.Contains(err.Error(), "counted, d, m") {
			t.Errorf("%s: %v, %s", name, err, text)
		}
		if marked := records.studies[0].Rows[0].Verified == "2222222"; marked == (c.fails || c.alone) {
			t.Errorf("%s: marked as verified: %v", name, marked)
		}
	}
}

// The limits leave out rows: those that take long, and what goes beyond all seconds.
func TestVerifyLimits(t *testing.T) {
	for limits, rows := range map[Limits]string{
		{}: "3 rows", {Under: 3}: "2 rows", {Within: 4}: "2 rows", {Under: 2, Within: 9}: "1 rows",
	} {
		some := map[string][2]string{"NLPD": {}}
		records := &Records{studies: []recorded{
			{Study: "a", Rows: []rowRecord{{Seconds: 5, Values: some}, {Seconds: 1, Values: some}, {}}},
			{Study: "b", Rows: []rowRecord{{Seconds: 2, Values: some}}}}}
		said := ""
		none := func(Options) ([]*trial, error) { return []*trial{}, nil }
		_ = records.Verify(t.Context(), []Experiment{{ID: "a", trials: none}, {ID: "b", trials: none}},
			Options{Progress: func(line string) { said = line }}, limits)
		if want := "0 rows verified, " + rows[:1] + " not, 0 with nothing to judge them by"; said != want {
			t.Errorf("%+v: %q, want %q", limits, said, want)
		}
	}
}

// A row that is recorded has the settings of its study: a study that raises its version is recorded anew.
func TestRecordedRowsAreOfTheirStudies(t *testing.T) {
	for _, s := range must(OpenRecords(filepath.Join("..", ".."))).studies {
		listed := map[string]map[string]bool{} // by options
		for _, r := range s.Rows {
			options := fmt.Sprint(r.Full, r.Epochs)
			if listed[options] == nil {
				listed[options] = map[string]bool{}
				for _, one := range must(must(Find(s.Study)).trials(Options{Full: r.Full, Epochs: r.Epochs})) {
					listed[options][one.Data+one.Method+must((&Store{fresh: true}).place(one.Key)).digest] = true
				}
			}
			if !listed[options][r.Data+r.Method+r.Key] {
				t.Errorf("%s, %s, %s is recorded with other settings than the study's: reproduce -record it", s.Study, r.Data,
					r.Method)
			}
		}
	}
}
