package pyyaml_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

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
	line := fmt.Sprintf("%d:%d-%d:%d %s %x %s ", n.Line, n.Column, n.End.Line, n.End.Column, n.Kind, n.Tag, styles[n.Style])
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

// With PYYAML_PYTHON=…/bin/python it is PyYAML itself that is asked, about
// PYYAML_COUNT texts, from PYYAML_SEED on.
func TestAgainstPyYAML(t *testing.T) {
	python := os.Getenv("PYYAML_PYTHON")
	if python == "" {
		t.Skip("PYYAML_PYTHON names no interpreter")
	}
	count, seed := yamltest.Settings(t)
	var n struct{ texts, refused, differ int }
	classes := map[string]int{}
	err := yamltest.Ask(python, nil, yamltest.Texts(rand.New(rand.NewPCG(seed, 0)), count), func(text []byte, want yamltest.Answer) {
		n.texts++
		if want.Class != "" {
			n.refused++
			classes[want.Class]++
		}
		if got := ours(text); got != want {
			if n.differ++; n.differ <= 20 {
				t.Errorf("%q\n got %s %s\n%s\nwant %s %s\n%s", text, got.Class, got.Message, got.Text, want.Class, want.Message, want.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v %v", n, classes)
}
