package cli

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// largePages has the heap grow into pages of 2 MiB where the system gives
// these only to who asks, and cheaply: to be handed 50 MiB in pages of 4 KiB is a
// tenth of the work of a compile that needs them, or more.
//
// The runtime maps its heap a few MiB at a time and asks for nothing. So a
// piece as large as the heap may become before its first collection is taken,
// marked and given back untouched.
func largePages() {
	if mayAsk() && !givenBack("/sys/module/page_reporting/parameters/page_reporting_order") &&
		freeLarge("/proc/buddyinfo") >= 2*firstCollection/hugePage {
		askForLarge()
	}
}

// mayAsk reports whether it makes a difference.
func mayAsk() bool {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err == nil && bytes.Contains(mode, []byte("[madvise]"))
}

// givenBack reports whether this is a virtual machine that tells its host which
// large pages are free (free page reporting: some seconds later they are the
// host's). To have one back takes 8 ms, in which the host clears 2 MiB in pages
// of 4 KiB; small pages come from what is too small to be given back, at 1 ms
// for as much. The file has the order of the smallest pages that are given back,
// and -1 where no host wants any.
func givenBack(file string) bool {
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	order, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 8) // -1 may also be written as 4294967295
	return err == nil && order > 0
}

// freeLarge reads how many large pages lie free: where there are not enough, the
// system moves and drops others to make them, and that takes longer than it saves. A line of the file has how
// many pieces there are of 4 KiB, 8 KiB, 16 KiB and so on:
//
//	Node 0, zone   Normal    221    128     64     33     18      7      2      1      0      3     12
func freeLarge(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	const before, order = 4, 9 // 4 KiB << 9
	free := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		for n := before + order; n < len(fields); n++ {
			pieces, _ := strconv.Atoi(fields[n])
			free += pieces << (n - before - order)
		}
	}
	return free
}

func askForLarge() {
	piece := make([]byte, firstCollection)
	first := uintptr(unsafe.Pointer(unsafe.SliceData(piece)))
	from, to := (first+hugePage-1)&^(hugePage-1), (first+uintptr(len(piece)))&^(hugePage-1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_HUGEPAGE) // refused: the pages stay small
	runtime.KeepAlive(piece)
	debug.FreeOSMemory()
}
