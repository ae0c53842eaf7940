package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errOrder says that two tables have the same columns, or classes, in another order, which a matrix does not show.
var errOrder = errors.New("in another order")

// errMissingCategory says that a category has no column in the training part.
var errMissingCategory = errors.New("a category is absent from the training part")

// SameOrder returns an error if a feature, a target or a class of d is at another position than
// in the model's list, for instance because two files have the same columns in another order: the model would confuse
// the columns. So it would if a target of the model is a feature of d, or a feature of the model a target of d, as
// where CSVOptions.Target was set for one file only. A name that the model does not know is not an error, since a
// column may have been renamed. But a class that the model does not know, beside one that it does, is: the error wraps
// ErrMissingClass. A file read for itself may have a class that the training part lacks, whose number is another
// class's of the model. For the same reason a one-hot column, "column=value", is an error if the
// model knows others of the column, but not it. The category or class "1.0" is the same as "1". A file that is read
// with CSVOptions.Like is in the model's order.
func (d *Dataset) SameOrder(features, targets, classes []string) error {
	features, classes = sameNumbers(features), sameNumbers(classes)
	own, named := sameNumbers(d.Features), sameNumbers(d.Classes)
	for _, c := range []struct {
		what, cure  string
		have, model []string
	}{
		{"feature", "put the columns into the model's order, as CSVOptions.Like does for a file", own, features},
		{"target", "name the targets in the model's order", d.TargetNames(), targets},
		{"class", "number the classes as the model does, by CSVOptions.Classes", named, classes},
	} {
		for i, name := range c.have {
			if at := slices.Index(c.model, name); at >= 0 && at != i && (i >= len(c.model) || c.model[i] != name) {
				return fmt.Errorf("data set %q: its columns or classes are %w than the model's: %s %q is number %d of %q, and "+
					"number %d of the model's, %q: %s", d.Name, errOrder, c.what, name, i, c.have, at, c.model, c.cure)
			}
		}
	}
	for _, c := range []struct {
		what               string
		have, model, other []string
	}{{"feature", own, features, targets}, {"target", d.TargetNames(), targets, features}} {
		for _, name := range c.have {
			if slices.Contains(c.other, name) && !slices.Contains(c.model, name) {
				return fmt.Errorf("data set %q: its columns are %w than the model's, of features %q and targets %q: %q is a %s "+
					"here: name the target, by CSVOptions.Target, as for the training part", d.Name, errOrder, features, targets,
					name, c.what)
			}
		}
	}
	for i, name := range own {
		column, _, isOneHot := strings.Cut(name, "=")
		sibling := func(other string) bool { return strings.HasPrefix(other, column+"=") }
		if isOneHot && !slices.Contains(features, name) && slices.ContainsFunc(features, sibling) {
			return fmt.Errorf("data set %q: %w: feature %d is %q, and the model's are %q: leave out its rows, or read the rows "+
				"of both files as one table and split it", d.Name, errMissingCategory, i, name, features)
		}
	}
	known := func(class string) bool { return slices.Contains(classes, class) }
	for i, class := range named {
		if !known(class) && slices.ContainsFunc(named, known) {
			return fmt.Errorf("data set %q: %w: the model knows the classes %q, and class %d is %q: leave out its rows, train "+
				"with some, or rename it", d.Name, ErrMissingClass, classes, i, class)
		}
	}
	return nil
}

// sameNumbers returns names of one-hot columns or classes in which "1.0" is "1", as in files.
func sameNumbers(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		value := strings.LastIndex(name, "=") + 1
		out[i] = name[:value] + whole(name[value:])
	}
	return out
}
