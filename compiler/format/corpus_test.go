package format_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ordain.dev/ordain/compiler/format"
	"ordain.dev/ordain/compiler/syntax"
)

// check formats a text, if it parses, and formats the result again.
func check(t *testing.T, name string, text []byte) bool {
	t.Helper()
	info := syntax.FileInfo{Path: name, Namespace: "__config__"}
	if _, err := syntax.Parse(info, text); err != nil {
		if _, err := format.Source(info, text); err == nil {
			t.Errorf("%s does not parse but was formatted", name)
		}
		return false
	}
	// Source compares the trees and the comments itself.
	once, err := format.Source(info, text)
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
		return true
	}
	twice, err := format.Source(info, once)
	if err != nil {
		t.Errorf("%s, formatted: %v", name, err)
	} else if !bytes.Equal(once, twice) {
		t.Errorf("%s is not stable:\n%s\nthen:\n%s", name, once, twice)
	}
	return true
}

// Formatting keeps the meaning of every program that the compiler is tested
// with, and formatting twice is formatting once.
func TestCorpusKeepsItsMeaning(t *testing.T) {
	archives, err := filepath.Glob("../testdata/parity/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if strings.HasSuffix(f.Name, ".cf") && check(t, path+":"+f.Name, f.Data) {
				n++
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d programs were formatted", n)
	}
}

// Set ORDAIN_MODELS to a folder to check all model files below it.
func TestModelsOfAFolder(t *testing.T) {
	root := os.Getenv("ORDAIN_MODELS")
	if root == "" {
		t.Skip("ORDAIN_MODELS names no folder")
	}
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".cf" {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && check(t, path, text) {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files", n)
}
