package pictures

import (
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// variable is an array of bytes of a MATLAB file, first index fastest.
type variable struct {
	sizes  []int
	values []byte
}

// names are the variables' names in order.
func names(variables map[string]variable) []string { return slices.Sorted(maps.Keys(variables)) }

// The types of a MATLAB file's elements ("MAT-File Format", The MathWorks, tables 1-1 and 1-3).
const (
	matBytes      = 2
	matArray      = 14
	matCompressed = 15
)

// matHeader is the number of bytes before the first element; the last four say version 1.0 and little-endian.
const matHeader = 128

// largestElement bounds the memory that a damaged or endless file can make readMAT allocate.
const largestElement = 1 << 31

// readMAT reads the variables of a MATLAB file of level 5, which are arrays of numbers that are stored as bytes, as
// MATLAB stores whole numbers from 0 to 255. An array may be compressed.
func readMAT(r io.Reader) (map[string]variable, error) {
	header := make([]byte, matHeader)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("the file ends within its header of %d bytes: %w", matHeader, err)
	}
	if version := string(header[matHeader-4:]); version != "\x00\x01IM" {
		return nil, fmt.Errorf("the header ends in %q: it is no little-endian MATLAB file of level 5, whose ends in %q",
			version, "\x00\x01IM")
	}
	variables := map[string]variable{}
	for {
		var tag [2]uint32 // type and size
		err := binary.Read(r, binary.LittleEndian, &tag)
		if errors.Is(err, io.EOF) {
			return variables, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the file is cut short: %w", err)
		}
		body := io.LimitReader(r, int64(tag[1]))
		name, v, err := readVariable(tag[0], body)
		if err != nil {
			return nil, fmt.Errorf("variable %q, number %d: %w", name, len(variables)+1, cut(err))
		}
		variables[name] = v
		if _, err := io.Copy(io.Discard, body); err != nil {
			return nil, fmt.Errorf("variable %q: %w", name, err)
		}
	}
}

// cut names the end of a file within a variable.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is cut short: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// readVariable reads an array from the body of its element.
func readVariable(kind uint32, r io.Reader) (name string, v variable, err error) {
	if kind == matCompressed {
		unzipped, err := zlib.NewReader(r)
		if err != nil {
			return "", v, err
		}
		var tag [2]uint32
		if err := binary.Read(unzipped, binary.LittleEndian, &tag); err != nil {
			return "", v, err
		}
		if name, v, err = readVariable(tag[0], unzipped); err == nil {
			_, err = io.Copy(io.Discard, unzipped) // to the end, where the checksum is
		}
		return name, v, err
	}
	if kind != matArray {
		return "", v, fmt.Errorf("it is of type %d: it must be an array (%d)", kind, matArray)
	}
	// Four elements: flags, which begin with the class; sizes; name; values.
	_, flags, err := readElement(r)
	if err != nil {
		return "", v, err
	}
	_, sizes, err := readElement(r)
	if err != nil {
		return "", v, err
	}
	_, text, err := readElement(r)
	if err != nil {
		return "", v, err
	}
	name = string(text)
	const double, uint64s = 6, 15 // the first and the last class of numbers
	if len(flags) != 8 || flags[0] < double || flags[0] > uint64s {
		return name, v, fmt.Errorf("its flags are %v: it must be an array of numbers", flags)
	}
	n := 1
	for size := range slices.Chunk(sizes, 4) {
		if len(size) < 4 {
			return name, v, fmt.Errorf("its sizes are the bytes %v: they must be numbers of four bytes", sizes)
		}
		v.sizes = append(v.sizes, int(binary.LittleEndian.Uint32(size)))
		n *= v.sizes[len(v.sizes)-1]
	}
	kind, v.values, err = readElement(r)
	if err == nil && (kind != matBytes || len(v.values) != n) {
		err = fmt.Errorf("it has %d bytes of values of type %d, and the sizes %v: a value must be a byte (type %d)",
			len(v.values), kind, v.sizes, matBytes)
	}
	return name, v, err
}

// readElement reads a part of an array. It begins with its type and size, of four bytes each or of two, and is padded
// to eight bytes. With two bytes each it has eight bytes in all.
func readElement(r io.Reader) (kind uint32, data []byte, err error) {
	var tag [8]byte
	if _, err := io.ReadFull(r, tag[:]); err != nil {
		return 0, nil, err
	}
	kind = binary.LittleEndian.Uint32(tag[:4])
	if small := kind >> 16; small > 0 {
		if small > 4 {
			return 0, nil, fmt.Errorf("a part of it says that %d bytes stand in four: the file is damaged", small)
		}
		return kind & 0xffff, tag[4 : 4+small], nil
	}
	size := binary.LittleEndian.Uint32(tag[4:])
	if size > largestElement {
		return 0, nil, fmt.Errorf("a part of it has %d bytes, of at most %d: the file is damaged", size, largestElement)
	}
	data, err = io.ReadAll(io.LimitReader(r, int64(size))) // memory grows with what is there, not with what is declared
	if err == nil && len(data) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, nil, err
	}
	_, err = io.CopyN(io.Discard, r, int64(-size%8))
	return kind, data, err
}
