package parquet

import (
	"bytes"
	"fmt"
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

// Runs and deltas may have no more values than their page.
func TestRunsAreOfPage(t *testing.T) {
	h := func(encoding format.Encoding) *format.PageHeader {
		h := &format.PageHeader{Type: format.DataPage}
		h.DataPageHeader.V.NumValues, h.DataPageHeader.V.Encoding = 10, encoding
		return h
	}
	texts := func(repeated ...int32) string { // each repeats so many bytes of the one before
		body, err := pq.DeltaBinaryPacked.EncodeInt32(nil, repeated)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, c := range []struct {
		encoding format.Encoding
		optional bool
		body     string
		fault    string
	}{
		{format.DeltaByteArray, false, texts(0, 40, 40), ""},
		{format.DeltaByteArray, false, texts(0, 1<<30, 1<<30), "has texts of 2147483648"},
		{format.RLEDictionary, false, "\x01\x14\x01", ""},                              // one ten times
		{format.RLEDictionary, false, "\x01\x05\xff\xff", ""},                          // two groups of eight
		{format.RLEDictionary, false, "\x01\xfe\xff\xff\xff\x0f\x01", "2147483647"},    // one 2^31 - 1 times
		{format.RLEDictionary, false, "\x01\xff\xff\xff\xff\x0f\x01", "2147483647"},    // as many groups
		{format.RLEDictionary, false, "\x01\x14\x01\x14\x01", "10 values"},             // twenty
		{format.Plain, true, "\x02\x00\x00\x00\x14\x01", ""},                           // ten that are there
		{format.Plain, true, "\x06\x00\x00\x00\xfe\xff\xff\xff\x0f\x01", "2147483647"}, // 2^31 - 1
		{format.DeltaBinaryPacked, false, "\x80\x01\x04\x0a\x00", ""},
		{format.DeltaBinaryPacked, false, "\x80\x01\x04\xff\xff\xff\xff\x07\x00", "2147483647"},
	} {
		header := h(c.encoding)
		header.UncompressedPageSize = int32(len(c.body))
		fault := func() (fault error) {
			defer recovered(&fault)
			checkPage(header, format.Uncompressed, []byte(c.body), c.optional)
			return nil
		}()
		if (fault == nil) != (c.fault == "") || fault != nil && !strings.Contains(fmt.Sprint(fault), c.fault) {
			t.Errorf("%v, %q: %v, want %q", c.encoding, c.body, fault, c.fault)
		}
	}
}
