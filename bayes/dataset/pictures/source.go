package pictures

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gobnn/bayes/compute/environment"

	"github.com/google/renameio/v2"
)

// file is one of a publisher's files, with its size in bytes and its sha256 in hexadecimal.
type file struct {
	name   string
	size   int64
	sha256 string
}

// source says where a set's files are.
type source struct {
	folder string // in the folder that GOBNN_DATA names, or in "data" of the cache
	page   string // the publisher's
	get    string // which files a user gets there, and under which terms; for sets that are not downloaded
	url    string // of the folder that has the files, or of a .tar.gz of them; empty: they are not downloaded
	files  []file
}

// A download ends after these seconds and bytes, whatever the server sends. CIFAR-10's archive has 170 MB.
const (
	longestDownload = time.Hour
	largestDownload = 1 << 28
)

// place is the folder of the set's files, in the folder that GOBNN_DATA names, or else in the cache. What the cache
// lacks is downloaded; if the set is not for download, the error says what to put where.
func (s source) place() (string, error) {
	brought := os.Getenv("GOBNN_DATA")
	if brought != "" {
		if !isFolder(brought) {
			return "", fmt.Errorf("pictures: GOBNN_DATA names %q, which is no folder", brought)
		}
		if dir := filepath.Join(brought, s.folder); isFolder(dir) {
			return dir, nil
		}
	}
	cache, err := environment.CacheDir()
	if err != nil {
		return "", fmt.Errorf("pictures: %w", err)
	}
	dir := filepath.Join(cache, "data", s.folder)
	switch {
	case s.url != "": // not there, or perhaps not whole
		return dir, s.download(dir)
	case !isFolder(dir):
		return "", fmt.Errorf("pictures: there is neither a folder %s, nor one called %s in the folder that GOBNN_DATA "+
			"names (it is %q): get %s from %s and put them into one of the two", dir, s.folder, brought, s.get, s.page)
	}
	return dir, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// read reads a file of the folder, which must be the publisher's byte for byte.
func (s source) read(dir string, f file) ([]byte, error) {
	at := filepath.Join(dir, f.name)
	all, err := os.ReadFile(at)
	if err != nil {
		return nil, fmt.Errorf("pictures: %w: get the file from %s and put it there", err, s.page)
	}
	if err := f.compare(all); err != nil {
		return nil, fmt.Errorf("pictures: %s: %w: delete it, and get it anew from %s", at, err, s.page)
	}
	return all, nil
}

// compare is an error if the size or the sha256 differ from the publisher's.
func (f file) compare(all []byte) error {
	if have := fmt.Sprintf("%x", sha256.Sum256(all)); int64(len(all)) != f.size || have != f.sha256 {
		return fmt.Errorf("it has %d bytes and the sha256 %s, want %d and %s: it is cut short, damaged or another file",
			len(all), have, f.size, f.sha256)
	}
	return nil
}

// download gets those of the files that the folder lacks.
func (s source) download(dir string) error {
	var missing []file
	for _, f := range s.files {
		if _, err := os.Stat(filepath.Join(dir, f.name)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, f)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("pictures: %w", err)
	}
	if strings.HasSuffix(s.url, ".tar.gz") {
		return s.receive(s.url, dir, func(body io.Reader) error { return unpack(body, dir, missing) })
	}
	for _, f := range missing {
		err := s.receive(s.url+f.name, dir, func(body io.Reader) error { return f.save(body, dir) })
		if err != nil {
			return err
		}
	}
	return nil
}

// receive gives the body of what stands at the URL to use.
func (s source) receive(url, dir string, use func(io.Reader) error) error {
	err := func() (err error) {
		client := http.Client{Timeout: longestDownload}
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, response.Body.Close()) }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the server answers %q", response.Status)
		}
		return use(io.LimitReader(response.Body, largestDownload))
	}()
	if err != nil {
		return fmt.Errorf("pictures: cannot download %s: %w: try again, or get it from %s and put it into %s, unpacked if "+
			"it is an archive, or into a folder called %s in the folder that GOBNN_DATA names", url, err, s.page, dir, s.folder)
	}
	return nil
}

// save writes a file into the folder, whole, if it is the publisher's.
func (f file) save(r io.Reader, dir string) error {
	all, err := io.ReadAll(io.LimitReader(r, f.size+1))
	if err != nil {
		return err
	}
	if err := f.compare(all); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return renameio.WriteFile(filepath.Join(dir, f.name), all, 0o644)
}

// unpack saves the wanted files of a .tar.gz, whatever folder they are in there.
func unpack(r io.Reader, dir string, wanted []file) error {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	archive := tar.NewReader(unzipped)
	found := map[string]bool{}
	for len(found) < len(wanted) {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, f := range wanted {
			if header.Typeflag == tar.TypeReg && path.Base(header.Name) == f.name {
				if err := f.save(archive, dir); err != nil {
					return err
				}
				found[f.name] = true
			}
		}
	}
	for _, f := range wanted {
		if !found[f.name] {
			return fmt.Errorf("the archive has no file %s", f.name)
		}
	}
	return nil
}
