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
	"ordain.dev/ordain/internal/racedetector"
)

// options stop models that have no end.
func options(t *testing.T) compiler.Options {
	return compiler.Options{CacheDir: t.TempDir(), Python: plugintest.Python(t), MaxIterations: 5000, MemoryMax: 1 << 30}
}

// What is compared with the reference has to be worth it: most models compile,
// and one seed is one model.
func TestMostModelsCompile(t *testing.T) {
	n := 120
	if racedetector.On || testing.Short() { // a sample: it is the share that counts
		n = 40
	}
	o := options(t)
	dir := t.TempDir()
	good := 0
	for seed := range uint64(n) {
		c := generate.Case(seed)
		if again := generate.Case(seed); !maps.Equal(again.Files, c.Files) {
			t.Fatalf("seed %d gives two projects", seed)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		d, err := parity.Compile(context.Background(), c, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if d.Success {
			good++
		} else {
			t.Logf("%d: %s", seed, d.Error)
		}
	}
	if good < n*7/10 {
		t.Errorf("%d of %d models compile", good, n)
	}
}

// Models that are made without care are read without an error, some compile, and
// one seed is one model.
func TestCarelessModels(t *testing.T) {
	for _, made := range []struct {
		name  string
		by    func(seed uint64) parity.Case
		least int // of 150
	}{{"feeds", generate.Feeds, 15}, {"heirs", generate.Heirs, 6}, {"wild", generate.Wild, 30}} {
		t.Run(made.name, func(t *testing.T) {
			n := 150
			if racedetector.On || testing.Short() {
				n = 50
			}
			o := options(t)
			dir := t.TempDir()
			good, unread := 0, 0
			for seed := range uint64(n) {
				c := made.by(seed)
				if again := made.by(seed); !maps.Equal(again.Files, c.Files) {
					t.Fatalf("seed %d gives two models", seed)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				d, err := parity.Compile(context.Background(), c, dir, o)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case d.Success:
					good++
				case d.Error.Kind == "ParserException" || strings.HasSuffix(d.Error.Kind, "InternalError"):
					unread++
					t.Logf("%d: %s", seed, d.Error)
				}
			}
			t.Logf("%d of %d models compile", good, n)
			if good < made.least*n/150 || unread > 0 {
				t.Errorf("%d of %d models compile, %d cannot be read", good, n, unread)
			}
		})
	}
}

// Whatever is changed in a model, or put into it, the compiler says what is wrong with it,
// and where, and never fails itself; and one seed is one model.
func TestChangedModels(t *testing.T) {
	corpus, err := parity.Load("../../../testdata/parity")
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []struct {
		name string
		by   func(seed uint64) parity.Case
		n    int
	}{{"mutants", generate.Mutants(corpus), 300}, {"crosses", generate.Crosses(corpus), 200}} {
		t.Run(made.name, func(t *testing.T) {
			n := made.n
			if racedetector.On || testing.Short() {
				n /= 5
			}
			o := options(t)
			dir := t.TempDir()
			for seed := range uint64(n) {
				c := made.by(seed)
				if again := made.by(seed); !maps.Equal(again.Files, c.Files) || again.Name != c.Name {
					t.Fatalf("seed %d gives two models", seed)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				d, err := parity.Compile(context.Background(), c, dir, o)
				if err != nil {
					t.Fatal(err)
				}
				if e := d.Error; !d.Success && (e == nil || e.Kind == "" || strings.HasSuffix(e.Kind, "InternalError")) {
					t.Errorf("%s: %+v", c.Name, e)
				}
			}
		})
	}
}
