package pictures

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// of is the set's source with files of the given contents.
func of(s source, contents ...[]byte) source {
	files := make([]file, len(contents))
	for i, content := range contents {
		sum := sha256.Sum256(content)
		files[i] = file{s.files[i].name, int64(len(content)), hex.EncodeToString(sum[:])}
	}
	s.files = files
	return s
}

// written is such a source, whose files are in the folder that GOBNN_DATA names. It is not downloaded.
func written(t *testing.T, s source, contents ...[]byte) (made source, dir string) {
	t.Helper()
	made = of(s, contents...)
	made.url = ""
	root := t.TempDir()
	t.Setenv("GOBNN_DATA", root)
	t.Setenv("GOBNN_CACHE", t.TempDir())
	dir = filepath.Join(root, s.folder)
	for i, content := range contents {
		write(t, filepath.Join(dir, made.files[i].name), content)
	}
	return made, dir
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// archived is a .tar.gz of CIFAR-10's files, beside one that is not wanted.
func archived(t *testing.T, files []file, contents ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, content []byte) {
		header := tar.Header{Name: "cifar-10-batches-bin/" + name, Mode: 0o600, Size: int64(len(content))}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	add("readme.html", []byte("no data"))
	for i, content := range contents {
		add(files[i].name, content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped(t, b.Bytes())
}

// refused checks that an error says all of the texts.
func refused(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

// The user's folder comes before the cache; without either a set that is not downloaded says what to put where.
func TestPlace(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	t.Setenv("GOBNN_DATA", root)
	t.Setenv("GOBNN_CACHE", cache)
	place := func(want string) {
		t.Helper()
		if got, err := svhn.place(); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	_, err := svhn.place()
	refused(t, err, filepath.Join(cache, "data", "svhn"), root, "train_32x32.mat", svhn.page, "non-commercial")
	_, err = celeba.place()
	refused(t, err, "list_attr_celeba.txt", "list_eval_partition.txt", celeba.page)
	for _, dir := range []string{filepath.Join(cache, "data", "svhn"), filepath.Join(root, "svhn")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		place(dir)
	}
	t.Setenv("GOBNN_DATA", "")
	place(filepath.Join(cache, "data", "svhn"))
	t.Setenv("GOBNN_DATA", filepath.Join(root, "missing"))
	_, err = svhn.place()
	refused(t, err, "GOBNN_DATA", "missing", "no folder")
}

// A file that is missing, cut short or changed is an error with its name and the cure.
func TestRead(t *testing.T) {
	content := []byte("the publisher's")
	s, dir := written(t, svhn, content)
	at := filepath.Join(dir, s.files[0].name)
	if all, err := s.read(dir, s.files[0]); err != nil || !bytes.Equal(all, content) {
		t.Fatalf("%q, %v", all, err)
	}
	for _, other := range []string{"the publisher", "the publisher's and more", "the Publisher's"} {
		write(t, at, []byte(other))
		_, err := s.read(dir, s.files[0])
		sum := sha256.Sum256([]byte(other))
		refused(t, err, at, hex.EncodeToString(sum[:]), s.files[0].sha256, fmt.Sprint(len(other), " bytes"), "want 15",
			"delete it", s.page)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	_, err := s.read(dir, s.files[0])
	refused(t, err, at, "get the file from "+s.page)
}

// Missing files are downloaded into the cache, and only those; what is not the publisher's leaves nothing behind.
func TestDownload(t *testing.T) {
	contents := [][]byte{zipped(t, imagesFile(1, 1, 2, 3, 4, 5, 6)), zipped(t, labelsFile(1, 7)),
		zipped(t, imagesFile(1, 6, 5, 4, 3, 2, 1)), zipped(t, labelsFile(1, 9))}
	s := of(fashion, contents...)
	served, asked := map[string][]byte{}, []string(nil)
	for i, f := range s.files {
		served["/"+f.name] = contents[i]
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if content, ok := served[r.URL.Path]; !ok {
			w.WriteHeader(http.StatusNotFound)
		} else if _, err := w.Write(content); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	s.url = server.URL + "/"
	t.Setenv("GOBNN_DATA", t.TempDir()) // does not have it
	cache := t.TempDir()
	t.Setenv("GOBNN_CACHE", cache)
	dir := filepath.Join(cache, "data", s.folder)

	whole := served["/"+s.files[2].name]
	for what, wrong := range map[string][]byte{
		"damaged": append(bytes.Clone(whole[:len(whole)-1]), 1), "cut": whole[:9], "longer": append(bytes.Clone(whole), 1),
	} {
		served["/"+s.files[2].name] = wrong
		_, _, err := readFashion(s)
		refused(t, err, s.url+s.files[2].name, "sha256", s.page, dir, "GOBNN_DATA")
		if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
			t.Errorf("%s: the folder has %v, %v: want the two files before it", what, left, err)
		}
	}
	delete(served, "/"+s.files[2].name)
	_, _, err := readFashion(s)
	refused(t, err, s.files[2].name, "404 Not Found")
	served["/"+s.files[2].name] = whole
	asked = nil
	for range 2 {
		train, test, err := readFashion(s)
		if err != nil {
			t.Fatal(err)
		}
		if train.Y[0] != 7 || test.Y[0] != 9 || test.X.At(0, 0) != 6./255 {
			t.Errorf("labels %v and %v", train.Y, test.Y)
		}
	}
	if len(asked) != 2 {
		t.Errorf("downloaded %q: want the two that were missing, once", asked)
	}
	server.Close()
	if err := os.Remove(filepath.Join(dir, s.files[0].name)); err != nil {
		t.Fatal(err)
	}
	_, _, err = readFashion(s)
	refused(t, err, "cannot download", s.files[0].name, "or get it from "+s.page)
}

func TestDownloadArchive(t *testing.T) {
	contents := [][]byte{batch(1), batch(3), batch(5)}
	s := of(cifar, contents...)
	s.files[2].name = "test_batch.bin"
	var served []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(served); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	s.url = server.URL + "/all.tar.gz"
	t.Setenv("GOBNN_DATA", "")
	cache := t.TempDir()
	t.Setenv("GOBNN_CACHE", cache)

	served = archived(t, s.files, contents[:2]...)
	_, _, err := readCIFAR(s)
	refused(t, err, "no file test_batch.bin", s.page)
	served = archived(t, s.files, contents[0], contents[1], contents[1])
	_, _, err = readCIFAR(s)
	refused(t, err, "test_batch.bin", s.files[2].sha256)
	whole := archived(t, s.files, contents...)
	served = whole[:len(whole)/2]
	_, _, err = readCIFAR(s)
	refused(t, err, s.url, "unexpected EOF")
	served = whole
	train, test, err := readCIFAR(s)
	if err != nil {
		t.Fatal(err)
	}
	if train.Rows() != 4 || test.Rows() != 2 || test.Y[0] != 5 {
		t.Errorf("%d and %d rows, labels %v", train.Rows(), test.Rows(), test.Y)
	}
	if left, err := os.ReadDir(filepath.Join(cache, "data", s.folder)); err != nil || len(left) != 3 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// SOURCES.md has the page, the terms and the files of every set, with their checksums.
func TestSources(t *testing.T) {
	text, err := os.ReadFile("SOURCES.md")
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]{64}) +([0-9]+)  (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		sums[m[3]] = m[1] + " " + m[2]
	}
	n := 0
	for _, s := range []source{fashion, cifar, svhn, celeba} {
		if !strings.Contains(string(text), s.page) {
			t.Errorf("SOURCES.md does not name %s", s.page)
		}
		for _, f := range s.files {
			n++
			if name := s.folder + "/" + f.name; sums[name] != fmt.Sprint(f.sha256, " ", f.size) {
				t.Errorf("%s: SOURCES.md has %q, want %s and %d", name, sums[name], f.sha256, f.size)
			}
		}
	}
	if n != len(sums) {
		t.Errorf("SOURCES.md has %d files, want %d", len(sums), n)
	}
}

// needs skips a test of the real files unless the folder that GOBNN_DATA names has this one.
func needs(t *testing.T, folder string) {
	t.Helper()
	if testing.Short() {
		t.Skip("reads large files")
	}
	if root := os.Getenv("GOBNN_DATA"); root == "" || !isFolder(filepath.Join(root, folder)) {
		t.Skipf("the folder that GOBNN_DATA names has no %q", folder)
	}
}
