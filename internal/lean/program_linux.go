package lean

import (
	"runtime"
	"syscall"
	"unsafe"
)

// parts are the mappings of the program file that nobody can have written to,
// and the code of the libraries that it is linked with: the loader may have
// changed pages of the others.
var parts [][2]uintptr

func init() {
	parts = append(program(), libraries()...)
	onlyTouched(parts)
}

// Forget gives back what the program file takes of memory. What is used comes
// back when it is touched.
func Forget() {
	for _, m := range parts {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m[0], m[1]-m[0], syscall.MADV_DONTNEED)
	}
}

// header is a program header of a 64-bit ELF file.
type header struct {
	kind, flags uint32
	_           uint64 // where it is in the file
	address     uint64
	_           uint64
	sizeInFile  uint64
	_, _        uint64
}

const (
	auxHeaders, auxHeaderSize, auxHeaderCount = 3, 4, 5 // of the auxiliary vector

	kindLoad, kindHeaders = 1, 6
	flagWrite             = 2
)

// program finds the parts by the headers of the program, which lie in memory.
func program() [][2]uintptr {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return nil
	}
	f, err := syscall.Open("/proc/self/auxv", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil // there is more memory in use, and that is all
	}
	var vector [64][2]uintptr
	_, err = syscall.Read(f, unsafe.Slice((*byte)(unsafe.Pointer(&vector)), unsafe.Sizeof(vector)))
	_ = syscall.Close(f)
	if err != nil {
		return nil
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
	return readOnly(headers, at, uintptr(syscall.Getpagesize()))
}

// libraries finds the code of the libraries. A page that was written to is no
// longer one of the file, but the loader leaves code alone.
func libraries() [][2]uintptr {
	f, err := syscall.Open("/proc/self/maps", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	var text [16 << 10]byte // the program's own mappings, the first, fill a small part of it
	n, read := 0, 1
	for read > 0 && err == nil && n < len(text) {
		read, err = syscall.Read(f, text[n:])
		n += max(read, 0)
	}
	_ = syscall.Close(f)
	return code(text[:n])
}

// code reads mappings as Linux lists them, and gives those of code of libraries:
//
//	7f4d1c026000-7f4d1c17c000 r-xp 00026000 fe:00 326269      /usr/lib/x86_64-linux-gnu/libc.so.6
func code(maps []byte) [][2]uintptr {
	var found [][2]uintptr
	for len(maps) > 0 {
		from, rest := hexadecimal(maps)
		to, rest := hexadecimal(rest[min(1, len(rest)):])
		end := 0
		for end < len(rest) && rest[end] != '\n' {
			end++
		}
		if line := string(rest[:end]); len(line) > 5 && line[:5] == " r-xp" && names(line, ".so") {
			found = append(found, [2]uintptr{from, to})
		}
		maps = rest[min(end+1, len(rest)):]
	}
	return found
}

// hexadecimal reads the number that a text begins with.
func hexadecimal(text []byte) (n uintptr, rest []byte) {
	for i, c := range text {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uintptr(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uintptr(c-'a'+10)
		default:
			return n, text[i:]
		}
	}
	return n, nil
}

// names is strings.Contains: this package begins before package strings does.
func names(line, part string) bool {
	for i := range len(line) - len(part) + 1 {
		if line[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// readOnly gives the mappings of a program whose headers lie at an address.
func readOnly(headers []header, at, page uintptr) [][2]uintptr {
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
	var found [][2]uintptr
	for _, h := range headers {
		if h.kind == kindLoad && h.flags&flagWrite == 0 {
			from, to := moved+uintptr(h.address), moved+uintptr(h.address+h.sizeInFile)
			found = append(found, [2]uintptr{from &^ (page - 1), (to + page - 1) &^ (page - 1)})
		}
	}
	return found
}

// Of <linux/userfaultfd.h>.
const (
	userModeOnly   = 1
	faultsAPI      = 0xaa
	writesUnwaited = 1 << 15 // UFFD_FEATURE_WP_ASYNC
	watchWrites    = 1 << 1  // UFFDIO_REGISTER_MODE_WP
	askAPI         = 0xc018aa3f
	register       = 0xc020aa00

	noHugePage = 15 // MADV_NOHUGEPAGE: no 2 MiB at once either
	getSeccomp = 21 // PR_GET_SECCOMP
)

// onlyTouched has the kernel map the pages that are touched and no others.
//
// It maps nothing around where a process watches what is written. That is asked
// for here; nothing is ever written there, and nobody is waited for. Linux does
// so from 6.7 on. Where it does not, or may not, there is more memory in use; where
// system calls are filtered it is not even asked for, since that may end the process.
func onlyTouched(parts [][2]uintptr) {
	if filtered, _, failed := syscall.Syscall(syscall.SYS_PRCTL, getSeccomp, 0, 0); failed != 0 || filtered != 0 {
		return
	}
	number, known := map[string]uintptr{"amd64": 323, "arm64": 282}[runtime.GOARCH]
	if !known || len(parts) == 0 {
		return
	}
	watch, _, failed := syscall.Syscall(number, syscall.O_CLOEXEC|userModeOnly, 0, 0)
	if failed != 0 {
		return
	}
	version := struct{ api, features, requests uint64 }{api: faultsAPI, features: writesUnwaited}
	if _, _, failed = syscall.Syscall(syscall.SYS_IOCTL, watch, askAPI, uintptr(unsafe.Pointer(&version))); failed != 0 {
		_ = syscall.Close(int(watch))
		return
	}
	for _, m := range parts { // until the process ends: to close it ends the watch
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m[0], m[1]-m[0], noHugePage)
		part := struct{ from, size, mode, requests uint64 }{
			from: uint64(m[0]),
			size: uint64(m[1] - m[0]),
			mode: watchWrites,
		}
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, watch, register, uintptr(unsafe.Pointer(&part)))
	}
}
