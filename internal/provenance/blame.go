package provenance

import (
	"time"

	"ordain.dev/ordain/internal/diag"
)

// Commit says who wrote a line, and when. Its texts come from the author of the commit: Clean makes
// them safe to show.
type Commit struct {
	ID          string    `json:"id,omitempty"`
	Author      string    `json:"author,omitempty"`
	Email       string    `json:"email,omitempty"`
	Date        time.Time `json:"date,omitzero"`
	Subject     string    `json:"subject,omitempty"`
	Uncommitted bool      `json:"uncommitted,omitempty"`
}

// shownText is the length to which names are cut.
const shownText = 200

// Clean makes a text that may come from anywhere safe for a terminal and a page: one line, without
// characters that move the cursor or change the direction of writing.
func Clean(s string) string {
	s = diag.PlainLine(s)
	if cut := []rune(s); len(cut) > shownText {
		s = string(cut[:shownText]) + "…"
	}
	return s
}

// Blame has the commit of each line of a file, from line 1.
type Blame []*Commit

// Blamer finds out who wrote a file; nil when that is not known, for instance for a file outside of
// the repository.
type Blamer func(file string) Blame

// Attach adds commits to the fields. It calls blamer once for each file.
func Attach(fields []Field, blamer Blamer) {
	a := attacher{blamer, map[string]Blame{}}
	a.fields(fields)
}

type attacher struct {
	ask   Blamer
	known map[string]Blame
}

func (a attacher) fields(fields []Field) {
	for i := range fields {
		for j := range fields[i].Settings {
			s := &fields[i].Settings[j]
			s.Commit = a.commit(s.Place)
			for k := range s.Steps {
				s.Steps[k].Commit, s.Steps[k].MadeCommit = a.commit(s.Steps[k].Selected), a.commit(s.Steps[k].Made)
			}
			a.fields(s.Inputs)
		}
	}
}

func (a attacher) commit(p Place) *Commit {
	if p.File == "" {
		return nil
	}
	lines, asked := a.known[p.File]
	if !asked {
		lines = a.ask(p.File)
		a.known[p.File] = lines
	}
	if p.Line < 1 || p.Line > len(lines) {
		return nil
	}
	return lines[p.Line-1]
}
