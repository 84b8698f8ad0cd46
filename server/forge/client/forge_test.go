package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/reach"
	"ordain.dev/ordain/server/forge/client"
	"ordain.dev/ordain/server/forge/forgetest"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// each tells a story on every forge.
func each(t *testing.T, story func(t *testing.T, f client.Forge, s *forgetest.Server)) {
	for _, kind := range []string{"github", "gitlab", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := forgetest.New(t, kind)
			story(t, open(t, s, forgetest.Token), s)
		})
	}
}

func open(t *testing.T, s *forgetest.Server, token string) client.Forge {
	t.Helper()
	f, err := client.New(
		client.Config{Kind: s.Kind, URL: s.URL + "/acme/shop.git", Token: token, Timeout: 5 * time.Second},
	)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each state of a commit is told in the forge's own word, and once more without harm.
func TestStatuses(t *testing.T) {
	words := map[string][4]string{
		"github": {"pending", "success", "failure", "error"},
		"gitlab": {"running", "success", "failed", "canceled"},
		"gitea":  {"pending", "success", "failure", "warning"},
	}
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		for i, state := range []intent.CommitState{intent.CommitPending, intent.CommitSuccess, intent.CommitFailure,
			intent.CommitCancelled} {
			one := client.Status{
				Commit:      commit,
				Context:     "ordain/prod/compile",
				State:       state,
				Description: strings.Repeat("é", 500),
				URL:         "https://ordain.example.org/e/1",
			}
			for range 2 {
				if err := f.SetStatus(t.Context(), one); err != nil {
					t.Fatal(state, err)
				}
			}
			if got := s.Status(commit, "ordain/prod/compile"); got.State != words[s.Kind][i] || got.URL != one.URL ||
				!strings.HasSuffix(got.Description, "…") {
				t.Errorf("%s: %+v", state, got)
			}
		}
	})
}

// One comment is kept up to date, also when its id was lost; what somebody
// else wrote with the same marker is left alone, and a deleted one is made anew.
func TestOneComment(t *testing.T) {
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		s.Put(forgetest.Pull{Number: 7, State: "open", Author: "ida", Base: "main", Head: commit})
		const marker = "<!-- ordain -->"
		s.Comment(7, "mallory", marker+"\nlooks like yours")
		id, err := f.UpsertComment(t.Context(), client.Comment{Number: 7, Marker: marker, Body: marker + "\none"})
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range []string{id, "", "999999", "nonsense"} {
			again, err := f.UpsertComment(t.Context(),
				client.Comment{Number: 7, ID: known, Marker: marker, Body: marker + "\ntwo " + known})
			if err != nil || again != id {
				t.Errorf("known as %q: %q, %v; want %q", known, again, err, id)
			}
		}
		all := s.Comments(7)
		if len(all) != 2 || all[0].Edits != 0 || all[1].Body != marker+"\ntwo nonsense" {
			t.Errorf("%+v", all)
		}
		if _, err := f.UpsertComment(t.Context(), client.Comment{Number: 99, Marker: marker, Body: marker}); !fault.Is(
			err,
			fault.NotFound,
		) {
			t.Errorf("a pull request that is not there: %v", err)
		}
	})
}

