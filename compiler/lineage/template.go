package lineage

import (
	"regexp"
	"strings"
	"sync"

	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/provenance"
)

// template is a file that std::template fills in.
type template struct {
	name  string
	spot  *spot
	names []string // the variables and attributes that it mentions
}

// isTemplate reports whether an expression fills in a template.
func isTemplate(e syntax.Expr) bool {
	call, is := e.(*syntax.Call)
	return is && call.Func.Text == "std::template"
}

// maxNames bounds how many names of one template are followed.
const maxNames = 20

// inTemplate finds the names in a template of Jinja: `{{ a.b | upper }}`, `{% if a.b %}`,
// `{% for x in a.b %}`.
var inTemplate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`\{\{[-+]?\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|\{%[-+]?\s*(?:for\s+[\w,\s]+?\s+in|if(?:\s+not)?|elif)\s+` +
			`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`)
})

// template records the file that a call filled in, and the names in it, which are looked
// up where the call stands.
func (t *Tracer) template(
	into *provenance.Entry,
	m mention,
	e *syntax.Call,
	s *spot,
	f frame,
	mark provenance.Mark,
) {
	if t.Template == nil || !isTemplate(e) || len(e.Args) == 0 {
		return
	}
	path, ok := t.value(e.Args[0], place{m.in, s, f}).(types.Str)
	if !ok {
		return
	}
	file := t.templateFile(string(path), m.in)
	if file == nil || mark.Depth >= provenance.MaxDepth {
		return
	}
	mark.Name, mark.Statement, mark.Step = t.Text(file.name), t.index(file.spot), provenance.TopLevel
	into.Set(mark)
	for _, name := range file.names {
		written := reference(name)
		t.mention(into, mention{expr: written, in: m.in, name: name}, s, f, provenance.Mark{Depth: mark.Depth + 1})
	}
}

// reference is a name with dots as an expression.
func reference(name string) syntax.Expr {
	first, rest, more := strings.Cut(name, ".")
	var e syntax.Expr = &syntax.Ref{Name: syntax.Name{Text: first}}
	for more {
		first, rest, more = strings.Cut(rest, ".")
		e = &syntax.AttrRef{X: e, Attr: syntax.Ident{Name: first}}
	}
	return e
}

func (t *Tracer) templateFile(path string, in *block) *template {
	module, rest, _ := strings.Cut(path, "/")
	if module == "." {
		module, _, _ = strings.Cut(in.file.file.Namespace, "::")
	}
	key := module + "/" + rest
	known, asked := t.templates[key]
	if asked {
		return known
	}
	t.templates[key] = nil
	shown, text, ok := t.Template(module, rest)
	if !ok {
		return nil
	}
	t.templates[key] = readTemplate(key, shown, text)
	return t.templates[key]
}

func readTemplate(name, shown, text string) *template {
	out := &template{name: name, spot: &spot{Statement: provenance.Statement{
		Kind: provenance.Template, Place: provenance.Place{File: shown, Line: 1, EndLine: 1, Column: 1},
	}}}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	out.spot.EndLine = len(lines)
	out.spot.Source = shorten(lines[0])
	seen := map[string]bool{}
	for _, found := range inTemplate().FindAllStringSubmatch(text, -1) {
		name := found[1] + found[2]
		if seen[name] || len(out.names) == maxNames {
			continue
		}
		seen[name] = true
		out.names = append(out.names, name)
	}
	return out
}
