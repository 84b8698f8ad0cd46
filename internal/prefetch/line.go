//go:build amd64 || arm64

package prefetch

import "unsafe"

//go:noescape
func line(at unsafe.Pointer)

//go:noescape
func lines(at unsafe.Pointer)
