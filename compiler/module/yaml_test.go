package module

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
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

// With PYYAML_PYTHON=…/bin/python it is PyYAML itself that is asked, about
// PYYAML_COUNT texts, from PYYAML_SEED on.
func TestValuesAgainstPyYAML(t *testing.T) {
	python := os.Getenv("PYYAML_PYTHON")
	if python == "" {
		t.Skip("PYYAML_PYTHON names no interpreter")
	}
	count, seed := yamltest.Settings(t)
	classes := map[string]int{}
	differ := 0
	err := yamltest.Ask(python, []string{yamltest.Values}, yamltest.ValueTexts(rand.New(rand.NewPCG(seed, 0)), count), func(text []byte, want yamltest.Answer) {
		classes[want.Class]++
		if got := valuesOf(text); got != want && !strings.Contains(want.Text, "loop") {
			if differ++; differ <= 20 {
				t.Errorf("%q\n got %s %s\n%s\nwant %s %s\n%s", text, got.Class, got.Message, got.Text, want.Class, want.Message, want.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d differ, of %v", differ, classes)
}
