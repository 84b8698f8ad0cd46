package intent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Gate says whether windows and freezes let changes of a resource start.
type Gate struct {
	// Window is the name of the window or freeze that holds them; empty: none does.
	Window string
	Kind   WindowKind
	// Until is when they may start again; zero if that cannot be foreseen.
	Until time.Time
	Zone  string // of the window
}

// Held reports whether no change may start.
func (g Gate) Held() bool { return g.Window != "" }

// String returns the text that pages show: waits for window `nightly`, opens 2026-11-22 02:00 Europe/Brussels.
func (g Gate) String() string {
	if !g.Held() {
		return "changes may start"
	}
	when := "nobody can say when"
	if loc, err := time.LoadLocation(g.Zone); err == nil && !g.Until.IsZero() {
		when = g.Until.In(loc).Format("2006-01-02 15:04") + " " + g.Zone
	}
	if g.Kind == WindowFreeze {
		return fmt.Sprintf("frozen by `%s`, changes may start %s", g.Window, when)
	}
	return fmt.Sprintf("waits for window `%s`, opens %s", g.Window, when)
}

// mostEdges bounds how far Gate looks ahead.
const mostEdges = 2000

// Gate reports whether changes of a resource may start at a time and, if not, why and
// until when.
func (ws Windows) Gate(id ResourceID, now time.Time) Gate {
	var those Windows
	for _, w := range ws {
		if w.Covers(id) {
			those = append(those, w)
		}
	}
	by, next := those.at(now)
	if by == nil {
		return Gate{}
	}
	g := Gate{Window: by.Name, Kind: by.Kind, Zone: by.Zone}
	for range mostEdges {
		if next.IsZero() {
			return g
		}
		at := next
		if by, next = those.at(at); by == nil {
			g.Until = at
			if opens := those.openWindow(at); g.Kind == WindowOpen && opens != nil {
				g.Window, g.Zone = opens.Name, opens.Zone
			}
			return g
		}
	}
	return g
}

// at returns the window or freeze that holds changes of a resource to which all of ws
// apply, or nil, and when any of them changes next.
func (ws Windows) at(t time.Time) (by *Window, next time.Time) {
	var freeze, window *Window
	var thaws time.Time
	inside := false
	for i := range ws {
		w := &ws[i]
		open, until := w.At(t)
		next = Earlier(next, until)
		switch {
		case w.Kind == WindowFreeze && open && (freeze == nil || until.After(thaws)):
			freeze, thaws = w, until
		case w.Kind == WindowOpen:
			inside = inside || open
			if window == nil {
				window = w
			}
		}
	}
	switch {
	case freeze != nil:
		return freeze, next
	case window != nil && !inside:
		return window, next
	}
	return nil, next
}

func (ws Windows) openWindow(t time.Time) *Window {
	for i := range ws {
		if open, _ := ws[i].At(t); open && ws[i].Kind == WindowOpen {
			return &ws[i]
		}
	}
	return nil
}

// Earlier returns the earlier of two times. Zero means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Override lets changes start that windows and freezes would hold.
type Override struct {
	ID      uuid.UUID
	By      string
	Reason  string
	Agents  []string // patterns of names; none: every agent
	Created time.Time
	Until   time.Time
	// Ended and EndedBy say when a person ended it early, and who.
	Ended   *time.Time
	EndedBy string
}

// LongestOverride is how long an override may last.
const LongestOverride = 24 * time.Hour

// Check rejects an override that does not say who made it, why, and for how long.
func (o Override) Check() error {
	left := o.Until.Sub(o.Created)
	switch {
	case strings.TrimSpace(o.By) == "":
		return fmt.Errorf("say who lets changes through")
	case strings.TrimSpace(o.Reason) == "":
		return fmt.Errorf("say why changes are let through")
	case len(o.By) > 200 || len(o.Reason) > 2000:
		return fmt.Errorf("the name has at most 200 bytes, the reason 2,000")
	case left <= 0:
		return fmt.Errorf("its end, %s, is over already", o.Until.UTC().Format(time.RFC3339))
	case left > LongestOverride:
		return fmt.Errorf("it lasts %s, which is longer than %s; change maintenance_windows instead",
			left.Round(time.Minute), LongestOverride)
	}
	for _, p := range o.Agents {
		if err := checkAgentPattern(p); err != nil {
			return err
		}
	}
	return nil
}

// Lasts reports whether it is in force at a time.
func (o Override) Lasts(now time.Time) bool {
	return o.Ended == nil && !now.Before(o.Created) && now.Before(o.Until)
}

// Covers reports whether it applies to an agent.
func (o Override) Covers(agent string) bool { return matchAgent(o.Agents, agent) }

// Overridden returns the override that applies to an agent, or nil.
func Overridden(list []Override, agent string, now time.Time) *Override {
	i := slices.IndexFunc(list, func(o Override) bool { return o.Lasts(now) && o.Covers(agent) })
	if i < 0 {
		return nil
	}
	return &list[i]
}