// Who may write is trusted; a fork is told as one; what is over is over.
func TestWhatAPullRequestIs(t *testing.T) {
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		s.Writer("ida")
		for _, story := range []struct {
			pull forgetest.Pull
			want client.Pull
		}{
			{forgetest.Pull{Number: 1, State: "open", Author: "ida", Title: "a\nb", Base: "main", Head: commit},
				client.Pull{State: intent.PullIsOpen, Trusted: true, Title: "a b"}},
			{forgetest.Pull{Number: 2, State: "open", Author: "mallory", Base: "main", Head: commit, Unmergeable: true},
				client.Pull{State: intent.PullIsOpen, Conflicts: true}},
			{forgetest.Pull{Number: 3, State: "open", Author: "ida", Fork: true, Base: "main", Head: commit},
				client.Pull{State: intent.PullIsOpen, Trusted: true, Fork: true}},
			{forgetest.Pull{Number: 4, State: "closed", Author: "ida", Base: "main", Head: commit},
				client.Pull{State: intent.PullIsClosed}},
			{forgetest.Pull{Number: 5, State: "merged", Author: "ida", Base: "main", Head: commit},
				client.Pull{State: intent.PullIsMerged}},
		} {
			s.Put(story.pull)
			got, err := f.Pull(t.Context(), story.pull.Number)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != story.want.State || got.Trusted != story.want.Trusted || got.Fork != story.want.Fork ||
				got.Conflicts != story.want.Conflicts ||
				got.Title != story.want.Title ||
				got.Author != story.pull.Author ||
				got.Base != "main" ||
				got.Head != commit ||
				!strings.HasPrefix(got.URL, s.URL) {
				t.Errorf("%+v\ngave %+v", story.pull, got)
			}
		}
		s.Put(forgetest.Pull{Number: 6, State: "open", Author: "ida", Base: "main", Head: "$(reboot)"})
		if p, err := f.Pull(t.Context(), 6); err == nil {
			t.Errorf("a head that is no commit: %+v", p)
		}
		s.Put(forgetest.Pull{Number: 8, State: "open", Author: "ida", Base: "other", Head: commit})
		open, err := f.Pulls(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range open {
			if p.State != intent.PullIsOpen || p.Head != commit ||
				p.Number == 8 && s.Kind != "github" { // GitHub's filter is not in the fake
				t.Errorf("listed: %+v", p)
			}
		}
		if _, err := f.Pull(t.Context(), 404); !fault.Is(err, fault.NotFound) {
			t.Errorf("a pull request that is not there: %v", err)
		}
	})
}

// A commit is taken back by a pull request of its own; asked again there is still one.
func TestARevert(t *testing.T) {
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		r := client.Proposal{
			What:   "the revert",
			Base:   "main",
			Tip:    commit,
			Branch: "ordain/revert-0123456",
			Title:  "Revert \"x\"",
			Body:   "It failed.",
			Changes: []gitsync.Change{
				{Path: "main.cf", Content: []byte("a = 1\n"), Was: commit},
				{Path: "was.sh", Content: []byte("a\n"), Was: commit, Chmod: true},
				{Path: "new.sh", Content: []byte{0xff, 0}, Executable: true, Chmod: true},
				{Path: "old.cf", Gone: true, Was: commit},
			},
		}
		first, err := f.Propose(t.Context(), r)
		if err != nil || !strings.HasPrefix(first, s.URL) {
			t.Fatalf("%q, %v", first, err)
		}
		second, err := f.Propose(t.Context(), r)
		if err != nil || second != first {
			t.Fatalf("again: %q, %v; it was %q", second, err, first)
		}
		if s.Kind == "gitlab" { // the mode of a file is an action of its own there
			modes := map[any]any{}
			for _, call := range s.Calls() {
				actions, _ := call.Body["actions"].([]any)
				for _, one := range actions {
					if a := one.(map[string]any); a["action"] == "chmod" {
						modes[a["file_path"]] = a["execute_filemode"]
					}
				}
			}
			if !maps.Equal(modes, map[any]any{"was.sh": false, "new.sh": true}) {
				t.Errorf("modes: %v", modes)
			}
		}
		if s.Kind == "gitea" { // where modes cannot be set: a person is told
			calls := s.Calls()
			told := fmt.Sprint(calls[len(calls)-1].Body["body"]) + fmt.Sprint(calls[len(calls)-2].Body["body"])
			if !strings.Contains(told, "`was.sh` is not executable") ||
				!strings.Contains(told, "`new.sh` is executable") ||
				strings.Contains(told, "main.cf") {
				t.Errorf("told of modes: %s", told)
			}
		}
	})
}

