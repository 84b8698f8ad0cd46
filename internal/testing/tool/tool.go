// Package tool finds the programs that tests need. A test whose program is
// missing is skipped on a developer's machine and fails in CI (CI=true), where
// everything should be installed and nobody would notice that a test is skipped.
//
// Tests that take very long and tell no part of the core story call Long: they run in
// CI, and wherever ORDAIN_LONG=1 asks for them.
//
// Skips that depend on the platform, or on -short, do not belong here.
package tool

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Need returns the path of a program on PATH. Further names are alternatives,
// tried in order; an empty name is ignored, so that a caller can pass an
// environment variable that may name the program. If none is found, Need calls Missing.
func Need(t testing.TB, names ...string) string {
	t.Helper()
	var tried []string
	for _, name := range names {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		tried = append(tried, name)
	}
	Missing(t, "%s is not installed on this machine", strings.Join(tried, " or "))
	return ""
}

// Missing ends a test that cannot run because the machine lacks something: it
// skips the test, or fails it in CI. The message says what is missing.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if inCI() {
		t.Fatalf("CI must have everything that the tests need: "+format, args...)
		return
	}
	t.Skipf("skipped (CI=true makes this a failure): "+format, args...)
}

// Long skips a test that takes long, unless it runs in CI or the environment variable
// ORDAIN_LONG is 1. The reason says what takes the time.
func Long(t testing.TB, why string) {
	t.Helper()
	if long, err := strconv.ParseBool(os.Getenv("ORDAIN_LONG")); inCI() || err == nil && long {
		return
	}
	t.Skipf("skipped (CI=true or ORDAIN_LONG=1 runs it): %s", why)
}

// inCI reports whether the environment variable CI is true. GitHub, GitLab,
// Forgejo and Woodpecker set it to "true" or "1".
func inCI() bool {
	ci, err := strconv.ParseBool(os.Getenv("CI"))
	return err == nil && ci
}
