package dataset

import (
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
		Task: BinaryClassification, Categorical: []string{"sex", "town"}, Ignore: []string{"id"},
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

	for _, c := range []readCase{
		{"the same columns", "id,age,sex,town,ill\n9,33,f,z,no\n", CSVOptions{Like: like},
			"age|sex=f|sex=m|town=x|town=y|town=z: 33 1 0 0 0 1 = 0 of no|yes"},
		{"another order, other columns, no target", "shoes,town,sex,note,age\nNA,x,m,?,33\n,y,f,,44\n",
			CSVOptions{Like: like}, "age|sex=f|sex=m|town=x|town=y|town=z: 33 0 1 1 0 0, 44 1 0 0 1 0 of no|yes"},
		{"all of one class", "age,sex,town,ill\n1,f,x,yes\n2,f,x,yes\n", CSVOptions{Like: like},
			"age|sex=f|sex=m|town=x|town=y|town=z: 1 1 0 1 0 0 = 1, 2 1 0 1 0 0 = 1 of no|yes"},
		{"the target is ignored", "age,sex,town,ill\n1,f,x,\n2,f,x,perhaps\n",
			CSVOptions{Like: like, Ignore: []string{"ill"}},
			"age|sex=f|sex=m|town=x|town=y|town=z: 1 1 0 1 0 0, 2 1 0 1 0 0 of no|yes"},
		{"the target is called otherwise", "age,sex,town,sick\n1,f,x,no\n", CSVOptions{Like: like},
			"age|sex=f|sex=m|town=x|town=y|town=z: 1 1 0 1 0 0 of no|yes"},
		{"one-hot columns as such", "sex=m,sex=f,age,town\n0,1,5,x\n", CSVOptions{Like: like},
			"age|sex=f|sex=m|town=x|town=y|town=z: 5 1 0 1 0 0 of no|yes"},
		{"means are Like's", "age,sex,town\n1,,\n,f,x\n3,f,x\n", CSVOptions{Like: like, Missing: MissingMean},
			"age|sex=f|sex=m|town=x|town=y|town=z: 1 0.25 0.75 0.5 0.25 0.25, 40 1 0 1 0 0, 3 1 0 1 0 0 of no|yes"},
		{"means of the training part", "age,sex,town\n,,\n", CSVOptions{Like: part, Missing: MissingMean},
			"age|sex=f|sex=m|town=x|town=y|town=z: 25 0.5 0.5 0.5 0 0.5 of no|yes"},
		{"drop", "age,sex,town,ill\n1,,x,no\n2,f,x,?\n?,k,w,u\n3,f,x,no\n",
			CSVOptions{Like: like, Missing: MissingDropRow}, "age|sex=f|sex=m|town=x|town=y|town=z: 3 1 0 1 0 0 = 0 of no|yes"},
		{"selected features", "sex,town\nf,y\nm,x\n", CSVOptions{Like: &selected},
			"town=y|sex=m|town=x|sex=f: 1 0 0 1, 0 1 1 0 of no|yes"},
		{"selected features, mean", "sex,town\n,\n", CSVOptions{Like: &selected, Missing: MissingMean},
			"town=y|sex=m|town=x|sex=f: 0.25 0.75 0.5 0.25 of no|yes"},
		{"no header", "7,v,8,9\n", CSVOptions{Like: positions, NoHeader: true}, "x0|x1=u|x1=v|x2: 7 0 1 8 = 9"},
		{"no header, no target", "7,u,8\n", CSVOptions{Like: positions, NoHeader: true}, "x0|x1=u|x1=v|x2: 7 1 0 8"},
		{"several targets", "v,u,a\n3,2,1\n6,5,4\n", CSVOptions{Like: several}, "a: 1 = 3 2, 4 = 6 5"},
		{"several targets, none there", "a\n7\n", CSVOptions{Like: several}, "a: 7"},
		{"a category that looks missing", "c\nNA\n", CSVOptions{Like: literal, Missing: MissingMean}, "c=NA|c=u: 1 0"},
		{"equals signs", "c=d,a=b\n7,u=v\n8,=\n", CSVOptions{Like: equals}, "a=b==|a=b=u=v|c=d: 0 1 7, 1 0 8"},
		{"names alone", "c,a\nv,1\n", CSVOptions{Like: names}, "a|c=u|c=v: 1 0 1"},
		{"names and means", "c,a\n,\n", CSVOptions{Like: means, Missing: MissingMean}, "a|c=u|c=v: 5 0.25 0.75"},
		{"whole numbers with a point", "grade\n1.0\n2.00\n1.5\n1\n", CSVOptions{Like: grades},
			"grade=1|grade=1.5|grade=2: 1 0 0, 0 0 1, 0 1 0, 1 0 0"},
		{"whole numbers without a point", "grade\n2\n1.0\n", CSVOptions{Like: pointed}, "grade=1.0|grade=2.0: 0 1, 1 0"},
		{"a category in two ways", "c\n1.0\n1\n", CSVOptions{Like: twoWays}, "c=1|c=1.0: 0 1, 1 0"},
		{"a class with a point", "y,a\n2.0,1\n10,1\n", CSVOptions{Like: counts}, "a: 1 = 2, 1 = 0 of 10|9|2"},
		{"classes in Like's order", "y,a\n2,1\n10,1\n", CSVOptions{Like: counts}, "a: 1 = 2, 1 = 0 of 10|9|2"},
	} {
		c.test(t)
	}
}

