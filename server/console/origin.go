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
}

func (l sourceLinks) author(c *provenance.Commit) *lineAuthor {
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
}

// originOf returns the statement that set an attribute. Of the statements that filled a list, it is the first.
func originOf(f provenance.Field, links sourceLinks) *origin {
	if len(f.Settings) == 0 {
		return nil
	}
	s := f.Settings[0]
	o := &origin{
		Words: settingWords(s), Source: strings.TrimSpace(s.Source), Place: placeOf(s.Place),
		Commit: links.author(s.Commit), URL: links.place(s.Place, s.Commit),
	}
	for _, input := range s.Inputs {
		for _, from := range input.Settings {
			if from.File != "" {
				o.Via = append(o.Via, via{
					input.Name + " was set at", placeOf(from.Place), links.place(from.Place, from.Commit),
					links.author(from.Commit),
				})
			}
		}
	}
	for _, step := range s.Steps {
		o.Via = append(o.Via, via{
			"in " + step.Implementation + " of " + step.Instance + ", made at",
			placeOf(step.Made), links.place(step.Made, step.MadeCommit), links.author(step.MadeCommit),
		})
	}
	return o
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
