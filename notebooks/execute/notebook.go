package execute

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// text is a string that a notebook may hold as a list of lines.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	var lines []string
	if err := json.Unmarshal(data, &lines); err == nil {
		*t = text(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// notebook has the fields of an .ipynb file that are read here.
type notebook struct {
	Cells []cell `json:"cells"`
}

func parsed(path string) (n notebook, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("%s is not a notebook: %w", path, err)
	}
	return n, nil
}

// Sources returns the sources of a notebook's cells of a type, "code" or "markdown", by the cells' numbers, which are
// counted from 0 over all cells; those of other types are empty.
func Sources(path, of string) ([]string, error) {
	n, err := parsed(path)
	if err != nil {
		return nil, err
	}
	sources := make([]string, len(n.Cells))
	for i, c := range n.Cells {
		if c.Type == of {
			sources[i] = string(c.Source)
		}
	}
	return sources, nil
}

type cell struct {
	Type    string   `json:"cell_type"`
	Source  text     `json:"source"`
	Outputs []output `json:"outputs"`
}

type output struct {
	Type      string   `json:"output_type"`
	Name      string   `json:"name"` // of a stream
	Text      text     `json:"text"` // of a stream
	ErrorName string   `json:"ename"`
	Error     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// failure is a cell that failed.
type failure struct {
	Cell    int    // counted from 1, over all cells
	Source  string // the cell's source
	Message string // its error message
}

// failuresOf returns the failed cells of an executed notebook: those with an error among the outputs, or with a failed
// shell command (`!cmd`) or magic (`%name`), which the kernel itself takes for success.
func failuresOf(path string) ([]failure, error) {
	n, err := parsed(path)
	if err != nil {
		return nil, err
	}
	var failures []failure
	for i, c := range n.Cells {
		if message, failed := c.failed(); failed {
			failures = append(failures, failure{Cell: i + 1, Source: string(c.Source), Message: message})
		}
	}
	return failures, nil
}

var (
	shellLine    = regexp.MustCompile(`(?m)^\s*!`)
	exitLine     = regexp.MustCompile(`(?m)^(exit status [1-9]\d*|signal: .+)$`)
	unknownMagic = regexp.MustCompile(`(?m)^"%.*" unknown or not implemented yet`)
	colours      = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

// failed says whether the cell's outputs show a failure, and its message.
func (c cell) failed() (message string, failed bool) {
	var stderr, errors strings.Builder
	for _, o := range c.Outputs {
		switch {
		case o.Type == "error":
			trace := strings.TrimSpace(strings.Join(o.Traceback, "\n"))
			if trace == "" {
				trace = o.ErrorName + ": " + o.Error
			}
			fmt.Fprintln(&errors, trace)
		case o.Type == "stream" && o.Name == "stderr":
			stderr.WriteString(string(o.Text))
		}
	}
	said := colours.ReplaceAllString(stderr.String(), "")
	shell := shellLine.MatchString(string(c.Source)) && exitLine.MatchString(said)
	if errors.Len() == 0 && !shell && !unknownMagic.MatchString(said) {
		return "", false
	}
	return strings.TrimSpace(said + colours.ReplaceAllString(errors.String(), "")), true
}
