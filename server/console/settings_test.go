package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// redirected loads the page that a form leads to, as a browser does, with the cookies that came along.
func redirected(t *testing.T, h http.Handler, w *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodGet, strings.Split(w.Header().Get("Location"), "#")[0], nil)
	for _, cookie := range w.Result().Cookies() {
		r.AddCookie(cookie)
	}
	page := httptest.NewRecorder()
	h.ServeHTTP(page, r)
	return page
}

// around returns the form of a setting.
func around(body, id string) string {
	_, rest, _ := strings.Cut(body, `id="`+id+`"`)
	form, _, _ := strings.Cut(rest, "</form>")
	return form
}

// An operator finds a setting by what it is about, types a length of time, is told beside the field what is wrong with
// it, mends it, and is told there that it was saved: once, and not again when the page is loaded again.
func TestASettingIsFoundMendedAndSaved(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	page := "/e/" + r.Production.ID.String() + "/settings"
	found := get(t, h, page+"?find=poll+repository").Body.String()
	if !strings.Contains(found, `id="setting-git_poll_interval"`) ||
		strings.Contains(found, `id="setting-heal_limit"`) ||
		!strings.Contains(around(found, "setting-git_poll_interval"), `value="30 s"`) {
		t.Error("the search does not find the setting alone, with its unit")
	}
	if !strings.Contains(get(t, h, page+"?find=xyzzy").Body.String(), "No option matches.") {
		t.Error("a search without a result does not say so")
	}
	w := post(h, page+"/set", url.Values{"name": {"git_poll_interval"}, "value": {"2 parsecs"}})
	form := around(w.Body.String(), "setting-git_poll_interval")
	for _, want := range []string{`value="2 parsecs"`, `aria-invalid="true"`, "cannot be read", "2 h", `role="alert"`} {
		if !strings.Contains(form, want) {
			t.Errorf("beside the refused field there is no %q: %d %s", want, w.Code, form)
		}
	}
	if w.Code != http.StatusBadRequest {
		t.Errorf("refused with %d", w.Code)
	}
	w = post(h, page+"/set", url.Values{"name": {"git_poll_interval"}, "value": {"2 h"}})
	if at := w.Header().Get("Location"); at != page+"#setting-git_poll_interval" {
		t.Errorf("saving leads to %s", at)
	}
	saved := redirected(t, h, w)
	body := saved.Body.String()
	form = around(body, "setting-git_poll_interval")
	if !strings.Contains(form, "Saved.") || !strings.Contains(form, `value="2 h"`) ||
		strings.Count(body, "Saved.") != 1 {
		t.Errorf("it is not said beside the field that it was saved: %s", form)
	}
	if cookies := saved.Result().Cookies(); len(cookies) != 1 || cookies[0].MaxAge >= 0 {
		t.Errorf("the browser keeps what was said: %v", cookies)
	}
	if strings.Contains(get(t, h, page).Body.String(), "Saved.") {
		t.Error("a reload says it again")
	}
	e, err := r.Store.Environment(t.Context(), r.Production.ID)
	must(t, err)
	if e.Int("git_poll_interval") != 7200 {
		t.Errorf("kept as %d seconds", e.Int("git_poll_interval"))
	}
	changed := get(t, h, page+"?changed=yes").Body.String()
	if !strings.Contains(changed, `id="setting-git_poll_interval"`) ||
		strings.Contains(changed, `id="setting-breaker_pause"`) {
		t.Error("the list of what was changed is wrong")
	}
	if !strings.Contains(around(body, "setting-drift_policy"), `<option value="heal" selected>`) {
		t.Error("a setting with choices is no select")
	}
}

// The page of settings shows one part at a time: the one that a link asks for, those in which a search finds something,
// and the one whose form was refused or saved. All of them are there all the same, for those who unfold them.
func TestSettingsAreFolded(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	page := "/e/" + r.Production.ID.String() + "/settings"
	opened := func(body string) (open []string) {
		for _, part := range strings.Split(body, "<details ")[1:] {
			if head, _, _ := strings.Cut(part, ">"); strings.HasSuffix(head, " open") {
				_, id, _ := strings.Cut(head, `id="`)
				id, _, _ = strings.Cut(id, `"`)
				open = append(open, id)
			}
		}
		return open
	}
	refused := post(h, page+"/set", url.Values{"name": {"git_poll_interval"}, "value": {"2 parsecs"}})
	secret := post(h, page+"/secret", url.Values{"variable": {"2 bad"}, "value": {"x"}})
	for want, body := range map[string]string{
		"source":    get(t, h, page).Body.String(),
		"secrets":   get(t, h, page+"?group=secrets").Body.String(),
		"group-git": refused.Body.String(),
		"variables": secret.Body.String(),
		"danger":    post(h, page+"/delete", url.Values{"confirm": {"nonsense"}}).Body.String(),
		"form-webhook, in secrets": redirected(t, h, post(h, page+"/secret", url.Values{
			"name": {"webhook"}, "value": {"x"},
		})).Body.String(),
	} {
		_, part, nested := strings.Cut(want, ", in ")
		if !nested {
			part = want
		}
		if got := opened(body); len(got) != 1 || got[0] != part {
			t.Errorf("of %s, these parts are open: %q", want, got)
		}
		contains(t, body, `id="setting-heal_limit"`, `id="secret-git-password"`,
			`<a href="`+page+`?group=`+part+`#`+part+`" aria-current="true">`)
	}
	if got := opened(get(t, h, page+"?find=poll").Body.String()); len(got) == 0 || got[0] != "group-git" {
		t.Errorf("what a search found is not open: %q", got)
	}
	must(t, r.Control.SetSetting(t.Context(), r.Production.ID, "heal_limit", 9))
	body := get(t, h, page+"?changed=yes").Body.String()
	_, healing, _ := strings.Cut(body, `id="setting-heal_limit"`)
	if got := opened(body); healing == "" || len(got) == 0 || got[0] == "source" {
		t.Errorf("what was changed is not open: %q", got)
	}
}

