package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// replace gives a file the name of another, which is gone then.
//
// They change names first: a file system such as ext4 writes a file to the disk
// before it may replace another, and a compile would wait for that as long as
// for a tenth of its work. At every moment one whole file has the name. Only
// where the machine itself fails soon after may the new one be lost; it can be
// made again.
func replace(file, other string) error {
	if unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE) != nil {
		return os.Rename(file, other) // there is no other, or the file system cannot do it
	}
	return os.Remove(file)
}
