package intent

import (
	"slices"
	"strings"
	"testing"
)

// Patterns are separated by line breaks or commas; a comma inside an id is part of it.
func TestParsePatterns(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " \n , \n": nil,
		"std::File[web1,path=/etc/motd]":                {"std::File[web1,path=/etc/motd]"},
		"std::File[web1,path=/a], net::*":               {"std::File[web1,path=/a]", "net::*"},
		"std::File[*\nnet::Host[*\n":                    {"std::File[*", "net::Host[*"},
		"*[db?,*],*[db?,*]":                             {"*[db?,*]"},
		"std::File[a,path=/x[1],y],net::Host[b,name=c]": {"std::File[a,path=/x[1],y]", "net::Host[b,name=c]"},
	} {
		got, err := ParsePatterns(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"std::File":                     "matches no resource",
		"std::File[web1]":               "matches no resource",
		"std::File[*, net::Host[*":      "several patterns",
		"a\tb*":                         "control character",
		strings.Repeat("x", 3000) + "*": "longer",
		strings.Join(many(1001), "\n"):  "more than 1000",
	} {
		if _, err := ParsePatterns(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// many returns n patterns.
func many(n int) (out []string) {
	for i := range n {
		out = append(out, "*"+strings.Repeat("a", i))
	}
	return out
}

func TestPatternsMatch(t *testing.T) {
	id := ResourceID{Type: "std::File", Agent: "web1", Attribute: "path", Value: "/srv/é/a*b"}
	for pattern, want := range map[string]bool{
		"*": true, "std::File[*": true, "std::File[web?,*": true, "*/a*b]": true,
		"std::File[web1,path=/srv/é/a*b]": true,
		"*/srv/?/*":                       true, "**": true, "STD::*": false, "std::File": false, "web1": false,
		"*[web,*": false, "?": false,
	} {
		if got := (Patterns{pattern}).Match(id); got != want {
			t.Errorf("%q: %t", pattern, got)
		}
	}
	if (Patterns)(nil).Match(id) {
		t.Error("no pattern matches")
	}
}

// Parsing any text ends, and the parsed patterns, written as text, are parsed to the same.
func FuzzPatterns(f *testing.F) {
	f.Add("std::File[*, net::Host[*")
	f.Add("a[,]*,\n]b?*")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParsePatterns(text)
		if err != nil {
			return
		}
		again, err := ParsePatterns(strings.Join(got, "\n"))
		if err != nil || !slices.Equal(got, again) {
			t.Fatalf("%q reads %q, then %q, %v", text, got, again, err)
		}
		got.Match(ResourceID{Type: "a::B", Agent: "c", Attribute: "d", Value: text})
	})
}

// A setting of the wrong type or form is rejected with a message that names it.
func TestInvalidSettingsAreRejected(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"auto_full_compile", "0 0 30 2 *", "never comes"},
		{"autostart_agent_repair_interval", "0 0 31 4,6 *", "never comes"},
		{"autostart_agent_deploy_interval", "0 0 * *", "cron"},
		{"autostart_agent_deploy_interval", "-5", "negative"},
		{"autostart_agent_deploy_interval", []any{1}, "not of the type str"},
		{"prune_share", 101, "more than 100"},
		{"prune_share", "a fifth", "cannot be read"},
		{"prune_share", true, "not of the type int"},
		{"prune_minimum", -1, "negative"},
		{"prune_minimum", 1.5, "not of the type int"},
		{"protected_resources", "std::File", "matches no resource"},
		{"protected_resources", map[string]any{"a": 1}, "not of the type str"},
		{"auto_deploy", "perhaps", "not of the type bool"},
		{"auto_deploy", nil, "not of the type bool"},
	} {
		def, _ := SettingNamed(c.name)
		if got, err := def.Convert(c.value); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), c.name) {
			t.Errorf("%s = %v: %v, %v; want %q", c.name, c.value, got, err, c.want)
		}
	}
	for _, good := range []string{"0 0 29 2 *", "*/5 * * * *", "600", "0", ""} {
		if _, err := ParseInterval(good); err != nil {
			t.Error(err)
		}
	}
}
