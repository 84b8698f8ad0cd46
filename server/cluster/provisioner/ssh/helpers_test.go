package ssh_test

import (
	"os/exec"
	"regexp"
	"testing"
)

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func match(pattern, text string) bool {
	return regexp.MustCompile("^" + pattern + "$").MatchString(text)
}
