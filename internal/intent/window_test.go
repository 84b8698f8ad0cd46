package intent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func window(t testing.TB, w Window) Window {
	t.Helper()
	w, err := NewWindow(w)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func at(zone, text string) time.Time {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	out, err := time.ParseInLocation("2006-01-02 15:04", text, loc)
	if err != nil {
		panic(err)
	}
	return out
}

// Each entry is a night in which the wall clock of a zone was put forward or back. The
// test walks through it minute by minute.
var nights = []struct{ zone, day string }{
	{"UTC", "2026-11-21"}, {"Asia/Kathmandu", "2026-11-21"},
	{"Europe/Brussels", "2026-03-29"}, {"Europe/Brussels", "2026-10-25"},
	{"America/New_York", "2026-03-08"}, {"America/New_York", "2026-11-01"},
	{"Australia/Lord_Howe", "2026-04-05"}, {"Australia/Lord_Howe", "2026-10-04"}, // half an hour
	{"America/Sao_Paulo", "2018-11-04"}, {"America/Sao_Paulo", "2018-02-18"}, // at midnight
	{"Pacific/Apia", "2011-12-30"}, // that day did not come
}

// A window opens and closes when a person who watches the wall clock of its zone would
// expect it: it opens at the first minute that shows one of its times, or skips one, and
// stays open for its duration.
func TestWindowsAgainstTheWallClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		night := rapid.SampledFrom(nights).Draw(t, "night")
		minute := rapid.SampledFrom([]int{0, 15, 30, 59}).Draw(t, "minute")
		hour := rapid.IntRange(-1, 23).Draw(t, "hour")
		weekday := rapid.IntRange(-1, 6).Draw(t, "weekday")
		lasts := time.Duration(rapid.IntRange(1, 59).Draw(t, "minutes")) * time.Minute
		if hour >= 0 {
			lasts *= time.Duration(rapid.IntRange(1, 20).Draw(t, "times"))
		}
		star := func(n int) string {
			if n < 0 {
				return "*"
			}
			return fmt.Sprint(n)
		}
		w, err := NewWindow(
			Window{
				Kind:     WindowOpen,
				Zone:     night.zone,
				Duration: lasts,
				Cron:     fmt.Sprintf("%d %s * * %s", minute, star(hour), star(weekday)),
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		loc := w.location
		day := at("UTC", night.day+" 00:00")
		begin, from, to := day.Add(-60*time.Hour), day.Add(-36*time.Hour), day.Add(36*time.Hour)
		shows := func(wall time.Time) bool {
			return wall.Minute() == minute && (hour < 0 || wall.Hour() == hour) &&
				(weekday < 0 || int(wall.Weekday()) == weekday)
		}
		highest := wallOf(begin.In(loc)).Add(-time.Minute)
		var opened time.Time
		edge := time.Time{} // that At foretold
		for now := begin; now.Before(to); now = now.Add(time.Minute) {
			for wall := wallOf(now.In(loc)); highest.Before(wall); {
				if highest = highest.Add(time.Minute); shows(highest) {
					opened = now
				}
			}
			want := !opened.IsZero() && now.Before(opened.Add(lasts))
			if now.Before(from) {
				continue
			}
			got, until := w.At(now)
			if got != want {
				t.Fatalf("at %s (%s) it is open: %t, want %t", now, now.In(loc), got, want)
			}
			if !until.After(now) {
				t.Fatalf("at %s it says until %s", now, until)
			}
			if !edge.IsZero() && now.Before(edge) != edge.Equal(until) {
				t.Fatalf("at %s the next edge is %s, and was said to be %s", now, until, edge)
			}
			edge = until
			// Nothing changes between two minutes.
			if between, _ := w.At(now.Add(31 * time.Second)); between != want {
				t.Fatalf("half a minute after %s it is open: %t", now, between)
			}
		}
	})
}

// Gate predicts the first moment at which changes may start, for windows and freezes
// that overlap in any way.
func TestGatePredictsWhenChangesMayStart(t *testing.T) {
	id := ResourceID{Type: "t::R", Agent: "web1", Attribute: "name", Value: "x"}
	rapid.Check(t, func(t *rapid.T) {
		var ws Windows
		for i := range rapid.IntRange(1, 4).Draw(t, "windows") {
			w, err := NewWindow(Window{
				Name: fmt.Sprint(
					i), Kind: rapid.SampledFrom([]WindowKind{WindowOpen, WindowFreeze}).Draw(t, "kind"),
				Zone: "Europe/Brussels",
				Cron: fmt.Sprintf("%d %d * * *", rapid.IntRange(0, 59).Draw(t, "minute"),
					rapid.IntRange(0, 23).Draw(t, "hour")),
				Duration: time.Duration(rapid.IntRange(1, 1200).Draw(t, "minutes")) * time.Minute,
				Agents:   rapid.SampledFrom([][]string{nil, {"web*"}, {"db*"}}).Draw(t, "agents"),
			})
			if err != nil {
				t.Fatal(err)
			}
			ws = append(ws, w)
		}
		held := func(now time.Time) bool {
			windows, inside := false, false
			for _, w := range ws {
				if len(w.Agents) > 0 && w.Agents[0] == "db*" {
					continue
				}
				open, _ := w.At(now)
				if w.Kind == WindowFreeze && open {
					return true
				}
				windows = windows || w.Kind == WindowOpen
				inside = inside || open && w.Kind == WindowOpen
			}
			return windows && !inside
		}
		now := at("UTC", "2026-10-24 12:00").Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "now")) * time.Minute)
		g := ws.Gate(id, now)
		if g.Held() != held(now) {
			t.Fatalf("held: %t, and it says %s", held(now), g)
		}
		if !g.Held() {
			return
		}
		for m := now; m.Before(now.Add(50 * time.Hour)); m = m.Add(time.Minute) {
			if !held(m) {
				if !g.Until.Equal(m) {
					t.Fatalf("changes may start %s, and it says %s", m, g)
				}
				return
			}
		}
		if !g.Until.IsZero() && g.Until.Before(now.Add(50*time.Hour)) {
			t.Fatalf("changes may not start in two days, and it says %s", g)
		}
	})
}

