package study

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gobnn/bayes/compute"
	"gobnn/viz"
)

// figure is a study that draws: its Run saves the figure as ID.png in Options.FigureDir.
func figure(id, note string, draw func(ctx context.Context, o Options) (*viz.Figure, []Cell, error)) Study {
	return Study{ID: id, State: Reduced, Note: note, Draw: draw, Run: func(ctx context.Context, o Options) ([]Cell, error) {
		fig, cells, err := draw(ctx, o)
		if err != nil {
			return cells, err
		}
		dir := o.FigureDir
		if dir == "" {
			cache, err := compute.CacheDir()
			if err != nil {
				return cells, err
			}
			dir = filepath.Join(cache, "figures")
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return cells, fmt.Errorf("folder for figures (-figures names another): %w", err)
		}
		path := filepath.Join(dir, id+".png")
		if err := fig.Save(path); err != nil {
			return cells, err
		}
		o.say("%s: %s", id, path)
		return cells, nil
	}}
}

// only checks what is asked of a study of one data set, and gives the methods as a set.
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
