package architecture

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// No line of Go is wider than 120 columns, where a tab takes four.
func TestNoLineIsWiderThan120Columns(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.HasPrefix(text, []byte("// Code generated")) {
			return err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for number := 1; lines.Scan(); number++ {
			line := lines.Text()
			if columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t"); columns > 120 {
				t.Errorf("%s:%d has %d columns", path, number, columns)
			}
		}
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}
