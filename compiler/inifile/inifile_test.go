package inifile_test

import (
	_ "embed"
	"flag"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/inifile"
	"ordain.dev/ordain/internal/testing/peertest"
)

// read is what came of a text: the error, or for each section key, value and
// what is wrong with the value.
type read struct {
	Text   string
	Error  string                 `json:",omitempty"`
	Values map[string][][3]string `json:",omitempty"`
}

func ours(text string) read {
	out := read{Text: text}
	f, err := inifile.Parse(text)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	for _, section := range f.Sections() {
		values := [][3]string{}
		for _, option := range f.Options(section) {
			v, _, err := f.Get(section, option)
			if err != nil {
				values = append(values, [3]string{option, "", err.Error()})
			} else {
				values = append(values, [3]string{option, v, ""})
			}
		}
		if out.Values == nil {
			out.Values = map[string][][3]string{}
		}
		out.Values[section] = values
	}
	return out
}

func compare(t *testing.T, want read) {
	t.Helper()
	if got := ours(want.Text); !reflect.DeepEqual(got, want) {
		t.Errorf("%q reads as\n%q %q\nwant\n%q %q", want.Text, got.Values, got.Error, want.Values, want.Error)
	}
}

// The table was written by configparser: ORDAIN_UPDATE=1 writes it anew.
func TestReadsAsConfigparser(t *testing.T) {
	ask := func(texts []string) []read { return configparser(t, texts) }
	for _, want := range peertest.Table(t, "testdata/texts.json", func(r read) string { return r.Text }, ask) {
		compare(t, want)
	}
}

var rounds = flag.Int("texts", 5000, "how many random texts are compared with configparser")

// Random texts, made of the lines that such files have, are read alike.
func TestReadsAsConfigparserAtRandom(t *testing.T) {
	lines := []string{
		"[a]", "[b]", "[DEFAULT]", "[a] x", "[]", "[]]", " [a]", "[a", "# c", " ; c", "x = 1", "X: 2", "y=%(x)s", "z = 100%", "z = %%", "w = %(x", "w=%()s", "w = %(nope)s", "v = %(v)s",
		"k =", "k", "= 1", ": ", "  set in", "\tset in", "    further = in", "x = 1 # c", "x = 1 ; c", "", "  ", "q = a=b:c", "é = ü", "\u00a0x = 1", "\ufeff[a]", "n:\n  1\n\n  2", "u = %(x)s%(y)s%%", "t = %(X)s", "s = %(x)d",
		"a1=%(a2)s", "a2=%(a3)s", "a3 = %(a1)s%%", "x = 'q\"", "\x1cx = 1\x1c", "r = %(n)s",
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	texts := make([]string, *rounds)
	for i := range texts {
		var b strings.Builder
		if rnd.IntN(4) > 0 {
			b.WriteString("[a]\n")
		}
		for range rnd.IntN(9) {
			b.WriteString(lines[rnd.IntN(len(lines))])
			b.WriteString([]string{"\n", "\n", "\n", "\n", ""}[rnd.IntN(5)])
		}
		texts[i] = b.String()
	}
	for _, want := range configparser(t, texts) {
		compare(t, want)
	}
}

// Line ends of other systems are those of Python's text files.
func TestLineEnds(t *testing.T) {
	got := ours("[a]\r\nx = 1\r  2\r\n")
	if want := [][3]string{{"x", "1\n2", ""}}; !reflect.DeepEqual(got.Values["a"], want) {
		t.Errorf("read %q", got)
	}
}

//go:embed testdata/configparser.py
var script string

// configparser asks Python itself, which must be new enough to say the same.
func configparser(t *testing.T, texts []string) []read {
	t.Helper()
	table := peertest.Ask[read](t, peertest.Python(t, "import sys; assert sys.version_info >= (3, 13)"), script, texts)
	for i, r := range table {
		if len(r.Values) == 0 {
			table[i].Values = nil
		}
	}
	return table
}
