package compiler_test

import (
	"os"
	"testing"

	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/scratch"
)

// Tests start this binary once more, as another process.
func TestMain(m *testing.M) { os.Exit(racedetector.Main(scratch.InMemory(m))) }
