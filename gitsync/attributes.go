package gitsync

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// Files named .gitattributes say how the files of a commit are written to the disk. We
// read those of the commit itself, as git does at a clean checkout, and only the
// attributes that matter then. The package of go-git for this takes the first line that
// matches where git takes the last, and does not know all patterns.

const (
	attributesName = ".gitattributes"
	// maxAttributes is the largest size, in bytes, of a .gitattributes.
	maxAttributes = 1 << 20
	// maxAttributeLine is git's: it ignores longer lines.
	maxAttributeLine = 2048
	// maxComparing bounds what comparing patterns with paths may cost: it takes a few
	// seconds then.
	maxComparing = 300_000_000
)

// attribute is a name with a state or value: "set", "unset", "unspecified" or "=value".
type attribute struct{ name, state string }

const (
	attributeSet         = "set"
	attributeUnset       = "unset"
	attributeUnspecified = "unspecified"
)

// attributeRule is a line of a .gitattributes.
type attributeRule struct {
	match      func(path, name string) bool // of a path below the folder of the file
	cost       int                          // of a comparison, for each byte of the path
	attributes []attribute
}

// attributesFile is one .gitattributes.
type attributesFile struct {
	dir   string // its folder, with a slash at the end; empty at the top
	rules []attributeRule
}

// attributeRules are the attributes of all files of a commit.
type attributeRules struct {
	files  []attributesFile // the deepest folders first
	macros map[string][]attribute
}

// relevant are the attributes that matter at a checkout.
var relevant = []string{"text", "crlf", "eol", "ident", "working-tree-encoding", "filter", "export-subst"}

