package cli

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// There is memory before a compile gets to it once its heap grows, and none for
// one that stays small.
func TestPagesAreThereBeforeTheyAreTouched(t *testing.T) {
	heap, err := unix.Mmap(-1, 0, 16<<20+mapped, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(heap) }()
	_ = unix.Madvise(heap, unix.MADV_NOHUGEPAGE)
	if err := unix.Madvise(heap[len(heap)/2:len(heap)/2+os.Getpagesize()], unix.MADV_POPULATE_WRITE); err == unix.EINVAL {
		t.Skip("this system does not hand out pages that nobody touched")
	}
	first := (uintptr(unsafe.Pointer(unsafe.SliceData(heap))) + mapped - 1) &^ (mapped - 1) // as the runtime maps its heap
	h := newHanding()
	ended := make(chan struct{})
	go func() { defer close(ended); h.run() }()

	h.reached(first)
	h.reached(first + worthIt/2)
	h.reached(first + worthIt)
	h.reached(first + worthIt + lead) // is heard of, or was covered: both is well
	close(h.next)
	<-ended
	if there(t, first) {
		t.Error("what was passed before it was worth it is handed out")
	}
	if !there(t, first+worthIt+lead-uintptr(os.Getpagesize())) {
		t.Error("what comes next is not handed out")
	}
	if there(t, first+16<<20-uintptr(os.Getpagesize())) {
		t.Error("what is far away is handed out")
	}
	runtime.KeepAlive(heap)
}

// there reports whether there is memory behind an address of this process.
func there(t *testing.T, address uintptr) bool {
	t.Helper()
	pages, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	var entry [8]byte
	if _, err := pages.ReadAt(entry[:], int64(address/uintptr(os.Getpagesize()))*8); err != nil {
		t.Fatal(err)
	}
	return binary.NativeEndian.Uint64(entry[:])>>63 == 1
}