// Halting asks for a reason in place; everybody who meets the halted environment reads it, with the name.
func TestAHaltedEnvironmentSaysWhoAndWhy(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	if w := post(h, env+"/halt", url.Values{"by": {"ann"}}); w.Code != http.StatusBadRequest {
		t.Errorf("halted without a reason: %d", w.Code)
	}
	page := redirected(t, h, post(h, env+"/halt", url.Values{"by": {"ann"}, "reason": {"the <move>"}})).Body.String()
	for _, want := range []string{"Halted by ann", "<q>the &lt;move&gt;</q>", "the request waits", "is halted."} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}

// A clone has the settings of its original, but neither its secrets nor its versions, and a copy changes what was
// chosen after a look at it.
func TestAnEnvironmentIsCloned(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	must(t, r.Control.SetSetting(t.Context(), r.Production.ID, "heal_window", "2 days"))
	form := get(t, h, env+"/clone").Body.String()
	if !strings.Contains(form, "Period in which healing is counted") || !strings.Contains(form, "<dd>2 days</dd>") {
		t.Error("the form does not show what is copied")
	}
	w := post(h, env+"/clone", url.Values{
		"name": {"twin"}, "project": {r.Project.ID.String()}, "repository": {r.Production.Source.URL},
		"anyway": {"yes"}, "branch": {"main"}, "halted": {"yes"},
	})
	page := redirected(t, h, w)
	if !strings.Contains(page.Body.String(), "The environment was cloned.") {
		t.Errorf("%d %s", page.Code, page.Body)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(w.Header().Get("Location"), "/e/"), "/")
	twin, err := r.Store.Environment(t.Context(), uuid.MustParse(id))
	must(t, err)
	if twin.Name != "twin" || !twin.Halted || twin.Int("heal_window") != 2*86400 {
		t.Errorf("%+v", twin)
	}
	if names, err := r.Control.SecretNames(t.Context(), twin.ID); err != nil || len(names) != 0 {
		t.Errorf("it has the secrets %v, %v", names, err)
	}
	again := post(h, env+"/clone", url.Values{
		"name": {"twin"}, "project": {r.Project.ID.String()}, "repository": {"x"}, "anyway": {"yes"},
	})
	if body := again.Body.String(); again.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(body, `value="x"`) {
		t.Errorf("a second twin: %d", again.Code)
	}

	must(t, r.Control.SetSetting(t.Context(), r.Production.ID, "heal_limit", 9))
	must(t, r.Control.SetSetting(t.Context(), r.Production.ID, "max_attempts", 7))
	copies := "/e/" + id + "/settings/copy"
	preview := get(t, h, copies+"?from="+r.Production.ID.String()).Body.String()
	if !strings.Contains(preview, `value="heal_limit" checked`) || strings.Contains(preview, `value="heal_window"`) {
		t.Error("the preview does not show exactly what differs")
	}
	if e, err := r.Store.Environment(t.Context(), twin.ID); err != nil || e.Int("heal_limit") != 3 {
		t.Errorf("the preview changed something: %v", err)
	}
	redirected(t, h, post(h, copies, url.Values{"from": {r.Production.ID.String()}, "setting": {"heal_limit"}}))
	e, err := r.Store.Environment(t.Context(), twin.ID)
	must(t, err)
	if e.Int("heal_limit") != 9 || e.Int("max_attempts") != 20 {
		t.Errorf("copied: %v", e.Settings)
	}
	must(t, r.Control.DeleteSetting(t.Context(), r.Production.ID, "heal_limit"))
	_, err = r.Control.CopySettings(t.Context(), twin.ID, r.Production.ID, []string{"heal_limit"})
	must(t, err)
	e, err = r.Store.Environment(t.Context(), twin.ID)
	must(t, err)
	if _, set := e.Settings["heal_limit"]; set || e.Int("heal_limit") != 3 {
		t.Errorf("a default is not copied as a default: %v", e.Settings)
	}
}
