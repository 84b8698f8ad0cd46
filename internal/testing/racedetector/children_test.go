package racedetector_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/racedetector"
)

// The test binary is also a program with a data race, and a test binary that
// starts that program.
func TestMain(m *testing.M) {
	if os.Getenv("ORDAIN_TEST_RACES") == "race" {
		race()
		return
	}
	os.Exit(racedetector.Main(m))
}

func race() {
	n, done := 0, make(chan struct{})
	go func() { n++; close(done) }()
	n++
	<-done
}

// A data race in a process that a test starts fails the test that calls Check or,
// if none does, the whole binary.
func TestARaceOfAnotherProcessIsFound(t *testing.T) {
	if !racedetector.On {
		t.Skip("needs the race detector")
	}
	for name, test := range map[string]string{"the test": "TestThatChecks", "the binary": "TestThatDoesNotCheck"} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+test+"$")
			cmd.Env = append(os.Environ(), "ORDAIN_TEST_RACES=tests")
			out, err := cmd.CombinedOutput()
			if err == nil || strings.Count(string(out), "WARNING: DATA RACE") != 1 {
				t.Errorf("it ended with %v and said\n%s", err, out)
			}
			if failed := strings.Contains(string(out), "--- FAIL"); failed != (name == "the test") {
				t.Errorf("the test failed: %v\n%s", failed, out)
			}
		})
	}
}

func TestThatChecks(t *testing.T) {
	startOther(t)
	racedetector.Check(t)
}

func TestThatDoesNotCheck(t *testing.T) { startOther(t) }

// startOther starts a process with a data race and ignores how it ends.
func startOther(t *testing.T) {
	if os.Getenv("ORDAIN_TEST_RACES") == "" {
		t.Skip("for TestARaceOfAnotherProcessIsFound")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ORDAIN_TEST_RACES=race")
	_ = cmd.Run()
}
