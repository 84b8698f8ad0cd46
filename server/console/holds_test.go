package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
)

// A version that is held is seen where people look: on the overview, in the list, and on its own page, which shows what
// it takes away and the form that confirms it.
func TestHeldVersionIsSeenAndConfirmed(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	page := func(path string, want ...string) string {
		t.Helper()
		body := get(t, h, env+path).Body.String()
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s: no %q", path, w)
			}
		}
		return body
	}
	page("", "Version 9</a>", "waits for a person: it takes away 84 of 204 resources, more than 20%")
	list := page("/versions", "versions/9#hold")
	if strings.Contains(list, "/versions/9/release") {
		t.Error("the list offers to release a version that is held")
	}
	page("/versions/9", "This version is held", "63 fs::File, 17 fs::Directory, 4 web::Site",
		"fs::Directory[web01,path=/srv/www/site-120]", "/versions/9/confirm", "compare?from=7&amp;to=9")
	if w := post(h, env+"/versions/9/confirm", url.Values{"by": {"ida"}}); w.Code != http.StatusBadRequest {
		t.Errorf("confirmed without a reason: %d", w.Code)
	}
	post(h, env+"/versions/9/confirm", url.Values{"by": {"<b>ida"}, "reason": {"the east site closes"}})
	page("/versions/9", "It was held, and confirmed", "&lt;b&gt;ida released it", "the east site closes")
	if strings.Contains(page(""), "waits for a person") {
		t.Error("the overview still asks")
	}
}

// A version that takes away a protected resource cannot be confirmed, and its page has no form for it.
func TestHeldVersionThatTakesAwayWhatIsProtected(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	protect := url.Values{"name": {"protected_resources"}, "value": {"fs::Directory[*site-120]"}}
	if w := post(h, env+"/settings/set", protect); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := post(h, env+"/versions/9/release", nil); w.Code != http.StatusConflict {
		t.Errorf("released: %d", w.Code)
	}
	body := get(t, h, env+"/versions/9").Body.String()
	if !strings.Contains(body, "cannot be confirmed") || strings.Contains(body, "/versions/9/confirm") {
		t.Errorf("a protected resource can be confirmed away:\n%s", body)
	}
}

// The page of a version that takes away very much lists some of it, and says how much more there is.
func TestHeldVersionThatTakesAwayMuch(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	must(t, r.Store.FinishCompile(t.Context(), r.Running, intent.CompileEnd{At: r.Now()}))
	number := compileIn(t, r.Server, r.Production.ID, "0ddba11", r.FailedFile)
	env := "/e/" + r.Production.ID.String()
	if w := post(h, fmt.Sprintf("%s/versions/%d/release", env, number), nil); w.Code != http.StatusConflict {
		t.Fatalf("released: %d", w.Code)
	}
	body := get(t, h, versionURL(r.Production.ID, number)).Body.String()
	if !strings.Contains(body, "152 fs::File") || !strings.Contains(body, "and 103 more") {
		t.Errorf("the page does not say how much goes:\n%s", body)
	}
}

// The bell counts the unread notifications, on every page; the list links each to the page that it is about.
func TestBell(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	bell := func() string {
		body := get(t, h, env+"/resources").Body.String()
		_, rest, _ := strings.Cut(body, `id="bell"`)
		rest, _, _ = strings.Cut(rest, "</a>")
		_, rest, _ = strings.Cut(rest, "Notifications: </span>")
		return rest
	}
	unread := 0
	for _, n := range r.Notices {
		if !n.Read {
			unread++
		}
	}
	if got := bell(); unread == 0 || !strings.HasPrefix(got, strconv.Itoa(unread)+"<") {
		t.Errorf("the bell shows %q", got)
	}
	body := get(t, h, env+"/notifications").Body.String()
	for _, want := range []string{"/runs/" + r.Failed.String(), "/versions/9", "/agents\""} {
		if !strings.Contains(body, want) {
			t.Errorf("the list has no %q", want)
		}
	}
	post(h, env+"/notifications", url.Values{"all": {"yes"}})
	if got := bell(); !strings.HasPrefix(got, "0<") {
		t.Errorf("after reading all, the bell shows %q", got)
	}
	held := r.Notices[len(r.Notices)-1]
	post(h, env+"/notifications", url.Values{"id": {held.ID.String()}, "clear": {"yes"}})
	if body := get(t, h, env+"/notifications").Body.String(); strings.Contains(body, held.Title) {
		t.Error("a notification that was cleared is still listed")
	}
	if body := get(t, h, env+"/notifications?show=all").Body.String(); !strings.Contains(body, held.Title) {
		t.Error("a notification that was cleared cannot be found any more")
	}
}

// An address of the API leads to the page about the same thing; any other address leads nowhere.
func TestPagesOfAddresses(t *testing.T) {
	t.Parallel()
	r, _ := rich(t)
	env := r.Production.ID
	for uri, want := range map[string]string{
		"/api/v2/compilereport/" + r.Good.String():                  runURL(env, r.Good),
		"/api/v2/desiredstate/4":                                    versionURL(env, 4),
		"/api/v2/resource/" + url.PathEscape(r.FailedFile.String()): resourceURL(env, r.FailedFile),
		"/api/v2/agents":                                            envURL(env) + "/agents",
		"/api/v2/dryrun/7/" + r.DryRun.String():                     envURL(env) + "/dryruns/" + r.DryRun.String(),
		"https://evil.example/":                                     "",
		"javascript:alert(1)":                                       "",
		"/api/v2/desiredstate/../../evil":                           "",
		"/api/v2/compilereport/x":                                   "",
		"":                                                          "",
	} {
		if got := pageOf(env, uri); got != want {
			t.Errorf("%q leads to %q, want %q", uri, got, want)
		}
	}
}

// An environment whose repository cannot be read is red on the home page and on its own, which says why and what to do,
// until the repository can be read again.
func TestARepositoryThatCannotBeReadIsSeen(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	must(t, r.Store.SetGitState(t.Context(), r.Production.ID, intent.GitState{
		Kind: intent.GitFailing, Message: `there is no branch or tag "<main>"`, Advice: "push it", Checked: r.Now(),
	}))
	for _, path := range []string{"/", env} {
		if body := get(t, h, path).Body.String(); !strings.Contains(body, "The repository cannot be read. ") {
			t.Errorf("%s does not say that the repository cannot be read", path)
		}
	}
	body := get(t, h, env).Body.String()
	for _, want := range []string{
		env + "/git\">The repository</a>", "there is no branch or tag &#34;&lt;main&gt;&#34;", "push it",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the overview lacks %q", want)
		}
	}
	must(t, r.Store.SetGitState(t.Context(), r.Production.ID, intent.GitState{Kind: intent.GitOK, Checked: r.Now()}))
	if body := get(t, h, env).Body.String(); strings.Contains(body, "cannot be read") {
		t.Error("the overview still says that the repository cannot be read")
	}
}
