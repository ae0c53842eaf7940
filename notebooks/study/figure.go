package study

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gobnn/bayes/compute"
	"gobnn/viz"
)

// figure is a study of a figure: its Run saves it by its ID in Options.FigureDir.
func figure(id, note string, draw func(ctx context.Context, o Options) (*viz.Figure, []Cell, error)) Study {
	return Study{ID: id, State: Reduced, Note: note, Draw: draw,
		Run: func(ctx context.Context, o Options) ([]Cell, error) {
			path, err := o.FigureFile(id)
			if err != nil {
				return nil, err
			}
			fig, cells, err := draw(ctx, o)
			if err != nil {
				return cells, err
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return cells, fmt.Errorf("folder for figures (-figures names another): %w", err)
			}
			if err := fig.Save(path); err != nil {
				return cells, err
			}
			o.say("%s: %s", id, path)
			return cells, nil
		}}
}

// FigureFormats are those that figures can be saved in.
var FigureFormats = []string{"png", "svg", "pdf"}

// FigureFile is where the figure of the study called id is saved.
func (o Options) FigureFile(id string) (string, error) {
	dir := o.FigureDir
	if dir == "" {
		cache, err := compute.CacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(cache, "figures")
	}
	format := cmp.Or(o.FigureFormat, "png")
	if !slices.Contains(FigureFormats, format) {
		return "", fmt.Errorf("figures as %q: it must be one of %s", format, strings.Join(FigureFormats, ", "))
	}
	return filepath.Join(dir, id+"."+format), nil
}

// only checks the options of a study with one data set, and returns the chosen methods as a set.
func (o Options) only(methods []string, data string) (map[string]bool, error) {
	if _, err := o.Select([]string{data}); err != nil {
		return nil, err
	}
	names, err := o.SelectMethods(methods)
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set, err
}