// A change of a person is proposed in their name, on every forge.
func TestAProposalNamesItsAuthor(t *testing.T) {
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		for _, who := range []gitsync.Identity{{Name: "Ida", Email: "ida@example.org"}, {Name: "Ida"}, {}} {
			_, err := f.Propose(t.Context(), client.Proposal{
				What: "the change", Base: "main", Tip: commit, Branch: "ordain/x-" + who.Email, Author: who,
				Title:   "web: two nodes",
				Changes: []gitsync.Change{{Path: "clusters/web.yaml", Content: []byte("a: 1\n")}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if who.Name != "" && who.Email == "" {
				who.Email = "ordain@localhost"
			}
			var got, by gitsync.Identity
			message := ""
			for _, call := range s.Calls() {
				text := func(in map[string]any, name string) string { t, _ := in[name].(string); return t }
				switch {
				case strings.HasSuffix(call.Path, "/repository/commits"):
					got = gitsync.Identity{Name: text(call.Body, "author_name"), Email: text(call.Body, "author_email")}
					by, message = gitsync.Ordain, text(call.Body, "commit_message") // the user of the token, always
				case strings.HasSuffix(call.Path, "/git/commits") && call.Method == "POST",
					strings.HasSuffix(call.Path, "/contents"):
					author, _ := call.Body["author"].(map[string]any)
					committer, _ := call.Body["committer"].(map[string]any)
					got = gitsync.Identity{Name: text(author, "name"), Email: text(author, "email")}
					by = gitsync.Identity{Name: text(committer, "name"), Email: text(committer, "email")}
					message = text(call.Body, "message")
				}
			}
			if got != who || who.Name != "" && by != gitsync.Ordain || message != "web: two nodes" {
				t.Errorf("%+v by %+v: %q; want %+v", got, by, message, who)
			}
		}
	})
}

// A forge says whether it takes commits on a branch, by whatever means it protects it.
func TestWhichBranchesAreProtected(t *testing.T) {
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		for how, want := range map[forgetest.Guard]bool{
			forgetest.GuardNone: false, forgetest.GuardRule: true,
			forgetest.GuardRuleset: true, forgetest.GuardOthers: false,
		} {
			if s.Kind != "github" && how == forgetest.GuardRuleset ||
				s.Kind == "github" && how == forgetest.GuardOthers {
				continue
			}
			s.Protect("main", how)
			if got, err := f.Protected(t.Context(), "main"); err != nil || got != want {
				t.Errorf("%q: %v, %v", how, got, err)
			}
		}
		if _, err := f.Protected(t.Context(), "gone"); !fault.Is(err, fault.NotFound) {
			t.Errorf("a branch that is not there: %v", err)
		}
	})
}

// A forge that wants to be left alone says until when; what it says is bounded.
func TestAForgeThatHasEnough(t *testing.T) {
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		for _, story := range []struct {
			code   int
			header http.Header
			least  time.Duration
			most   time.Duration
		}{
			{429, http.Header{"Retry-After": {"30"}}, 25 * time.Second, 31 * time.Second},
			{429, nil, 50 * time.Second, 61 * time.Second},
			{429, http.Header{"Retry-After": {"99999999"}}, time.Hour, 2*time.Hour + time.Second},
			{403, http.Header{"Retry-After": {"5"}}, 3 * time.Second, 6 * time.Second},
			{403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}, 0, 2 * time.Second},
			{503, http.Header{"Retry-After": {"Fri, 31 Dec 9999 23:59:59 GMT"}}, time.Hour, 2*time.Hour + time.Second},
		} {
			s.Answer(func(*http.Request) (int, http.Header, string) {
				return story.code, story.header, `{"message":"slow down"}`
			})
			err := f.SetStatus(t.Context(), client.Status{Commit: commit, Context: "x", State: intent.CommitSuccess})
			var limited *client.LimitedError
			if !errors.As(err, &limited) {
				t.Errorf("%d %v: %v", story.code, story.header, err)
				continue
			}
			if left := time.Until(limited.Until); left < story.least || left > story.most {
				t.Errorf("%d %v: %s", story.code, story.header, left)
			}
		}
	})
}

