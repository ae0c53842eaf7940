package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gobnn/bayes/baseline"
	"gobnn/bayes/fit"
	"gobnn/bayes/train"
	"gobnn/notebooks/program"
)

// quick replaces the default method by two networks, whose time does not matter.
func quick(t *testing.T) {
	was := method
	t.Cleanup(func() { method = was })
	method = func(float64) fit.Method {
		return baseline.Ensemble{Members: 2, Likelihood: true, Training: train.Training{Epochs: 200, BatchSize: 50}}
	}
}

// verb runs a verb and returns what it prints.
func verb(t *testing.T, args ...string) (out, progress string) {
	t.Helper()
	var o, p bytes.Buffer
	if err := dispatch(t.Context(), args, &o, &p); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, &o, &p)
	}
	return o.String(), p.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A German file of texts and a decimal comma is fitted, judged and predicted; the report of the same file is of the
// rows that were held out, and that of another of all its rows.
func TestThreeVerbs(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	german := func(v float64) string { return strings.Replace(strconv.FormatFloat(v, 'f', 3, 64), ".", ",", 1) }
	rows := func(n int) string {
		text := "<script>;Ort;Preis\n"
		for range n {
			x, town := rng.Float64(), rng.IntN(2)
			text += german(x) + ";" + []string{"Köln", "Ulm"}[town] + ";" + german(3*x+float64(town)+.1*rng.NormFloat64()) + "\n"
		}
		return text
	}
	write(t, "häuser.csv", rows(120))
	write(t, "später.csv", rows(60))
	out, _ := verb(t, "fit", "häuser.csv", "-decimal", ",")
	for _, want := range []string{"120 rows, 3 features, regression of Preis", "24 rows held out", "NLPD",
		"better than a guess", "the page is häuser.html", "the posterior is in häuser.posterior"} {
		if !strings.Contains(out, want) {
			t.Errorf("fit does not say %q:\n%s", want, out)
		}
	}
	page, err := os.ReadFile("häuser.html")
	if err != nil || !bytes.Contains(page, []byte("&lt;script&gt;")) || bytes.Contains(page, []byte("<script")) {
		t.Errorf("the page, of %d bytes, does not escape a column: %v", len(page), err)
	}
	out, _ = verb(t, "report", "häuser.posterior", "häuser.csv", "-decimal", ",", "-out", "a.html")
	if !strings.Contains(out, "24 rows held out") {
		t.Errorf("the report is not of the rows that were held out:\n%s", out)
	}
	if out, _ = verb(t, "report", "häuser.posterior", "später.csv", "-decimal", ","); !strings.Contains(out,
		"60 rows held out") || !strings.Contains(out, "the page is häuser.html") {
		t.Errorf("the report is not of all rows of another file:\n%s", out)
	}

	// New rows: in another order of columns, with more of them, and without a target.
	write(t, "neu.csv", "Ort;Notiz;<script>\nUlm;a;0,5\nKöln;b;0,5\nUlm;c;90\n")
	out, said := verb(t, "predict", "häuser.posterior", "neu.csv", "-decimal", ",", "-level", ".5")
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(records) != 4 || strings.Join(records[0], "|") != "row|Preis|Preis sd|Preis 25 %|Preis 75 %" {
		t.Fatalf("%v: %q", err, out)
	}
	for i, want := range []float64{2.5, 1.5} {
		if got, err := strconv.ParseFloat(records[1+i][1], 64); err != nil || math.Abs(got-want) > .4 {
			t.Errorf("row %d is predicted as %q, want %v", i, records[1+i], want)
		}
	}
	if !strings.Contains(said, "warning") || !strings.Contains(said, "<script>") {
		t.Errorf("a row far from all others is not named: %q", said)
	}
	_, _ = verb(t, "predict", "häuser.posterior", "neu.csv", "-decimal", ",", "-out", "p.csv")
	if text, err := os.ReadFile("p.csv"); err != nil || !bytes.HasPrefix(text, []byte("row,Preis,")) {
		t.Errorf("%v: %q", err, text)
	}
}

