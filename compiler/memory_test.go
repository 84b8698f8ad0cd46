package compiler_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
)

// A file whose tree alone is larger than the limit is told like any other
// error. It runs in a process of its own, for what was given up goes on in it.
func TestFileLargerThanMemory(t *testing.T) {
	if dir := os.Getenv("ORDAIN_TEST_LARGE"); dir != "" {
		out := compiler.Run(context.Background(),
			compiler.Options{Project: dir, NoStd: true, CacheDir: t.TempDir(), MemoryMax: 100 << 20})
		if out.Document.Success || !strings.Contains(out.Text, "more than 100 MiB of memory") {
			t.Fatal(out.Text)
		}
		return
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project.yml": "name: large\n",
		"main.cf":     "x = [" + strings.Repeat("1,", 6_000_000) + "1]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other := exec.Command(os.Args[0], "-test.run", "^TestFileLargerThanMemory$")
	other.Env = append(os.Environ(), "ORDAIN_TEST_LARGE="+dir)
	if text, err := other.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