func TestReadCSVLikeRefuses(t *testing.T) {
	like := people(t)
	dropped := &Dataset{Features: []string{"age", "sex=m"}}
	positions := readLike(t, "3,1,2\n6,4,5\n", CSVOptions{NoHeader: true, Target: "0"})
	several := readLike(t, "a,u,v\n1,2,3\n4,5,6\n", CSVOptions{Targets: []string{"v", "u"}})
	of := func(names ...string) *Dataset { return &Dataset{Name: "first", Features: names, Target: "y"} }
	huge := of("a")
	huge.X = mat.NewDense(1, 1, []float64{1e200})
	wide := of("a")
	wide.X = mat.NewDense(1, 2, nil)

	for _, c := range []refusedCase{
		{"unknown category", "age,sex,town\n1,f,x\n\n2,k,x\n", CSVOptions{Like: like},
			[]string{"row 1 (line 4)", `"sex"`, `"k"`, `["f" "m"]`, "MissingTokens"}, errMissingCategory},
		{"letter case of a category", "age,sex,town\n1,F,x\n", CSVOptions{Like: like}, []string{`"F"`},
			errMissingCategory},
		{"leading zeros of a category", "c\n07\n", CSVOptions{Like: of("c=7", "c=8")}, []string{`"07"`},
			errMissingCategory},
		{"a number in another way", "c\n7.50\n", CSVOptions{Like: of("c=7.5", "c=8")},
			[]string{`"7.50"`, `same number as "7.5"`, "write both alike"}, errMissingCategory},
		{"a category that was left out", "age,sex\n1,f\n", CSVOptions{Like: dropped}, []string{`"f"`, `["m"]`},
			errMissingCategory},
		{"unknown class", "age,sex,town,ill\n1,f,x,maybe\n", CSVOptions{Like: like},
			[]string{"row 0 (line 2)", `"ill"`, `"maybe"`, `["no" "yes"]`, "Ignore"}, ErrMissingClass},
		{"missing", "age,sex,town\n1,,x\n", CSVOptions{Like: like}, []string{"row 0 (line 2)", `"sex"`, "MissingMean"},
			nil},
		{"missing target", "age,sex,town,ill\n1,f,x,?\n", CSVOptions{Like: like},
			[]string{`"ill"`, "target is missing", "Ignore"}, nil},
		{"text", "age,sex,town\nold,f,x\n", CSVOptions{Like: like}, []string{"line 2", `"age"`, `"old"`}, nil},
		{"missing column", "sex,town\nf,x\n", CSVOptions{Like: like}, []string{`"age"`, `["sex" "town"]`, "add it"}, nil},
		{"missing categorical column", "age,town\n1,x\n", CSVOptions{Like: like},
			[]string{`"sex=f"`, `column "sex"`, `["age" "town"]`}, nil},
		{"delimiter", "age^sex^town\n1^f^x\n", CSVOptions{Like: like}, []string{`"age"`, "delimiter"}, nil},
		{"names, but no header", "1,f,x\n", CSVOptions{Like: like, NoHeader: true},
			[]string{`"age"`, `["x0" "x1" "x2"]`, "position"}, nil},
		{"no header, no target in front", "1,2\n", CSVOptions{Like: positions, NoHeader: true}, []string{`"x2"`}, nil},
		{"one of several targets", "a,u\n1,2\n", CSVOptions{Like: several}, []string{`"u"`, `["v"]`, "Ignore"}, nil},
		{"a feature ignored", "age,sex,town\n1,f,x\n", CSVOptions{Like: like, Ignore: []string{"town"}},
			[]string{"Ignore", `"town"`, `"town=x"`}, nil},
		{"of two columns", "a,a=b\n1,c\n", CSVOptions{Like: of("a=b=c")}, []string{`"a=b=c"`, `"a"`, `"a=b"`, "rename"},
			nil},
		{"a number's categories", "a\n1\n", CSVOptions{Like: of("a", "a=b")}, []string{`"a=b"`}, nil},
		{"the target's categories", "y\n1\n", CSVOptions{Like: of("y=b")}, []string{`"y=b"`}, nil},
		{"Target", "a\n1\n", CSVOptions{Like: of("a"), Target: "-1"},
			[]string{"CSVOptions.Like says", "CSVOptions.Target", "empty"}, nil},
		{"Task", "a\n1\n", CSVOptions{Like: of("a"), Task: Classification}, []string{"CSVOptions.Like says"}, nil},
		{"Categorical", "a\n1\n", CSVOptions{Like: of("a"), Categorical: []string{"a"}},
			[]string{"CSVOptions.Like says"}, nil},
		{"no features", "a\n1\n", CSVOptions{Like: of()}, []string{"Like", `"first"`, "no names of features"}, nil},
		{"a feature is the target", "y\n1\n", CSVOptions{Like: of("y")}, []string{"two columns", `"y"`}, nil},
		{"names and X", "a\n1\n", CSVOptions{Like: wide}, []string{"1 names", "2 columns"}, nil},
		{"no classes", "a\n1\n", CSVOptions{Like: &Dataset{Task: Classification, Features: []string{"a"}}},
			[]string{"at least 2 classes"}, nil},
		{"no means", "a\n1\n", CSVOptions{Like: of("a"), Missing: MissingMean},
			[]string{"MissingMean", `"first"`, "no X"}, nil},
		{"a mean too large", "a\n1\n", CSVOptions{Like: huge, Missing: MissingMean}, []string{`"a"`, "1e+200"}, nil},
	} {
		c.test(t)
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
