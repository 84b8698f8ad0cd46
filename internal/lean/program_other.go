//go:build !linux

package lean

// OnlyTouched does something where the system maps more than is touched.
func OnlyTouched() {}

// Forget does something where the system tells what a process holds.
func Forget() {}
