package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"ordain.dev/ordain/internal/provenance"
)

// explainer prints an explanation for people. Names come from Git, and values and
// lines from the model, so everything goes through printable.
type explainer struct{ out io.Writer }

func (x explainer) line(indent int, format string, args ...any) {
	fmt.Fprintln(x.out, strings.Repeat(" ", indent)+printable(fmt.Sprintf(format, args...)))
}

func (x explainer) print(e provenance.Explanation) {
	for n, a := range e.Attributes {
		if n > 0 {
			fmt.Fprintln(x.out)
		}
		value := string(a.Value)
		if value == "" {
			value = "no value"
		}
		x.line(0, "%s.%s = %s", e.Subject, a.Name, value)
		for _, s := range a.Settings {
			x.setting(2, s)
		}
	}
}

func (x explainer) setting(indent int, s provenance.Setting) {
	text := map[provenance.Kind]string{
		provenance.Argument:   "argument of a constructor",
		provenance.Default:    "default of the entity",
		provenance.Assignment: "assignment",
		provenance.Extension:  "added with +=",
		provenance.Expression: "expression",
		provenance.Function:   "computed by " + s.Plugin,
		provenance.Unset:      "not set",

		provenance.Element:     "an element of what the loop goes through",
		provenance.Member:      "an entry of a dict",
		provenance.Template:    "the template that was filled in",
		provenance.Constructor: "the constructor of the instance",
	}[s.Kind]
	if s.Implied {
		text += ", which set the other side of the relation"
	}
	if s.Plugin != "" && s.Kind != provenance.Function {
		text += ", the result of " + s.Plugin
	}
	if s.Loop.Line > 0 {
		text += fmt.Sprintf(", in the loop at %s:%d", s.Loop.File, s.Loop.Line)
	}
	switch {
	case s.Kind == provenance.Unset && s.File != "":
		x.line(indent, "%s; it is defined at %s", text, at(s.Place))
	case s.File == "":
		x.line(indent, "%s; the value is what the field has without one", text)
	default:
		x.line(indent, "set at %s: %s", at(s.Place), text)
	}
	x.source(indent+2, s.Place)
	x.commit(indent+2, s.Commit)
	for _, input := range s.Inputs {
		word := "from"
		if len(input.Settings) > 0 && input.Settings[0].Condition {
			word = "depending on"
		}
		x.line(indent+2, "%s %s", word, input.Name)
		for _, from := range input.Settings {
			x.setting(indent+4, from)
		}
	}
	for _, step := range s.Steps {
		x.line(indent, "in implementation %s of %s", step.Implementation, step.Instance)
		x.line(indent+2, "chosen at %s", at(step.Selected))
		x.commit(indent+4, step.Commit)
		x.line(indent+2, "made at %s", at(step.Made))
		x.source(indent+4, step.Made)
		x.commit(indent+4, step.MadeCommit)
	}
}

func at(p provenance.Place) string {
	if p.EndLine > p.Line {
		return fmt.Sprintf("%s:%d-%d", p.File, p.Line, p.EndLine)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// source prints the source line, with a caret below the statement.
func (x explainer) source(indent int, p provenance.Place) {
	if strings.TrimSpace(p.Source) == "" {
		return
	}
	before := []rune(p.Source)
	before = before[:min(max(p.Column-1, 0), len(before))]
	text := strings.TrimLeftFunc(p.Source, unicode.IsSpace)
	caret := len(before) - (len([]rune(p.Source)) - len([]rune(text)))
	x.line(indent, "%s", text)
	x.line(indent, "%s^", strings.Repeat(" ", max(caret, 0)))
}

func (x explainer) commit(indent int, c *provenance.Commit) {
	switch {
	case c == nil:
	case c.Uncommitted:
		x.line(indent, "not committed")
	default:
		x.line(indent, "%.10s %s <%s> %s: %s", c.ID, c.Author, c.Email, c.Date.Format("2006-01-02"), c.Subject)
	}
}
