package export_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/provenance"
)

// For each field of an exported resource, the document records what decided it: the
// statement, the default, or the Python function with the attributes that it read.
func TestEveryFieldHasItsProvenance(t *testing.T) {
	dir := write(t, story)
	doc, err := exported(t, dir, plugintest.Python(t), nil, func(in *export.Input) { in.ProjectDir = dir })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(doc.Provenance.Resources), len(doc.Resources); got != want || want == 0 {
		t.Fatalf("the provenance of %d of %d resources", got, want)
	}
	fields, ok := doc.Provenance.Explain("t::M[ag,name=m1]")
	if !ok {
		t.Fatal("m1 has no provenance")
	}
	for _, r := range doc.Resources {
		known, _ := doc.Provenance.Explain(r.ID.String())
		for name := range attributes(t, doc, r.ID.String()) {
			if _, ok := provenance.Find(known, name); !ok && name != "references" && name != "mutators" {
				t.Errorf("%s.%s has no provenance", r.ID, name)
			}
		}
	}
	for name, want := range map[string]string{
		"name":           "argument main.cf:7",
		"d":              "argument main.cf:7",
		"l":              "default libs/t/model/_init.cf:16",
		"receive_events": "default libs/std/model/_init.cf:3",
		"x":              "function M.<lambda> libs/t/plugins/__init__.py:19",
		"y":              "function M.get_y libs/t/plugins/__init__.py:21 of name, v",
		"z":              "function M.get_z libs/t/plugins/__init__.py:29 of d",
	} {
		f, _ := provenance.Find(fields, name)
		if len(f.Settings) != 1 {
			t.Errorf("%s: %+v", name, f.Settings)
			continue
		}
		s := f.Settings[0]
		parts := []string{string(s.Kind)}
		if s.Plugin != "" {
			parts = append(parts, strings.ReplaceAll(s.Plugin, "t.", ""))
		}
		parts = append(parts, fmt.Sprintf("%s:%d", filepath.ToSlash(s.File), s.Line))
		var inputs []string
		for _, input := range s.Inputs {
			inputs = append(inputs, input.Name)
			if len(input.Settings) != 1 || input.Settings[0].Line == 0 {
				t.Errorf("%s of %s: %+v", input.Name, name, input.Settings)
			}
		}
		if inputs != nil {
			parts = append(parts, "of "+strings.Join(inputs, ", "))
		}
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("%s: %s and not %s", name, got, want)
		}
	}
}
