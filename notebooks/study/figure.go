package study

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gobnn/bayes/compute"
	"gobnn/viz"
)

// figure is a study of a figure: its Run saves it as ID.png in Options.FigureDir.
func figure(id, note string, draw func(ctx context.Context, o Options) (*viz.Figure, []Cell, error)) Study {
	return Study{ID: id, State: Reduced, Note: note, Draw: draw,
		Run: func(ctx context.Context, o Options) ([]Cell, error) {
			fig, cells, err := draw(ctx, o)
			if err != nil {
				return cells, err
			}
			path, err := o.FigureFile(id)
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
	return filepath.Join(dir, id+".png"), nil
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
