// Package clusters has the stories of clusters: from a template and a size to services
// that run on machines, with real SSH servers as machines.
package clusters

import (
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
