package pyyaml_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/pyyaml"
	"ordain.dev/ordain/compiler/pyyaml/yamltest"
)

// ours is what this package makes of a text, written as PyYAML's is.
func ours(text []byte) yamltest.Answer {
	root, err := pyyaml.Parse("project.yml", text)
	var e *pyyaml.Error
	if errors.As(err, &e) {
		return yamltest.Answer{Class: e.Class, Message: e.Error()}
	}
	var lines []string
	dump(root, &lines, map[*pyyaml.Node]int{})
	return yamltest.Answer{Text: strings.Join(lines, "\n")}
}

var styles = map[pyyaml.Style]string{
	pyyaml.Plain: "plain", pyyaml.SingleQuoted: "single", pyyaml.DoubleQuoted: "double", pyyaml.Literal: "literal", pyyaml.Folded: "folded",
	pyyaml.Block: "block", pyyaml.Flow: "flow", pyyaml.Indentless: "indentless",
}

// dump writes nodes as ask.py does.
func dump(n *pyyaml.Node, lines *[]string, seen map[*pyyaml.Node]int) {
	switch {
	case n == nil:
		return
	case n.Kind == pyyaml.Alias:
		*lines = append(*lines, fmt.Sprintf("alias %d", seen[n.Alias]))
		return
	}
	seen[n] = len(seen)
	line := fmt.Sprintf(
		"%d:%d-%d:%d %s %x %s ",
		n.Line,
		n.Column,
		n.End.Line,
		n.End.Column,
		n.Kind,
		n.Tag,
		styles[n.Style],
	)
	if n.Kind == pyyaml.Scalar {
		line += fmt.Sprintf("%x", n.Value)
	} else {
		line += strconv.Itoa(len(n.Content))
	}
	*lines = append(*lines, line)
	for _, child := range n.Content {
		dump(child, lines, seen)
	}
}

var nodes = yamltest.Comparison{Texts: yamltest.Texts, Ours: ours}

func TestAgainstPyYAML(t *testing.T) { nodes.WithPyYAML(t) }

// What PyYAML 6.0.4 made of random texts, a few for each of its messages.
func TestRecordedAnswers(t *testing.T) { nodes.Recorded(t, "testdata/recorded.jsonl") }

// Bytes that are no text: what is decoded, and so what the position counts from,
// is what Python reads at a time.
func TestBytesThatAreNoText(t *testing.T) {
	long := strings.Repeat("x", 8190)
	for text, want := range map[string]string{
		"a: \xff\n":                        "'utf-8' codec can't decode byte 0xff in position 3: invalid start byte",
		"a: \xc3":                          "'utf-8' codec can't decode byte 0xc3 in position 0: unexpected end of data",
		"a: \xe2\x82":                      "'utf-8' codec can't decode bytes in position 0-1: unexpected end of data",
		"a: \xe2\x82\n":                    "'utf-8' codec can't decode bytes in position 3-4: invalid continuation byte",
		"a: \xed\xa0\x80":                  "'utf-8' codec can't decode byte 0xed in position 3: invalid continuation byte",
		"@ \xff":                           "'utf-8' codec can't decode byte 0xff in position 2: invalid start byte",
		"# " + long + "\n\xff":             "'utf-8' codec can't decode byte 0xff in position 1: invalid start byte",
		"#" + long + "\xe2\xff":            "'utf-8' codec can't decode byte 0xe2 in position 0: invalid continuation byte",
		"@ " + long + "\n" + long + "\xff": "while scanning for the next token\nfound character '@' that cannot start any token\n  in \"project.yml\", line 1, column 1",
	} {
		_, err := pyyaml.Parse("project.yml", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// Collections in each other end the reading, not the program; and however long a
// text is, each character is looked at a few times.
func TestHugeTexts(t *testing.T) {
	const n = 200_000
	for name, c := range map[string]struct{ text, class string }{
		"lists":           {strings.Repeat("[", n), pyyaml.ClassRecursion},
		"blocks":          {strings.Repeat("- ", n) + "a", pyyaml.ClassRecursion},
		"pairs":           {strings.Repeat("[a: ", n), pyyaml.ClassRecursion},
		"keys":            {strings.Repeat("? ", n), pyyaml.ClassRecursion},
		"sections":        {strings.Repeat("{a: ", n), pyyaml.ClassRecursion},
		"a long list":     {strings.Repeat("- a\n", n), ""},
		"a long line":     {"[" + strings.Repeat("a, ", n) + "]", ""},
		"quotes":          {"[" + strings.Repeat("'a', ", n) + "]", ""},
		"a long word":     {strings.Repeat("a", n), ""},
		"a long text":     {"|\n" + strings.Repeat("  a\n\n", n), ""},
		"comments":        {strings.Repeat("# a\n", n), ""},
		"empty lines":     {"a:" + strings.Repeat("\n", n) + "  b", ""},
		"anchors":         {strings.Repeat("&a", n), pyyaml.ClassScanner},
		"closed":          {strings.Repeat("]", n), pyyaml.ClassParser},
		"colons":          {strings.Repeat(": ", n), pyyaml.ClassParser},
		"tags":            {"[" + strings.Repeat("!a,b ", n), pyyaml.ClassParser},
		"deepest":         {strings.Repeat("[", pyyaml.Deepest) + strings.Repeat("]", pyyaml.Deepest), ""},
		"one too deep":    {strings.Repeat("[", pyyaml.Deepest+1) + strings.Repeat("]", pyyaml.Deepest+1), pyyaml.ClassRecursion},
		"halves of a key": {strings.Repeat("[a, ", 300) + strings.Repeat("b\n, ", n), pyyaml.ClassParser},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if got := ours([]byte(c.text)); got.Class != c.class {
				t.Errorf("it is %s %s, want %s", got.Class, got.Message, c.class)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// No text ends the program, and what is told lies inside of it.
func FuzzParse(f *testing.F) {
	for _, seed := range yamltest.Seeds {
		f.Add([]byte(seed))
	}
	r := rand.New(rand.NewPCG(1, 1))
	for text := range yamltest.Texts(r, 200) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := bytes.Count(
			text,
			[]byte("\n"),
		) + bytes.Count(
			text,
			[]byte("\r"),
		) + bytes.Count(
			text,
			[]byte("\u0085"),
		) +
			bytes.Count(
				text,
				[]byte("\u2028"),
			) + bytes.Count(
			text,
			[]byte("\u2029"),
		) + 1
		inside := func(m pyyaml.Mark) {
			if m.Line < 1 || m.Line > lines || m.Column < 1 || m.Column > len(text)+1 || m.Index < 0 ||
				m.Index > len(text) {
				t.Errorf("%+v lies outside of %d lines", m, lines)
			}
		}
		root, err := pyyaml.Parse("project.yml", text)
		var e *pyyaml.Error
		if errors.As(err, &e) {
			if inside(e.ProblemMark); !e.ContextMark.None() {
				inside(e.ContextMark)
			}
			return
		}
		var walk func(*pyyaml.Node)
		walk = func(n *pyyaml.Node) {
			inside(n.Mark)
			inside(n.End)
			for _, child := range n.Content {
				walk(child)
			}
		}
		if root != nil {
			walk(root)
		}
	})
}
