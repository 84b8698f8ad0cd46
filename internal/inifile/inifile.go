// Package inifile reads INI files as Python's configparser does, without its
// interpolation: setup.cfg of modules, the settings of a project, and the
// configuration of the server.
//
//	[DEFAULT]                 its values belong to all sections
//	[metadata]
//	name = inmanta-module-a
//	# a comment               only on a line of its own; ; does as well as #
//	Keywords: a,              keys are read in lower case; : does as well as =
//	  b                       an indented line continues the value
package inifile

import (
	"fmt"
	"strings"
	"unicode"
)

// Default is the section whose values belong to all sections.
const Default = "DEFAULT"

// File holds the values of a file, by section and key.
type File map[string]map[string]Value

// Value is one value and the line of its key.
type Value struct {
	Text string
	Line int
}

// Get returns a value of a section, or else the one that section DEFAULT has.
// There is no value in a section that the file does not have.
func (f File) Get(section, key string) (Value, bool) {
	values, ok := f[section]
	if !ok {
		return Value{}, false
	}
	v, ok := values[key]
	if !ok {
		v, ok = f[Default][key]
	}
	return v, ok
}

// Error lists everything that is wrong with a file.
type Error []Problem

// Problem is a line that cannot be read.
type Problem struct {
	Line int
	Text string
}

func (e Error) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return strings.Join(lines, "\n")
}

// parser is the state between one line and the next.
type parser struct {
	file     File
	name     string           // of the section
	section  map[string]Value // nil before the first section
	key      string           // the last key, which indented lines continue; empty right after a section's line
	value    []string         // the lines of its value
	indent   int              // of the line with the last key or section
	problems Error
}

// Parse reads a file. The error is an Error.
func Parse(text string) (File, error) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	p := &parser{file: File{}}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		p.line(line, number)
	}
	p.endValue()
	if p.problems != nil {
		return nil, p.problems
	}
	return p.file, nil
}

func (p *parser) line(line string, number int) {
	content := strings.TrimSpace(line)
	indent := strings.Index(line, content)
	switch {
	case content == "":
		p.value = append(p.value, "") // more of the value may follow
	case content[0] == '#' || content[0] == ';':
	case p.key != "" && indent > p.indent:
		p.value = append(p.value, content)
	case content[0] == '[' && strings.LastIndexByte(content, ']') > 1:
		p.endValue()
		p.indent = indent
		p.open(content[1:strings.LastIndexByte(content, ']')], number)
	case p.section == nil:
		if p.problems == nil {
			p.fail(number, "`"+content+"` stands before the first section")
		}
	default:
		p.endValue()
		p.indent = indent
		p.assign(content, number)
	}
}

func (p *parser) fail(line int, text string) {
	p.problems = append(p.problems, Problem{line, text})
}

// endValue stores the value that was read last.
func (p *parser) endValue() {
	if p.key != "" {
		text := strings.TrimRightFunc(strings.Join(p.value, "\n"), unicode.IsSpace)
		p.section[p.key] = Value{text, p.section[p.key].Line}
	}
	p.key, p.value = "", nil
}

func (p *parser) open(name string, number int) {
	if p.file[name] != nil && name != Default {
		p.fail(number, "section ["+name+"] appears twice")
	}
	if p.file[name] == nil {
		p.file[name] = map[string]Value{}
	}
	p.section, p.name = p.file[name], name
}

// assign reads `key = value`.
func (p *parser) assign(line string, number int) {
	cut := strings.IndexAny(line, "=:")
	if cut < 1 {
		p.fail(number, "`"+line+"` is neither `key = value` nor the name of a section")
		return
	}
	p.key = strings.ToLower(strings.TrimSpace(line[:cut]))
	if _, ok := p.section[p.key]; ok {
		p.fail(number, "key "+p.key+" appears twice in section ["+p.name+"]")
	}
	p.section[p.key] = Value{Line: number}
	p.value = []string{strings.TrimSpace(line[cut+1:])}
}
