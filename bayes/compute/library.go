package compute

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
)

// checkLibrary checks a plugin's file before the system's loader maps it, and that there is room for it. The loader
// trusts the sizes in the file: for one that was cut off, by a full disk or a broken download, it maps pages that do
// not exist, and the first access to them kills the process.
func checkLibrary(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w at %s (`%s` installs it): %w", ErrNoPlugin, path, setupCommand, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errPluginLoad, path, err)
	}
	library, err := libraryOf(file)
	if err != nil {
		return fmt.Errorf("%w: %s, of %d bytes, is damaged (`%s` installs a whole one): %w",
			errPluginLoad, path, info.Size(), setupCommand, err)
	}
	if library == nil {
		return nil // the loader itself refuses it
	}
	if want := librarySize(library); info.Size() < want {
		return fmt.Errorf("%w: %s has %d bytes, but its header tells of %d: it was cut off (`%s` installs a whole one)",
			errPluginLoad, path, info.Size(), want, setupCommand)
	}
	return checkAddresses(path, library)
}

// libraryOf is the headers of an ELF library; nil for another file.
func libraryOf(file *os.File) (*elf.File, error) {
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := file.ReadAt(magic, 0); err != nil || !bytes.Equal(magic, []byte(elf.ELFMAG)) {
		return nil, nil
	}
	return elf.NewFile(file) // reads the tables of segments and sections, which stands last in the file
}

// librarySize is the size of a library's file according to its headers.
func librarySize(library *elf.File) (size int64) {
	for _, segment := range library.Progs {
		size = max(size, int64(segment.Off+segment.Filesz))
	}
	for _, section := range library.Sections {
		if section.Type != elf.SHT_NOBITS {
			size = max(size, int64(section.Offset+section.FileSize))
		}
	}
	return size
}