// applyAttributes finds out how each file of the commit is written to the disk.
func (r *contentReader) applyAttributes() error {
	rules, err := r.readAttributes()
	if err != nil || rules == nil {
		return err
	}
	budget := maxComparing
	for i := range r.files {
		f := &r.files[i]
		if f.mode != filemode.Regular && f.mode != filemode.Executable {
			continue
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		values := rules.of(f.path, &budget)
		if budget < 0 {
			return r.refuse("its files %s hold too many patterns for that many files", attributesName).
				Hint("use fewer patterns, with wildcards")
		}
		var why string
		if f.conversion, why = conversionOf(values); why != "" {
			r.note(why, f.path)
		}
		if name, is := strings.CutPrefix(values["filter"], "="); is && name != "lfs" { // see lfsPointers
			r.note("filter="+name+" (no such program is set up here)", f.path)
		}
		if values["export-subst"] == attributeSet {
			r.note("export-subst (it concerns git archive only)", f.path)
		}
	}
	return nil
}

// note remembers what of the attributes of a file was not applied.
func (c *content) note(what, path string) {
	if c.unapplied == nil {
		c.unapplied = map[string][]string{}
	}
	c.unapplied[what] = append(c.unapplied[what], printable(path))
}

// readAttributes reads all .gitattributes of the commit; nil when there is nothing in them that matters.
func (r *contentReader) readAttributes() (*attributeRules, error) {
	rules := &attributeRules{macros: map[string][]attribute{
		"binary": {{"diff", attributeUnset}, {"merge", attributeUnset}, {"text", attributeUnset}},
	}}
	for _, f := range r.files {
		if path.Base(f.path) != attributesName || f.mode != filemode.Regular && f.mode != filemode.Executable {
			continue
		}
		text, err := r.m.read(f.hash, maxAttributes)
		if errors.Is(err, errTooBig) {
			return nil, r.refuse("%q is too large", printable(f.path)).Hint("use fewer patterns, with wildcards")
		}
		if err != nil {
			return nil, err
		}
		dir := strings.TrimSuffix(f.path, attributesName)
		if file := rules.parse(dir, text); len(file.rules) > 0 {
			rules.files = append(rules.files, file)
		}
	}
	rules.drop()
	if len(rules.files) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(rules.files, func(a, b attributesFile) int { return len(b.dir) - len(a.dir) })
	return rules, nil
}

// drop removes the attributes that do not matter, such as diff, and lines without others.
func (r *attributeRules) drop() {
	matters := func(a attribute) bool { return slices.Contains(relevant, a.name) || r.macros[a.name] != nil }
	for i := range r.files {
		f := &r.files[i]
		for j := range f.rules {
			rule := &f.rules[j]
			rule.attributes = slices.DeleteFunc(rule.attributes, func(a attribute) bool { return !matters(a) })
		}
		f.rules = slices.DeleteFunc(f.rules, func(rule attributeRule) bool { return len(rule.attributes) == 0 })
	}
	r.files = slices.DeleteFunc(r.files, func(f attributesFile) bool { return len(f.rules) == 0 })
}

// parse reads a .gitattributes. Lines that git ignores, with a warning, are ignored.
func (r *attributeRules) parse(dir string, text []byte) attributesFile {
	file := attributesFile{dir: dir}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range strings.Lines(string(text)) {
		if len(strings.TrimRight(line, "\r\n")) >= maxAttributeLine {
			continue
		}
		pattern, rest, ok := attributePattern(line)
		if !ok {
			continue
		}
		attributes, ok := parseAttributes(rest)
		if !ok {
			continue
		}
		if macro, is := strings.CutPrefix(pattern, "[attr]"); is && macro != "" {
			if dir == "" && attributeName(macro) { // git ignores macros further down
				r.macros[macro] = attributes
			}
			continue
		}
		if match := attributeMatch(pattern); match != nil {
			file.rules = append(file.rules, attributeRule{match, len(pattern), attributes})
		}
	}
	return file
}

const attributeBlanks = " \t\r\n"

func isAttributeBlank(r rune) bool { return strings.ContainsRune(attributeBlanks, r) }

// attributePattern cuts a line after its pattern, which may be quoted. It returns false
// for comments and empty lines.
func attributePattern(line string) (pattern, rest string, ok bool) {
	line = strings.Trim(line, attributeBlanks)
	if line == "" || line[0] == '#' {
		return "", "", false
	}
	if line[0] == '"' {
		if pattern, rest, ok := unquote(line); ok {
			return pattern, rest, true
		}
	}
	end := strings.IndexAny(line, attributeBlanks)
	if end < 0 {
		return line, "", true
	}
	return line[:end], line[end:], true
}

// unquote reads a text in double quotes, as git writes unusual paths.
func unquote(line string) (text, rest string, ok bool) {
	var out strings.Builder
	for i := 1; i < len(line); i++ {
		c := line[i]
		if c == '"' {
			return out.String(), line[i+1:], true
		}
		if c != '\\' {
			out.WriteByte(c)
			continue
		}
		if i++; i == len(line) {
			break
		}
		if at := strings.IndexByte(`abfnrtv\"`, line[i]); at >= 0 {
			out.WriteByte("\a\b\f\n\r\t\v\\\""[at])
			continue
		}
		if i+2 >= len(line) || line[i] < '0' || line[i] > '3' {
			return "", "", false
		}
		value := 0
		for _, digit := range []byte(line[i : i+3]) {
			if digit < '0' || digit > '7' {
				return "", "", false
			}
			value = value<<3 | int(digit-'0')
		}
		out.WriteByte(byte(value))
		i += 2
	}
	return "", "", false
}

// parseAttributes reads the attributes of a line. It returns false when one has an
// impossible name: git ignores the whole line then.
func parseAttributes(rest string) ([]attribute, bool) {
	var list []attribute
	for _, field := range strings.FieldsFunc(rest, isAttributeBlank) {
		name, value, hasValue := strings.Cut(field, "=")
		state := attributeSet
		switch {
		case strings.HasPrefix(name, "-"):
			name, state = name[1:], attributeUnset
		case strings.HasPrefix(name, "!"):
			name, state = name[1:], attributeUnspecified
		case hasValue:
			state = "=" + value
		}
		if !attributeName(name) {
			return nil, false
		}
		list = append(list, attribute{name, state})
	}
	return list, true
}

func attributeName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	return name != "" && name[0] != '-' && strings.Trim(name, letters) == ""
}

