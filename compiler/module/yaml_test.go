package module

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/pyyaml"
	"ordain.dev/ordain/compiler/pyyaml/yamltest"
	"ordain.dev/ordain/internal/python/pytext"
)

// inWords writes a value as ask.py of yamltest does.
func inWords(v value, lines *[]string) {
	add := func(format string, args ...any) { *lines = append(*lines, fmt.Sprintf(format, args...)) }
	switch is := v.is.(type) {
	case nil:
		add("NoneType None")
	case bool:
		add("bool %s", map[bool]string{true: "True", false: "False"}[is])
	case *big.Int:
		add("int %x", is)
	case float64:
		add("float %s", pytext.Float(is))
	case string:
		add("str %x", is)
	case []byte:
		add("bytes %x", is)
	case time.Time:
		switch kindOf(is) {
		case "date":
			add("date %s", is.Format(time.DateOnly))
		default:
			layout := "2006-01-02T15:04:05"
			if is.Nanosecond() > 0 {
				layout += ".000000"
			}
			if kindOf(is) == "zone" {
				layout += "-07:00"
			}
			add("datetime %s", is.Format(layout))
		}
	case []value:
		add("list %d", len(is))
		for _, e := range is {
			inWords(e, lines)
		}
	case *mapping:
		add("dict %d", len(is.keys))
		for i, k := range is.keys {
			inWords(k, lines)
			inWords(is.values[i], lines)
		}
	case *tuple:
		add("tuple 2")
		inWords(is.key, lines)
		inWords(is.value, lines)
	case set:
		add("set %d", len(is.keys))
		var parts []string
		for _, k := range is.keys {
			var part []string
			inWords(k, &part)
			parts = append(parts, strings.Join(part, "\n"))
		}
		slices.Sort(parts)
		*lines = append(*lines, parts...)
	}
}

func valuesOf(text []byte) yamltest.Answer {
	root, err := pyyaml.Parse("project.yml", text)
	var v value
	if err == nil && root != nil {
		v, err = construct("project.yml", root)
	}
	var e *pyyaml.Error
	if errors.As(err, &e) {
		return yamltest.Answer{Class: e.Class, Message: e.Error()}
	}
	var lines []string
	inWords(v, &lines)
	return yamltest.Answer{Text: strings.Join(lines, "\n")}
}

// What is in itself is written otherwise.
var values = yamltest.Comparison{
	Args: []string{yamltest.Values}, Texts: yamltest.ValueTexts, Ours: valuesOf,
	Incomparable: func(a yamltest.Answer) bool { return strings.Contains(a.Text, "loop") },
}

func TestValuesAgainstPyYAML(t *testing.T) { values.WithPyYAML(t) }

// What PyYAML 6.0.4 made of texts in which values are in doubt.
func TestRecordedValues(t *testing.T) { values.Recorded(t, "testdata/yaml.jsonl") }

func read(t *testing.T, text string) (value, *Error) {
	t.Helper()
	v, err := readYAML("project.yml", []byte(text))
	var e *Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%.40q: %v", text, err)
	}
	return v, e
}

// The message is the reference's, the place is that of the problem, and what to
// do stands in the hint.
func TestRefusedYAML(t *testing.T) {
	for text, want := range map[string]Error{
		"name: p\n\tx: y":       {Message: "while scanning for the next token\nfound character '\\t' that cannot start any token\n  in \"project.yml\", line 2, column 1", Hint: "put spaces"},
		"name: p\n---\nname: q": {Message: "expected a single document in the stream\n  in \"project.yml\", line 1, column 1\nbut found another document\n  in \"project.yml\", line 2, column 1", Hint: "remove the line"},
		"name: p\n{a: b}: c":    {Message: "while constructing a mapping\n  in \"project.yml\", line 1, column 1\nfound unhashable key\n  in \"project.yml\", line 2, column 1", Hint: "cannot be a key"},
		"name: p\nx: !!int y":   {Kind: KindNoValue, Message: "invalid literal for int() with base 10: 'y'", Hint: "in quotes"},
		"name: p\nx: !!bool y":  {Kind: KindNoKey, Message: "'y'", Hint: "in quotes"},
	} {
		_, e := read(t, text)
		if want.Kind == "" {
			want.Kind, want.Message = KindInvalidMetadata, "Invalid yaml syntax in project.yml:\n"+want.Message
		}
		if e == nil || e.Kind != want.Kind || e.Message != want.Message || e.At.Start.Line != 2 ||
			!strings.Contains(e.Hint, want.Hint) {
			t.Errorf("%q: %+v, want %+v", text, e, want)
		}
	}
}

// Aliases can ask for more than any computer has, for values without an end, and
// for such that are deeper than the stack.
func TestAliasesThatMultiply(t *testing.T) {
	var chain, merges, deep strings.Builder
	chain.WriteString("- &a0 [x]\n")
	merges.WriteString("- &a0 {k0: x}\n")
	for i := 1; i <= 30_000; i++ {
		fmt.Fprintf(&chain, "- &a%d [*a%d]\n", i, i-1)
	}
	for i := 1; i <= 3000; i++ {
		fmt.Fprintf(&merges, "- &a%d {<<: *a%d, k%d: x}\n", i, i-1, i)
	}
	deep.WriteString("- [&a0 {k: x}")
	for i := 1; i <= 3000; i++ {
		fmt.Fprintf(&deep, ", &a%d {<<: *a%d}", i, i-1)
	}
	deep.WriteString("]\n- {<<: *a3000}\n")
	if v, e := read(t, chain.String()); e != nil || len(v.is.([]value)) != 30_001 {
		t.Errorf("a chain of aliases: %v", e)
	} else if depth := depthOf(v); depth > deepestValue+2 {
		t.Errorf("a value is %d deep", depth)
	}
	if _, e := read(t, merges.String()); e == nil || e.Kind != classMemory {
		t.Errorf("merges of merges: %v, want %s", e, classMemory)
	}
	if _, e := read(t, deep.String()); e == nil || e.Kind != KindTooDeep {
		t.Errorf("merges in each other: %v, want %s", e, KindTooDeep)
	}
	for _, text := range []string{"&a [*a]", "&a {x: *a}", "- &a {x: &b {<<: *a}}\n- *b", "&a [[*a], {y: *a}]", "- &a [&b [*a]]\n- *b"} {
		if v, e := read(t, text); e != nil || depthOf(v) > 5 {
			t.Errorf("%s: %v", text, e)
		}
	}
}

func depthOf(v value) (depth int) {
	_, slots := within(&v)
	for _, s := range slots {
		depth = max(depth, 1+depthOf(*s))
	}
	return depth
}

// No values end the program.
func FuzzReadYAML(f *testing.F) {
	for text := range yamltest.ValueTexts(rand.New(rand.NewPCG(1, 1)), 300) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := readYAML("project.yml", text)
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.At.Start.Line < 1) {
			t.Errorf("%v has no place", err)
		}
		depthOf(v)
	})
}
