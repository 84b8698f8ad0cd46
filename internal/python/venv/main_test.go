package venv

import (
	"os"
	"testing"

	"ordain.dev/ordain/internal/testing/racedetector"
)

// Tests start this binary once more, as another process.
func TestMain(m *testing.M) { os.Exit(racedetector.Main(m)) }
