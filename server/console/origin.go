package console

import (
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/provenance"
)

// origin says what set the value of an attribute.
type origin struct {
	Words  string // how: set, default …
	Place  place  // empty when nothing set it
	URL    string // of the place, where the repository has it
	Source string
	Commit *lineAuthor
	Via    []via
}

// place is file:line, in pieces between which a narrow column may break it.
type place []string

func placeOf(p provenance.Place) place {
	if p.File == "" {
		return nil
	}
	return strings.SplitAfter(p.File+":"+strconv.Itoa(p.Line), "/")
}

// lineAuthor is who committed a line, and in which commit.
type lineAuthor struct {
	Short, Full, Author, Subject string
	URL                          string // at the forge
	Uncommitted                  bool
	Pending                      bool // it is being looked up; nothing else is known yet
}

// author returns who committed the line at a place; nil if that is not known and will not be.
func (l sourceLinks) author(p provenance.Place, c *provenance.Commit) *lineAuthor {
	if c == nil && l.pending[p.File] {
		return &lineAuthor{Pending: true}
	}
	if c == nil {
		return nil
	}
	return &lineAuthor{
		Short: short(c.ID), Full: c.ID, Author: c.Author, Subject: c.Subject, URL: l.site.Commit(c.ID),
		Uncommitted: c.Uncommitted,
	}
}

// place returns the address of a place whose author is known, so that the repository has it.
func (l sourceLinks) place(p provenance.Place, c *provenance.Commit) string {
	if c == nil || c.Uncommitted {
		return ""
	}
	return l.line(p.File, p.Line)
}

// via is one step on the way to the statement that set a value.
type via struct {
	Text   string
	Place  place
	URL    string
	Commit *lineAuthor
	Via    []via // what that was computed from
}

// originOf returns the statement that set an attribute. Of the statements that filled a list, it is the first.
func originOf(f provenance.Field, links sourceLinks) *origin {
	if len(f.Settings) == 0 {
		return nil
	}
	s := f.Settings[0]
	o := &origin{
		Words: settingWords(s), Source: strings.TrimSpace(s.Source), Place: placeOf(s.Place),
		Commit: links.author(s.Place, s.Commit), URL: links.place(s.Place, s.Commit),
	}
	o.Via = links.viaOf(s)
	return o
}

// viaOf lists what a value was computed from, and the implementations that led to its statement.
func (l sourceLinks) viaOf(s provenance.Setting) (out []via) {
	for _, input := range s.Inputs {
		for _, from := range input.Settings {
			if from.File == "" {
				continue
			}
			out = append(out, via{
				Text: inputWords(input.Name, from), Place: placeOf(from.Place), URL: l.place(from.Place, from.Commit),
				Commit: l.author(from.Place, from.Commit), Via: l.viaOf(from),
			})
		}
	}
	for _, step := range s.Steps {
		out = append(out, via{
			Text:  "in " + step.Implementation + " of " + step.Instance + ", made at",
			Place: placeOf(step.Made), URL: l.place(step.Made, step.MadeCommit),
			Commit: l.author(step.Made, step.MadeCommit),
		})
	}
	return out
}

// inputWords says how something was set that a value was computed from.
func inputWords(name string, s provenance.Setting) string {
	if s.Condition {
		name = "depending on " + name
	}
	switch s.Kind {
	case provenance.Default:
		return name + " has its default at"
	case provenance.Element:
		return name + " goes through the list at"
	case provenance.Template:
		return "the template " + name + " is at"
	case provenance.Constructor:
		return name + " was made at"
	case provenance.Unset:
		return name + " was never set; it is defined at"
	}
	if s.Plugin != "" {
		return name + " is what " + s.Plugin + " returned, at"
	}
	return name + " was set at"
}

// settingWords says how a value was set.
func settingWords(s provenance.Setting) string {
	switch {
	case s.Kind == provenance.Default:
		return "default at"
	case s.Kind == provenance.Function:
		return "computed by " + s.Plugin + " at"
	case s.Kind == provenance.Unset:
		return "never set"
	case s.Plugin != "":
		return "set to what " + s.Plugin + " returned, at"
	case s.Implied:
		return "set from the other side at"
	}
	return "set at"
}