// What goes wrong is told as what it is, and never with the token.
func TestWhatGoesWrong(t *testing.T) {
	each(t, func(t *testing.T, f client.Forge, s *forgetest.Server) {
		status := client.Status{Commit: commit, Context: "x", State: intent.CommitSuccess}
		if err := open(t, s, "wrong-token-wrong-token").SetStatus(t.Context(), status); !fault.Is(err,
			fault.Unauthorized) ||
			strings.Contains(err.Error(), "wrong-token") {
			t.Errorf("a wrong token: %v", err)
		}
		for code, kind := range map[int]fault.Kind{403: fault.Forbidden, 404: fault.NotFound, 422: fault.Invalid,
			500: fault.Unavailable, 502: fault.Unavailable} {
			s.Answer(func(*http.Request) (int, http.Header, string) { return code, nil, `{"message":"\u001b[31mno"}` })
			if err := f.SetStatus(t.Context(), status); fault.KindOf(err) != kind ||
				strings.Contains(err.Error(), "\x1b") ||
				strings.Contains(err.Error(), forgetest.Token) {
				t.Errorf("%d: %v", code, err)
			}
		}
		s.Answer(func(*http.Request) (int, http.Header, string) {
			return 200, nil, `{"number":` + strings.Repeat("[", 100)
		})
		if p, err := f.Pull(t.Context(), 1); err == nil {
			t.Errorf("nonsense: %+v", p)
		}
		other := forgetest.New(t, s.Kind)
		s.Answer(func(r *http.Request) (int, http.Header, string) {
			return 307, http.Header{"Location": {other.URL + r.URL.Path}}, ""
		})
		if err := f.SetStatus(t.Context(), status); err == nil || len(other.Calls()) > 0 {
			t.Errorf("the token went to another host: %v, %d calls", err, len(other.Calls()))
		}
		s.Close()
		if err := f.SetStatus(t.Context(), status); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a forge that is down: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f.SetStatus(ctx, status); err == nil {
			t.Error("a call that nobody waits for")
		}
	})
}

// A repository tells what forge it is on and where; what cannot be a forge is refused.
func TestWhichForge(t *testing.T) {
	for _, story := range []struct {
		cfg  client.Config
		says string // empty: it is taken
	}{
		{client.Config{URL: "https://github.com/acme/shop.git", Token: "x"}, ""},
		{client.Config{URL: "git@gitlab.example.org:group/sub/shop.git", Token: "x"}, ""},
		{client.Config{URL: "ssh://git@codeberg.org/acme/shop", Token: "x"}, ""},
		{client.Config{URL: "https://git.example.org/acme/shop", Token: "x"}, "cannot be told"},
		{client.Config{URL: "https://git.example.org/acme/shop", Kind: "gitea", Token: "x"}, ""},
		{client.Config{URL: "https://github.com/acme/shop"}, "token"},
		{client.Config{URL: "https://github.com/", Token: "x"}, "no forge"},
		{client.Config{URL: "file:///srv/git/shop.git", Kind: "gitea", Token: "x"}, "forge_api"},
		{client.Config{URL: "file:///srv/git/shop.git", Kind: "gitea", API: "https://git.example.org", Token: "x"}, ""},
		{client.Config{URL: "https://github.com/acme/shop", API: "https://u:p@evil.example", Token: "x"},
			"base of the forge's API"},
		{client.Config{URL: "https://github.com/acme/shop", CA: "no certificate", Token: "x"}, "git_ca_bundle"},
		{client.Config{URL: "https://github.com/acme/shop", Proxy: "::", Token: "x"}, "git_proxy"},
		{client.Config{URL: "https://github.com/acme/shop", Kind: "svn", Token: "x"}, "svn"},
	} {
		_, err := client.New(story.cfg)
		if story.says == "" && err != nil ||
			story.says != "" && (err == nil || !strings.Contains(err.Error(), story.says)) {
			t.Errorf("%+v: %v", story.cfg, err)
		}
	}
}

// The API of a forge, or a proxy to it, that is on the server's own machine gets no request, and no token.
func TestForgesOnTheServersMachine(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	within := &reach.Rules{Refuse: reach.Guarded()}
	for name, cfg := range map[string]client.Config{
		"its address": {API: server.URL}, "a name": {API: "http://localhost:" + port},
		"a proxy": {API: "http://git.example.org", Proxy: server.URL},
	} {
		cfg.Kind, cfg.URL, cfg.Token, cfg.Reach = "gitea", "https://git.example.org/acme/shop.git", "t0k3n", within
		f, err := client.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Pulls(t.Context(), "main"); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked != 0 {
		t.Errorf("it was asked %d times", asked)
	}
}
