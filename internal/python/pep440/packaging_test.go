package pep440_test

import (
	_ "embed"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/python/pep440"
	"ordain.dev/ordain/internal/testing/peertest"
)

// read is what packaging makes of a requirement: its normal form, or the error.
type read struct{ Text, Canonical, Error string }

// The table was written by packaging itself: ORDAIN_UPDATE=1 writes it anew.
func TestReadsAsPackaging(t *testing.T) {
	ask := func(texts []string) []read { return packaging(t, texts) }
	for _, want := range peertest.Table(t, "testdata/requirements.json", func(r read) string { return r.Text }, ask) {
		compare(t, want)
	}
}

var rounds = flag.Int("requirements", 5000, "how many random requirements are compared with packaging")

// Random texts, made of what requirements are made of, are read alike.
func TestReadsAsPackagingAtRandom(t *testing.T) {
	pieces := []string{
		"a", "std", "my_mod", "b-c.d", "_", "-", "é", " ", " ", "\t", "\n", "[", "]", "[x]", "[x, y]", "[x y", ",",
		"(", ")", "==", "~=", ">=", "<", "!=", "===", "=",
		"1", "1.0", "8", ".*", "1.0rc1", "2.post3", "1!2", "+local", "+x.1", "v3", ".dev1", "a1", "@",
		"@ https://h/x", ";", "; ", "python_version", "os_name", "os.name", "extra",
		"python_implementation", "in", " in ", "not", " not in ", " and ", " or ", "and", "'3'", `"3.8"`,
		`'a"b'`, `'\x41'`, `'\'`, `"\d"`, "'Foo_Bar'", "'", `"`, "# c", "ſ", "\u00a0", "\u3000",
	}
	whole := []string{
		"a ",
		"std~=8.0",
		"a>=1,<2",
		"a[x,y]==1.*",
		"; python_version > '3'",
		"; (os_name == 'x' or extra == 'A_b') and python_version in '3 4'",
		" @ file:///x ",
		"=== any",
		"(>1)",
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	texts := make([]string, *rounds)
	for i := range texts {
		var b strings.Builder
		if rnd.IntN(3) > 0 {
			b.WriteString("a")
		}
		for range 1 + rnd.IntN(7) {
			if rnd.IntN(3) == 0 {
				b.WriteString(whole[rnd.IntN(len(whole))])
			} else {
				b.WriteString(pieces[rnd.IntN(len(pieces))])
			}
		}
		texts[i] = b.String()
	}
	for _, want := range packaging(t, texts) {
		compare(t, want)
	}
}

func compare(t *testing.T, want read) {
	t.Helper()
	r, err := pep440.ParseRequirement(want.Text)
	got := read{Text: want.Text, Canonical: r.Canonical()}
	if err != nil {
		got = read{Text: want.Text, Error: err.Error()}
	}
	if got != want {
		t.Errorf("%q reads as\n%s%s\nwant\n%s%s", want.Text, got.Canonical, got.Error, want.Canonical, want.Error)
	}
}

//go:embed testdata/packaging.py
var script string

// packaging asks the library itself.
func packaging(t *testing.T, texts []string) []read {
	t.Helper()
	return peertest.Ask[read](
		t,
		peertest.Python(t, "import packaging; assert packaging.__version__ >= '26.3'"),
		script,
		texts,
	)
}
