package cli

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"ordain.dev/ordain/internal/lean"
)

const (
	// worthIt is how far a heap has to have grown: a small model is over before
	// it is helped.
	worthIt = 1 << 20
	// lead is how much lies ready before the compile. It takes a millisecond to
	// use that up, and less to ask for as much again.
	lead = 1 << 19
	// mapped is what the runtime maps of its heap at a time, from a multiple of it on.
	mapped = 4 << 20
)

// handing has the system hand out the pages of a heap before a compile gets to
// them: a page fault, with the page to clear, is a fifth of the work of
// evaluating, and another processor can do that part.
//
//	heap  ████████████████████████████░░░░░░░░░░░
//	          the compile is here ↑   ↑ ready up to here
//
// The runtime fills its heap from low addresses to high ones, until it is
// collected. What is ready and not used is less than lead and a large page.
type handing struct {
	first uintptr        // where the heap was when it was told of first
	ready atomic.Uintptr // pages below are there
	next  chan uintptr
}

func newHanding() *handing { return &handing{next: make(chan uintptr, 1)} }

// reached is told how far a compile has come; it does not wait.
func (h *handing) reached(at uintptr) {
	if h.first == 0 {
		h.first = at
	}
	if at < h.first+worthIt || at+lead <= h.ready.Load() {
		return
	}
	select {
	case h.next <- at:
	default: // it is at it
	}
}

// run asks for pages, until the process ends or the system does not know how.
func (h *handing) run() {
	page := uintptr(os.Getpagesize())
	forgotten := false
	for at := range h.next {
		if !forgotten { // the model is large enough, and the compile goes on meanwhile
			lean.Forget()
			forgotten = true
		}
		from, to := max(at&^(page-1), h.ready.Load()), (at+lead+hugePage-1)&^(hugePage-1)
		to = min(to, (at+mapped)&^(mapped-1))
		if from >= to {
			continue
		}
		_, _, failed := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_POPULATE_WRITE)
		if failed == unix.EINVAL {
			return // before Linux 5.14
		}
		h.ready.Store(to) // also where the heap ends before: what comes there is asked for by who needs it
	}
}
