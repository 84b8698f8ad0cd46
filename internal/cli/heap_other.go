//go:build !linux

package cli

// mapHeap does something where pages can be asked for before they are used.
func mapHeap(bool) {}

func largePagesAreCheap() bool { return false }
