//go:build !linux

package cli

// pages are something where the system tells what a process holds.
type pages struct{}

func programPages() pages { return pages{} }

func (pages) forget() {}

// largePages does something where pages have two sizes for who asks.
func largePages() {}
