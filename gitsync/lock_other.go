//go:build !unix || solaris || aix

package gitsync

import "os"

// flock has nothing to lock with on this system: the locks inside the process
// are what there is, and a state directory serves one process.
func flock(*os.File, bool) (bool, error) { return true, nil }
