package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// On a terminal the line is written again in place, cut to its width, and stays below the lines that are printed.
func TestInPlace(t *testing.T) {
	var out strings.Builder
	l := &Line{out: &out, columns: func() int { return 20 }, now: time.Now}
	l.Show("training: " + strings.Repeat("wide ", 20))
	l.Print("a line that stays, however long it is")
	l.Clear()
	l.Print("the end")
	const erase, cut = "\r\x1b[K", "training: wide wide"
	want := erase + cut + erase + "a line that stays, however long it is\n" + erase + cut + erase + erase + "the end\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A file or a pipe has whole lines without control characters: the first, one each 30 s, and those that are printed.
func TestInLog(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	l := New(&out)
	l.now = func() time.Time { return now }
	want := ""
	for i := range 36000 { // ten a second for an hour
		l.Show(fmt.Sprint("step ", i))
		if i%300 == 0 {
			want += fmt.Sprintf("step %d\n", i)
		}
		now = now.Add(100 * time.Millisecond)
	}
	l.Clear()
	l.Print("the end")
	if got := out.String(); got != want+"the end\n" {
		t.Errorf("got %.300q, want %.300q", got, want)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing is written
	if columns(file) != nil || Width(file) != 100 {
		t.Error("a file is taken for a terminal")
	}
}
