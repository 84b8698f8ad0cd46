package cli

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pages are those of the program file, by their mappings: each stage of a
// compile touches some that the next one does not need, the start of the
// process most of all.
type pages [][2]uintptr

// programPages finds them.
//
// Only pages that are as they lie in the file can be given back. The loader
// may have changed some in mappings that nobody can write to any more, so the
// kernel is asked.
func programPages() pages {
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil // there is more memory in use, and that is all
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	var found pages
	var from, to uintptr // of the mapping that the lines are about, when it is one of the file
	for lines := bufio.NewScanner(bytes.NewReader(mappings)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && !strings.HasSuffix(fields[0], ":"):
			from, to = 0, 0
			if strings.HasSuffix(lines.Text(), " "+program) && (fields[1] == "r-xp" || fields[1] == "r--p") {
				from, to = addresses(fields[0])
			}
		case from < to && len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0":
			found = append(found, [2]uintptr{from, to})
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

// addresses reads `from-to` in hexadecimal.
func addresses(text string) (from, to uintptr) {
	low, high, _ := strings.Cut(text, "-")
	first, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return 0, 0
	}
	last, err := strconv.ParseUint(high, 16, 64)
	if err != nil {
		return 0, 0
	}
	return uintptr(first), uintptr(last)
}
