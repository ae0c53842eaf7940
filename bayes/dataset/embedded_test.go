package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// The sizes and class counts are those that the sources publish (data/SOURCES.md).
var embeddedWant = []struct {
	name        string
	rows, dims  int
	task        Task
	target      string
	classes     string // and their rows
	classCounts []int
}{
	{"boston", 506, 13, Regression, "medv", "", nil},
	{"concrete", 1030, 8, Regression, "compressive_strength", "", nil},
	{"energy", 768, 8, Regression, "heating_load", "", nil},
	{"kin8nm", 8192, 8, Regression, "y", "", nil},
	{"naval", 11934, 14, Regression, "kmc", "", nil},
	{"power", 9568, 4, Regression, "pe", "", nil},
	{"protein", 45730, 9, Regression, "rmsd", "", nil},
	{"wine_red", 1599, 11, Regression, "quality", "", nil},
	{"yacht", 308, 6, Regression, "residuary_resistance", "", nil},
	{"california", 20640, 8, Regression, "medhouseval", "", nil},
	{"airfoil", 1503, 5, Regression, "sound_pressure_level", "", nil},
	{"bikesharing", 17379, 12, Regression, "cnt", "", nil},
	{"australian", 690, 14, BinaryClassification, "class", "0 1", []int{383, 307}},
	{"breast_cancer", 569, 30, BinaryClassification, "malignant", "benign malignant", []int{357, 212}},
	{"ionosphere", 351, 33, BinaryClassification, "class", "b g", []int{126, 225}},
	{"glass", 214, 9, Classification, "type", "1 2 3 5 6 7", []int{70, 76, 17, 13, 9, 29}},
	{"satellite", 6435, 36, Classification, "class", "1 2 3 4 5 7", []int{1533, 703, 1358, 626, 707, 1508}},
	{"wine", 178, 13, Classification, "class", "1 2 3", []int{59, 71, 48}},
	{"adult", 48842, 108, BinaryClassification, "income", "<=50K >50K", []int{37155, 11687}},
}

func TestEmbedded(t *testing.T) {
	var listed []string
	for _, want := range embeddedWant {
		listed = append(listed, want.name)
		t.Run(want.name, func(t *testing.T) {
			d := MustLoad(want.name)
			if err := d.Validate(); err != nil {
				t.Fatal(err)
			}
			if d.Name != want.name || d.Rows() != want.rows || d.Dims() != want.dims || d.Task != want.task ||
				d.Target != want.target {
				t.Errorf("got %s, %d x %d, %v, target %s", d.Name, d.Rows(), d.Dims(), d.Task, d.Target)
			}
			if d.Title == "" || d.Source == "" || d.Licence == "" {
				t.Errorf("no title, source or licence: %q, %q, %q", d.Title, d.Source, d.Licence)
			}
			counts := make([]int, len(d.Classes))
			for _, y := range d.Y {
				if want.task != Regression {
					counts[int(y)]++
				}
			}
			if !slices.Equal(counts, want.classCounts) || strings.Join(d.Classes, " ") != want.classes {
				t.Errorf("got class counts %v of %q, want %v", counts, d.Classes, want.classCounts)
			}
			e, err := find(want.name)
			if err != nil || e.rows != want.rows {
				t.Errorf("the registry says %d rows, error %v", e.rows, err)
			}
			for j := range d.Dims() { // no feature is constant
				column := mat.Col(nil, j, d.X)
				if slices.Max(column) == slices.Min(column) {
					t.Errorf("feature %q is constant", d.Features[j])
				}
			}
		})
	}
	if !slices.Equal(names(), listed) {
		t.Errorf("the registry has %q, the test knows %q", names(), listed)
	}
}

