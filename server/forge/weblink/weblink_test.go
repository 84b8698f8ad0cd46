package weblink

import (
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

const commit = "4c81d20a4c81d20a4c81d20a4c81d20a4c81d20a"

// Each forge has its own way to write the address of a commit and of a line.
func TestEachForgeHasItsDialect(t *testing.T) {
	for remote, want := range map[string][2]string{
		"https://github.com/ada/shop.git": {
			"https://github.com/ada/shop/commit/" + commit,
			"https://github.com/ada/shop/blob/" + commit + "/model/main%20one.cf#L12",
		},
		"git@gitlab.example.org:group/sub/shop.git": {
			"https://gitlab.example.org/group/sub/shop/-/commit/" + commit,
			"https://gitlab.example.org/group/sub/shop/-/blob/" + commit + "/model/main%20one.cf#L12",
		},
		"ssh://git@codeberg.org:2222/ada/shop": {
			"https://codeberg.org/ada/shop/commit/" + commit,
			"https://codeberg.org/ada/shop/src/commit/" + commit + "/model/main%20one.cf#L12",
		},
		"https://forgejo.example.org:3000/ada/shop/": {
			"https://forgejo.example.org:3000/ada/shop/commit/" + commit,
			"https://forgejo.example.org:3000/ada/shop/src/commit/" + commit + "/model/main%20one.cf#L12",
		},
		"git@bitbucket.org:ada/shop.git": {
			"https://bitbucket.org/ada/shop/commits/" + commit,
			"https://bitbucket.org/ada/shop/src/" + commit + "/model/main%20one.cf#lines-12",
		},
	} {
		s := Of(remote, "auto", "")
		if got := s.Commit(commit); got != want[0] {
			t.Errorf("%s: the commit is at %s", remote, got)
		}
		if got := s.File(commit, "model/main one.cf", 12); got != want[1] {
			t.Errorf("%s: the line is at %s", remote, got)
		}
	}
}

// A host whose name says nothing needs the setting; the setting none takes links away.
func TestTheSettingDecides(t *testing.T) {
	e := intent.Environment{Source: intent.Source{URL: "git@git.example.org:ada/shop.git"}}
	if OfEnvironment(e).Known() {
		t.Error("a host that says nothing has links")
	}
	e.Settings = map[string]any{"forge": "gitea"}
	if got := OfEnvironment(e).Home(); got != "https://git.example.org/ada/shop" {
		t.Errorf("home: %q", got)
	}
	e.Settings["forge_api"] = "https://web.example.org/code/api/v1"
	if got := OfEnvironment(e).Home(); got != "https://web.example.org/code/ada/shop" {
		t.Errorf("home beside the API: %q", got)
	}
	if Of("https://github.com/ada/shop", "none", "").Known() {
		t.Error("there are links although the setting is none")
	}
	if got := Of("git@github.com:ada/shop", "", "https://api.github.com").Home(); got != "https://github.com/ada/shop" {
		t.Errorf("home beside an API of its own host: %q", got)
	}
}

// What is secret in a remote, and what is no address of a forge, becomes no link.
func TestNothingButHostAndPathBecomesALink(t *testing.T) {
	s := Of("https://ada:s3cret@github.com/ada/shop.git?token=s3cret#s3cret", "auto", "")
	for _, link := range []string{s.Home(), s.Commit(commit), s.File(commit, "main.cf", 1)} {
		if strings.Contains(link, "s3cret") || !strings.HasPrefix(link, "https://github.com/ada/shop") {
			t.Errorf("link %s", link)
		}
	}
	for _, remote := range []string{
		"", "/srv/git/github/shop.git", "file:///srv/github/shop", "http://github.com/ada/shop",
		"javascript:alert(1)//github",
		"https://github.com/shop", "https://git\"hub.com/a/b", "https:///ada/github", "git://github.com/ada/shop",
	} {
		if s := Of(remote, "auto", ""); s.Known() {
			t.Errorf("%q has the links of %s", remote, s.Home())
		}
	}
	for _, path := range []string{"", "/etc/passwd", "../up.cf", "a/../b", "."} {
		if got := s.File(commit, path, 1); got != "" {
			t.Errorf("path %q becomes %s", path, got)
		}
	}
	for _, text := range []string{"", "main", "4c81d2", "<script>", "../" + commit} {
		if got := s.Commit(text); got != "" {
			t.Errorf("commit %q becomes %s", text, got)
		}
	}
}
