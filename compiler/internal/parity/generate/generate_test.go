package generate_test

import (
	"context"
	"os"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/internal/parity"
	"ordain.dev/ordain/compiler/internal/parity/generate"
)

// What is compared with the reference has to be worth it: most models compile,
// and one seed is one model.
func TestMostModelsCompile(t *testing.T) {
	const n = 300
	dir := t.TempDir()
	good := 0
	for seed := range uint64(n) {
		c := generate.Case(seed)
		if again := generate.Case(seed); again.Files["main.cf"] != c.Files["main.cf"] {
			t.Fatalf("seed %d gives two models", seed)
		}
		d, err := parity.Compile(context.Background(), c, dir, compiler.Options{CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if d.Success {
			good++
		} else if os.Getenv("GENERATE_SHOW") != "" {
			t.Logf("%d: %s", seed, d.Error)
		}
	}
	if good < n*6/10 {
		t.Errorf("%d of %d models compile", good, n)
	}
}
