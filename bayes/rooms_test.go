package bayes_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gobnn/bayes/compute/computetest"
)

// TestRooms holds the picture of the packages in .github/CONTRIBUTING.md to the imports: a package stands one floor
// above the highest that it imports. ROOMS=write draws it anew.
func TestRooms(t *testing.T) {
	imports := map[string]map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (name[0] == '.' || name == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		room := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), ".."+string(filepath.Separator)))
		if imports[room] == nil {
			imports[room] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			if own, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "gobnn/"); ok {
				imports[room][own] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	floors := map[string]int{}
	var floor func(room string) int
	floor = func(room string) int {
		if floors[room] == 0 {
			floors[room] = 1
			for below := range imports[room] {
				floors[room] = max(floors[room], floor(below)+1)
			}
		}
		return floors[room]
	}
	picture := map[int][]string{}
	for _, room := range slices.Sorted(maps.Keys(imports)) {
		picture[floor(room)] = append(picture[floor(room)], room)
	}
	var b strings.Builder
	for f := range len(picture) {
		for i, line := range wrapped(picture[len(picture)-f], 105) {
			label := ""
			if i == 0 {
				label = fmt.Sprint(len(picture) - f)
			}
			fmt.Fprintf(&b, "%2s  %s\n", label, line)
		}
	}
	const file = "../.github/CONTRIBUTING.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(text), "<!-- rooms -->\n```\n")
	drawn, after, ended := strings.Cut(rest, "```\n")
	switch {
	case !begun || !ended:
		t.Fatalf("%s has no block after <!-- rooms -->", file)
	case drawn != b.String() && os.Getenv("ROOMS") == "write":
		text := before + "<!-- rooms -->\n```\n" + b.String() + "```\n" + after
		computetest.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	case drawn != b.String():
		t.Errorf("%s shows other packages; draw them anew: ROOMS=write go test ./bayes -run TestRooms\n%s", file, &b)
	}
}

// wrapped joins words to lines of at most so many characters.
func wrapped(words []string, most int) (lines []string) {
	for _, word := range words {
		if last := len(lines) - 1; last < 0 || len(lines[last])+2+len(word) > most {
			lines = append(lines, word)
		} else {
			lines[last] += "  " + word
		}
	}
	return lines
}
