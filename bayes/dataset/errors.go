package dataset

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// fault is an error whose text names fields of CSVOptions, which ErrorText can name otherwise.
type fault struct {
	format string
	args   []any
}

// Errorf makes an error that names options, the fields of CSVOptions that mend it. In the format they stand in braces,
// alone or with a value: "list it in {Ignore}", "set {Missing to MissingMean}". Errors among the arguments are wrapped,
// whatever their verb.
func Errorf(format string, args ...any) error { return &fault{format, args} }

// Error is the text with the options' own names.
func (f *fault) Error() string { return f.text(func(option string) string { return option }) }

// Unwrap returns the errors among the arguments.
func (f *fault) Unwrap() (wrapped []error) {
	for _, arg := range f.args {
		if err, is := arg.(error); is {
			wrapped = append(wrapped, err)
		}
	}
	return wrapped
}

var optionInBraces = regexp.MustCompile(`\{[^}]*\}`)

func (f *fault) text(name func(option string) string) string {
	format := optionInBraces.ReplaceAllStringFunc(f.format, func(option string) string {
		return strings.ReplaceAll(name(strings.Trim(option, "{}")), "%", "%%")
	})
	args := slices.Clone(f.args)
	for i, arg := range args {
		if err, is := arg.(error); is {
			args[i] = ErrorText(err, name)
		}
	}
	return fmt.Sprintf(format, args...)
}

// ErrorText is the text of an error in which name gives each option, such as "Ignore" or "Missing to MissingMean", the
// name that it has elsewhere: in a program, that of a flag.
func ErrorText(err error, name func(option string) string) string {
	var f *fault
	if !errors.As(err, &f) {
		return err.Error()
	}
	return strings.Replace(err.Error(), f.Error(), f.text(name), 1)
}

// NoColumnError is the error for a column that an option names and the table does not have.
type NoColumnError struct {
	Name string // as the option has it
	err  error
}

func (e *NoColumnError) Error() string { return e.err.Error() }

// Unwrap returns the error that names the option.
func (e *NoColumnError) Unwrap() error { return e.err }

// mostFaults is the number of faults that an error lists.
const mostFaults = 10

// joined is one error that lists all; nil of none.
func joined(all []error) error {
	switch {
	case len(all) == 0:
		return nil
	case len(all) == 1:
		return all[0]
	case len(all) > mostFaults:
		all = append(all[:mostFaults:mostFaults], fmt.Errorf("and %d more", len(all)-mostFaults))
	}
	args := make([]any, len(all))
	for i, err := range all {
		args[i] = err
	}
	return Errorf("several things must be mended"+strings.Repeat("\n%v", len(all)), args...)
}
