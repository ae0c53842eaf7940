package dataset

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// numbered is a regression set whose target and only feature are the row's number.
func numbered(n int) *Dataset {
	d := &Dataset{Name: "numbered", Features: []string{"row"}, Target: "y", X: mat.NewDense(n, 1, nil),
		Y: make([]float64, n)}
	for i := range n {
		d.X.(*mat.Dense).Set(i, 0, float64(i))
		d.Y[i] = float64(i)
	}
	return d
}

// rowsOf are the row numbers in a part of numbered.
func rowsOf(t *testing.T, d *Dataset) []int {
	t.Helper()
	if d == nil {
		return nil
	}
	rows := make([]int, d.Rows())
	for i, y := range d.Y {
		if d.X.At(i, 0) != y {
			t.Fatalf("X and Y of row %d are of different rows", i)
		}
		rows[i] = int(y)
	}
	return rows
}

func wantPartition(t *testing.T, n int, parts ...[]int) {
	t.Helper()
	seen := make([]int, n)
	for _, rows := range parts {
		for _, r := range rows {
			seen[r]++
		}
	}
	for r, times := range seen {
		if times != 1 {
			t.Fatalf("row %d is in the parts %d times", r, times)
		}
	}
}

func TestSplit(t *testing.T) {
	tests := []struct {
		n    int
		f    Fractions
		want [3]int
	}{
		{308, Fractions{.6, .3, .1}, [3]int{185, 92, 31}}, // cuts at round(184.8), round(277.2)
		{10, Fractions{.9, 0, .1}, [3]int{9, 0, 1}},
		{10, Fractions{Train: 1}, [3]int{10, 0, 0}},
		{3, Fractions{1. / 3, 1. / 3, 1. / 3}, [3]int{1, 1, 1}},
		{1001, Fractions{.7, .3, 0}, [3]int{701, 300, 0}},
	}
	for _, tt := range tests {
		parts, err := numbered(tt.n).Split(tt.f, 7)
		if err != nil {
			t.Fatal(err)
		}
		train, validation, test := rowsOf(t, parts.Train), rowsOf(t, parts.Validation), rowsOf(t, parts.Test)
		wantPartition(t, tt.n, train, validation, test)
		if got := [3]int{len(train), len(validation), len(test)}; got != tt.want {
			t.Errorf("%d rows by %v: got %v, want %v", tt.n, tt.f, got, tt.want)
		}
		again, err := numbered(tt.n).Split(tt.f, 7)
		if err != nil || !slices.Equal(rowsOf(t, again.Train), train) {
			t.Errorf("%d rows by %v: the same seed gives another split (error %v)", tt.n, tt.f, err)
		}
		if other, err := numbered(tt.n).Split(tt.f, 8); tt.n > 100 &&
			(err != nil || slices.Equal(rowsOf(t, other.Train), train)) {
			t.Errorf("%d rows by %v: another seed gives the same split (error %v)", tt.n, tt.f, err)
		}
	}
}

