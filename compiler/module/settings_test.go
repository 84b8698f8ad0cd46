package module

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// .inmanta.cfg overrides .inmanta; the options of [DEFAULT] are in all sections.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project.yml":  "name: p\n",
		".inmanta":     "[a]\nx = 1\ny = 2\n[b]\nz = 3\n",
		".inmanta.cfg": "[DEFAULT]\nw = 5\n[a]\nx = 4\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Settings()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]any{"a": {"w": "5", "x": "4", "y": "2"}, "b": {"w": "5", "z": "3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(dir, ".inmanta"), []byte("no section = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Settings(); err == nil {
		t.Error("a file without sections is accepted")
	}
}
