package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/servertest"
)

// What a text names is opened at once: a version, a commit, a resource, a page, an environment.
func TestSearchOpensWhatATextNames(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := r.Production.ID.String()
	deployed, err := r.Store.Version(t.Context(), r.Production.ID, 7)
	must(t, err)
	for text, want := range map[string]string{
		"v8": "/versions/8", short(deployed.Provenance.Commit): "/versions/7",
		r.FailedFile.String(): "/resource?id=", r.FailedFile.AtVersion(6): "/resource?id=", "": "/resources",
		"settings": "/settings", r.Failed.String(): "/runs/" + r.Failed.String(),
	} {
		w := get(t, h, "/search?"+url.Values{"env": {env}, "q": {text}}.Encode())
		if got := w.Header().Get("Location"); !strings.HasPrefix(got, "/e/"+env+want) {
			t.Errorf("%q leads to %s (%d)", text, got, w.Code)
		}
	}
	if got := get(t, h, "/search?q=staging").Header().Get("Location"); got != "/e/"+r.Staging.ID.String() {
		t.Errorf("an environment by name: %s", got)
	}
}

// A commit that failed is found by its hash, or the beginning of that, in its environment and from outside.
func TestSearchFindsFailedCommits(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Present)
	h := newConsole(t, s)
	env := newEnvironmentIn(t, s, intent.Source{URL: servertest.RepositoryURL})
	compileIn(t, s, env, "9a52d00")
	runs, err := s.Store.Compiles(t.Context(), env, intent.ListQuery{})
	must(t, err)
	want := runURL(env, runs.Items[0].ID)
	for _, path := range []string{"/search?q=9a52d00", "/search?q=9A52&env=" + env.String()} {
		if got := get(t, h, path).Header().Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", path, got, want)
		}
	}
}

// What several things contain is shown in groups, with what a person wrote when they rolled back; what nothing
// contains is said, and shown as text.
func TestSearchShowsGroups(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	_, err := r.Control.RollBack(control.As(t.Context(), "ida", "the cakes are wrong"), r.Staging.ID, 1)
	must(t, err)
	body := get(t, h, "/search?q=cakes+are").Body.String()
	for _, want := range []string{"What people said", "the cakes are wrong", "ida rolled back", "staging"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	env := r.Production.ID.String()
	body = get(t, h, "/search?q=site&env="+env).Body.String()
	for _, want := range []string{">Resources</h2>", `/resources?value=site"`, "Search all environments"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the search for site", want)
		}
	}
	w := get(t, h, "/search?q=%3Cb%3Enothing%25&env="+env)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "contains “&lt;b&gt;nothing%”") {
		t.Errorf("nothing found: %d", w.Code)
	}
	if w := get(t, h, "/search?q="+strings.Repeat("x", 5000)); !strings.Contains(w.Body.String(), "first 200") {
		t.Error("a long text is not cut")
	}
	if w := get(t, h, "/search?q=a&env="+uuid.NewString()); w.Code != http.StatusNotFound {
		t.Errorf("an environment that does not exist: %d", w.Code)
	}
}

// No two pages of one menu have the same letter, and none has a letter that means something else.
func TestEachPageHasItsLetter(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for page, key := range menuKeys {
		if len(key) != 1 || taken[key] != "" {
			t.Errorf("%q is the letter of %s and %s", key, page, taken[key])
		}
		taken[key] = page
	}
	for _, group := range environmentMenu {
		for _, item := range group.Items {
			if item.Key() == "" {
				t.Errorf("%s has no letter", item.Text)
			}
		}
	}
}

// Commits link to the forge, without what is secret in the address of the repository; a remote of no known forge has
// no links to one.
func TestCommitsLinkToTheForge(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Present)
	h := newConsole(t, s)
	env := newEnvironmentIn(t, s, intent.Source{URL: "https://github.com/ada/shop.git"})
	compileIn(t, s, env, "9a52d00")
	commits, err := s.Store.GitCommits(t.Context(), env, 1)
	must(t, err)
	full := commits[0].Revision.Commit
	link := sourceLinksOf(intent.Environment{
		ID: env, Source: intent.Source{URL: "https://github.com/ada/shop.git", Subdir: "model"},
	}, strings.Repeat("a", 40))
	if got := link.line("main.cf", 3); !strings.HasSuffix(got, "/ada/shop/blob/"+link.commit+"/model/main.cf#L3") {
		t.Errorf("a line is at %s", got)
	}
	local := sourceLinksOf(intent.Environment{ID: env, Source: intent.Source{URL: "/srv/shop"}}, link.commit)
	if got := local.line("main.cf", 3); got != envURL(env)+"/source?commit="+link.commit+"&path=main.cf#L3" {
		t.Errorf("a line without a forge is at %s", got)
	}
	if got := []string{local.line("/etc/x.cf", 1), local.line("../x.cf", 1)}; !slices.Equal(got, []string{"", ""}) {
		t.Errorf("files outside of the project have addresses: %q", got)
	}
	body := get(t, h, envURL(env)+"/git").Body.String()
	want := `href="https://github.com/ada/shop/commit/` + full
	if len(full) >= 7 && !strings.Contains(body, want) {
		t.Errorf("no %s in\n%s", want, body)
	}
	if w := get(t, h, envURL(env)+"/source?commit="+full+"&path=secrets.env"); w.Code != http.StatusNotFound {
		t.Errorf("a file that is not of the model: %d", w.Code)
	}
}