// Invalid windows are rejected with a message that says what is wrong.
func TestInvalidWindowsAreRejected(t *testing.T) {
	good := `{"nightly": {"kind": "window", "cron": "0 2 * * *", "duration": 7200, "timezone": "Europe/Brussels",
			"agents": ["web*", "db1"]},
		"xmas": {"kind": "freeze", "cron": "0 0 24 12 *", "duration": "72h", "resources": ["std::File[*"]}}`
	def, _ := SettingNamed("maintenance_windows")
	value, err := def.Convert(good)
	if err != nil {
		t.Fatal(err)
	}
	ws, err := Environment{Settings: map[string]any{"maintenance_windows": value}}.Windows()
	if err != nil || len(ws) != 2 || ws[0].Duration != 2*time.Hour || ws[1].Kind != WindowFreeze ||
		ws[1].Duration != 72*time.Hour {
		t.Fatalf("%+v %v", ws, err)
	}
	for text, want := range map[string]string{
		`{"a": {"cron": "0 0 30 2 *", "duration": 60}}`:    "never comes",
		`{"a": {"cron": "0 2 * * *", "duration": -60}}`:    "longer than nothing",
		`{"a": {"cron": "0 2 * * *"}}`:                     "longer than nothing",
		`{"a": {"cron": "0 2 * * *", "duration": "soon"}}`: "number of seconds",
		`{"a": {"cron": "0 2 * * *", "duration": 1e8}}`:    "longer than a year",
		`{"a": {"cron": "0 2 * * *", "duration": 86400}}`:  "never closes",
		`{"a": {"cron": "* * * * *", "duration": 60}}`:     "never closes",
		`{"a": {"cron": "0 2 * *", "duration": 60}}`: "expected exactly 5 " +
			"fields",
		`{"a": {"cron": "TZ=Europe/Brussels 0 2 * * *", "duration": 60}}`:              "field of its own",
		`{"a": {"cron": "@every 1h", "duration": 60}}`:                                 "five fields",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "timezone": "Europe/Bruxelles"}}`: "not known",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "timezone": "Local"}}`:            "depends on the server",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "timezone": "../../etc/passwd"}}`: "not known",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "kind": "open"}}`: "neither window nor " +
			"freeze",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "agent": "web"}}`: `no field "agent"`,
		`{"a": {"cron": "0 2 * * *", "duration": 60, "agents": []}}`:   "names nothing",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "agents": ["std::File[web,path=/x]"]}}`: "neither the name of " +
			"an agent",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "agents": [7]}}`:              "says something",
		`{"a": {"cron": "0 2 * * *", "duration": 60, "resources": ["std::File"]}}`: "matches no resource",
		`{"a": 7}`:       "not a dict of fields",
		`{"": {}}`:       "a name has",
		`[]`:             "it must be a dict",
		`null`:           "null",
		"{\n\"a\": {,}}": "line 2",
	} {
		if _, err := def.Convert(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The text of a gate says what holds changes, and until when.
func TestGateText(t *testing.T) {
	ws := Windows{
		window(
			t,
			Window{
				Name:     "nightly",
				Kind:     WindowOpen,
				Cron:     "0 2 * * *",
				Duration: 2 * time.Hour,
				Zone:     "Europe/Brussels",
				Agents:   []string{"web*"},
			},
		),
		window(
			t,
			Window{
				Name:     "xmas",
				Kind:     WindowFreeze,
				Cron:     "0 0 24 12 *",
				Duration: 72 * time.Hour,
				Zone:     "Europe/Brussels",
			},
		),
	}
	web, db := ResourceID{
		Type:      "t::R",
		Agent:     "web1",
		Attribute: "n",
		Value:     "x",
	}, ResourceID{
		Type:      "t::R",
		Agent:     "db",
		Attribute: "n",
		Value:     "x",
	}
	for _, c := range []struct {
		id   ResourceID
		when string
		want string
	}{
		{web, "2026-11-21 12:00", "waits for window `nightly`, opens 2026-11-22 02:00 Europe/Brussels"},
		{web, "2026-11-22 03:59", "changes may start"},
		{db, "2026-11-21 12:00", "changes may start"},
		{db, "2026-12-24 12:00", "frozen by `xmas`, changes may start 2026-12-27 00:00 Europe/Brussels"},
		// within the window behind it
		{web, "2026-12-24 12:00", "frozen by `xmas`, changes may start 2026-12-27 02:00 Europe/Brussels"},
		// there is no 02:00
		{web, "2026-03-29 01:59", "waits for window `nightly`, opens 2026-03-29 03:00 Europe/Brussels"},
	} {
		if got := ws.Gate(c.id, at("Europe/Brussels", c.when)).String(); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.id.Agent, c.when, got, c.want)
		}
	}
}

// An override must say who made it, why and until when, and may last at most a day.
func TestOverridesAreChecked(t *testing.T) {
	now := at("UTC", "2026-11-21 12:00")
	good := Override{
		By:      "ann",
		Reason:  "the fix cannot wait",
		Created: now,
		Until:   now.Add(time.Hour),
		Agents:  []string{"web*"},
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Override){
		"say who":            func(o *Override) { o.By = " " },
		"say why":            func(o *Override) { o.Reason = "" },
		"over already":       func(o *Override) { o.Until = now },
		"longer than 24h":    func(o *Override) { o.Until = now.Add(25 * time.Hour) },
		"neither the name":   func(o *Override) { o.Agents = []string{"a,b"} },
		"at most 200 bytes,": func(o *Override) { o.By = strings.Repeat("x", 201) },
	} {
		o := good
		if change(&o); o.Check() == nil || !strings.Contains(o.Check().Error(), want) {
			t.Errorf("want %q, got %v", want, o.Check())
		}
	}
	if o := Overridden([]Override{good}, "web1", now); o == nil {
		t.Error("it does not let web1 through")
	}
	if o := Overridden([]Override{good}, "db1", now); o != nil {
		t.Error("it lets db1 through")
	}
	if o := Overridden([]Override{good}, "web1", good.Until); o != nil {
		t.Error("it lasts beyond its end")
	}
}

// The most specific entry that gives a limit decides.
func TestAgentLimits(t *testing.T) {
	def, _ := SettingNamed("agent_limits")
	value, err := def.Convert(
		`{"*": {"min_gap": 5, "repair_interval": "0 3 * * *"}, "web*": {"concurrency": 4, "min_gap": 1},
		"web1": {"deploy_interval": 60, "repair_interval": 0}, "w*": {"concurrency": 2}}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := ParseAgentLimits(value.(map[string]any))
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]string{
		"db":   `1 5s   0 3 * * *`,
		"web2": `4 1s   0 3 * * *`,
		"web1": `4 1s  60 0`,
		"wx":   `2 5s   0 3 * * *`,
	} {
		l := limits.Of(agent)
		if got := fmt.Sprintf("%d %s  %s %s", l.Concurrency, l.MinGap, l.DeployInterval,
			l.RepairInterval); got != want {
			t.Errorf("%s: %s, want %s", agent, got, want)
		}
	}
	for text, want := range map[string]string{
		`{"a": {"concurrency": 0}}`:                 "from 1 to 64",
		`{"a": {"concurrency": 1.5}}`:               "whole number",
		`{"a": {"concurrency": "many"}}`:            "whole number",
		`{"a": {"min_gap": -1}}`:                    "from 0",
		`{"a": {"deploy_interval": "often"}}`:       "neither a number of seconds nor a cron",
		`{"a": {"deploy_interval": "0 0 30 2 *"}}`:  "ever comes",
		`{"a": {"repair_interval": -5}}`:            "negative",
		`{"a": {"gap": 5}}`:                         `no field "gap"`,
		`{"a[b]": {"min_gap": 5}}`:                  "neither the name of an agent",
		`{"a": {"repair_interval": ["0 3 * * *"]}}`: "number of seconds or a cron",
		`{"a": []}`: "not a dict",
	} {
		if _, err := def.Convert(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Any windows are rejected or work at any time.
func FuzzWindows(f *testing.F) {
	f.Add("0 2 * * *", "Europe/Brussels", int64(7200), int64(1774742400))
	f.Add("*/5 * 29 2 *", "Pacific/Apia", int64(60), int64(1325239200))
	f.Add("@yearly", "", int64(-5), int64(0))
	f.Fuzz(func(t *testing.T, cron, zone string, seconds, now int64) {
		ws, err := ParseWindows(
			map[string]any{
				"w": map[string]any{"kind": "freeze", "cron": cron, "timezone": zone, "duration": float64(seconds)},
			},
		)
		if err != nil {
			return
		}
		when := time.Unix(now%4e9, 0)
		if _, until := ws[0].At(when); !until.IsZero() && !until.After(when) {
			t.Fatalf("at %s it says until %s", when, until)
		}
		_ = ws.Gate(ResourceID{Agent: "a"}, when).String()
	})
}
