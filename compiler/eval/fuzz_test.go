package eval_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/syntax"
)

// Whatever parses is compiled or rejected in bounded time and memory, without a
// panic, and twice in the same way.
func FuzzCompile(f *testing.F) {
	stories, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(stories) == 0 {
		f.Fatal("no stories", err)
	}
	corpus, err := filepath.Glob("../testdata/parity/*.txtar")
	if err != nil || len(corpus) == 0 {
		f.Fatal("no corpus", err)
	}
	for _, path := range append(stories, corpus...) {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for n, file := range archive.Files {
			if filepath.Ext(file.Name) == ".cf" && (len(archive.Files) < 20 || n%16 == 0) {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		compile := func() *eval.Result {
			file, err := syntax.Parse(syntax.FileInfo{Path: "main.cf", Namespace: "__config__"}, []byte(text))
			if err != nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			r := eval.Compile(ctx, eval.Input{Files: []*syntax.File{file}, MaxIterations: 300, MemoryMax: 1 << 30})
			if errors.Is(ctx.Err(), context.DeadlineExceeded) && len(text) < 2000 {
				t.Fatalf("not done after 5 seconds: %v", r.Err)
			}
			return r
		}
		first := compile()
		if first == nil {
			return
		}
		if first.Err != nil {
			for _, d := range first.Err.Diagnostics() {
				_ = d.Render()
			}
		}
		again := compile()
		switch {
		case (first.Err == nil) != (again.Err == nil):
			t.Fatalf("two outcomes: %v, and %v", first.Err, again.Err)
		case first.Err != nil && first.Err.Trace() != again.Err.Trace():
			t.Fatalf("two errors: %s, and %s", first.Err.Trace(), again.Err.Trace())
		case first.Err == nil && len(first.Instances) != len(again.Instances):
			t.Fatalf("two models: %d instances, and %d", len(first.Instances), len(again.Instances))
		}
	})
}
