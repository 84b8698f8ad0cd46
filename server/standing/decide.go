// Package standing decides why what is deployed in an environment is not the tip of its branch, and says so in
// sentences. It reads no record and no clock: package control gathers the facts, and every page, call and command shows
// the result.
//
//	the record ──intent.StandingFacts──▶ Decide ──intent.Standing──▶ pages, API, command line
//
// Dry runs and previews never count: they say nothing about the branch. The reasons are in the order in which a person
// wants to read them: what moves now, then what is broken, then what people decided, then what is waited for.
package standing

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// facts has one method for each reason.
type facts struct{ intent.StandingFacts }

// Decide returns the standing that follows from the facts.
func Decide(known intent.StandingFacts) intent.Standing {
	f := facts{known}
	s := intent.Standing{Environment: f.Environment.ID, Deployed: f.deployed(), Tip: f.tip()}
	if f.Environment.Halted {
		s.Halted = &intent.Actor{By: f.Environment.HaltedBy}
		if at := f.Environment.HaltedAt; at != nil {
			s.Halted.At = *at
		}
	}
	same := s.Deployed != nil && s.Tip != nil && s.Deployed.Commit == s.Tip.Commit
	add := func(d *intent.Difference) {
		if d != nil {
			s.Why = append(s.Why, *d)
		}
	}
	add(f.compiling())
	add(f.unreadable())
	add(f.ended(same))
	add(f.refused(same))
	add(f.rolledBack())
	add(f.blocked(s.Why, same))
	add(f.unreleased())
	add(f.promotion(same))
	add(f.waiting())
	if len(s.Why) == 0 && !same {
		add(f.otherwise(s))
	}
	add(f.window())
	if s.Halted != nil && len(s.Why) > 0 || s.Halted != nil && s.Deployed == nil {
		// It comes first, because nothing else moves before it ends.
		s.Why = append([]intent.Difference{f.halted()}, s.Why...)
	}
	s.Text = sentence(s)
	return s
}

func (f facts) deployed() *intent.Deployed {
	if f.Active == nil {
		return nil
	}
	p := f.Active.Provenance
	d := &intent.Deployed{
		Version: f.Active.Number, Commit: p.Commit, Subject: p.Subject, Author: p.Author, Compile: p.Compile,
		RolledBack: p.RolledBack, Pushed: p.Commit == "",
	}
	if f.Active.Released != nil {
		d.Released = *f.Active.Released
	}
	return d
}

func (f facts) tip() *intent.Tip {
	if p := f.Promotion; p != nil {
		return &intent.Tip{Commit: p.Commit, Subject: p.Subject, Author: p.Author, Seen: p.Created}
	}
	if f.Tip == nil {
		return nil
	}
	r := f.Tip.Revision
	return &intent.Tip{Commit: r.Commit, Subject: r.Subject, Author: r.Author, Seen: f.Seen, Compile: f.Tip.ID}
}

// sentence says in a few sentences how things stand.
func sentence(s intent.Standing) string {
	var b strings.Builder
	switch d := s.Deployed; {
	case d == nil:
		b.WriteString("Nothing is deployed yet.")
	case d.Commit == "":
		fmt.Fprintf(&b, "Version %d is deployed, which is not from a commit.", d.Version)
	default:
		fmt.Fprintf(&b, "Version %d from %s is deployed", d.Version, intent.Revision{Commit: d.Commit}.Short())
		if s.Kind() == intent.StandsSame {
			b.WriteString(", the newest commit")
		}
		b.WriteString(".")
	}
	for _, w := range s.Why {
		b.WriteString(" " + w.Text + ".")
	}
	return b.String()
}
