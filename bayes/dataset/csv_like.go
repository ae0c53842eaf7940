package dataset

import (
	"fmt"
	"slices"
	"strings"
)

// checkLike is an error if options contradict Like, or if Like does not say which columns there are.
func (o CSVOptions) checkLike() error {
	for _, s := range []struct {
		name  string
		value any
		set   bool
	}{
		{"Target", o.Target, o.Target != ""},
		{"Targets", o.Targets, len(o.Targets) > 0},
		{"Task", o.Task, o.Task != Regression},
		{"Classes", o.Classes, len(o.Classes) > 0},
		{"Categorical", o.Categorical, len(o.Categorical) > 0},
		{"Order", o.Order, o.Order != ""},
	} {
		if s.set {
			return fmt.Errorf("both of Like and %s, %q, are set: leave %s empty, since it is as in Like", s.name, s.value,
				s.name)
		}
	}
	like := o.Like
	if len(like.Features) == 0 {
		return fmt.Errorf("the table Like, %q, has no names of features: it must have those that the model was trained on",
			like.Name)
	}
	if err := like.validateTask(); err != nil {
		return fmt.Errorf("the table Like, %q: %w", like.Name, err)
	}
	seen := map[string]bool{}
	for _, name := range append(slices.Clone(like.Features), like.TargetNames()...) {
		if seen[name] {
			return fmt.Errorf("the table Like, %q, has two columns of the name %q: rename one, in the first file as well",
				like.Name, name)
		}
		seen[name] = true
	}
	if dims := like.Dims(); like.X != nil && dims != len(like.Features) {
		return fmt.Errorf("the table Like, %q, has %d names of features, but its X has %d columns: there must be one for "+
			"each", like.Name, len(like.Features), dims)
	}
	if o.Missing == MissingMean && like.Dims() == 0 {
		return fmt.Errorf("Missing is MissingMean, but Like, %q, has no X to take the means of: give it its rows, or the "+
			"means as one row", like.Name)
	}
	return nil
}

// assignLike finds the columns that Like's features and targets come from; all others are ignored.
func (t *table) assignLike() error {
	like := t.opts.Like
	var means []float64
	if t.opts.Missing == MissingMean {
		means = FitScaler(like.X).Mean
	}
	left := map[*column]bool{}
	for _, key := range t.opts.Ignore {
		c, err := t.column(key, "Ignore")
		if err != nil {
			return err
		}
		left[c] = true
	}
	for _, c := range t.columns {
		c.role = ignored
	}
	for at, name := range like.Features {
		c, err := t.sourceOf(name)
		if err != nil {
			return err
		}
		if left[c] {
			return fmt.Errorf("the column %q is in Ignore, but Like's feature %q comes from it: it cannot be left out", c.name,
				name)
		}
		c.role = number
		t.holdTo(c)
		if c.name != name {
			c.role = categorical
			c.fix(strings.TrimPrefix(name, c.name+"="))
		}
		c.at = append(c.at, at)
		if means != nil {
			if err := checkNumber(means[at]); err != nil {
				return fmt.Errorf("the mean of Like's feature %q %w", name, err)
			}
			c.fill = append(c.fill, means[at])
		}
	}
	return t.targetsLike(left)
}

// holdTo holds a column of numbers to how Like's was written.
func (t *table) holdTo(c *column) {
	if written := t.opts.Like.Percentages; slices.Contains(written, c.name) {
		c.trained = percentage
	} else if written != nil {
		c.trained = plainNumber
	}
}

// sourceOf finds the column that a feature of Like comes from: the column of the same name or, for "column=value", the
// one named before an equals sign.
func (t *table) sourceOf(feature string) (*column, error) {
	if c := t.named(feature); c != nil {
		return c, nil
	}
	like := t.opts.Like
	var found *column
	for i, r := range feature {
		if r != '=' {
			continue
		}
		c := t.named(feature[:i])
		if c == nil || slices.Contains(like.Features, c.name) || slices.Contains(like.TargetNames(), c.name) {
			continue // of a name that is a feature or target itself, and so no categories
		}
		if found != nil {
			return nil, fmt.Errorf("feature %q of Like may be of the column %q or of %q: rename one, in the first file as well",
				feature, found.name, c.name)
		}
		found = c
	}
	if found != nil {
		return found, nil
	}
	names := fmt.Sprintf("%q", feature)
	if column, _, isOneHot := strings.Cut(feature, "="); isOneHot {
		names = fmt.Sprintf("%q, with categories, or %s", column, names)
	}
	cure := "add it, or rename it as in the first file"
	if t.opts.NoHeader {
		cure = "NoHeader names columns by position, so all must be there as in the first file; or give both files a header"
	}
	return nil, fmt.Errorf("feature %q of Like needs a column %s%s; the columns are %q (is the delimiter %q right?): %s",
		feature, names, t.meant(feature), t.names(), t.opts.Delimiter, cure)
}

// targetsLike finds the targets of Like: all or none of them must be there.
func (t *table) targetsLike(left map[*column]bool) error {
	var absent []string
	if t.opts.Like.Target == "" && len(t.opts.Like.Targets) == 0 {
		return nil // it names none
	}
	for _, name := range t.opts.Like.TargetNames() {
		c := t.named(name)
		if c == nil || left[c] {
			absent = append(absent, name)
			continue
		}
		c.target, c.role = true, number
		t.holdTo(c)
		if t.opts.Task != Regression {
			c.role = categorical
			c.fix(t.opts.Classes...)
		}
		t.targets = append(t.targets, c)
	}
	if len(absent) > 0 && len(t.targets) > 0 {
		return fmt.Errorf("of Like's targets, %s are columns of the file, but %q are not: add them, or list the others in "+
			"Ignore to read without targets", t.targetNames(), absent)
	}
	return nil
}
