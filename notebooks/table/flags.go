package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// list is a flag of several names: a line of CSV, so that a name with a comma stands in quotes.
type list struct {
	text  string
	names []string
}

func (l *list) String() string { return l.text }

// Set reads the line.
func (l *list) Set(text string) error {
	*l = list{text: text}
	if text == "" {
		return nil
	}
	line := csv.NewReader(strings.NewReader(text))
	line.TrimLeadingSpace = true
	lines, err := line.ReadAll()
	if err != nil || len(lines) != 1 {
		return errors.New(`take names separated by commas; one with a comma or a quote stands in quotes: "Weight, g"`)
	}
	l.names = lines[0]
	return nil
}

// flagNames are the flags for the options that errors of a file name, alone or with a value.
var flagNames = map[string]string{
	"MissingTokens": "-na", "Missing to MissingDropRow": "-missing drop", "Missing to MissingMean": "-missing mean",
	"Task": "-task", "Task to Regression": "-task regression", "Task to Classification": "-task classification",
	"Task to BinaryClassification or Classification": "-task classification", "Classes": "-ordinal",
	"Categorical": "-categories", "Ignore": "-ignore", "NoHeader": "-no-header", "Decimal": "-decimal",
	"Encoding": "-encoding", "Delimiter": "-delimiter", "Targets": "-target", "Target": "-target", "Group": "-group",
	"Order": "-order", "Weight": "-weight", "Exposure": "-exposure", "Event": "-event",
}

// settings puts flags in place of what methods call their settings, and leaves out what a reader of a line of the
// command need not know.
var settings = strings.NewReplacer("Settings.Replace", "-replace", "Settings.Checkpoint", "-checkpoint",
	"another Checkpoint", "another -checkpoint", "Method.Seconds", "-seconds",
	"; take mcmc.Chains with a small network, which needs no validation", "; give more rows",
	": context deadline exceeded", "", ": context canceled: signal interrupt", " (Ctrl-C)", ": context canceled", "")

// options are the fields of dataset.CSVOptions that an error names, alone or with a value.
var options = regexp.MustCompile(`CSVOptions\.((Missing|Task) to \w+( or Classification)?|\w+)`)

// inFlags is an error's text with flags for the options that it names. Given pairs of an option and a flag come before
// flagNames.
func inFlags(err error, own ...string) string {
	text := options.ReplaceAllStringFunc(err.Error(), func(found string) string {
		option := strings.TrimPrefix(found, "CSVOptions.")
		if i := slices.Index(own, option); i >= 0 {
			return own[i+1]
		}
		return cmp.Or(flagNames[option], found)
	})
	if text == err.Error() {
		text = settings.Replace(text)
	}
	return text
}

// flagError is an error whose text speaks of flags.
type flagError struct {
	text string
	err  error
}

func (e flagError) Error() string { return e.text }

func (e flagError) Unwrap() error { return e.err }
