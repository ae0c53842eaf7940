package parquet

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// A Parquet file says beforehand how large its lists and pages are, and the library makes room for as much. Here
// these sizes are compared with the bytes that are there, so that a small file cannot ask for all memory. What does not
// fit is a panic, of which recovered makes an error.

// mostDecoded is the most memory that a page may take: 1 GiB, which are 134 million numbers. A whole table may take as
// much too, or a thousand times its file where that is more.
const mostDecoded = 1 << 30

// protocol is how a file and its pages are described. A description that is decoded as passed, which has none of its
// fields, takes no memory, and is an error if its lists and texts are not all there.
var protocol = new(thrift.CompactProtocol)

type passed struct {
	None int32 `thrift:"32767,optional"`
}

// file is an open Parquet file.
type file struct {
	*pq.File
	on        io.ReaderAt
	size      int64
	index     map[string]bool    // columns that pandas had for an index
	durations map[string]float64 // that pandas had for durations, with how many of their parts are a second
	halves    map[string]bool    // columns of numbers of 16 bits, whose type the library does not know
}

// open reads a file's description. Its pages are not looked at: see checkPages.
func open(f *os.File) (*file, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size, end := info.Size(), make([]byte, 8)
	if _, err := f.ReadAt(end, max(size-8, 0)); err != nil || string(end[4:]) != "PAR1" {
		return nil, errors.New("it is no Parquet file, or was cut off: it must begin and end with PAR1")
	}
	length := int64(binary.LittleEndian.Uint32(end))
	if length > size-12 {
		return nil, fmt.Errorf("it was cut off: its description has %d bytes, and the whole file %d", length, size)
	}
	description := make([]byte, length)
	if _, err := f.ReadAt(description, size-8-length); err != nil {
		return nil, err
	}
	if err := thrift.Unmarshal(protocol, description, new(passed)); err != nil {
		return nil, fmt.Errorf("its description is damaged: %w", err)
	}
	opened, err := pq.OpenFile(f, size, pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("it is no Parquet file, or was cut off: %w", err)
	}
	described := &file{opened, f, size, map[string]bool{}, map[string]float64{}, map[string]bool{}}
	for _, column := range opened.Metadata().Schema {
		_, is := column.LogicalType.Value.(*format.Float16Type)
		described.halves[column.Name] = is
	}
	described.pandas()
	return described, nil
}

// pandas reads what pandas has written about its columns, if it was pandas.
func (f *file) pandas() {
	text, _ := f.Lookup("pandas")
	var written struct {
		Index   []any `json:"index_columns"` // names, or what a column of counts was
		Columns []struct {
			Name string `json:"field_name"`
			Type string `json:"numpy_type"`
		}
	}
	if json.Unmarshal([]byte(text), &written) != nil { // others write otherwise
		return
	}
	for _, index := range written.Index {
		if name, is := index.(string); is {
			f.index[name] = true
		}
	}
	for _, c := range written.Columns {
		parts := map[string]float64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}
		unit, _ := strings.CutPrefix(c.Type, "timedelta64[")
		if n, is := parts[strings.TrimSuffix(unit, "]")]; is {
			f.durations[c.Name] = n
		}
	}
}

// must panics if a file is not as it says.
func must(holds bool, message string, args ...any) {
	if !holds {
		panic(fmt.Sprintf(message, args...))
	}
}

// bytes are a part of the file.
func (f *file) bytes(from, length int64) []byte {
	must(from >= 0 && length >= 0 && from+length <= f.size, "it has no bytes %d to %d", from, from+length)
	data := make([]byte, length)
	_, err := f.on.ReadAt(data, from)
	must(err == nil, "%v", err)
	return data
}

// checkPages looks at the pages of a column's chunk.
func (f *file) checkPages(group int, column *pq.Column) {
	rows := f.Metadata().RowGroups[group].NumRows
	chunk := &f.Metadata().RowGroups[group].Columns[column.Index()].MetaData
	at := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		at = chunk.DictionaryPageOffset
	}
	end := at + chunk.TotalCompressedSize
	for at < end {
		header, length := f.header(at, end)
		from := at + length
		at = from + int64(header.CompressedPageSize)
		must(at >= from && at <= end, "a page of %d bytes is followed by %d", header.CompressedPageSize, end-from)
		rows -= checkPage(header, chunk.Codec, f.bytes(from, at-from))
		must(rows >= 0, "column %q has more values than rows", column.Name())
	}
}

// header reads the header of a page, of at most 1 MiB, and returns its length too.
func (f *file) header(at, end int64) (*format.PageHeader, int64) {
	for _, most := range []int64{1 << 12, 1 << 20} { // where its statistics have long texts
		var header format.PageHeader
		r := protocol.NewReaderFromBytes(f.bytes(at, min(end-at, most)))
		if thrift.NewDecoder(r).Decode(&header) == nil {
			return &header, int64(r.BytesRead())
		}
	}
	panic(fmt.Sprintf("there is no page at byte %d", at))
}

// checkPage returns the number of a page's values; 0 of a dictionary.
func checkPage(h *format.PageHeader, codec format.CompressionCodec, data []byte) int64 {
	size, levels := int(h.UncompressedPageSize), 0
	values := h.DataPageHeader.V.NumValues
	switch h.Type {
	case format.DictionaryPage:
		values = h.DictionaryPageHeader.V.NumValues
	case format.DataPageV2:
		v2 := h.DataPageHeaderV2.V
		values = v2.NumValues
		levels = int(v2.DefinitionLevelsByteLength) + int(v2.RepetitionLevelsByteLength)
		if v2.IsCompressed.Valid && !v2.IsCompressed.V {
			codec = format.Uncompressed
		}
	}
	must(size <= mostDecoded && values <= mostDecoded/8, "a page of %d bytes and %d values is larger than %d and %d: "+
		"write the file with smaller pages", size, values, mostDecoded, mostDecoded/8)
	decompressed(codec, data[levels:], size-levels)
	if h.Type == format.DictionaryPage {
		return 0
	}
	return int64(values)
}

// decompressed are the bytes of a page, which must be `size`.
func decompressed(codec format.CompressionCodec, data []byte, size int) []byte {
	var r io.Reader = bytes.NewReader(data)
	var err error
	switch codec {
	case format.Uncompressed:
		return data
	case format.Lz4Raw:
		page := make([]byte, min(size, 255*len(data))) // no byte becomes more
		var n int
		n, err = lz4.UncompressBlock(data, page)
		r = bytes.NewReader(page[:max(n, 0)])
	case format.Snappy:
		if n, _ := binary.Uvarint(data); n == uint64(size) {
			data, err = pq.Snappy.Decode(nil, data)
			r = bytes.NewReader(data)
		}
	case format.Gzip:
		r, err = gzip.NewReader(r)
	case format.Brotli:
		r = brotli.NewReader(r)
	case format.Zstd:
		var z *zstd.Decoder
		z, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostDecoded))
		if err == nil {
			defer z.Close()
			r = z
		}
	default:
		err = fmt.Errorf("its codec %v is not known", codec)
	}
	var page []byte
	if err == nil {
		page, err = io.ReadAll(io.LimitReader(r, int64(size)+1))
	}
	must(err == nil && len(page) == size, "a page of %d bytes cannot be decompressed: %d, %v", size, len(page), err)
	return page
}
