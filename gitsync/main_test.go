package gitsync

import (
	"os"
	"testing"

	"ordain.dev/ordain/internal/testing/racedetector"
)

// Tests start this binary once more, as another process.
func TestMain(m *testing.M) {
	code := racedetector.Main(m)
	if empty.dir != "" {
		os.RemoveAll(empty.dir)
	}
	os.Exit(code)
}
