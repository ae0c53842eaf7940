package parquet

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gobnn/bayes/dataset"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
)

// A file that says that it is larger than it is gets an error, and not the memory that it asks for.
func TestSizesAreTrue(t *testing.T) {
	whole, err := os.ReadFile("testdata/kinds.parquet")
	if err != nil {
		t.Fatal(err)
	}
	described := func(change func(*format.FileMetaData)) []byte { return described(t, whole, change) }
	endless, err := os.ReadFile("testdata/lz4-endless.parquet") // a page whose LZ4 cannot be decoded into any memory
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"an endless page": {endless, "cannot be decompressed"},
		"a footer":        {[]byte("PAR1PAR1"), "827474256 bytes"},
		"a list": {[]byte("PAR1\x15\x02\x29\xfc\xff\xff\xff\xff\x07\x00\x0a\x00\x00\x00PAR1"),
			"description is damaged"},
		"rows of a column": {described(func(d *format.FileMetaData) { d.RowGroups[0].NumRows = 2 }),
			"more values than rows"},
		"rows of the table": {described(func(d *format.FileMetaData) { d.NumRows = 1 << 40 }), "rows, which would be"},
		"a chunk": {described(func(d *format.FileMetaData) {
			d.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = 1 << 40
		}), "is damaged"},
	} {
		path := filepath.Join(t.TempDir(), "large.parquet")
		if err := os.WriteFile(path, c.file, 0o644); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Open(path, dataset.CSVOptions{Ignore: []string{"l", "d", "t"}})
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		if err == nil || !strings.Contains(err.Error(), c.want) || used > 1<<24 {
			t.Errorf("%s: %v, %d bytes of memory", name, err, used)
		}
	}
}

// A page must be as large as it says, whatever its codec; a bomb is not decoded beyond that.
func TestDecompressed(t *testing.T) {
	page := bytes.Repeat([]byte("0123456789"), 1e6)
	for _, codec := range []compress.Codec{&pq.Snappy, &pq.Gzip, &pq.Brotli, &pq.Zstd, &pq.Lz4Raw} {
		data, err := codec.Encode(nil, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{len(page), len(page) - 1, len(page) + 1, 100, 1 << 30} {
			right := size == len(page)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			fault := func() (fault any) {
				defer func() { fault = recover() }()
				if got := decompressed(codec.CompressionCodec(), data, size); right && !bytes.Equal(got, page) {
					t.Errorf("%v: another page", codec)
				}
				return nil
			}()
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; (fault == nil) != right || used > 1<<27 {
				t.Errorf("%v to %d bytes: %v, by %d bytes of memory", codec, size, fault, used)
			}
		}
	}
}
