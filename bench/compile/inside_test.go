package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"ordain.dev/ordain/compiler"
)

// BenchmarkInside compiles and exports the generated models within this
// process, to profile time and memory. It needs a virtual environment with
// inmanta-module-std.
func BenchmarkInside(b *testing.B) {
	python := os.Getenv("ORDAIN_REFERENCE_PYTHON")
	if python == "" {
		b.Skip("ORDAIN_REFERENCE_PYTHON names no interpreter")
	}
	cache := b.TempDir()
	for _, shape := range shapes {
		m := model{shape: shape, resources: 10_000, dir: filepath.Join(b.TempDir(), "model")}
		if err := m.write(); err != nil {
			b.Fatal(err)
		}
		for _, export := range []bool{false, true} {
			name := m.title() + ", compile"
			if export {
				name = m.title() + ", with export"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					out := compiler.Run(context.Background(), compiler.Options{
						Project: m.dir, Python: python, SitePackages: compiler.PackagesOf(python),
						CacheDir: cache, Export: export, ModelOnly: true,
					})
					if !out.Document.Success {
						b.Fatal(out.Text)
					}
					if err := out.ModelDocument().Write(io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
