package console

import (
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/provenance"
)

// origin says who decided the value of an attribute.
type origin struct {
	Words  string // set, default …
	Place  place  // empty when nobody set it
	Source string
	Commit *who
	Via    []via
}

// place is file:line, in the parts between which a narrow column may break it.
type place []string

func placeOf(p provenance.Place) place {
	if p.File == "" {
		return nil
	}
	return strings.SplitAfter(p.File+":"+strconv.Itoa(p.Line), "/")
}

// who committed a line.
type who struct {
	Short, Author, Subject string
	Uncommitted            bool
}

func whoOf(c *provenance.Commit) *who {
	if c == nil {
		return nil
	}
	return &who{Short: short(c.ID), Author: c.Author, Subject: c.Subject, Uncommitted: c.Uncommitted}
}

// via is one step on the way to the statement that set a value.
type via struct {
	Text   string
	Place  place
	Commit *who
}

// originOf tells of the statement that set an attribute. A list that several
// statements filled is told of by the first.
func originOf(f provenance.Field) *origin {
	if len(f.Settings) == 0 {
		return nil
	}
	s := f.Settings[0]
	o := &origin{
		Words:  settingWords(s),
		Source: strings.TrimSpace(s.Source),
		Place:  placeOf(s.Place),
		Commit: whoOf(s.Commit),
	}
	for _, input := range s.Inputs {
		for _, from := range input.Settings {
			if from.File != "" {
				o.Via = append(o.Via, via{input.Name + " was set at", placeOf(from.Place), whoOf(from.Commit)})
			}
		}
	}
	for _, step := range s.Steps {
		o.Via = append(
			o.Via,
			via{
				"in " + step.Implementation + " of " + step.Instance + ", made at",
				placeOf(step.Made),
				whoOf(step.MadeCommit),
			},
		)
	}
	return o
}

// settingWords says how a value was set.
func settingWords(s provenance.Setting) string {
	words := map[provenance.Kind]string{
		provenance.Default: "default at", provenance.Function: "computed by " + s.Plugin + " at", provenance.Unset: "nobody set it",
	}[s.Kind]
	switch {
	case words != "":
		return words
	case s.Plugin != "":
		return "set to what " + s.Plugin + " gave, at"
	case s.Implied:
		return "set from the other side at"
	}
	return "set at"
}
