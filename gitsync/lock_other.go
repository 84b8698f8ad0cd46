//go:build !unix || solaris || aix

package gitsync

import "os"

// flock does nothing on this system: there are only the locks within the process,
// so a state directory must be used by one process only.
func flock(*os.File, bool) (bool, error) { return true, nil }
