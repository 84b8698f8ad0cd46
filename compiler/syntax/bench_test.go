package syntax

import (
	"bytes"
	"os"
	"testing"
)

// BenchmarkParse reads a model of the usual mixture; see also `-bench Errors`.
func BenchmarkParse(b *testing.B) {
	text, err := os.ReadFile("testdata/sample.cf")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(FileInfo{Path: "sample.cf"}, text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseLarge reads 50 MB at once.
func BenchmarkParseLarge(b *testing.B) {
	text, err := os.ReadFile("testdata/sample.cf")
	if err != nil {
		b.Fatal(err)
	}
	text = bytes.Repeat(append(text, '\n'), 50<<20/len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(FileInfo{Path: "large.cf"}, text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkErrors reads a file that is refused at its end.
func BenchmarkErrors(b *testing.B) {
	text, err := os.ReadFile("testdata/sample.cf")
	if err != nil {
		b.Fatal(err)
	}
	text = append(text, " = "...)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(FileInfo{Path: "sample.cf"}, text); err == nil {
			b.Fatal("accepted")
		}
	}
}
