package gitsync

import (
	"os"
	"testing"

	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/scratch"
)

// Tests start this binary once more, as another process.
func TestMain(m *testing.M) {
	code := racedetector.Main(scratch.InMemory(m))
	if empty.dir != "" {
		os.RemoveAll(empty.dir)
	}
	os.Exit(code)
}
