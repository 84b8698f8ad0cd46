package inifile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/python/pytext"
)

// File is a file that was read.
type File struct {
	sections map[string]*section
	defaults *section
}

// section has the values as they are written, and the order of their keys.
type section struct {
	name   string
	values map[string]*value
	keys   []string
}

type value struct{ lines []string }

// Error is what configparser would raise.
type Error struct {
	Message string
	Line    int // where; 0: not known
}

func (e *Error) Error() string { return e.Message }

// source is what Python calls a text that comes from no file.
const source = "'<string>'"

// defaultSection is the one whose values all sections have.
const defaultSection = "DEFAULT"

// parser is the state between one line and the next.
type parser struct {
	*File
	section *section // nil before the first one
	option  string   // the last key; empty behind a section's name
	indent  int      // of the line that the last key or section stands in
	bad     []string // lines that are no option, as a message shows them
	first   int      // the number of the first one of them
}

// Parse reads a text. The error is an *Error.
func Parse(text string) (*File, error) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	p := &parser{File: &File{sections: map[string]*section{}, defaults: newSection(defaultSection)}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := p.line(line, number); err != nil {
			return nil, err
		}
	}
	if p.bad != nil {
		return nil, &Error{
			Message: "Source contains parsing errors: " + source + strings.Join(p.bad, ""),
			Line:    p.first,
		}
	}
	return p.File, nil
}

func newSection(name string) *section { return &section{name: name, values: map[string]*value{}} }

// line reads one line, with its end.
func (p *parser) line(line string, number int) error {
	clean := strings.TrimFunc(line, pytext.Space)
	if clean == "" {
		if p.section != nil && p.option != "" { // it may stand inside of a value
			p.goOn("")
		}
		return nil
	}
	if clean[0] == '#' || clean[0] == ';' {
		return nil
	}
	indent := leadingSpace(line)
	if p.section != nil && p.option != "" && indent > p.indent {
		p.goOn(clean)
		return nil
	}
	p.indent = indent
	if name, ok := header(clean); ok {
		return p.open(name, number)
	}
	if p.section == nil {
		return &Error{
			Message: fmt.Sprintf(
				"File contains no section headers.\nfile: %s, line: %d\n%s",
				source,
				number,
				pytext.Quote(line),
			),
			Line: number,
		}
	}
	return p.assign(line, clean, number)
}

func (p *parser) goOn(line string) {
	v := p.section.values[p.option]
	v.lines = append(v.lines, line)
}

// leadingSpace counts the characters before the first one that is no space.
func leadingSpace(line string) int {
	n := 0
	for _, r := range line {
		if !pytext.Space(r) {
			break
		}
		n++
	}
	return n
}

// header gives the name of a section: what stands between the first bracket,
// which begins the line, and the last one.
func header(line string) (name string, ok bool) {
	end := strings.LastIndexByte(line, ']')
	if line[0] != '[' || end < 2 {
		return "", false
	}
	return line[1:end], true
}

func (p *parser) open(name string, number int) error {
	p.option = ""
	if name == defaultSection { // any number of times
		p.section = p.defaults
		return nil
	}
	if p.sections[name] != nil {
		return &Error{
			Message: fmt.Sprintf(
				"While reading from %s [line %2d]: section %s already exists",
				source,
				number,
				pytext.Quote(name),
			),
			Line: number,
		}
	}
	p.section = newSection(name)
	p.sections[name] = p.section
	return nil
}

// assign reads `key = value`.
func (p *parser) assign(line, clean string, number int) error {
	cut := strings.IndexAny(clean, "=:")
	if cut < 1 {
		if p.bad == nil {
			p.first = number
		}
		p.bad = append(p.bad, fmt.Sprintf("\n\t[line %2d]: %s", number, pytext.Quote(line)))
		if cut < 0 {
			return nil
		}
	}
	p.option = lower(strings.TrimRightFunc(clean[:cut], pytext.Space))
	if p.section.values[p.option] != nil {
		return &Error{
			Message: fmt.Sprintf("While reading from %s [line %2d]: option %s in section %s already exists",
				source, number, pytext.Quote(p.option), pytext.Quote(p.section.name)),
			Line: number,
		}
	}
	p.section.values[p.option] = &value{lines: []string{strings.TrimFunc(clean[cut+1:], pytext.Space)}}
	p.section.keys = append(p.section.keys, p.option)
	return nil
}

// lower is how keys are compared.
func lower(key string) string { return strings.ToLower(key) }

// text is the value as it is written, without blank lines at its end.
func (v *value) text() string {
	return strings.TrimRightFunc(strings.Join(v.lines, "\n"), pytext.Space)
}

// Has tells whether there is a section. DEFAULT is none.
func (f *File) Has(section string) bool { return f.sections[section] != nil }

// Sections lists the sections, but for DEFAULT.
func (f *File) Sections() []string { return slices.Sorted(maps.Keys(f.sections)) }

// Options lists the keys of a section, then those of DEFAULT.
func (f *File) Options(section string) []string {
	s := f.sections[section]
	if s == nil {
		return nil
	}
	keys := slices.Clone(s.keys)
	for _, key := range f.defaults.keys {
		if s.values[key] == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Written gives the values of all sections as they are written, nothing taken in.
// DEFAULT is one of them, when it has values.
func (f *File) Written() map[string]map[string]string {
	all := map[string]map[string]string{}
	for name, s := range f.sections {
		all[name] = s.written()
	}
	if len(f.defaults.keys) > 0 {
		all[defaultSection] = f.defaults.written()
	}
	return all
}

func (s *section) written() map[string]string {
	values := make(map[string]string, len(s.values))
	for key, v := range s.values {
		values[key] = v.text()
	}
	return values
}
