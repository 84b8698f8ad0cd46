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
	"ordain.dev/ordain/internal/testing/racedetector"
)

// options stop models that have no end.
func options(t *testing.T) compiler.Options {
	return compiler.Options{
		CacheDir:      t.TempDir(),
		Python:        plugintest.Python(t),
		MaxIterations: 5000,
		MemoryMax:     1 << 30,
	}
}

// eachModel compiles the models of n seeds, a part of them where the race detector
// is on: it is the share that counts. One seed is one model.
func eachModel(
	t *testing.T,
	n int,
	made func(seed uint64) parity.Case,
	saw func(c parity.Case, d *parity.Document),
) (models int) {
	t.Helper()
	if racedetector.On || testing.Short() {
		n /= 3
	}
	o, dir := options(t), t.TempDir()
	for seed := range uint64(n) {
		c := made(seed)
		if again := made(seed); !maps.Equal(again.Files, c.Files) || again.Name != c.Name {
			t.Fatalf("seed %d gives two models", seed)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		d, err := parity.Compile(context.Background(), c, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		saw(c, d)
	}
	return n
}

// What is compared with the reference has to be worth it: models are read without
// an error, and enough compile, most of those that are made with care.
func TestModels(t *testing.T) {
	for _, made := range []struct {
		name  string
		by    func(seed uint64) parity.Case
		least int // percent
	}{{"careful", generate.Case, 70}, {"feeds", generate.Feeds, 10}, {"heirs", generate.Heirs, 4}, {"wild",
		generate.Wild, 20}, {"places", generate.Places, 30}, {"turns", generate.Turns, 40}} {
		t.Run(made.name, func(t *testing.T) {
			good := 0
			n := eachModel(t, 150, made.by, func(c parity.Case, d *parity.Document) {
				switch {
				case d.Success:
					good++
				case d.Error.Kind == "ParserException" || strings.HasSuffix(d.Error.Kind, "InternalError"):
					t.Errorf("%s cannot be read: %s", c.Name, d.Error)
				}
			})
			if good*100 < made.least*n {
				t.Errorf("%d of %d models compile", good, n)
			}
		})
	}
}

// Whatever is changed in a model, or put into it, the compiler says what is wrong with it,
// and where, and never fails itself.
func TestChangedModels(t *testing.T) {
	corpus, err := parity.Load("../../../testdata/parity")
	if err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]func(seed uint64) parity.Case{"mutants": generate.Mutants(corpus),
		"crosses": generate.Crosses(corpus)} {
		t.Run(name, func(t *testing.T) {
			eachModel(t, 240, by, func(c parity.Case, d *parity.Document) {
				if e := d.Error; !d.Success &&
					(e == nil || e.Kind == "" || strings.HasSuffix(e.Kind, "InternalError")) {
					t.Errorf("%s: %+v", c.Name, e)
				}
			})
		})
	}
}
