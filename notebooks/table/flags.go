package main

import (
	"encoding/csv"
	"errors"
	"regexp"
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

// flagNames are the flags for what errors and warnings call by the names of Go. Of two that begin alike the longer is
// first.
var flagNames = strings.NewReplacer(
	"CSVOptions.", "", "Settings.", "", "Method.", "", "Missing to ", "", "Task to ", "",
	"MissingTokens", "-na", "MissingDropRow", "-missing drop", "MissingMean", "-missing mean", "Missing", "-missing",
	"BinaryClassification or Classification", "-task classification", "Classification", "-task classification",
	"Regression", "-task regression", "Task", "-task", "Categorical", "-categories", "Classes", "-ordinal",
	"Ignore", "-ignore", "NoHeader", "-no-header", "Decimal", "-decimal", "Encoding", "-encoding",
	"the delimiter ", "the -delimiter ", "Delimiter", "-delimiter", "Targets", "-target", "Target", "-target",
	"Group", "-group", "Order", "-order", "Weights", "-weight", "Weight", "-weight", "Exposure", "-exposure",
	"Event", "-event", "Replace", "-replace", "Checkpoint", "-checkpoint", "Seconds", "-seconds",
	"of Like", "of the training file", "Like's", "the training file's", "Like", "the training file",
	"; take mcmc.Chains with a small network, which needs no validation", "; give more rows",
	": context deadline exceeded", "", ": context canceled: signal interrupt", " (Ctrl-C)", ": context canceled", "",
)

// inFlags is a text of the library with flags for what it calls options. What is the user's stays as it is: texts in
// quotes, the name of a data set, and files among the arguments.
func inFlags(text string, args ...string) string {
	kept := `"(?:[^"\\]|\\.)*"|dataset [^:]*: `
	for _, arg := range args {
		if strings.ContainsAny(arg, "./") {
			kept += "|" + regexp.QuoteMeta(arg)
		}
	}
	var b strings.Builder
	at := 0
	for _, of := range regexp.MustCompile(kept).FindAllStringIndex(text, -1) {
		b.WriteString(flagNames.Replace(text[at:of[0]]) + text[of[0]:of[1]])
		at = of[1]
	}
	return b.String() + flagNames.Replace(text[at:])
}

// flagError is an error whose text speaks of flags.
type flagError struct {
	text string
	err  error
}

func (e flagError) Error() string { return e.text }

func (e flagError) Unwrap() error { return e.err }