// TestPowerMoments: means and standard deviations of the source's own file, worked out by another program, to six
// decimals.
func TestPowerMoments(t *testing.T) {
	d := MustLoad("power")
	s, y := FitScaler(d.X), FitScaler(mat.NewDense(d.Rows(), 1, d.Y))
	mean := append(slices.Clone(s.Mean), y.Mean...)
	std := append(slices.Clone(s.StdDev), y.StdDev...)
	unbiased := math.Sqrt(float64(d.Rows()) / float64(d.Rows()-1)) // that program divides by N-1
	for j, want := range []struct{ mean, std float64 }{
		{19.651231, 7.452473}, {54.305804, 12.707893}, {1013.259078, 5.938784}, {73.308978, 14.600269},
		{454.365009, 17.066995},
	} {
		if math.Abs(mean[j]-want.mean) > 1e-6 || math.Abs(std[j]*unbiased-want.std) > 1e-6 {
			t.Errorf("column %d: got %.6f, %.6f, want %.6f, %.6f", j, mean[j], std[j]*unbiased, want.mean, want.std)
		}
	}
}

func TestEmbeddedRows(t *testing.T) {
	// The first row of the file: every feature in its place, the target split off.
	yacht := MustLoad("yacht")
	if got := append(yacht.X.(*mat.Dense).RawRowView(0), yacht.Y[0]); !slices.Equal(got,
		[]float64{-2.3, .568, 4.78, 3.99, 3.17, .125, .11}) {
		t.Errorf("yacht: first row %v", got)
	}
	naval := MustLoad("naval")
	if slices.Contains(naval.Features, "t1") || slices.Contains(naval.Features, "p1") ||
		slices.Contains(naval.Features, "kmt") || naval.Y[0] != .95 {
		t.Errorf("naval: features %q, first target %v", naval.Features, naval.Y[0])
	}
	adult := MustLoad("adult")
	first := map[string]float64{}
	for j, name := range adult.Features {
		first[name] = adult.X.At(0, j)
	}
	for name, want := range map[string]float64{
		"age": 39, "fnlwgt": 77516, "capital_gain": 2174, "workclass=State-gov": 1, "workclass=Private": 0, "workclass=?": 0,
		"education=Bachelors": 1, "race=White": 1, "sex=Male": 1, "sex=Female": 0, "native_country=United-States": 1,
	} {
		if got, ok := first[name]; !ok || got != want {
			t.Errorf("adult: first row has %s = %v (there: %v), want %v", name, got, ok, want)
		}
	}
	for i := range adult.Rows() { // 8 groups, in each of which one column is 1
		sum := 0.0
		for j, v := range adult.X.(*mat.Dense).RawRowView(i) {
			if strings.Contains(adult.Features[j], "=") {
				sum += v
			}
		}
		if sum != 8 {
			t.Fatalf("adult: row %d has %v ones in its 8 one-hot groups", i, sum)
		}
	}
}

func TestLoad(t *testing.T) {
	_, err := Load("yatch")
	wantError(t, err, `"yatch"`, "yacht", "adult")
	a := MustLoad("yacht")
	a.X.(*mat.Dense).Set(0, 0, 99)
	a.Y[0], a.Features[0] = 99, "other"
	if b := MustLoad("yacht"); b.X.At(0, 0) == 99 || b.Y[0] == 99 || b.Features[0] == "other" {
		t.Error("two copies share memory")
	}
	c := MustLoad("breast_cancer")
	c.Classes[0] = "other"
	if MustLoad("breast_cancer").Classes[0] != "benign" {
		t.Error("two copies share their class names")
	}
}

// TestSources compares every embedded file with the checksum in SOURCES.md.
func TestSources(t *testing.T) {
	sums := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]{64})  (\S+)$`).FindAllStringSubmatch(sources, -1) {
		sums[m[2]] = m[1]
	}
	err := fs.WalkDir(files, "data", func(path string, entry fs.DirEntry, err error) error {
		name, isTable := strings.CutSuffix(strings.TrimPrefix(path, "data/"), ".gz")
		if err != nil || !isTable {
			return err
		}
		r, err := openEmbedded(path)
		if err != nil {
			return err
		}
		h := sha256.New()
		if _, err := io.Copy(h, r); err != nil {
			return err
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != sums[name] {
			t.Errorf("%s has the sha256 %s, SOURCES.md says %q", name, got, sums[name])
		}
		delete(sums, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sums) > 0 {
		t.Errorf("SOURCES.md lists files that are not there: %v", sums)
	}
}
