package syntax

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"ordain.dev/ordain/compiler/pyregex"
)

// seeds adds the cases of testdata and the sample.
func seeds(f *testing.F) {
	areas, _ := filepath.Glob("testdata/*.txtar")
	for _, area := range areas {
		archive, err := txtar.ParseFile(area)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(string(file.Data))
		}
	}
	sample, err := os.ReadFile("testdata/sample.cf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
}

// Whatever the text, parsing ends with a tree that renders or with an error
// that has a class, a message and a place inside the file; and the judge, which
// has tables of its own, accepts the same files.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse(FileInfo{Path: "f.cf", Namespace: "__config__"}, []byte(text))
		if err == nil {
			for _, s := range file.Statements {
				if s.Where().Start.Line < 1 {
					t.Fatalf("%T without a place", s)
				}
				Render(s)
				RenderSource(s)
			}
			if e, _ := judge(string(uniformLines([]byte(text)))+"\n", file, nil); e != nil {
				t.Fatalf("accepted, but the exact tables say %v", e)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind == "" || e.Message == "" {
			t.Fatalf("not a full error: %#v", err)
		}
		last := strings.Count(string(uniformLines([]byte(text))), "\n") + 2
		for n, e := range append([]*Error{e}, e.Further...) {
			if e.At.Start.Line < 1 || int(e.At.Start.Line) > last {
				t.Fatalf("error %d, %v, lies outside the file of %d lines", n, e, last)
			}
		}
	})
}

// The scanner always comes to an end, every token moves on, and what it calls
// a token stands at the place it gives.
func FuzzScanner(f *testing.F) {
	seeds(f)
	f.Add("matching /a/ f\"{x}\" r'a' 1.5 -2 a-b :: -- <- \"\"\"x\"\"\"\"")
	f.Fuzz(func(t *testing.T, text string) {
		s := newScanner(&File{}, text+"\n")
		before := -1
		for {
			var tok token
			kind := s.next(&tok)
			if kind == 0 || kind == tBAD {
				if (kind == tBAD) != (s.err != nil) {
					t.Fatalf("kind %d with error %v", kind, s.err)
				}
				return
			}
			if s.pos <= before {
				t.Fatalf("stands still at %d", s.pos)
			}
			before = s.pos
			if tok.end.Line < tok.start.Line || tok.start.Line < 1 || tok.start.Col < 1 {
				t.Fatalf("token %+v has no place", tok)
			}
			if s.err != nil {
				return // a bad escape: the token is still there
			}
		}
	})
}

// Splitting a format string loses nothing but the braces.
func FuzzFormatString(f *testing.F) {
	for _, s := range []string{"", "a", "{x}", "{x.y!r:>{w}}", "{{}}", "{", "}", "{a[}", "{a!}", "{a:{b}", "a{b}c{d}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pieces, problem := splitFormat(s)
		if problem != "" {
			return
		}
		length := 0
		for _, p := range pieces {
			length += len(p.text) + len(p.name) + len(p.spec)
			if !p.field && (p.name != "" || p.spec != "") {
				t.Fatalf("no field, yet %+v", p)
			}
		}
		if length > len(s) {
			t.Fatalf("%q became longer: %+v", s, pieces)
		}
	})
}

// What Go's regexp accepts beyond doubt, Python does too: plain groups, sets and
// repetitions. And the check never ends in anything but a sentence.
func FuzzRegex(f *testing.F) {
	for _, s := range []string{"a", "a**", "[a-z]+", "(?P<n>a)(?P=n)", "(?<=a|bc)d", "(?i:x)", `\d{2,3}?`,
		"(?(1)a|b)", "[]a]", `\1(a)`, "(?#x)"} {
		f.Add(s)
	}
	plain := regexp.MustCompile(`^[a-z0-9 ().|]*$`)
	f.Fuzz(func(t *testing.T, s string) {
		_, problem := pyregex.Compile(s, NamedRune)
		if !plain.MatchString(s) {
			return
		}
		_, err := regexp.Compile(s)
		if (err == nil) != (problem == nil) {
			t.Fatalf("%q: Go says %v, the check %v", s, err, problem)
		}
	})
}
