package generate_test

import (
	"context"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/generate"
	"ordain.dev/ordain/internal/racedetector"
)

// What is compared with the reference has to be worth it: most models compile,
// and one seed is one model.
func TestMostModelsCompile(t *testing.T) {
	n := 300
	if racedetector.On { // a sample: it is the share that counts
		n = 60
	}
	dir, cache := t.TempDir(), t.TempDir()
	good := 0
	for seed := range uint64(n) {
		c := generate.Case(seed)
		if again := generate.Case(seed); again.Files["main.cf"] != c.Files["main.cf"] {
			t.Fatalf("seed %d gives two models", seed)
		}
		d, err := parity.Compile(context.Background(), c, dir, compiler.Options{CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		if d.Success {
			good++
		} else {
			t.Logf("%d: %s", seed, d.Error)
		}
	}
	if good < n*6/10 {
		t.Errorf("%d of %d models compile", good, n)
	}
}
