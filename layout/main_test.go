package layout

import (
	"os"
	"testing"

	"ordain.dev/ordain/internal/testing/racedetector"
)

// Some tests start this binary again as another process.
func TestMain(m *testing.M) { os.Exit(racedetector.Main(m)) }
