package compiler

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/internal/diag"
)

// quoter adds to diagnostics the source lines of files that the compiler itself does not parse, such as
// plug-ins and project.yml, and shortens paths of files in the project.
type quoter struct {
	dir   string
	lines map[string][]string
}

func quote(dir string, list []diag.Diagnostic) {
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	q := &quoter{dir: dir, lines: map[string][]string{}}
	for i := range list {
		q.quote(&list[i])
	}
}

func (q *quoter) quote(d *diag.Diagnostic) {
	for i := range d.Python {
		d.Python[i].Location.File = q.short(d.Python[i].Location.File)
	}
	for _, at := range []*diag.Location{d.Location, d.Focus} {
		if at != nil {
			at.File = q.short(at.File)
		}
	}
	if at := d.Place(); at != nil && d.Source == "" {
		d.Source = q.line(at.File, at.Line)
	}
	for i := range d.Causes {
		q.quote(&d.Causes[i])
	}
}

func (q *quoter) short(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(q.dir, path); err == nil && rel != ".." &&
		!strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return rel
	}
	return path
}

// line is a line of a file; empty when it cannot be read.
func (q *quoter) line(path string, n int) string {
	lines, read := q.lines[path]
	if !read {
		lines = readLines(filepath.Join(q.dir, path), path)
		q.lines[path] = lines
	}
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimRight(lines[n-1], "\r")
}

// readLines reads the lines of the first of the files that exists.
func readLines(paths ...string) []string {
	const most = 1 << 20
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, most))
		_ = f.Close()
		if err == nil && bytes.IndexByte(text, 0) < 0 {
			return strings.Split(string(text), "\n")
		}
	}
	return nil
}
