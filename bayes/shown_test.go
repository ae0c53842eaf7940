package bayes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unshown are the exported names that nothing in this module uses, twenty at most, and why they stay.
var unshown = map[string]string{
	"bayes.Counted":              "is for a likelihood of a user's own, of counts",
	"bayes.NegativeBinomial":     "is in what ModelFor proposes",
	"bayes.Poisson":              "is a likelihood of counts that errors name",
	"bayes.Survivor":             "is for a likelihood of a user's own, to take Censored",
	"bayes/cluster.ErrOtherList": "tells a program with several lists of tasks to go on",
	"bayes/nn.Sized":             "is for a layer of a user's own, to say how much it stores",
	"viz/report.No":              "is a value of Verdict.Trust, which a program may act on",
	"viz/report.WithinLimits":    "is a value of Verdict.Trust, which a program may act on",
	"viz/report.Yes":             "is a value of Verdict.Trust, which a program may act on",
}

// An exported name of the library is used by another package, a program, a study, a notebook or an example, or it goes:
// each name multiplies with all others, and a reader cannot tell which matter. A type is also used by the signature,
// the fields and the methods of a name that is used, and a value of an enumeration by another one. Packages that are
// for tests are left out.
func TestShown(t *testing.T) {
	m := module{asked: map[string]bool{}, used: map[string]bool{}, shows: map[string][]string{},
		alike: map[string][]string{}}
	files, cell := os.DirFS(".."), regexp.MustCompile(`\b[a-z]\w*\.[A-Z]\w*`)
	if err := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		name, kind := path.Base(file), path.Ext(file)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || len(name) > 1 && name[0] == '.'):
			return fs.SkipDir
		case kind != ".go" && kind != ".ipynb" || strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "example"):
			return nil
		}
		text, err := fs.ReadFile(files, file)
		if err != nil || kind == ".go" {
			return m.read(file, text)
		}
		for _, used := range cell.FindAllString(string(text), -1) {
			m.asked[used] = true
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name := range m.shows {
		if m.asked[name] || m.asked[path.Base(name)] { // a cell has the package's name without its folder
			m.use(name)
		}
	}
	for name := range m.shows {
		if unshown[name] == "" && !m.used[name] {
			t.Errorf("nothing uses %s: remove it, unexport it, or show it in an example", name)
		}
	}
	if len(unshown) > 20 {
		t.Errorf("%d names stay that nothing uses", len(unshown))
	}
	for name, why := range unshown {
		if _, there := m.shows[name]; !there {
			t.Errorf("%s, which stays since it %s, is not there: leave it out of the list", name, why)
		}
	}
}

// forTests are the packages for tests, of the library and of users.
var forTests = []string{"bayes/compute/computetest", "bayes/fit/fittest", "bayes/mcmc/check"}

// module is what is known of the names of this module, each with its package's folder, as "bayes/fit.Fit".
type module struct {
	asked, used map[string]bool     // by other packages or by cells; of the library, also by names that are used
	shows       map[string][]string // by exported name of the library: the names in its signature, fields and methods
	alike       map[string][]string // by type: its values
}

// use takes note that a name is used.
func (m module) use(name string) {
	if m.used[name] {
		return
	}
	m.used[name] = true
	for _, shown := range slices.Concat(m.shows[name], m.alike[name]) {
		m.use(shown)
	}
}

// read reads a Go file: what it uses of other packages, and what it declares.
func (m module) read(file string, text []byte) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	folder, imports := path.Dir(file), map[string]string{}
	for _, i := range f.Imports {
		of := strings.Trim(i.Path.Value, `"`)
		name := path.Base(of)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = strings.TrimPrefix(of, "gobnn/")
	}
	// others and own are the names of other packages in a part of the file, and those of its own.
	var others, own []string
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				others = append(others, imports[x.Name]+"."+n.Sel.Name)
				return false
			}
		case *ast.Field: // whose name is that of no type
			ast.Inspect(n.Type, visit)
			return false
		case *ast.Ident:
			own = append(own, folder+"."+n.Name)
		}
		return true
	}
	ast.Inspect(f, visit)
	for _, name := range others {
		m.asked[name] = true
	}
	if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(folder, "notebooks") ||
		strings.Contains(folder, "internal") || slices.Contains(forTests, folder) {
		return nil
	}
	declare := func(name *ast.Ident, signature ast.Node, more ...string) {
		if others, own = nil, nil; signature != nil {
			ast.Inspect(signature, visit)
		}
		if key := folder + "." + name.Name; name.IsExported() {
			m.shows[key] = slices.Concat(m.shows[key], others, own, more)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := d.Name
			if d.Recv != nil && d.Name.IsExported() {
				ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
					if name, ok := n.(*ast.Ident); ok && of == d.Name {
						of = name // the type, before its parameters
					}
					return true
				})
			}
			if d.Recv == nil || of != d.Name {
				declare(of, d.Type)
			}
		case *ast.GenDecl:
			var kind ast.Expr // of a value; constants after the first take it over
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					declare(s.Name, s.Type)
				case *ast.ValueSpec:
					if s.Type != nil || len(s.Values) > 0 {
						kind = s.Type
					}
					if len(s.Values) > 0 && s.Type == nil {
						if value, ok := s.Values[0].(*ast.CompositeLit); ok {
							kind = value.Type
						}
					}
					var all []string
					if of, ok := kind.(*ast.Ident); ok {
						all = []string{folder + "." + of.Name + " values"}
					}
					for _, name := range s.Names {
						declare(name, kind, all...)
						for _, of := range all {
							m.alike[of] = append(m.alike[of], folder+"."+name.Name)
						}
					}
				}
			}
		}
	}
	return nil
}
