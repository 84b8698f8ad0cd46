// Package tool finds the programs that tests need. A test whose program is
// missing is skipped on a developer's machine and fails in CI (CI=true), where
// everything should be installed and nobody would notice that a test is skipped.
//
// go test alone runs what a developer waits for. Two kinds of tests run only elsewhere, and ORDAIN_LONG=1 runs both:
//
//	Heavy   browsers, servers, virtual environments, playbooks   each time in CI
//	Long    takes long and tells no part of the core story       in CI in turns
//
// A third of the long tests runs each time that ORDAIN_TURN counts on, so that three changes in a row are held against
// every test.
//
// Skips that depend on the platform, or on -short, do not belong here.
package tool

import (
	"hash/fnv"
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

// Heavy skips a test that needs much of the machine, except in CI, or where the environment variable ORDAIN_LONG is 1.
// The reason says what it needs. Something lighter should test the core of the same.
func Heavy(t testing.TB, why string) {
	t.Helper()
	if !inCI() && !all() {
		t.Skipf("skipped (ORDAIN_LONG=1 runs it, and CI does): %s", why)
	}
}

// turns is how many runs of CI it takes until each long test has run.
const turns = 3

// Long skips a test that takes long, unless the environment variable ORDAIN_LONG is 1, or it is the turn of the test
// in CI. The reason says what takes the time.
func Long(t testing.TB, why string) {
	t.Helper()
	if all() || inCI() && hasTurn(t.Name()) {
		return
	}
	t.Skipf("skipped (ORDAIN_LONG=1 runs it, and every third run of CI does): %s", why)
}

// Among reports whether one of many things that a test looks at, such as one of the pages, belongs to this run: each
// does with ORDAIN_LONG=1, otherwise a third, which in CI is another one each time.
func Among(name string) bool {
	return all() || inCI() && hasTurn(name) || !inCI() && isTurn(name, 0, turns)
}

// Sample reports whether one of very many things belongs to this run, which takes about one in n: always the same on a
// developer's machine, and another one in each run of CI.
func Sample(name string, n uint64) bool {
	turn, _ := turn()
	return isTurn(name, turn, n)
}

// all reports whether everything runs, however long that takes.
func all() bool {
	all, err := strconv.ParseBool(os.Getenv("ORDAIN_LONG"))
	return err == nil && all
}

// hasTurn reports whether a long test runs in this run of CI, which ORDAIN_TURN numbers. Without a number, all do.
func hasTurn(name string) bool {
	turn, numbered := turn()
	name, _, _ = strings.Cut(name, "/")
	return !numbered || isTurn(name, turn, turns)
}

// turn returns the number of this run of CI, if it has one.
func turn() (number uint64, numbered bool) {
	number, err := strconv.ParseUint(os.Getenv("ORDAIN_TURN"), 10, 32)
	return number, err == nil
}

// isTurn reports whether one of n turns has come to a name.
func isTurn(name string, turn, n uint64) bool {
	sum := fnv.New32a()
	sum.Write([]byte(name)) // never fails
	return (uint64(sum.Sum32())+turn)%n == 0
}

// inCI reports whether the environment variable CI is true. GitHub, GitLab,
// Forgejo and Woodpecker set it to "true" or "1".
func inCI() bool {
	ci, err := strconv.ParseBool(os.Getenv("CI"))
	return err == nil && ci
}