// attributeMatch returns the comparison of a pattern with a path and its last name; nil
// when it can match no file.
func attributeMatch(pattern string) func(path, name string) bool {
	if pattern == "" || pattern[0] == '!' || strings.HasSuffix(pattern, "/") {
		return nil
	}
	whole := strings.Contains(pattern, "/") // otherwise the last name counts
	pattern = strings.TrimPrefix(pattern, "/")
	if !strings.ContainsAny(pattern, `*?[\`) {
		return func(path, name string) bool { return pattern == path && whole || pattern == name && !whole }
	}
	if end, is := strings.CutPrefix(pattern, "*"); is && !whole && !strings.ContainsAny(end, `*?[\`) {
		return func(_, name string) bool { return strings.HasSuffix(name, end) }
	}
	expression := wildcards(pattern)
	if expression == nil {
		return nil
	}
	return func(path, name string) bool {
		if !whole {
			path = name
		}
		return expression.MatchString(byteRunes(path))
	}
}

// wildcards translates git's patterns: * and ? do not match a slash, ** between
// slashes matches folders. It returns nil for a pattern that is malformed, which
// matches nothing.
func wildcards(pattern string) *regexp.Regexp {
	var out strings.Builder
	out.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			stars := i
			for i+1 < len(pattern) && pattern[i+1] == '*' {
				i++
			}
			begins, ends := stars == 0 || pattern[stars-1] == '/', i+1 == len(pattern) || pattern[i+1] == '/'
			switch {
			case i == stars || !begins || !ends:
				out.WriteString(`[^/]*`)
			case i+1 == len(pattern):
				out.WriteString(`.*`)
			default: // **/ may be nothing
				out.WriteString(`(?:.*/)?`)
				i++
			}
		case '?':
			out.WriteString(`[^/]`)
		case '[':
			class, length := bracket(pattern[i:])
			if length == 0 {
				return nil
			}
			out.WriteString(class)
			i += length - 1
		case '\\':
			if i++; i == len(pattern) {
				return nil
			}
			out.WriteString(literal(pattern[i]))
		default:
			out.WriteString(literal(c))
		}
	}
	out.WriteString(`\z`)
	expression, err := regexp.Compile(out.String())
	if err != nil {
		return nil
	}
	return expression
}

func literal(c byte) string { return fmt.Sprintf(`\x{%x}`, c) }

// byteRunes makes a character of each byte, because git's wildcards match bytes.
func byteRunes(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 {
		return s
	}
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

// bracket translates a class, such as [a-z] or [!0-9], and returns its length in the
// pattern; zero when it is malformed. A class never matches a slash.
func bracket(pattern string) (class string, length int) {
	var out strings.Builder
	out.WriteString(`[`)
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
		out.WriteString(`^/`)
	}
	for first := true; i < len(pattern); first = false {
		switch c := pattern[i]; {
		case c == ']' && !first:
			out.WriteString(`]`)
			return out.String(), i + 1
		case c == '[' && strings.HasPrefix(pattern[i:], "[:") && strings.Contains(pattern[i:], ":]"):
			end := strings.Index(pattern[i:], ":]")
			out.WriteString(pattern[i : i+end+2])
			i += end + 2
			continue
		case c == '\\':
			if i++; i == len(pattern) {
				return "", 0
			}
		}
		low := pattern[i]
		i++
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			if i++; pattern[i] == '\\' {
				if i++; i == len(pattern) {
					return "", 0
				}
			}
			high := pattern[i]
			i++
			if high >= low {
				fmt.Fprintf(&out, `\x{%x}-\x{%x}`, low, high)
			}
			continue
		}
		if low != '/' {
			fmt.Fprintf(&out, `\x{%x}`, low)
		}
	}
	return "", 0
}

// of returns the states of the relevant attributes of a path. Deeper files and later
// lines come first. budget counts the comparisons down.
func (r *attributeRules) of(full string, budget *int) map[string]string {
	values := map[string]string{}
	for _, file := range r.files {
		inside, is := strings.CutPrefix(full, file.dir)
		if !is {
			continue
		}
		name := path.Base(inside)
		for _, rule := range slices.Backward(file.rules) {
			if *budget -= rule.cost * len(inside); *budget < 0 {
				return nil
			}
			if rule.match(inside, name) {
				r.fill(values, rule.attributes)
			}
		}
	}
	return values
}

// fill sets the attributes that are not set yet, the last first, and what macros stand for.
func (r *attributeRules) fill(values map[string]string, attributes []attribute) {
	for _, a := range slices.Backward(attributes) {
		if _, known := values[a.name]; known {
			continue
		}
		values[a.name] = a.state
		if a.state == attributeSet {
			r.fill(values, r.macros[a.name])
		}
	}
}

// unappliedText says for the report which attributes were not applied.
func (c *content) unappliedText() string {
	var out strings.Builder
	for _, what := range slices.Sorted(maps.Keys(c.unapplied)) {
		fmt.Fprintf(&out, "Not applied from %s: %s, for %s.\n", attributesName, what, enumerate(c.unapplied[what], 10))
	}
	return out.String()
}
