package program

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Terminal says whether out is a terminal, on which a line can be written again in place.
func Terminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// defaultWidth is the width of lines that are not written to a terminal.
const defaultWidth = 100

// Width is the number of columns of the terminal out, and 100 where it is none.
func Width(out io.Writer) int {
	if file, ok := out.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && size.Col >= 20 {
			return int(size.Col)
		}
	}
	return defaultWidth
}

// Wrap breaks text between words into lines of at most width characters; a longer word has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
