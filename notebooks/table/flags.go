package main

import (
	"cmp"
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

// flagNames are the flags for what errors call by the names of Go.
var flagNames = map[string]string{
	"MissingTokens": "-na", "MissingDropRow": "-missing drop", "MissingMean": "-missing mean", "Missing": "-missing",
	"Regression": "-task regression", "Classification": "-task classification", "Task": "-task",
	"Categorical": "-categories", "Classes": "-ordinal", "Ignore": "-ignore", "NoHeader": "-no-header",
	"Decimal": "-decimal", "Encoding": "-encoding", "Delimiter": "-delimiter", "Targets": "-target", "Target": "-target",
	"Group": "-group", "Order": "-order", "Weight": "-weight", "Exposure": "-exposure", "Event": "-event",
	"Replace": "-replace", "Checkpoint": "-checkpoint", "Like": "the training file",
}

var (
	goName = regexp.MustCompile(`\b(?:\w+\.)?[A-Z]\w+\b`) // one of a package or a struct is another

	// phrases are what a flag's name alone does not put right.
	phrases = strings.NewReplacer("CSVOptions.", "", "Settings.", "", "Method.Seconds", "-seconds", "Missing to ", "",
		"Task to ", "", "BinaryClassification or ", "", "the delimiter ", "the -delimiter ",
		"; take mcmc.Chains with a small network, which needs no validation", "; give more rows",
		": context deadline exceeded", "", ": context canceled: signal interrupt", " (Ctrl-C)", ": context canceled", "")
)

// inFlags is an error's text with flags for what it calls options. What is the user's stays as it is: texts in quotes,
// the name of a data set, and files among the arguments.
func inFlags(text string, args []string) string {
	kept := `"(?:[^"\\]|\\.)*"|dataset [^:]*: `
	for _, arg := range args {
		if strings.ContainsAny(arg, "./") {
			kept += "|" + regexp.QuoteMeta(arg)
		}
	}
	flags := func(text string) string {
		return goName.ReplaceAllStringFunc(phrases.Replace(text), func(name string) string {
			return cmp.Or(flagNames[name], name)
		})
	}
	var b strings.Builder
	at := 0
	for _, of := range regexp.MustCompile(kept).FindAllStringIndex(text, -1) {
		b.WriteString(flags(text[at:of[0]]) + text[of[0]:of[1]])
		at = of[1]
	}
	return b.String() + flags(text[at:])
}

// more returns what puts a flag where a text of the method asks for more seconds.
func more(flag string) func(text string) string {
	return strings.NewReplacer("more Method.Seconds", flag, "more Seconds", flag).Replace
}

// flagError is an error whose text speaks of flags.
type flagError struct {
	text string
	err  error
}

func (e flagError) Error() string { return e.text }

func (e flagError) Unwrap() error { return e.err }