// Each row is left out once, and trains the other folds; classes are spread, and the only row of one always trains.
func TestFolds(t *testing.T) {
	parts, err := numbered(23).Split(Fractions{Train: .6, Validation: .3, Test: .1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	folds, err := parts.Folds(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]int
	for _, f := range folds {
		wantPartition(t, 23, rowsOf(t, f.Train), rowsOf(t, f.Validation), rowsOf(t, f.Test))
		if n := f.Validation.Rows(); n != 5 && n != 6 {
			t.Errorf("%d rows are left out, want 5 or 6", n)
		}
		if got := f.Train.OriginalRow(0); float64(got) != f.Train.Y[0] {
			t.Errorf("row %v is named %d", f.Train.Y[0], got)
		}
		out = append(out, rowsOf(t, f.Validation))
	}
	wantPartition(t, 23, append(out, rowsOf(t, parts.Test))...)
	if again, err := parts.Folds(4, 2); err != nil || slices.Equal(again[0].Validation.Y, folds[0].Validation.Y) {
		t.Errorf("another seed leaves out the same rows (%v)", err)
	}
	for _, k := range []int{1, 22} {
		if _, err := parts.Folds(k, 1); err == nil || !strings.Contains(err.Error(), "21 rows") {
			t.Errorf("%d folds: %v", k, err)
		}
	}

	classes := numbered(12)
	classes.Task, classes.Classes = Classification, []string{"a", "b", "c"}
	for i := range classes.Y {
		classes.Y[i] = float64(i % 2)
	}
	classes.Y[5] = 2
	folds, err = Parts{Train: classes}.Folds(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range folds {
		counts := [3]int{}
		for _, y := range f.Train.Y {
			counts[int(y)]++
		}
		if counts[0] != 4 || counts[1] < 3 || counts[2] != 1 {
			t.Errorf("fold %d trains on %d, %d and %d rows of the classes", i, counts[0], counts[1], counts[2])
		}
	}
}

// copied are n rows of which each stands so many times, with two features and a target: of numbers, or of classes where
// one of seven is rare; with few values the features are yes or no.
func copied(n, times int, classes, few bool) *Dataset {
	rng := newRand("copied", 1, 0)
	d := &Dataset{Name: "copied", Features: []string{"a", "b"}, Target: "y", X: mat.NewDense(n*times, 2, nil),
		Y: make([]float64, n*times)}
	if classes {
		d.Task, d.Classes = Classification, []string{"often", "rare"}
	}
	for i := range n {
		row, y := []float64{rng.NormFloat64(), rng.NormFloat64()}, rng.NormFloat64()
		if few {
			row, y = []float64{float64(rng.IntN(2)), float64(rng.IntN(2))}, float64(rng.IntN(2))
		}
		if classes {
			y = 0
			if i%7 == 0 {
				y = 1
			}
		}
		for k := range times {
			d.X.(*mat.Dense).SetRow(k*n+i, row)
			d.Y[k*n+i] = y
		}
	}
	return d
}

// crossing are the rows of b that have a copy in a, of copied with so many different rows.
func crossing(a, b *Dataset, n int) (count int) {
	in := map[int]bool{}
	for i := range a.Rows() {
		in[a.OriginalRow(i)%n] = true
	}
	for i := range b.Rows() {
		if in[b.OriginalRow(i)%n] {
			count++
		}
	}
	return count
}

// Copies of a row are on one side, unless the table is so small that chance makes them; without copies the rows of a
// regression are where Split has them.
func TestDistinct(t *testing.T) {
	f := Fractions{Train: .8, Test: .2}
	for _, c := range []struct {
		name         string
		n, times     int
		classes, few bool
		crosses      bool
	}{
		{"none", 60, 1, false, false, false},
		{"noise five times", 60, 5, false, false, false},
		{"classes five times", 60, 5, true, false, false},
		{"yes and no", 60, 5, false, true, true},
		{"one row twice", 60, 2, false, false, false},
	} {
		d := copied(c.n, c.times, c.classes, c.few)
		if c.name == "one row twice" {
			rows := make([]int, 61)
			for i := range rows {
				rows[i] = i
			}
			var err error
			if d, err = d.Subset(rows); err != nil {
				t.Fatal(err)
			}
		}
		for seed := range uint64(10) {
			parts, err := d.SplitDistinct(f, seed)
			if err != nil {
				t.Fatal(c.name, err)
			}
			if got := crossing(parts.Train, parts.Test, c.n); (got > 0) != c.crosses {
				t.Errorf("%s, seed %d: %d rows have copies on the other side", c.name, seed, got)
			}
			if got, want := float64(parts.Test.Rows()), .2*float64(d.Rows()); math.Abs(got-want) > float64(c.times) {
				t.Errorf("%s, seed %d: %v rows are held out, want about %v", c.name, seed, got, want)
			}
			folds, err := Parts{Train: d}.Folds(5, seed)
			if err != nil {
				t.Fatal(c.name, err)
			}
			left := 0
			for i, fold := range folds {
				if got := crossing(fold.Train, fold.Validation, c.n); (got > 0) != c.crosses {
					t.Errorf("%s, seed %d, fold %d: %d rows have copies on the other side", c.name, seed, i, got)
				}
				if err := fold.Validate(); err != nil {
					t.Error(c.name, err)
				}
				left += fold.Validation.Rows()
			}
			if left != d.Rows() {
				t.Errorf("%s: %d of %d rows are left out", c.name, left, d.Rows())
			}
			if c.times > 1 && !c.crosses {
				continue
			}
			plain, err := d.Split(f, seed)
			if err != nil || !slices.Equal(plain.Train.Y, parts.Train.Y) {
				t.Errorf("%s: Split gives other rows (%v)", c.name, err)
			}
		}
	}
	identical := copied(1, 9, false, false) // nothing to part
	if parts, err := identical.SplitDistinct(f, 1); err != nil {
		t.Error(err)
	} else if _, err := parts.Folds(3, 1); err != nil {
		t.Error(err)
	}
}

// Each class is on both sides in its share, and the only row of a class trains.
func TestSplitDistinctSpreadsClasses(t *testing.T) {
	d := numbered(501)
	d.Task, d.Classes = Classification, []string{"ok", "fraud", "absent", "once"}
	for i := range d.Y {
		d.Y[i] = 0
		if i%90 == 5 {
			d.Y[i] = 1 // 6 rows
		}
	}
	d.Y[77] = 3
	for seed := range uint64(20) {
		parts, err := d.SplitDistinct(Fractions{Train: .8, Test: .2}, seed)
		if err != nil {
			t.Fatal(err)
		}
		count := [4]int{}
		for _, y := range parts.Test.Y {
			count[int(y)]++
		}
		if count != [4]int{99, 1, 0, 0} {
			t.Errorf("seed %d: %v rows of the classes are held out", seed, count)
		}
		if parts, err = d.SplitDistinct(Fractions{Train: .1, Test: .9}, seed); err != nil {
			t.Fatal(err)
		}
		for class := range 4 {
			if class != 2 && !slices.Contains(parts.Train.Y, float64(class)) {
				t.Errorf("seed %d: no row of class %d is in a training part of a tenth", seed, class)
			}
		}
	}
}

// The pictures of both parts are those of the whole.
func TestFoldsOfPixels(t *testing.T) {
	data := numbered(6)
	data.X = NewPixels([]byte{0, 1, 2, 3, 4, 5}, 1)
	parts, err := data.Split(Fractions{Train: .5, Validation: .5}, 1)
	if err != nil {
		t.Fatal(err)
	}
	folds, err := parts.Folds(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []*Dataset{folds[0].Train, folds[0].Validation} {
		for i, y := range part.Y {
			if got := part.X.(*Pixels).Bytes(i)[0]; float64(got) != y {
				t.Errorf("the picture of row %v is %d", y, got)
			}
		}
	}
}

func TestSplitErrors(t *testing.T) {
	tests := []struct {
		n    int
		f    Fractions
		want []string
	}{
		{10, Fractions{-.1, 1, .1}, []string{"train", "-0.1"}},
		{10, Fractions{.5, math.NaN(), .5}, []string{"validation", "NaN"}},
		{10, Fractions{.5, .3, .1}, []string{"0.5, 0.3, 0.1", "0.9", "sum to 1"}},
		{10, Fractions{}, []string{"sum to 0"}},
		{4, Fractions{.6, .3, .1}, []string{"test part", "0.1 of 4 rows"}},
		{4, Fractions{.9, .1, 0}, []string{"validation part", "0.1 of 4 rows"}},
	}
	for _, tt := range tests {
		_, err := numbered(tt.n).Split(tt.f, 0)
		wantError(t, err, tt.want...)
	}
	d := numbered(10)
	d.Y = d.Y[:9]
	_, err := d.Split(Fractions{Train: 1}, 0)
	wantError(t, err, "[10, 1]", "[9]")
}

func TestPublishedSplits(t *testing.T) {
	sizes := map[string][3]int{ // train, validation, test, as the sources give them
		"boston Gal": {455, 0, 51}, "boston Javid": {253, 0, 253},
		"concrete Gal": {927, 0, 103}, "energy Gal": {691, 0, 77}, "kin8nm Gal": {7373, 0, 819},
		"naval Gal": {10741, 0, 1193},
		"power Gal": {8611, 0, 957}, "protein Gal": {41157, 0, 4573}, "wine_red Gal": {1439, 0, 160},
		"yacht Gal":    {277, 0, 31},
		"glass PMCnet": {128, 43, 43}, "ionosphere PMCnet": {210, 70, 71}, "naval PMCnet": {7160, 2387, 2387},
		"protein PMCnet": {27438, 9146, 9146},
		"airfoil BDE":    {1202, 0, 301}, "bikesharing BDE": {13903, 0, 3476},
		"adult Official": {32561, 0, 16281}, "satellite Official": {4435, 0, 2000},
	}
	for _, e := range registry {
		for _, source := range []SplitSource{Gal, PMCnet, Javid, BDE, Official} {
			if e.splits[source] == 0 {
				continue
			}
			key := e.name + " " + string(source)
			var first []int
			for index := range e.splits[source] {
				rows, err := e.splitRows(source, index)
				if err != nil {
					t.Fatalf("%s %d: %v", key, index, err)
				}
				if got := [3]int{len(rows[0]), len(rows[1]), len(rows[2])}; got != sizes[key] {
					t.Errorf("%s %d: got sizes %v, want %v", key, index, got, sizes[key])
				}
				wantPartition(t, e.rows, rows[0], rows[1], rows[2])
				if index > 0 && slices.Equal(first, rows[2]) {
					t.Errorf("%s: split %d has the test rows of split 0", key, index)
				}
				if index == 0 {
					first = rows[2]
				}
			}
			delete(sizes, key)
		}
	}
	if len(sizes) > 0 {
		t.Errorf("these splits are missing: %v", sizes)
	}
}

func TestPublishedSplit(t *testing.T) {
	d := MustLoad("yacht")
	parts, err := d.PublishedSplit(Gal, 0)
	if err != nil {
		t.Fatal(err)
	}
	// The source's first split begins with the rows 73 and 304: their order is kept.
	if parts.Train.Y[0] != d.Y[73] || parts.Train.Y[1] != d.Y[304] ||
		!slices.Equal(parts.Train.X.(*mat.Dense).RawRowView(1), d.X.(*mat.Dense).RawRowView(304)) {
		t.Error("the training part does not begin with the rows 73 and 304")
	}
	if parts.Validation != nil || parts.Train.Rows() != 277 || parts.Test.Rows() != 31 {
		t.Errorf("got parts %+v", parts)
	}
	part := parts.Train
	wine, other := MustLoad("wine_red"), numbered(3)
	tests := []struct {
		d      *Dataset
		source SplitSource
		index  int
		want   []string
	}{
		{d, Gal, 20, []string{"yacht", "no Gal split 20", "Gal, index 0 to 19"}},
		{d, Gal, -1, []string{"no Gal split -1"}},
		{d, PMCnet, 0, []string{"no PMCnet split", "Gal, index 0 to 19"}},
		{wine, Official, 0, []string{"no Official split", "Gal"}},
		{MustLoad("protein"), PMCnet, 1, []string{"no PMCnet split 1", "Gal, index 0 to 4", "PMCnet, index 0"}},
		{MustLoad("wine"), Gal, 0, []string{"none published", "Split"}},
		{part, Gal, 0, []string{"all 308 rows", "277"}},
		{other, Gal, 0, []string{"numbered", "no published splits", "yacht"}},
	}
	for _, tt := range tests {
		_, err := tt.d.PublishedSplit(tt.source, tt.index)
		wantError(t, err, tt.want...)
	}
}

// A fault is reported by the row of the user's table, not of the part that shuffling put it in.
func TestErrorsNameOriginalRows(t *testing.T) {
	d := numbered(50)
	d.X.(*mat.Dense).Set(17, 0, math.NaN())
	parts, err := d.Split(Fractions{Train: 1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, parts.Validate(), "row 17 (")
	again, err := parts.Train.Split(Fractions{Train: 1}, 4)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, again.Validate(), "row 17 (")
	for i, y := range again.Train.Y {
		if again.Train.OriginalRow(i) != int(y) {
			t.Fatalf("row %d is said to be row %d, but is %v", i, again.Train.OriginalRow(i), y)
		}
	}

	file := "a,y\n1,1\nNA,2\n3,3\n"
	read, err := ReadCSV(strings.NewReader(file), CSVOptions{Missing: MissingDropRow})
	if err != nil {
		t.Fatal(err)
	}
	read.Y[1] = math.Inf(1)
	wantError(t, read.Validate(), "row 2 (")
	read.X, read.Y = numbered(4).X, []float64{0, 1, math.NaN(), 3} // other rows: nobody knows their place
	wantError(t, read.Validate(), "row 2,")
}
