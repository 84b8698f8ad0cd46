package folders

import (
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
