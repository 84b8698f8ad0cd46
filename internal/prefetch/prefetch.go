// Package prefetch has the processor fetch memory that will be read soon.
//
// A work list over tens of megabytes waits for memory most of the time: each
// item was made long ago and has left the caches. Who knows which items come next
// can have them fetched meanwhile.
package prefetch

import "unsafe"

// Line is how much is fetched at a time, in bytes.
const Line = 64

// Of fetches the line that begins what p points to. It does not wait, reads
// nothing, and may be given any pointer, nil too.
func Of[T any](p *T) { line(unsafe.Pointer(p)) }

// Two fetches two lines, the first of them that of an address.
func Two(p unsafe.Pointer) { lines(p) }
