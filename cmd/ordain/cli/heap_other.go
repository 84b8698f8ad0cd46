//go:build !linux

package cli

// largePages does something where pages have two sizes for who asks.
func largePages() {}
