package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ordain.dev/ordain/api/apitest"
	"ordain.dev/ordain/internal/intent"
)

// A version that is held is seen where people look: on the overview, in the
// list, and on its page with what goes and the form that confirms it. What is
// protected has no such form.
func TestAHeldVersionIsSeenAndConfirmed(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
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
		t.Error("the list offers to release what is held")
	}
	page(
		"/versions/9",
		"This version is held",
		"fs::Directory[web01,path=/srv/www/site-120]",
		"and 64 more",
		"/versions/9/confirm",
		"compare?from=7&amp;to=9",
	)
	if w := post(h, env+"/versions/9/confirm", url.Values{"by": {"ida"}}); w.Code != http.StatusBadRequest {
		t.Errorf("confirmed without a reason: %d", w.Code)
	}
	post(h, env+"/versions/9/confirm", url.Values{"by": {"<b>ida"}, "reason": {"the east site closes"}})
	page("/versions/9", "It was held, and confirmed", "&lt;b&gt;ida released it", "the east site closes")
	if strings.Contains(page(""), "waits for a person") {
		t.Error("the overview still asks")
	}

	r = apitest.NewRich(present)
	h = newConsole(t, r)
	r.Do(func() {
		hold := r.Production.Vers[8].Hold
		hold.Protected, hold.ProtectedCount = []intent.Removed{{ID: r.FailedFile, Purged: true}}, 1
	})
	if body := page("/versions/9", "cannot be confirmed", r.FailedFile.String()); strings.Contains(
		body,
		"/versions/9/confirm",
	) {
		t.Error("what is protected can be confirmed away")
	}
}

// The bell counts what nobody read, on every page; the list leads to what a
// notification is about.
func TestTheBell(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	env := "/e/" + r.Production.ID.String()
	bell := func() string {
		body := get(t, h, env+"/resources").Body.String()
		_, rest, _ := strings.Cut(body, `id="bell"`)
		rest, _, _ = strings.Cut(rest, "</a>")
		_, rest, _ = strings.Cut(rest, "Notifications: </span>")
		return rest
	}
	if got := bell(); !strings.HasPrefix(got, "2<") {
		t.Errorf("the bell says %q", got)
	}
	body := get(t, h, env+"/notifications").Body.String()
	for _, want := range []string{"/runs/" + r.Failed.String(), "/versions/9", "3 times since", "/agents\""} {
		if !strings.Contains(body, want) {
			t.Errorf("the list has no %q", want)
		}
	}
	post(h, env+"/notifications", url.Values{"all": {"yes"}})
	if got := bell(); !strings.HasPrefix(got, "0<") {
		t.Errorf("after reading all the bell says %q", got)
	}
	post(h, env+"/notifications", url.Values{"id": {r.Production.Notices[2].ID.String()}, "clear": {"yes"}})
	if body := get(t, h, env+"/notifications").Body.String(); strings.Contains(body, "Version 9 is held") {
		t.Error("what was cleared is still listed")
	}
	if body := get(t, h, env+"/notifications?show=all").Body.String(); !strings.Contains(body, "Version 9 is held") {
		t.Error("what was cleared cannot be found any more")
	}
}

// An address of the API leads to the page about the same thing, and nothing
// else leads anywhere.
func TestPagesOfAddresses(t *testing.T) {
	r := apitest.NewRich(present)
	env := r.Production.ID
	for uri, want := range map[string]string{
		"/api/v2/compilereport/" + r.Good.String():                  runURL(env, r.Good),
		"/api/v2/desiredstate/4":                                    versionURL(env, 4),
		"/api/v2/resource/" + url.PathEscape(r.FailedFile.String()): resourceURL(env, r.FailedFile),
		"/api/v2/agents":                                            envURL(env) + "/agents",
		"/api/v2/dryrun/7/" + r.DryRunID.String():                   envURL(env) + "/dryruns/" + r.DryRunID.String(),
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
