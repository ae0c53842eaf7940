package computetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Every benchmark of a package that computes on an engine says in its results on which: its body goes through this
// package.
func TestBenchmarksNameTheirBackend(t *testing.T) {
	const root = "../../.."
	found := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		computes := false
		for _, i := range file.Imports {
			computes = computes || strings.HasPrefix(i.Path.Value, `"gobnn/bayes/compute`)
		}
		for _, d := range file.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok || !computes || !strings.HasPrefix(function.Name.Name, "Benchmark") {
				continue
			}
			named := false
			ast.Inspect(function, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					x, ok := s.X.(*ast.Ident)
					named = named || ok && x.Name == "computetest"
				}
				return true
			})
			if found++; !named {
				t.Errorf("%s: %s does not say which backend it measures: run its body by computetest.Bench",
					set.Position(function.Pos()), function.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("%d benchmarks found: this tests little", found)
	}
}