// Classes are found, and predicted with their probabilities.
func TestClasses(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(3, 4))
	text := "x,kind\n"
	for range 90 {
		x := rng.Float64()
		text += fmt.Sprintf("%v,%s\n", x, []string{"low", "mid", "top"}[int(3*x)])
	}
	write(t, "k.csv", text)
	if out, _ := verb(t, "fit", "k.csv", "-out", "k"); !strings.Contains(out, "accuracy") {
		t.Errorf("no accuracy:\n%s", out)
	}
	write(t, "new.csv", "x\n.1\n.9\n")
	out, _ := verb(t, "predict", "k.posterior", "new.csv")
	if !strings.HasPrefix(out, "row,class,p(low),p(mid),p(top)\n0,low,") || !strings.Contains(out, "\n1,top,") {
		t.Errorf("predicted:\n%s", out)
	}
}

func TestRefuses(t *testing.T) {
	here, err := filepath.Abs("../../bayes/dataset/parquet/testdata/kinds.parquet")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	kinds, err := os.ReadFile(here)
	if err != nil {
		t.Fatal(err)
	}
	write(t, "kinds.parquet", string(kinds))
	write(t, "a.csv", "x,y\n1,2\n3,4\n")
	write(t, "b.csv", "x,y\n"+strings.Repeat("1,2\n3,4\n5,6\n", 10))
	names := "name,y\n"
	for i := range 20 {
		names += fmt.Sprintf("person %d,%d\n", i, i)
	}
	write(t, "names.csv", names)
	write(t, "latin.csv", "stra\xdfe,y\n1,2\n")
	write(t, "gap.csv", "x,y\n1,2\n,4\n")
	for _, c := range []struct {
		args string
		want string // empty: usage
	}{
		{"", ""}, {"fit", ""}, {"fit a.csv b.csv", ""}, {"predict a.csv", ""}, {"fit a.csv -speed 3", ""},
		{"fit none.csv", "none.csv"},
		{"fit a.csv -test 0", "-test is 0"},
		{"fit a.csv -task both", `-task is "both"`},
		{"fit a.csv -missing never", `-missing is "never"`},
		{"fit a.csv -decimal point", `-decimal is "point"`},
		{"fit a.csv -target z", `no column "z"`},
		{"fit a.csv -group z", `no column "z"`},
		{"fit a.csv -order z", `no column "z"`},
		{"fit gap.csv", "row 1 (line 3)"},
		{"fit gap.csv", "(the options are set by -missing)"},
		{"fit names.csv", `the columns ["name"] have up to 20 texts in 20 rows`},
		{"fit names.csv -target name", `the target "name" has 20 texts in 20 rows`},
		{"fit b.csv -seconds -3", "-3"},
		{"fit kinds.parquet -na x -ignore l", "MissingTokens is set"},
		{"fit kinds.parquet", `column "l" has lists`},
		{"fit kinds.parquet -ignore l,d,t -target y", `row 1, column "x": the value is missing`},
		{"fit b.csv -encoding klingon", `-encoding is "klingon"`},
		{"fit latin.csv", "(the options are set by -encoding)"},
		{"fit latin.csv -encoding latin1", `test part comes out empty`},
		{"predict a.csv a.csv", "a.csv"},
		{"predict a.csv a.csv -level 1", "-level is 1"},
		{"report none.posterior a.csv", "none.posterior"},
	} {
		var out, progress bytes.Buffer
		err := dispatch(t.Context(), strings.Fields(c.args), &out, &progress)
		if c.want == "" && !errors.Is(err, program.ErrUsage) || c.want != "" && (err == nil ||
			!strings.Contains(fmt.Sprint(err), c.want)) {
			t.Errorf("%s: %v, want one that says %q", c.args, err, c.want)
		}
	}
	if made, _ := filepath.Glob("*.posterior"); len(made) > 0 {
		t.Errorf("%q were written", made)
	}
}
