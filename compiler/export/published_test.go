package export_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// Published modules export exactly the same as in the reference: files with content from
// templates and references, links, directories and JSON files, together with what their
// dependency managers add.
func TestPublishedModules(t *testing.T) {
	archive, err := os.ReadFile("testdata/published.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range plugintest.Sets[1:] {
		t.Run(set.Python, func(t *testing.T) {
			interpreter := plugintest.Venv(t, set)
			dir := write(t, string(archive))
			doc, err := exported(t, dir, interpreter, []string{plugintest.Site(t, interpreter)})
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "want.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want []map[string]any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if len(want) != len(doc.Resources) {
				t.Errorf("%d resources, want %d: %v", len(doc.Resources), len(want), ids(doc))
			}
			for _, w := range want {
				id := w["id"].(string)
				got := attributes(t, doc, id)
				got["id"] = id
				got["requires"] = []any{}
				for _, other := range requires(doc, id) {
					got["requires"] = append(got["requires"].([]any), other)
				}
				if diff := cmp.Diff(w, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", id, diff)
				}
			}
			// The imports of the handler of fs::File are exported with it.
			for _, c := range doc.Code {
				if c.Type != "fs::File" {
					continue
				}
				found := map[string]bool{}
				for _, s := range c.Sources {
					found[s.Path] = true
				}
				for _, path := range []string{"inmanta_plugins/fs/resources.py", "inmanta_plugins/mitogen/abc.py",
					"inmanta_mitogen/__init__.py", "inmanta_plugins/std/__init__.py"} {
					if !found[path] {
						t.Errorf("the code of fs::File lacks %s; it has %v", path, found)
					}
				}
				for _, r := range c.Requirements {
					if len(r) > 7 && r[:7] == "inmanta" {
						t.Errorf("requirement %s is answered already", r)
					}
				}
			}
		})
	}
}
