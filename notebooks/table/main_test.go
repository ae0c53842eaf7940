package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gobnn/bayes"
	"gobnn/bayes/baseline"
	"gobnn/bayes/dataset"
	"gobnn/bayes/fit"
	"gobnn/bayes/run"
	"gobnn/bayes/train"
	"gobnn/notebooks/program"

	"gonum.org/v1/gonum/stat/distuv"
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
		"\n60 rows:\n") || !strings.Contains(out, "the page is häuser.html") {
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

// A report of the file that fit read is of the rows that it held out, also by groups and where gaps were filled; of
// another file it says that none is known.
func TestReportFindsHeldOut(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	text := "patient,x,z,y\n"
	for i := range 200 {
		x, z := rng.Float64(), fmt.Sprint(rng.Float64())
		if i%20 == 3 {
			z = ""
		}
		text += fmt.Sprintf("p%d,%g,%s,%g\n", i%20, x, z, 2*x+.1*rng.NormFloat64())
	}
	write(t, "visits.csv", text)
	write(t, "later.csv", strings.Replace(text, "p0", "p77", 1)+"p9,.5,.5,1\n")
	write(t, "other.csv", strings.ReplaceAll(text, "1\n", "2\n"))
	out, _ := verb(t, "fit", "visits.csv", "-group", "patient", "-missing", "mean")
	if !strings.Contains(out, "40 rows held out") {
		t.Fatal(out)
	}
	for file, want := range map[string]string{"visits.csv": "40 rows held out", "later.csv": "41 rows held out",
		"other.csv": "none of the rows is known to have been trained on"} {
		if out, _ := verb(t, "report", "visits.posterior", file, "-missing", "mean"); !strings.Contains(out, want) {
			t.Errorf("%s: the report does not say %q:\n%s", file, want, out)
		}
	}
}

// Several targets have one page; a warning names the row of the file, and a folder that is not there is said before the
// training.
func TestSeveralTargets(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	text := "x,heat,\"cool, K\"\n"
	for range 200 {
		x := rng.Float64()
		text += fmt.Sprintf("%g,%g,%g\n", x, 3*x+.1*rng.NormFloat64(), 1-x+.1*rng.NormFloat64())
	}
	write(t, "rooms.csv", text)
	out, _ := verb(t, "fit", "rooms.csv", "-target", `heat,"cool, K"`)
	if page, err := os.ReadFile("rooms.html"); err != nil || !strings.Contains(out, "energy score") ||
		!strings.Contains(string(page), "Calibration of cool, K") {
		t.Errorf("%v\n%s", err, out)
	}
	write(t, "new.csv", "x,\"room, no\"\n"+strings.Repeat("0.5,007\n", 2500)+",008\n1e6,attic\n")
	out, said := verb(t, "predict", "rooms.posterior", "new.csv", "-missing", "drop", "-id", "room, no")
	if !strings.HasPrefix(out, "row,\"room, no\",heat,") || strings.Count(out, ",007,") != 2500 ||
		!strings.Contains(out, "\n2501,attic,") {
		t.Errorf("the rows' names are not beside the predictions: %.200q", out)
	}
	if strings.Count(said, "warning") != 1 || !strings.Contains(said, "1 of the 2501 rows") ||
		!strings.Contains(said, "row 2501") {
		t.Errorf("the warning is %q", said)
	}
	var o, p bytes.Buffer
	begun := method
	method = func(float64) fit.Method { t.Error("it was trained"); return begun(0) }
	write(t, "page.html", "my own")
	write(t, "other.posterior", "my own")
	for args, want := range map[string]string{
		"fit rooms.csv -out none/x": "-out", "fit rooms.csv -target heat": `predicts ["heat" "cool, K"], not ["heat"]: name`,
		"predict rooms.posterior new.csv -missing drop -id x": `-id lists the column "x"`,
		"fit rooms.csv -out page":                             "page.html is there",
		"fit rooms.csv -out other":                            "cannot be read",
	} {
		if err := dispatch(t.Context(), strings.Fields(args), &o, &p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	method = begun
	verb(t, "fit", "rooms.csv", "-target", "heat", "-replace")
	if p, err := bayes.Load("rooms.posterior"); err != nil || len(p.Origin().TargetNames) != 1 {
		t.Errorf("-replace did not replace the posterior of other targets: %v", err)
	}
}

// What fit writes in the project's folder is not the project's.
func TestIgnored(t *testing.T) {
	text, err := os.ReadFile("../../.gitignore")
	if err != nil || !strings.Contains(string(text), "\n/*.posterior\n/*.html\n") {
		t.Errorf("%v: %q", err, text)
	}
}

// What made the fit doubtful is said by each verb.
func TestDoubtsAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	text := "x,y\n"
	for i := range 100 {
		text += fmt.Sprintf("%d,%d\n", i, 2*i+i%3)
	}
	write(t, "a.csv", text)
	begun := method
	method = func(s float64) fit.Method { return doubtful{begun(s)} }
	_, alone := verb(t, "fit", "a.csv", "-test", "0", "-seconds", "20")
	_, predicted := verb(t, "predict", "a.posterior", "a.csv")
	judged, _ := verb(t, "fit", "a.csv", "-seconds", "20")
	again, _ := verb(t, "report", "a.posterior", "a.csv")
	for _, text := range []string{alone, judged, predicted, again} {
		if !strings.Contains(text, "did not end by itself (cancelled)") || !strings.Contains(text, "fold 2 was cut") {
			t.Errorf("it does not say that the fit was cancelled, or that a fold was cut: %s", text)
		}
	}
}

// doubtful is a method that does not end by itself.
type doubtful struct{ fit.Method }

func (d doubtful) Prepare(j *fit.Job) (fit.Method, error) {
	m, err := d.Method.Prepare(j)
	return doubtful{m}, err
}

func (d doubtful) Run(ctx context.Context, j *fit.Job) (*fit.Result, error) {
	r, err := d.Method.Run(ctx, j)
	if err == nil {
		r.Status = run.Cancelled
		r.Doubts.If(true, "cut", "fold 2 was cut")
	}
	return r, err
}

// Without rows held out there is a posterior, and no page; quantiles are those asked for, with the digits that a target
// far from 0 needs.
func TestQuantiles(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	text := "x,y\n"
	for range 100 {
		x := rng.Float64()
		text += fmt.Sprintf("%g,%.5f\n", x, 1.7e9+.02*x+.001*rng.NormFloat64())
	}
	write(t, "a.csv", text)
	out, _ := verb(t, "fit", "a.csv", "-test", "0", "-out", "all")
	if _, err := os.Stat("all.html"); !strings.Contains(out, "no rows were held out") || err == nil {
		t.Errorf("there is a page: %v\n%s", err, out)
	}
	out, _ = verb(t, "predict", "all.posterior", "a.csv", "-quantiles", ".0001, .5,.999")
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(records) != 101 || strings.Join(records[0], "|") != "row|y|y sd|y 0.01 %|y 50 %|y 99.9 %" {
		t.Fatalf("%v: %q", err, out)
	}
	last := 1.7e9 - 1
	for _, text := range records[1][3:] {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v > last && v < 1.7e9+1) {
			t.Errorf("the quantiles are %q", records[1])
		}
		last = v
	}
}

// Counts over exposures: a row of ten times the exposure is predicted ten times the count.
func TestExposure(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	text := "x,years,w,claims\n"
	for range 300 {
		x, years := rng.Float64(), 1+rng.IntN(9)
		claims := distuv.Poisson{Lambda: (2 + 2*x) * float64(years), Src: rng}.Rand()
		text += fmt.Sprintf("%g,%d,1,%g\n", x, years, claims)
	}
	write(t, "claims.csv", text)
	out, _ := verb(t, "fit", "claims.csv", "-exposure", "years", "-weight", "w")
	for _, want := range []string{"300 rows, 1 feature, regression of claims, with exposures, weighted",
		"better than a guess"} {
		if !strings.Contains(out, want) {
			t.Errorf("fit does not say %q:\n%s", want, out)
		}
	}
	out, _ = verb(t, "report", "claims.posterior", "claims.csv", "-exposure", "years")
	if !strings.Contains(out, "60 rows held out") {
		t.Errorf("the report is not of the rows that were held out:\n%s", out)
	}
	write(t, "new.csv", "years,x\n1,0.5\n10,0.5\n")
	for args, want := range map[string]string{
		"predict claims.posterior new.csv":   "-exposure",
		"report claims.posterior claims.csv": "-exposure",
	} {
		var o, p bytes.Buffer
		if err := dispatch(t.Context(), strings.Fields(args), &o, &p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", args, err, want)
		}
	}
	out, _ = verb(t, "predict", "claims.posterior", "new.csv", "-exposure", "years")
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(records) != 3 {
		t.Fatalf("%v: %q", err, out)
	}
	for i, want := range []float64{3, 30} {
		if got, err := strconv.ParseFloat(records[1+i][1], 64); err != nil || math.Abs(got/want-1) > .15 {
			t.Errorf("row %d is predicted as %q, want %v", i, records[1+i], want)
		}
	}
}

// Lifetimes that are not over count as what is at least so long: the median is that of all, not of the time watched.
func TestLifetimes(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	text := "load,years,failed\n"
	for range 400 {
		load := rng.Float64()
		life, watched := 12-6*load+rng.NormFloat64(), 4+8*rng.Float64()
		text += fmt.Sprintf("%g,%g,%t\n", load, min(life, watched), life < watched)
	}
	write(t, "pumps.csv", text)
	out, _ := verb(t, "fit", "pumps.csv", "-target", "years", "-event", "failed")
	for _, want := range []string{"400 rows, 1 feature, regression of years, seen in ", "better than a guess",
		"90 % intervals hold"} {
		if !strings.Contains(out, want) {
			t.Errorf("fit does not say %q:\n%s", want, out)
		}
	}
	out, _ = verb(t, "report", "pumps.posterior", "pumps.csv", "-event", "failed")
	page, err := os.ReadFile("pumps.html")
	if err != nil || !strings.Contains(out, "80 rows held out") || !strings.Contains(string(page), "above ") {
		t.Errorf("the report is not of the rows that were held out, or names no row that is censored: %v\n%s", err, out)
	}
	var o, p bytes.Buffer
	err = dispatch(t.Context(), strings.Fields("report pumps.posterior pumps.csv"), &o, &p)
	if err == nil || !strings.Contains(err.Error(), "-event") {
		t.Errorf("a report without its column: %v", err)
	}
	write(t, "new.csv", "load\n0.5\n")
	out, _ = verb(t, "predict", "pumps.posterior", "new.csv", "-quantiles", ".5")
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(records) != 2 {
		t.Fatalf("%v: %q", err, out)
	}
	if median, err := strconv.ParseFloat(records[1][3], 64); err != nil || math.Abs(median-9) > .5 {
		t.Errorf("a load of .5 is predicted as %q, want 9", records[1])
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

// Classes that have an order are told apart by one output and its cut points, in the order given, which the alphabet's
// is not; the posterior keeps it, and so do rows that are read like it.
func TestOrderedClasses(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(3, 4))
	rows := func(n int) string {
		text := "x,kind\n"
		for range n {
			x := rng.Float64()
			text += fmt.Sprintf("%v,%s\n", x, []string{"low", "medium", "high"}[int(3*x)])
		}
		return text
	}
	write(t, "k.csv", rows(90))
	write(t, "later.csv", rows(40))
	if out, _ := verb(t, "fit", "k.csv", "-ordinal", "low,medium,high"); !strings.Contains(out, "accuracy") {
		t.Errorf("no accuracy:\n%s", out)
	}
	p, err := bayes.Load("k.posterior")
	if err != nil {
		t.Fatal(err)
	}
	if l := p.Model().Likelihood; l != (bayes.Ordinal{}) {
		t.Errorf("the likelihood is %T", l)
	}
	write(t, "new.csv", "x\n.1\n.5\n.9\n")
	out, _ := verb(t, "predict", "k.posterior", "new.csv")
	for _, want := range []string{"row,class,p(low),p(medium),p(high)\n0,low,", "\n1,medium,", "\n2,high,"} {
		if !strings.Contains(out, want) {
			t.Errorf("predicted, without %q:\n%s", want, out)
		}
	}
	later, err := dataset.OpenCSV("later.csv", dataset.CSVOptions{Like: p.Like()})
	if err != nil || !slices.Equal(later.Classes, []string{"low", "medium", "high"}) {
		t.Fatalf("%v, %v", later, err)
	}
	for i, y := range later.Y {
		if want := math.Floor(3 * later.X.At(i, 0)); y != want {
			t.Errorf("row %d is of class %v, want %v", i, y, want)
		}
	}
	if out, _ = verb(t, "report", "k.posterior", "later.csv"); !strings.Contains(out, "\n40 rows:\n") {
		t.Errorf("the report:\n%s", out)
	}
}

// A last layer is fitted behind a network that was trained elsewhere; its posterior needs the network's file.
func TestNetwork(t *testing.T) {
	network, err := filepath.Abs("../../bayes/nn/onnx/testdata/digits.onnx")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	quick(t)
	rng := rand.New(rand.NewPCG(1, 2))
	text := strings.Repeat("pixel,", 64) + "class\n"
	for k := range 64 {
		text = strings.Replace(text, "pixel,", fmt.Sprintf("pixel %d,", k), 1)
	}
	for i := range 90 {
		for k := range 64 {
			text += fmt.Sprintf("%.3f,", rng.Float64()*float64(1+(i+k/32)%2))
		}
		text += []string{"above", "below"}[i%2] + "\n"
	}
	write(t, "halves.csv", text)
	out, _ := verb(t, "fit", "halves.csv", "-network", network)
	for _, want := range []string{"90 rows, 64 features", "18 rows held out", "the page is halves.html"} {
		if !strings.Contains(out, want) {
			t.Errorf("fit does not say %q:\n%s", want, out)
		}
	}
	if out, _ = verb(t, "report", "halves.posterior", "halves.csv", "-network", network); !strings.Contains(out,
		"18 rows held out") {
		t.Errorf("the report is not of the rows that were held out:\n%s", out)
	}
	out, _ = verb(t, "predict", "halves.posterior", "halves.csv", "-network", network)
	if right := strings.Count(out, ",above,") + strings.Count(out, ",below,"); right != 90 {
		t.Errorf("%d rows are predicted:\n%s", right, out)
	}
}

// Each option that an error of a file names is a field of CSVOptions and has a flag, also as a value that mends it.
func TestOptionsHaveFlags(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../bayes/*.go", "../../bayes/dataset/*.go", "../../bayes/dataset/parquet/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	fields, count := reflect.TypeFor[dataset.CSVOptions](), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole := regexp.MustCompile(`" ?\+\s*"`).ReplaceAllString(string(text), "") // without breaks of lines
		whole = regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(whole, "")
		for _, found := range options.FindAllStringSubmatch(whole, -1) {
			field, _, _ := strings.Cut(found[1], " ")
			if _, is := fields.FieldByName(field); !is || field != "Like" && flagNames[found[1]] == "" {
				t.Errorf("%s: the option %s is no field, or has no flag", file, found[0])
			}
			count++
		}
	}
	if count < 50 {
		t.Errorf("%d options were found in errors", count)
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
	write(t, "c.csv", "x,y\n"+strings.Repeat("1,low\n2,medium\n", 10))
	write(t, "b.csv", "x,y\n"+strings.Repeat("1,2\n3,4\n5,6\n", 10))
	names := "name,y\n"
	for i := range 20 {
		names += fmt.Sprintf("person %d,%d\n", i, i)
	}
	write(t, "names.csv", names)
	write(t, "latin.csv", "stra\xdfe,y\n1,2\n")
	write(t, "gap.csv", "x,y\n1,2\n,4\n")
	write(t, "comma.csv", "\"Length,mm\",Task,\"Weight,g\"\n1,,2\n3,4,5\n")
	goNames := regexp.MustCompile(`\b(Missing\w*|Task|Categorical|Classes|Ignore|NoHeader|Decimal|Encoding|Targets?|` +
		`Like|(\w+Options|Settings|Method)\.\w+)\b`)
	for _, c := range []struct {
		args string
		want string // empty: usage
	}{
		{"", ""}, {"fit", ""}, {"fit a.csv b.csv", ""}, {"predict a.csv", ""}, {"fit a.csv -speed 3", ""},
		{"fit none.csv", "none.csv"},
		{"fit a.csv -test 1", "-test is 1"},
		{"fit a.csv -task both", `-task is "both"`},
		{"fit c.csv -ordinal low,high", `"medium" is none of the -ordinal ["low" "high"]`},
		{"fit c.csv -ordinal low,medium,low", `the class "low" is listed twice`},
		{"fit c.csv -ordinal low", `-ordinal is "low"`},
		{"fit c.csv -ordinal low,,medium", `-ordinal is "low,,medium"`},
		{"fit c.csv -ordinal low,medium -task regression", `-ordinal lists the classes ["low" "medium"]`},
		{"fit c.csv -ordinal low,medium,high -test .5", `"high", of the 3 of "c", has none of the`},
		{"fit a.csv -missing never", `-missing is "never"`},
		{"fit a.csv -decimal point", `-decimal is "point"`},
		{"fit a.csv -target z", `no column "z"`},
		{"fit a.csv -group z", `no column "z"`},
		{"fit a.csv -order z", `no column "z"`},
		{"fit gap.csv", "row 1 (line 3)"},
		{"fit gap.csv", "set -missing drop or -missing mean, or mend"},
		{"fit gap.csv -target x", "set -missing drop, or leave"},
		{"fit gap.csv -target x -missing mean", "set -missing drop, or leave the row out"},
		{"fit comma.csv -target Weight,g -group z", `no column "z"`},
		{"fit comma.csv -target Weight,g -ignore z", `no column "z"`},
		{`fit comma.csv -target Weight,g -ignore "Length,mm",Task -missing drop`, "there is no feature"},
		{`fit comma.csv -target "Weight`, ""},
		{"fit comma.csv -target Weight,q", `no column "Weight"`},
		{"fit comma.csv", `row 0 (line 2), column "Task": the value is missing`},
		{"fit ./Target.csv", "open ./Target.csv"},
		{"fit a.csv -test 0", "needs at least 10; give more rows"},
		{"fit names.csv", `the columns ["name"] have up to 20 texts in 20 rows`},
		{"fit names.csv -target name", `the target "name" has 20 texts in 20 rows`},
		{"fit b.csv -seconds -3", "-3"},
		{"fit kinds.parquet -na x -ignore l", "-na is set"},
		{"fit kinds.parquet", `column "l" has lists`},
		{"fit kinds.parquet -ignore l,d,t,s -target y", `row 1, column "x": the value is missing`},
		{"fit b.csv -encoding klingon", `-encoding is "klingon"`},
		{"fit latin.csv", "set -encoding to the file's"},
		{"fit latin.csv -encoding latin1", `test part comes out empty`},
		{"predict a.csv a.csv", "a.csv is no posterior, or damaged; first comes the posterior"},
		{"report a.csv a.csv", "a.csv is no posterior, or damaged; first comes the posterior"},
		{"predict a.csv a.csv -level 1", "-level is 1"},
		{"predict a.csv a.csv -quantiles .5,1", `-quantiles has "1"`},
		{"report none.posterior a.csv", "none.posterior"},
	} {
		var out, progress bytes.Buffer
		err := dispatch(t.Context(), strings.Fields(c.args), &out, &progress)
		if c.want == "" && !errors.Is(err, program.ErrUsage) || c.want != "" && (err == nil ||
			!strings.Contains(fmt.Sprint(err), c.want)) {
			t.Errorf("%s: %v, want one that says %q", c.args, err, c.want)
		}
		if err != nil && goNames.MatchString(regexp.MustCompile(`".*?"|\./Target`).ReplaceAllString(err.Error(), "")) {
			t.Errorf("%s: %v, which names an option of Go", c.args, err)
		}
	}
	if made, _ := filepath.Glob("*.posterior"); len(made) > 0 {
		t.Errorf("%q were written", made)
	}
}
