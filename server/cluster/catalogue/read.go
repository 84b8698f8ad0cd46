package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/jsontext"
)

// maxProblems is how many problems are told at once.
const maxProblems = 100

// problems collects what is wrong.
type problems []Problem

func (p *problems) add(field, format string, args ...any) {
	one := Problem{Field: field, Text: fmt.Sprintf(format, args...)}
	if len(*p) < maxProblems && !slices.Contains(*p, one) {
		*p = append(*p, one)
	}
}

// value is a part of a JSON text, with the path that leads to it. Reading a part of the wrong kind adds a problem, and
// returns nothing; so does a part that is null or is not there, without a problem.
type value struct {
	path string
	raw  json.RawMessage
	to   *problems
}

func (v value) absent() bool { return len(v.raw) == 0 || string(v.raw) == "null" }

func (v value) wrong(wanted string) {
	v.to.add(v.path, "it has to be %s, and is a %s", wanted, kindOf(v.raw))
}

// members returns the members of an object.
func (v value) members() map[string]value {
	if v.absent() {
		return nil
	}
	raw := jsontext.Members(v.raw)
	if raw == nil {
		v.wrong("an object, as {…}")
		return nil
	}
	out := make(map[string]value, len(raw))
	for name, one := range raw {
		out[name] = value{join(v.path, name), one, v.to}
	}
	return out
}

// field returns a member of an object.
func (v value) field(name string) value {
	if one, ok := v.members()[name]; ok {
		return one
	}
	return value{join(v.path, name), nil, v.to}
}

// list returns the elements of a list.
func (v value) list() []value {
	if v.absent() {
		return nil
	}
	if kindOf(v.raw) != "list" {
		v.wrong("a list, as […]")
		return nil
	}
	raw := elements(v.raw)
	out := make([]value, len(raw))
	for i, one := range raw {
		out[i] = value{index(v.path, i), one, v.to}
	}
	return out
}

func (v value) text() string {
	if v.absent() {
		return ""
	}
	s, ok := textOf(v.raw)
	if !ok {
		v.wrong("a text")
	}
	return s
}

// plain returns a text; numbers and booleans are taken as they are written.
func (v value) plain() string {
	switch kindOf(v.raw) {
	case "number", "boolean":
		return string(v.raw)
	}
	return v.text()
}

func (v value) texts() []string {
	var out []string
	for _, one := range v.list() {
		if one.absent() {
			one.to.add(one.path, "it has to be a text, and is null")
			continue
		}
		out = append(out, one.text())
	}
	return out
}

func (v value) textSets() [][]string {
	var out [][]string
	for _, one := range v.list() {
		out = append(out, one.texts())
	}
	return out
}

// number returns a whole number, which may be written as a text.
func (v value) number() int {
	text := strings.TrimSpace(v.plain())
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		v.to.add(v.path, "%.40q is not a whole number", text)
	}
	return n
}

// truth returns a boolean, which may be written as a text.
func (v value) truth() bool {
	switch text := v.plain(); strings.ToLower(text) {
	case "", "false":
		return false
	case "true":
		return true
	default:
		v.to.add(v.path, "%.40q is not true or false", text)
		return false
	}
}

func (v value) duration() Duration {
	text := strings.TrimSpace(v.plain())
	if text == "" {
		return 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		v.to.add(v.path, "%s", err)
	}
	return d
}

// raws returns the members of an object as they are.
func (v value) raws() map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for name, one := range v.members() {
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[name] = json.RawMessage(appendValue(nil, one.raw))
	}
	return out
}

// each calls f for the members of an object, in the order of their names.
func (v value) each(f func(name string, one value)) {
	members := v.members()
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f(name, members[name])
	}
}
