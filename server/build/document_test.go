package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

// An export that would fill the server's memory is not read; the message gives
// its size, the bound and a way out.
func TestAnExportThatIsTooLarge(t *testing.T) {
	t.Parallel()
	r := &room{results: t.TempDir()}
	file := filepath.Join(r.results, exportName)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, documentMax+1<<20); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	_, err := r.readDocument()
	if !fault.Is(err, fault.Exhausted) {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{"1025 MiB", "1024 MiB at most", "several environments"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q says nothing of %q", err, want)
		}
	}
}
