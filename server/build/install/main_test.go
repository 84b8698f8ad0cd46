package install

import (
	"os"
	"testing"

	"ordain.dev/ordain/internal/testing/scratch"
)

func TestMain(m *testing.M) { os.Exit(scratch.InMemory(m).Run()) }
