package deployer

import (
	"os"
	"testing"

	"ordain.dev/ordain/internal/testing/parallel"
)

// These tests mostly wait.
func TestMain(m *testing.M) { os.Exit(parallel.Wide(m, 3).Run()) }
