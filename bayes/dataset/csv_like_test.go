package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// people is a table with two categorical columns, whose levels stand in the order of Features: age, sex=f, sex=m,
// town=x, town=y, town=z. Its means are 40, 1/4, 3/4, 1/2, 1/4, 1/4.
func people(t *testing.T) *Dataset {
	t.Helper()
	return readLike(t, "id,age,sex,town,ill\n1,20,f,x,yes\n2,60,m,y,no\n3,50,m,x,no\n4,30,m,z,yes\n", CSVOptions{
		Name: "people", Task: BinaryClassification, Categorical: []string{"sex", "town"}, Ignore: []string{"id"},
	})
}

func readLike(t *testing.T, text string, opts CSVOptions) *Dataset {
	t.Helper()
	d, err := ReadCSV(strings.NewReader(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReadCSVLike(t *testing.T) {
	like := people(t)
	selected := *like // columns of a category apart, and one gone
	selected.Features, selected.X = []string{"town=y", "sex=m", "town=x", "sex=f"}, mat.NewDense(1, 4,
		[]float64{.25, .75, .5, .25})
	part, err := like.Subset([]int{0, 3}) // age 20 and 30, sex 1/2 and 1/2, town 1/2, 0, 1/2
	if err != nil {
		t.Fatal(err)
	}
	positions := readLike(t, "1,u,3,7\n4,v,6,8\n", CSVOptions{NoHeader: true, Categorical: []string{"1"}})
	several := readLike(t, "a,u,v\n1,2,3\n4,5,6\n", CSVOptions{Targets: []string{"v", "u"}})
	literal := readLike(t, "c,y\nNA,1\nu,2\n", CSVOptions{Categorical: []string{"c"}, MissingTokens: []string{}})
	equals := readLike(t, "a=b,c=d,y\n=,2,1\nu=v,3,2\n", CSVOptions{Categorical: []string{"a=b"}})
	names := &Dataset{Features: []string{"a", "c=u", "c=v"}}
	means := &Dataset{Features: names.Features, X: mat.NewDense(1, 3, []float64{5, .25, .75})}
	grades := readLike(t, "grade,y\n1,7\n2,8\n1.5,9\n", CSVOptions{Categorical: []string{"grade"}})
	pointed := readLike(t, "grade,y\n1.0,7\n2.0,8\n", CSVOptions{Categorical: []string{"grade"}})
	twoWays := &Dataset{Features: []string{"c=1", "c=1.0"}}
	counts := &Dataset{Task: Classification, Features: []string{"a"}, Target: "y", Classes: []string{"10", "9", "2"}}

	tests := []struct {
		name, text string
		opts       CSVOptions
		x          []float64 // row by row
		y          []float64 // nil: not known
	}{
		{"the same columns", "id,age,sex,town,ill\n9,33,f,z,no\n", CSVOptions{Like: like},
			[]float64{33, 1, 0, 0, 0, 1}, []float64{0}},
		{"another order, other columns, no target", "shoes,town,sex,note,age\nNA,x,m,?,33\n,y,f,,44\n",
			CSVOptions{Like: like},
			[]float64{33, 0, 1, 1, 0, 0, 44, 1, 0, 0, 1, 0}, nil},
		{"all of one class", "age,sex,town,ill\n1,f,x,yes\n2,f,x,yes\n", CSVOptions{Like: like},
			[]float64{1, 1, 0, 1, 0, 0, 2, 1, 0, 1, 0, 0}, []float64{1, 1}},
		{"the target is ignored", "age,sex,town,ill\n1,f,x,\n2,f,x,perhaps\n",
			CSVOptions{Like: like, Ignore: []string{"ill"}},
			[]float64{1, 1, 0, 1, 0, 0, 2, 1, 0, 1, 0, 0}, nil},
		{"the target is called otherwise", "age,sex,town,sick\n1,f,x,no\n", CSVOptions{Like: like},
			[]float64{1, 1, 0, 1, 0, 0}, nil},
		{"one-hot columns as such", "sex=m,sex=f,age,town\n0,1,5,x\n", CSVOptions{Like: like},
			[]float64{5, 1, 0, 1, 0, 0}, nil},
		{"means are Like's", "age,sex,town\n1,,\n,f,x\n3,f,x\n", CSVOptions{Like: like, Missing: MissingMean},
			[]float64{1, .25, .75, .5, .25, .25, 40, 1, 0, 1, 0, 0, 3, 1, 0, 1, 0, 0}, nil},
		{"means of the training part", "age,sex,town\n,,\n", CSVOptions{Like: part, Missing: MissingMean},
			[]float64{25, .5, .5, .5, 0, .5}, nil},
		{"drop", "age,sex,town,ill\n1,,x,no\n2,f,x,?\n?,k,w,u\n3,f,x,no\n", CSVOptions{Like: like, Missing: MissingDropRow},
			[]float64{3, 1, 0, 1, 0, 0}, []float64{0}}, // what is unknown in a row that is dropped is no error
		{"selected features", "sex,town\nf,y\nm,x\n", CSVOptions{Like: &selected}, []float64{1, 0, 0, 1, 0, 1, 1, 0}, nil},
		{"selected features, mean", "sex,town\n,\n", CSVOptions{Like: &selected, Missing: MissingMean},
			[]float64{.25, .75, .5, .25}, nil},
		{"no header", "7,v,8,9\n", CSVOptions{Like: positions, NoHeader: true}, []float64{7, 0, 1, 8}, []float64{9}},
		{"no header, no target", "7,u,8\n", CSVOptions{Like: positions, NoHeader: true}, []float64{7, 1, 0, 8}, nil},
		{"several targets", "v,u,a\n3,2,1\n6,5,4\n", CSVOptions{Like: several}, []float64{1, 4}, []float64{3, 2, 6, 5}},
		{"several targets, none there", "a\n7\n", CSVOptions{Like: several}, []float64{7}, nil},
		{"a category that looks missing", "c\nNA\n", CSVOptions{Like: literal, Missing: MissingMean}, []float64{1, 0}, nil},
		{"equals signs", "c=d,a=b\n7,u=v\n8,=\n", CSVOptions{Like: equals}, []float64{0, 1, 7, 1, 0, 8}, nil},
		{"names alone", "c,a\nv,1\n", CSVOptions{Like: names}, []float64{1, 0, 1}, nil},
		{"names and means", "c,a\n,\n", CSVOptions{Like: means, Missing: MissingMean}, []float64{5, .25, .75}, nil},
		{"whole numbers with a point", "grade\n1.0\n2.00\n1.5\n1\n", CSVOptions{Like: grades},
			[]float64{1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0}, nil}, // 1, 1.5, 2
		{"whole numbers without a point", "grade\n2\n1.0\n", CSVOptions{Like: pointed}, []float64{0, 1, 1, 0}, nil},
		{"a category in two ways", "c\n1.0\n1\n", CSVOptions{Like: twoWays}, []float64{0, 1, 1, 0}, nil},
		{"a class with a point", "y,a\n2.0,1\n10,1\n", CSVOptions{Like: counts}, []float64{1, 1}, []float64{2, 0}},
		{"classes in Like's order", "y,a\n2,1\n10,1\n", CSVOptions{Like: counts}, []float64{1, 1}, []float64{2, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := readLike(t, tt.text, tt.opts)
			like := tt.opts.Like
			rows := len(tt.x) / len(like.Features)
			if d.Rows() != rows || !mat.EqualApprox(d.X, mat.NewDense(rows, len(like.Features), tt.x), 1e-15) {
				t.Errorf("got %d rows, features\n%v", d.Rows(), mat.Formatted(d.X))
			}
			if !slices.Equal(d.Y, tt.y) || (d.Y == nil) != (tt.y == nil) {
				t.Errorf("got Y %v, want %v", d.Y, tt.y)
			}
			if !slices.Equal(d.Features, like.Features) || !slices.Equal(d.TargetNames(), like.TargetNames()) ||
				!slices.Equal(d.Classes, like.Classes) || d.Task != like.Task || d.Name != "csv" {
				t.Errorf("got %+v", d)
			}
			if err := d.SameOrder(like.Features, like.TargetNames(), like.Classes); err != nil {
				t.Error(err)
			}
			if err := d.Validate(); tt.y != nil && err != nil {
				t.Error(err)
			} else if tt.y == nil {
				wantError(t, err, "not known", "Y is empty")
			}
		})
	}
}

func TestReadCSVLikeErrors(t *testing.T) {
	like := people(t)
	dropped := &Dataset{Features: []string{"age", "sex=m"}}
	positions := readLike(t, "3,1,2\n6,4,5\n", CSVOptions{NoHeader: true, Target: "0"})
	several := readLike(t, "a,u,v\n1,2,3\n4,5,6\n", CSVOptions{Targets: []string{"v", "u"}})
	of := func(names ...string) *Dataset { return &Dataset{Name: "first", Features: names, Target: "y"} }
	huge := of("a")
	huge.X = mat.NewDense(1, 1, []float64{1e200})
	wide := of("a")
	wide.X = mat.NewDense(1, 2, nil)

	tests := []struct {
		name, text string
		opts       CSVOptions
		is         error
		want       []string
	}{
		{"unknown category", "age,sex,town\n1,f,x\n\n2,k,x\n", CSVOptions{Like: like}, errMissingCategory,
			[]string{"row 1 (line 4)", `"sex"`, `"k"`, `["f" "m"]`, "MissingTokens"}},
		{"letter case of a category", "age,sex,town\n1,F,x\n", CSVOptions{Like: like}, errMissingCategory, []string{`"F"`}},
		{"leading zeros of a category", "c\n07\n", CSVOptions{Like: of("c=7", "c=8")}, errMissingCategory, []string{`"07"`}},
		{"a number in another way", "c\n7.50\n", CSVOptions{Like: of("c=7.5", "c=8")}, errMissingCategory,
			[]string{`"7.50"`, `same number as "7.5"`, "write both alike"}},
		{"a category that was left out", "age,sex\n1,f\n", CSVOptions{Like: dropped}, errMissingCategory,
			[]string{`"f"`, `["m"]`}},
		{"unknown class", "age,sex,town,ill\n1,f,x,maybe\n", CSVOptions{Like: like}, ErrMissingClass,
			[]string{"row 0 (line 2)", `"ill"`, `"maybe"`, `["no" "yes"]`, "Ignore"}},
		{"missing", "age,sex,town\n1,,x\n", CSVOptions{Like: like}, nil, []string{"row 0 (line 2)", `"sex"`, "MissingMean"}},
		{"missing target", "age,sex,town,ill\n1,f,x,?\n", CSVOptions{Like: like}, nil,
			[]string{`"ill"`, "target is missing", "Ignore"}},
		{"missing target and mean", "age,sex,town,ill\n1,f,x,?\n", CSVOptions{Like: like, Missing: MissingMean}, nil,
			[]string{`"ill"`, "target is missing", "Ignore"}},
		{"text", "age,sex,town\nold,f,x\n", CSVOptions{Like: like}, nil, []string{"line 2", `"age"`, `"old"`}},
		{"missing column", "sex,town\nf,x\n", CSVOptions{Like: like}, nil, []string{`"age"`, `["sex" "town"]`, "add it"}},
		{"missing categorical column", "age,town\n1,x\n", CSVOptions{Like: like}, nil,
			[]string{`"sex=f"`, `column "sex"`, `["age" "town"]`}},
		{"delimiter", "age^sex^town\n1^f^x\n", CSVOptions{Like: like}, nil, []string{`"age"`, "delimiter"}},
		{"name twice", "age,age,sex,town\n1,2,f,x\n", CSVOptions{Like: like}, nil, []string{"columns 0 and 1", `"age"`}},
		{"names, but no header", "1,f,x\n", CSVOptions{Like: like, NoHeader: true}, nil,
			[]string{`"age"`, `["x0" "x1" "x2"]`, "position"}},
		{"no header, no target in front", "1,2\n", CSVOptions{Like: positions, NoHeader: true}, nil, []string{`"x2"`}},
		{"one of several targets", "a,u\n1,2\n", CSVOptions{Like: several}, nil, []string{`"u"`, `["v"]`, "Ignore"}},
		{"a feature ignored", "age,sex,town\n1,f,x\n", CSVOptions{Like: like, Ignore: []string{"town"}}, nil,
			[]string{"Ignore", `"town"`, `"town=x"`}},
		{"unknown ignored", "age,sex,town\n1,f,x\n", CSVOptions{Like: like, Ignore: []string{"z"}}, nil,
			[]string{"Ignore", `"z"`}},
		{"no rows", "age,sex,town\n", CSVOptions{Like: like}, nil, []string{"no rows"}},
		{"of two columns", "a,a=b\n1,c\n", CSVOptions{Like: of("a=b=c")}, nil, []string{`"a=b=c"`, `"a"`, `"a=b"`, "rename"}},
		{"a number's categories", "a\n1\n", CSVOptions{Like: of("a", "a=b")}, nil, []string{`"a=b"`}},
		{"the target's categories", "y\n1\n", CSVOptions{Like: of("y=b")}, nil, []string{`"y=b"`}},

		{"Target", "a\n1\n", CSVOptions{Like: of("a"), Target: "-1"}, nil, []string{"Like and Target", `"-1"`, "empty"}},
		{"Targets", "a\n1\n", CSVOptions{Like: of("a"), Targets: []string{"u"}}, nil, []string{"Like and Targets", `"u"`}},
		{"Task", "a\n1\n", CSVOptions{Like: of("a"), Task: Classification}, nil, []string{"Like and Task", "classification"}},
		{"Classes", "a\n1\n", CSVOptions{Like: of("a"), Classes: []string{"u"}}, nil, []string{"Like and Classes", `"u"`}},
		{"Categorical", "a\n1\n", CSVOptions{Like: of("a"), Categorical: []string{"a"}}, nil,
			[]string{"Like and Categorical", `"a"`}},
		{"no features", "a\n1\n", CSVOptions{Like: of()}, nil, []string{"Like", `"first"`, "no names of features"}},
		{"a feature twice", "a\n1\n", CSVOptions{Like: of("a", "a")}, nil, []string{`"first"`, "two columns", `"a"`}},
		{"a feature is the target", "y\n1\n", CSVOptions{Like: of("y")}, nil, []string{"two columns", `"y"`}},
		{"names and X", "a\n1\n", CSVOptions{Like: wide}, nil, []string{"1 names", "2 columns"}},
		{"no classes", "a\n1\n", CSVOptions{Like: &Dataset{Task: Classification, Features: []string{"a"}}}, nil,
			[]string{"at least 2 classes"}},
		{"no means", "a\n1\n", CSVOptions{Like: of("a"), Missing: MissingMean}, nil,
			[]string{"MissingMean", `"first"`, "no X"}},
		{"a mean too large", "a\n1\n", CSVOptions{Like: huge, Missing: MissingMean}, nil, []string{`"a"`, "1e+200"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Name = "new"
			_, err := ReadCSV(strings.NewReader(tt.text), tt.opts)
			wantError(t, err, append(tt.want, "dataset new")...)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v does not wrap %v", err, tt.is)
			}
		})
	}
}

// A file that is read like another keeps its own name, its rows' numbers, and leaves the other table as it was.
func TestOpenCSVLike(t *testing.T) {
	like := people(t)
	hash := like.Hash()
	path := filepath.Join(t.TempDir(), "new.csv")
	if err := os.WriteFile(path, []byte("town,age,sex\nx,,f\ny,5,m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := OpenCSV(path, CSVOptions{Like: like, Missing: MissingDropRow})
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "new" || d.Rows() != 1 || d.OriginalRow(0) != 1 {
		t.Errorf("got %+v, its row of number %d", d, d.OriginalRow(0))
	}
	d.Features[0], d.Classes[0] = "changed", "changed"
	d.X.(*mat.Dense).Set(0, 0, 7)
	if like.Hash() != hash || like.Features[0] != "age" {
		t.Error("the first table has changed")
	}
}

// A file is read like itself: classes that were numbers, however they are written, and rows of nothing.
func TestReadsItselfLike(t *testing.T) {
	for _, c := range []struct {
		text string
		opts CSVOptions
	}{
		{"x,y\n1,+1\n2,-1\n3,+1\n", CSVOptions{}},
		{"x,y\n1,1.50\n2,2.50\n", CSVOptions{}},
		{"x,y\n1,10%\n2,20%\n", CSVOptions{}},
		{"x,y\n1,1000000\n2,20000000\n", CSVOptions{}},
		{"x;y\n1;1,5\n2;2,5\n", CSVOptions{Decimal: ','}},
		{"x,y\n1,a\n2,b\n,\n,\n", CSVOptions{}},
	} {
		c.opts.Task = TaskByTarget
		d := readLike(t, c.text, c.opts)
		again, err := ReadCSV(strings.NewReader(c.text), CSVOptions{Like: d, Decimal: c.opts.Decimal})
		if err != nil || !slices.Equal(again.Y, d.Y) || again.Hash() != d.Hash() {
			t.Errorf("%q: classes %q, %v; again %v, %v", c.text, d.Classes, d.Y, again, err)
		}
	}
}

// The rows that were trained on are found again in another reading of the file, and nowhere else.
func TestWithout(t *testing.T) {
	text := "x,z,y\n1,1,5\n2,,6\n3,1,7\n4,2,8\n5,3,9\n"
	read := func(text string, missing Missing) *Dataset {
		return readLike(t, text, CSVOptions{Missing: missing})
	}
	whole := read(text, MissingMean)
	part, err := whole.Subset([]int{4, 0, 2})
	if err != nil {
		t.Fatal(err)
	}
	trained := part.RowSet()
	for _, again := range []*Dataset{whole, read(text, MissingDropRow)} {
		out, in, err := again.Without(trained)
		if err != nil || in == nil || in.Rows() != 3 || out.Rows() != again.Rows()-3 || out.OriginalRow(out.Rows()-1) != 3 {
			t.Errorf("%d rows: in %v, out %v, %v", again.Rows(), in, out, err)
		}
	}
	if out, in, err := part.Without(trained); err != nil || out != nil || in.Rows() != 3 {
		t.Errorf("all of them: out %v, in %v, %v", out, in, err)
	}
	for _, other := range []*Dataset{read(strings.Replace(text, "3,9", "3,10", 1), MissingMean),
		read("x,z,y\n1,1,5\n2,2,6\n", MissingError)} {
		if out, in, err := other.Without(trained); err != nil || in != nil || out != other {
			t.Errorf("another file: out %v, in %v, %v", out, in, err)
		}
	}
	if out, in, err := whole.Without(RowSet{}); err != nil || in != nil || out != whole {
		t.Errorf("a set that is not known: out %v, in %v, %v", out, in, err)
	}
}
