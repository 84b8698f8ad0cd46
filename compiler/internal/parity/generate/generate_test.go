package generate_test

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/generate"
	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// eachModel compiles the models of the first seeds of a family: 30, with ORDAIN_MATRIX=ci 50, and with
// ORDAIN_MATRIX=whole 200.
func eachModel(
	t *testing.T,
	model func(seed uint64) parity.Case,
	check func(c parity.Case, d *parity.Document),
) (models int) {
	t.Helper()
	models = 30
	switch os.Getenv("ORDAIN_MATRIX") {
	case "whole":
		models = 200
	case "ci":
		models = 50
	}
	o, dir := compiler.Options{
		CacheDir: t.TempDir(), Python: plugintest.Python(t),
		MaxIterations: 5000, MemoryMax: 1 << 30, // for models that never end
	}, t.TempDir()
	for seed := range uint64(models) {
		c := model(seed)
		if second := model(seed); !maps.Equal(second.Files, c.Files) || second.Name != c.Name {
			t.Fatalf("seed %d makes two different models", seed)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		d, err := parity.Compile(context.Background(), c, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		check(c, d)
	}
	return models
}

// Comparing with the reference is only useful if the models parse and enough of them compile: most of them, in the
// careful family.
func TestModels(t *testing.T) {
	for family, least := range map[string]int{ // percent
		"careful": 70, "feeds": 10, "heirs": 4, "wild": 20, "places": 30, "turns": 40,
	} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			model, err := generate.Family(family, nil)
			if err != nil {
				t.Fatal(err)
			}
			good := 0
			n := eachModel(t, model, func(c parity.Case, d *parity.Document) {
				switch {
				case d.Success:
					good++
				case d.Error.Kind == "ParserException" || strings.HasSuffix(d.Error.Kind, "InternalError"):
					t.Errorf("%s does not parse: %s", c.Name, d.Error)
				}
			})
			if good*100 < least*n {
				t.Errorf("%d of %d models compile", good, n)
			}
		})
	}
}

// However a model is changed, the compiler reports an error with a kind and never crashes.
func TestChangedModels(t *testing.T) {
	corpus, err := parity.Load("../../../testdata/parity")
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{"mutants", "crosses"} {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			model, err := generate.Family(family, corpus)
			if err != nil {
				t.Fatal(err)
			}
			eachModel(t, model, func(c parity.Case, d *parity.Document) {
				if e := d.Error; !d.Success &&
					(e == nil || e.Kind == "" || strings.HasSuffix(e.Kind, "InternalError")) {
					t.Errorf("%s: %+v", c.Name, e)
				}
			})
		})
	}
}

// Every family has a name by which the tool finds it.
func TestFamilies(t *testing.T) {
	for _, name := range generate.Families() {
		if _, err := generate.Family(name, nil); err != nil {
			t.Error(err)
		}
	}
	if _, err := generate.Family("nothing", nil); err == nil {
		t.Error("there is a family called nothing")
	}
}
