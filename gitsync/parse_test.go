package gitsync

import (
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
)

func TestParseSource(t *testing.T) {
	for _, tt := range []struct {
		raw, url, user, password string
	}{
		{"https://forge.example/a/b.git", "https://forge.example/a/b.git", "", ""},
		{" https://forge.example/a/b.git\n", "https://forge.example/a/b.git", "", ""},
		{"https://ada:s3cr3t@forge.example:8443/a/b", "https://forge.example:8443/a/b", "ada", "s3cr3t"},
		{"http://ada:s3%2Fcr%403t@h/x", "http://h/x", "ada", "s3/cr@3t"},
		{"https://s3cr3t-token@h/x", "https://h/x", "s3cr3t-token", ""},
		{"https://:s3cr3t@h/x", "https://h/x", "", "s3cr3t"},
		{"/srv/git/x.git/", "/srv/git/x.git", "", ""},
		{"/srv/git/with space", "/srv/git/with space", "", ""},
		{"file:///srv/git/x.git", "file:///srv/git/x.git", "", ""},
		{"file:///srv/with%20space", "file:///srv/with%20space", "", ""},
		{"file://localhost/srv/x", "file:///srv/x", "", ""},
		{"git@forge.example:a/b.git", "git@forge.example:a/b.git", "", ""},
		{"forge.example:a/b.git", "forge.example:a/b.git", "", ""},
		{"git@[::1]:a", "git@[::1]:a", "", ""},
		{"ssh://git@forge.example:2222/a/b.git", "ssh://git@forge.example:2222/a/b.git", "", ""},
		{"ssh://git:s3cr3t@forge.example/a", "ssh://git@forge.example/a", "", "s3cr3t"},
		{"git+ssh://forge.example/a", "ssh://forge.example/a", "", ""},
	} {
		s, err := ParseSource(tt.raw)
		if err != nil || s.URL != tt.url || s.Credentials != (Credentials{Username: tt.user, Password: tt.password}) {
			t.Errorf("%q: %q %q %q, %v", tt.raw, s.URL, s.Credentials.Username, s.Credentials.Password, err)
		}
		if text := fmt.Sprintf("%v %+v %#v %s", s, s, s, slog.AnyValue(s.Credentials).Resolve()); strings.Contains(text,
			"s3cr3t") ||
			strings.Contains(text, "s3/cr") {
			t.Errorf("it prints as %s", text)
		}
	}
	for raw, want := range map[string]string{
		"":                               "empty",
		"   ":                            "empty",
		"ssh://":                         "names no host",
		"ssh://git@/a":                   "names no host",
		"ssh://git@-oProxyCommand=x/a":   "names no host",
		"ssh://-x@h/a":                   "names a user",
		"ssh://git:s3cr3t@h":             "names no repository",
		"ssh://git:s3cr3t@h/":            "names no repository",
		"ssh://h:0/a":                    "a port",
		"ssh://h:99999/a":                "a port",
		"ssh://git@h/x?s3cr3t":           "query",
		"git@h:":                         "names no repository",
		"git@h:--upload-pack=x":          "names no repository",
		"-x@h:a":                         "names a user",
		"git://github.com/a/b":           "begin with git:// are not supported",
		"ftp://ada:s3cr3t@h/x":           "begin with ftp:// are not supported",
		"relative/path":                  "neither a URL nor an absolute path",
		"./x":                            "neither a URL nor an absolute path",
		"~/x":                            "neither a URL nor an absolute path",
		"https://":                       "names no host",
		"https://ada:s3cr3t@/x":          "names no host",
		"https://ada:s3cr3t%zz@h/x":      "malformed",
		"https://ada:s3cr3t@h:port/x":    "malformed",
		"https://h/x?token=s3cr3t":       "query",
		"https://h/x#s3cr3t":             "fragment",
		"https://h/x\nhttps://s3cr3t@h/": "control character",
		"file://host/x":                  "names a host",
		"file://ada:s3cr3t@/x":           "malformed",
		"file://":                        "no absolute path",
		"file:///%zz":                    "malformed",
	} {
		_, err := ParseSource(raw)
		wantFault(t, err, fault.Invalid, want)
	}
}

func TestOneMirrorPerRepository(t *testing.T) {
	name := newSyncer(t, func(c *Config) { c.Mirrors = "/m" }).MirrorPath
	same := [][]string{
		{"https://forge.example/a", "https://FORGE.example/a/", "https://ada:pw@forge.example/a"},
		{"https://forge.example/A"},
		{"https://forge.example/a.git"},
		{"http://forge.example/a"},
		{"git@forge.example:a.git", "git@FORGE.example:a.git/"},
		{
			"git@forge.example:/a.git",
			"ssh://git@forge.example/a.git",
			"ssh://git@forge.example:22/a.git",
			"git+ssh://git@Forge.Example/a.git/",
		},
		{"ssh://git@forge.example:2222/a.git"},
		{"/srv/x", "file:///srv/x", "/srv/y/../x/"},
	}
	for i, group := range same {
		for j, other := range same {
			for _, x := range group {
				for _, y := range other {
					if (name(x) == name(y)) != (i == j) {
						t.Errorf("%s and %s", x, y)
					}
				}
			}
		}
	}
	if n := name("https://ada:s3cr3t@h/x"); filepath.Dir(n) != "/m" || len(filepath.Base(n)) != 36 {
		t.Error(n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	full := Config{Mirrors: "/m", Logger: slog.Default()}
	for name, spoil := range map[string]func(*Config){
		"Mirrors": func(c *Config) { c.Mirrors = "" }, "Logger": func(c *Config) { c.Logger = nil },
		"Keep": func(c *Config) { c.Keep = []string{"a/b"} }, "[x": func(c *Config) { c.Keep = []string{"[x"} },
		"negative": func(c *Config) { c.AskTimeout = -1 },
	} {
		cfg := full
		spoil(&cfg)
		if _, err := New(cfg); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No text given as a URL causes a panic or a secret in the fault. A URL that is accepted is
// parsed the same way again.
func FuzzParseSource(f *testing.F) {
	for _, s := range []string{
		"https://h/x", "http://u:p@h:1/x", "file:///x", "/x", "git@h:x", "ssh://h/x", "https://u:%zz@h/",
		"file://%2f/x",
	} {
		f.Add(s, "pass-word")
	}
	f.Fuzz(func(t *testing.T, raw, password string) {
		s, err := ParseSource(raw)
		if err == nil {
			again, err := ParseSource(s.URL)
			if err != nil || again.URL != s.URL || again.Credentials != (Credentials{}) {
				t.Fatalf("%q gives %q, which gives %q, %v", raw, s.URL, again.URL, err)
			}
		}
		if len(password) < 8 || strings.Contains("https://h.example/x", password) {
			return
		}
		s, err = ParseSource(
			(&url.URL{Scheme: "https", Host: "h.example", Path: "/x", User: url.UserPassword("u", password)}).String(),
		)
		if err != nil || s.Credentials.Password != password || s.URL != "https://h.example/x" {
			t.Fatalf("%q: %q, %v", password, s.URL, err)
		}
		if _, err = ParseSource("https://u:" + password + "@h.example:nonsense/x"); err != nil &&
			strings.Contains(err.Error(), password) &&
			len(password) > 12 {
			t.Fatalf("the fault shows the password: %v", err)
		}
	})
}
