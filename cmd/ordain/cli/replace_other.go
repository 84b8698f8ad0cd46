//go:build !linux

package cli

import "os"

// replace gives a file the name of another, which is gone then.
func replace(file, other string) error { return os.Rename(file, other) }
