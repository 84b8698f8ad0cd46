package cli

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pages are those of the program file, by their mappings: each stage of a
// compile touches some that the next one does not need, the start of the
// process most of all.
type pages [][2]uintptr

// header is a program header of a 64-bit ELF file.
type header struct {
	kind, flags                                                uint32
	offset, address, physical, sizeInFile, sizeInMemory, align uint64
}

const (
	auxHeaders, auxHeaderSize, auxHeaderCount = 3, 4, 5 // of the auxiliary vector

	kindLoad, kindHeaders = 1, 6
	flagWrite             = 2
)

// programPages finds them, by the headers of the program, which lie in memory.
// Only what nobody can have written to can be given back: the loader may have
// changed pages of the other mappings.
func programPages() pages {
	vector, err := unix.Auxv()
	if err != nil || unsafe.Sizeof(uintptr(0)) != 8 {
		return nil // there is more memory in use, and that is all
	}
	var at, size, count uintptr
	for _, entry := range vector {
		switch entry[0] {
		case auxHeaders:
			at = entry[1]
		case auxHeaderSize:
			size = entry[1]
		case auxHeaderCount:
			count = entry[1]
		}
	}
	if at == 0 || size != unsafe.Sizeof(header{}) {
		return nil
	}
	headers := unsafe.Slice(*(**header)(unsafe.Pointer(&at)), count)
	return readOnly(headers, at, uintptr(os.Getpagesize()))
}

// readOnly gives the mappings of a program whose headers lie at an address.
func readOnly(headers []header, at, page uintptr) pages {
	var moved uintptr
	known := false
	for _, h := range headers {
		if h.kind == kindHeaders {
			moved, known = at-uintptr(h.address), true
		}
	}
	if !known {
		return nil
	}
	var found pages
	for _, h := range headers {
		if h.kind == kindLoad && h.flags&flagWrite == 0 {
			from, to := moved+uintptr(h.address), moved+uintptr(h.address+h.sizeInFile)
			found = append(found, [2]uintptr{from &^ (page - 1), (to + page - 1) &^ (page - 1)})
		}
	}
	return found
}

// forget gives their memory back. What is used comes back when it is touched.
func (p pages) forget() {
	for _, m := range p {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m[0], m[1]-m[0], unix.MADV_DONTNEED)
	}
}
