package intent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Windows say when changes may start. If windows apply to a resource, its changes
// start only while one of them is open; during a freeze, none starts.
//
//	window   ────┐      ┌────────┐      ┌────
//	             └──────┘        └──────┘        open above, closed below
//	freeze   ───────────────┐         ┌──────
//	                        └─────────┘          frozen below
//	changes  ━━━━       ━━━━           ━     ━━━
type Windows []Window

// WindowKind distinguishes windows from freezes.
type WindowKind string

// Kinds of windows.
const (
	WindowOpen   WindowKind = "window" // changes start only during it
	WindowFreeze WindowKind = "freeze" // no change starts during it
)

// Window is a recurring period. It opens when the wall clock of its zone matches the
// cron expression, and stays open for its duration. If the clock is put forward over
// such a time, it opens at that moment; if the clock is put back, it does not open twice.
type Window struct {
	Name      string
	Kind      WindowKind
	Cron      string
	Duration  time.Duration
	Zone      string
	Agents    []string // patterns of names; none: every agent
	Resources Patterns // of ids; none: every resource of these agents

	schedule cron.Schedule // of the wall clock, read as if it were UTC
	location *time.Location
}

const (
	mostWindows    = 100
	mostNameLength = 100
	longestWindow  = 366 * 24 * time.Hour
	// mostOpenings bounds how many overlapping openings in a row make one long opening.
	mostOpenings = 5000
)

// NewWindow makes a window after checking its fields.
func NewWindow(w Window) (Window, error) {
	switch {
	case w.Kind != WindowOpen && w.Kind != WindowFreeze:
		return w, fmt.Errorf("kind %q is neither window nor freeze", w.Kind)
	case w.Duration <= 0:
		return w, errors.New("the duration must be longer than nothing")
	case w.Duration > longestWindow:
		return w, errors.New("the duration is longer than a year; pause the agents, or halt the environment")
	}
	var err error
	if w.Zone == "" {
		w.Zone = "UTC"
	}
	if w.Zone == "Local" {
		return w, errors.New(`timezone "Local" depends on the server: name one such as Europe/Brussels`)
	}
	if w.location, err = time.LoadLocation(w.Zone); err != nil {
		return w, fmt.Errorf("timezone %q is not known: name one such as Europe/Brussels or UTC", w.Zone)
	}
	w.Cron = strings.TrimSpace(w.Cron)
	if strings.Contains(w.Cron, "=") || strings.HasPrefix(w.Cron, "@every") {
		return w, fmt.Errorf("cron %q: write five fields such as 0 2 * * 6; the time zone has a field of its own",
			w.Cron)
	}
	if w.schedule, err = cron.ParseStandard("CRON_TZ=UTC " + w.Cron); err != nil {
		return w, fmt.Errorf("cron %q: %w", w.Cron, err)
	}
	// Begin in a leap year, so that there is a 29th of February.
	first := w.nextStart(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	if first.IsZero() {
		return w, fmt.Errorf("cron %q never comes", w.Cron)
	}
	if _, closes := w.chain(first); !closes {
		return w, fmt.Errorf("it opens again (%s) before its %s are over, and so never closes", w.Cron, w.Duration)
	}
	for _, p := range w.Agents {
		if err := checkAgentPattern(p); err != nil {
			return w, err
		}
	}
	return w, nil
}

// ParseWindows reads the setting maintenance_windows: a dict of windows by name.
func ParseWindows(dict map[string]any) (Windows, error) {
	if len(dict) > mostWindows {
		return nil, fmt.Errorf("%d windows are more than %d", len(dict), mostWindows)
	}
	var out Windows
	for _, name := range slices.Sorted(maps.Keys(dict)) {
		w, err := parseWindow(name, dict[name])
		if err != nil {
			return nil, fmt.Errorf("window %q: %w", name, err)
		}
		out = append(out, w)
	}
	return out, nil
}

func parseWindow(name string, value any) (w Window, err error) {
	f, err := fieldsOf(name, value)
	if err != nil {
		return w, err
	}
	w = Window{
		Name: name, Kind: WindowKind(f.text("kind", string(WindowOpen))), Cron: f.text("cron", ""),
		Zone:     f.text("timezone", "UTC"),
		Duration: f.duration("duration"), Agents: f.texts("agents"),
	}
	for _, p := range f.texts("resources") {
		if err := checkPattern(p); err != nil {
			return w, err
		}
		w.Resources = append(w.Resources, p)
	}
	if err := f.done(); err != nil {
		return w, err
	}
	return NewWindow(w)
}

// nextStart returns the first opening after t, or zero.
func (w *Window) nextStart(t time.Time) time.Time {
	n := wallOf(t.In(w.location))
	for {
		if n = w.schedule.Next(n); n.IsZero() {
			return n
		}
		if at := instantOf(n, w.location); at.After(t) {
			return at
		}
	}
}

// chain returns the end of an opening, extended by openings that overlap with it. It
// returns false if there are too many of them.
func (w *Window) chain(start time.Time) (end time.Time, closes bool) {
	for range mostOpenings {
		end = start.Add(w.Duration)
		if start = w.nextStart(start); start.IsZero() || start.After(end) {
			return end, true
		}
	}
	return time.Time{}, false
}

// At reports whether the window is open, and when that changes next; zero means never.
func (w *Window) At(t time.Time) (open bool, until time.Time) {
	start := w.nextStart(t.Add(-w.Duration))
	if start.IsZero() || start.After(t) {
		return false, start
	}
	until, _ = w.chain(start)
	return true, until
}

// Covers reports whether the window applies to a resource.
func (w *Window) Covers(id ResourceID) bool {
	return matchAgent(w.Agents, id.Agent) && (len(w.Resources) == 0 || w.Resources.Match(id))
}

// CoversAgent reports whether the window applies to any resource that an agent could have.
func (w *Window) CoversAgent(name string) bool { return matchAgent(w.Agents, name) }

// wallOf returns the time that a wall clock shows, as if it were UTC.
func wallOf(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// instantOf returns when a wall clock first shows a time or, if it is put forward over
// that time, the moment at which that happens.
func instantOf(wall time.Time, loc *time.Location) time.Time {
	y, m, d := wall.Date()
	t := time.Date(y, m, d, wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), loc)
	start, end := t.ZoneBounds()
	switch shown := wallOf(t); {
	case shown.After(wall):
		return start
	case shown.Before(wall):
		return end
	}
	if !start.IsZero() {
		_, before := start.Add(-1).Zone()
		if first := wall.Add(-time.Duration(before) * time.Second).In(loc); first.Before(start) {
			return first
		}
	}
	return t
}

// matchAgent reports whether a name matches one of the patterns. Without patterns,
// every name matches.
func matchAgent(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return matchPattern(p, name) })
}
