package intent

import (
	"math"
	"slices"
	"testing"
)

// What a form shows of a number, it reads as the same number again.
func TestUnitsAreReadAsTheyAreWritten(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		n    float64
		text string
	}{
		{Seconds, 0, "0"}, {Seconds, 0.1, "0.1 s"}, {Seconds, 60, "1 min"}, {Seconds, 90, "90 s"},
		{Seconds, 7200, "2 h"}, {Seconds, 5400, "90 min"}, {Seconds, 86400, "1 day"}, {Seconds, 604800, "7 days"},
		{Hours, 336, "14 days"}, {Hours, 5, "5 h"}, {Days, 90, "90 days"}, {MiB, 256, "256 MiB"}, {MiB, 2048, "2 GiB"},
		{Percent, 20, "20 %"}, {"", 12, "12"},
	} {
		if got := c.unit.Format(c.n); got != c.text {
			t.Errorf("%v %s: %q, want %q", c.n, c.unit, got, c.text)
		}
		if got, err := c.unit.Parse(c.text); err != nil || math.Abs(got-c.n) > 1e-9 {
			t.Errorf("%q: %v %v, want %v", c.text, got, err, c.n)
		}
	}
	for text, want := range map[string]float64{
		"7200": 7200, " 2h ": 7200, "1 h 30 min": 5400, "1h30m": 5400, "1 week": 604800, "1.5 h": 5400,
		"2 Days": 172800,
	} {
		if got, err := Seconds.Parse(text); err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "abc", "2 parsecs", "h", "1 h and", "NaN", "Inf", "2 h 3", "1..5 h", "-1 h"} {
		if got, err := Seconds.Parse(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// Settings take what people write, and keep what the server and Inmanta's clients count in.
func TestSettingsTakeUnits(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want any
	}{
		{"git_poll_interval", "2 h", 7200}, {"heal_window", "7 days", 604800},
		{"environment_metrics_retention", "14 days", 336}, {"drift_retention", "2 weeks", 14},
		{"git_max_file", "1 GiB", 1024}, {"prune_share", "20 %", 20},
		{"autostart_agent_deploy_interval", "10 min", "600"},
		{"autostart_agent_deploy_interval", "0 4 * * *", "0 4 * * *"},
		{"autostart_agent_repair_interval", "0", "0"}, {"recompile_backoff", "500", 500.0},
	} {
		def, _ := SettingNamed(c.name)
		if got, err := def.Convert(c.text); err != nil || got != c.want {
			t.Errorf("%s: %q becomes %#v %v, want %#v", c.name, c.text, got, err, c.want)
		}
	}
	for name, text := range map[string]string{
		"drift_retention": "5 h", "breaker_pause": "2 h", "git_poll_interval": "-5", "max_attempts": "2 h",
		"autostart_agent_deploy_interval": "10 moons",
	} {
		def, _ := SettingNamed(name)
		if got, err := def.Convert(text); err == nil {
			t.Errorf("%s takes %q as %v", name, text, got)
		}
	}
}

// Every setting says where forms show it, and what they call it; its default reads like a value.
func TestEverySettingHasItsPlace(t *testing.T) {
	titles := map[string]string{}
	for _, s := range Settings() {
		if !slices.Contains(SettingGroups, s.Group) || s.Group.Title() == "Other" {
			t.Errorf("%s: there is no group %q", s.Name, s.Group)
		}
		if s.Title == "" || titles[s.Title] != "" {
			t.Errorf("%s: its title is %q, as that of %s", s.Name, s.Title, titles[s.Title])
		}
		titles[s.Title] = s.Name
		if s.Type == SettingDict || s.Type == SettingBool {
			continue
		}
		if got, err := s.Convert(s.Text(s.Default)); err != nil || got != s.Default {
			t.Errorf("%s: its default %v is shown as %q and read as %v, %v",
				s.Name, s.Default, s.Text(s.Default), got, err)
		}
		if s.Hint() == "" {
			t.Errorf("%s: no hint", s.Name)
		}
	}
}
