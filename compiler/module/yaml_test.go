package module

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/pytext"
	"ordain.dev/ordain/compiler/pyyaml"
	"ordain.dev/ordain/compiler/pyyaml/yamltest"
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
		if len(is) == 0 {
			add("set")
			return
		}
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
	case set:
		add("set")
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

// Sets, and what is in itself, are written otherwise.
var values = yamltest.Comparison{
	Args: []string{yamltest.Values}, Texts: yamltest.ValueTexts, Ours: valuesOf,
	Incomparable: func(a yamltest.Answer) bool { return strings.Contains(a.Text, "loop") },
}

func TestValuesAgainstPyYAML(t *testing.T) { values.WithPyYAML(t) }

// What PyYAML 6.0.4 made of texts in which values are in doubt.
func TestRecordedValues(t *testing.T) { values.Recorded(t, "testdata/yaml.jsonl") }
