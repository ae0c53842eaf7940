package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStore(t *testing.T) {
	s := &Store{Folder: filepath.Join(t.TempDir(), "a", "b"), Limit: 1 << 20}
	key, other := keyOf([]byte("one")), keyOf([]byte("on"), []byte("e"))
	if key == other {
		t.Fatal("two programs have one key")
	}
	if _, ok := s.get(key); ok {
		t.Error("an empty store has something")
	}
	want := []byte("machine code")
	s.put(key, want)
	if got, ok := s.get(key); !ok || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v", got, ok)
	}
	if _, ok := s.get(other); ok {
		t.Error("another program was found")
	}
	whole, err := os.ReadFile(s.file(key))
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Clone(whole)
	altered[len(altered)-1] ^= 1
	for name, damaged := range map[string][]byte{
		"altered": altered, "cut off": whole[:len(whole)-1], "empty": nil, "another format": append([]byte("x"), whole...),
	} {
		if err := os.WriteFile(s.file(key), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := s.get(key); ok {
			t.Errorf("%s: got %q", name, got)
		}
		if _, err := os.Stat(s.file(key)); err == nil {
			t.Errorf("%s: the file stays", name)
		}
	}
}

// A folder into which others can put machine code is not used, neither is what is no folder.
func TestUnsafeFolder(t *testing.T) {
	for name, folder := range map[string]func(path string) error{
		"writable by a group": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o770)
		},
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "folder")
		if err := folder(path); err != nil {
			t.Fatal(err)
		}
		s := &Store{Folder: path, Limit: 1 << 20}
		s.put("key", []byte("code"))
		if _, ok := s.get("key"); ok {
			t.Errorf("%s: it was used", name)
		}
	}
}

// What was not used for longest goes first.
func TestTrim(t *testing.T) {
	s := &Store{Folder: t.TempDir(), Limit: 1000}
	if err := os.Chmod(s.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for i, name := range names {
		s.put(name, make([]byte, 80)) // and its head of 51 bytes
		then := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(s.file(name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.get("b"); !ok { // now it is the youngest
		t.Fatal("b is gone")
	}
	(&Store{Folder: s.Folder, Limit: s.Limit}).put("x", nil)
	kept := ""
	for _, name := range names {
		if _, err := os.Stat(s.file(name)); err == nil {
			kept += name
		}
	}
	if kept != "befgh" { // eight were too many, and three quarters of the limit were left
		t.Errorf("kept %q", kept)
	}
}

// The key depends on what a processor can do, not on how fast it runs just now.
func TestProcessor(t *testing.T) {
	const one = "processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: 1000\nflags\t\t: fpu avx512f\n"
	if got, want := processor(one+"\nprocessor\t: 1\n"), "model name\t: X\nflags\t\t: fpu avx512f"; got != want {
		t.Errorf("processor %q, want %q", got, want)
	}
}
