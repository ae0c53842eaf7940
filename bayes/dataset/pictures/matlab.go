package pictures

import (
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// variable is an array of bytes of a MATLAB file, first index fastest.
type variable struct {
	sizes  []int
	values []byte
}

// matHeader is the number of bytes before the first element of a file.
const matHeader = 128

// readMAT reads the variables of a MATLAB file of level 5 ("MAT-File Format", The MathWorks), compressed arrays of
// numbers that are stored as bytes, as MATLAB stores whole numbers from 0 to 255. The file is the publisher's: its
// checksum was compared before.
func readMAT(r io.Reader) (map[string]variable, error) {
	if _, err := io.CopyN(io.Discard, r, matHeader); err != nil {
		return nil, err
	}
	variables := map[string]variable{}
	for {
		var tag [2]uint32 // type and size
		err := binary.Read(r, binary.LittleEndian, &tag)
		if errors.Is(err, io.EOF) {
			return variables, nil
		}
		if err != nil {
			return nil, err
		}
		body := io.LimitReader(r, int64(tag[1]))
		array, err := zlib.NewReader(body)
		if err != nil {
			return nil, err
		}
		if err := binary.Read(array, binary.LittleEndian, &tag); err != nil {
			return nil, err
		}
		var parts [4][]byte // flags, sizes, name and values
		for i := range parts {
			if parts[i], err = readElement(array); err != nil {
				return nil, err
			}
		}
		v := variable{values: parts[3]}
		for size := range slices.Chunk(parts[1], 4) {
			v.sizes = append(v.sizes, int(binary.LittleEndian.Uint32(size)))
		}
		variables[string(parts[2])] = v
		for _, rest := range []io.Reader{array, body} { // the end of the array has its checksum
			if _, err := io.Copy(io.Discard, rest); err != nil {
				return nil, err
			}
		}
	}
}

// readElement reads a part of an array. It begins with its type and size, of four bytes each or of two, and is padded
// to eight bytes. With two bytes each it has eight bytes in all.
func readElement(r io.Reader) ([]byte, error) {
	var tag [8]byte
	if _, err := io.ReadFull(r, tag[:]); err != nil {
		return nil, err
	}
	if small := binary.LittleEndian.Uint16(tag[2:]); small > 0 {
		return tag[4 : 4+min(small, 4)], nil
	}
	size := int64(binary.LittleEndian.Uint32(tag[4:]))
	data, err := io.ReadAll(io.LimitReader(r, size)) // memory grows with what is there, not with what is declared
	if err != nil {
		return nil, err
	}
	_, err = io.CopyN(io.Discard, r, -size&7)
	return data, err
}
