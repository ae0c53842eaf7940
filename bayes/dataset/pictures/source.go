package pictures

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// place is the folder of the set's files: the first that there is of s.folder and the others, in the folder that
// GOBNN_DATA names and then in the cache. What the cache lacks is downloaded; if the set is not for download, the error
// says what to put where.
func (s source) place(ctx context.Context, others ...string) (string, error) {
	first := func(root string) string {
		for _, folder := range append([]string{s.folder}, others...) {
			if dir := filepath.Join(root, folder); isFolder(dir) {
				return dir
			}
		}
		return ""
	}
	brought := os.Getenv("GOBNN_DATA")
	if brought != "" {
		if !isFolder(brought) {
			return "", fmt.Errorf("pictures: GOBNN_DATA names %q, which is no folder", brought)
		}
		if dir := first(brought); dir != "" {
			return dir, nil
		}
	}
	cache, err := environment.CacheDir()
	if err != nil {
		return "", fmt.Errorf("pictures: %w", err)
	}
	cache = filepath.Join(cache, "data")
	own := filepath.Join(cache, s.folder)
	dir := first(cache)
	switch {
	case s.url != "" && (dir == "" || dir == own): // not there, or perhaps not whole
		return own, s.download(ctx, own)
	case dir == "":
		return "", fmt.Errorf("pictures: there is neither a folder %s, nor one called %s in the folder that GOBNN_DATA "+
			"names (it is %q): get %s from %s and put them into one of the two", own, s.folder, brought, s.get, s.page)
	}
	return dir, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// open opens a file of the folder, which must be the publisher's byte for byte.
func (s source) open(dir string, f file) (*os.File, error) {
	at := filepath.Join(dir, f.name)
	opened, err := os.Open(at)
	if err != nil {
		return nil, fmt.Errorf("pictures: %w: get the file from %s and put it there", err, s.page)
	}
	if err = s.check(at, opened, f); err == nil {
		_, err = opened.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// check reads a file to its end and compares it with the publisher's.
func (s source) check(at string, r io.Reader, f file) error {
	hash := sha256.New()
	size, err := io.Copy(hash, r)
	if err == nil {
		err = f.compare(size, hash.Sum(nil))
	}
	if err != nil {
		return fmt.Errorf("pictures: %s: %w: delete it, and get it anew from %s", at, err, s.page)
	}
	return nil
}

// compare is an error if the size or the sha256 differ from the publisher's.
func (f file) compare(size int64, sum []byte) error {
	if have := hex.EncodeToString(sum); size != f.size || have != f.sha256 {
		return fmt.Errorf("it has %d bytes and the sha256 %s, want %d and %s: it is cut short, damaged or another file",
			size, have, f.size, f.sha256)
	}
	return nil
}

// download gets those of the files that the folder lacks. Each is written under another name and renamed when it is
// whole, so that the folder never has a part of one.
func (s source) download(ctx context.Context, dir string) error {
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
	ctx, cancel := context.WithTimeout(ctx, longestDownload)
	defer cancel()
	if strings.HasSuffix(s.url, ".tar.gz") {
		return s.receive(ctx, s.url, dir, func(body io.Reader) error { return unpack(body, dir, missing) })
	}
	for _, f := range missing {
		err := s.receive(ctx, s.url+f.name, dir, func(body io.Reader) error { return f.save(body, dir) })
		if err != nil {
			return err
		}
	}
	return nil
}

// receive gives the body of what stands at the URL to use.
func (s source) receive(ctx context.Context, url, dir string, use func(io.Reader) error) error {
	err := func() (err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
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

// save writes a file into the folder, if it is the publisher's.
func (f file) save(r io.Reader, dir string) (err error) {
	part, err := os.CreateTemp(dir, f.name+".part-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(part, hash), io.LimitReader(r, f.size+1))
	if err == nil {
		if err = f.compare(size, hash.Sum(nil)); err != nil {
			err = fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err = errors.Join(err, part.Chmod(0o644), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), filepath.Join(dir, f.name))
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
