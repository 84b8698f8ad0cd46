package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// post sends a form as a page of the console would.
func post(h http.Handler, path string, values url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// button is a form of a page of production.
type button struct {
	path   string
	values url.Values
}

// press sends a form and follows it to the page that it leads to.
func press(t *testing.T, h http.Handler, env string, b button) {
	t.Helper()
	w := post(h, env+b.path, b.values)
	if w.Code != http.StatusSeeOther {
		t.Errorf("%s: %d %s", b.path, w.Code, w.Body)
		return
	}
	location, _, _ := strings.Cut(w.Header().Get("Location"), "#")
	if next := get(t, h, location); next.Code != http.StatusOK {
		t.Errorf("%s leads to %s: %d", b.path, w.Header().Get("Location"), next.Code)
	}
}

// The buttons that deploy, pause, release and look reach the deployer of the environment.
func TestButtonsReachTheDeployer(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	r.Start(t)
	env := "/e/" + r.Production.ID.String()
	failed, parked := r.FailedFile.String(), r.ParkedFile.String()
	for _, b := range []struct {
		button
		told string
	}{
		{button{"/deploy", nil}, "deploy full=false [] []"},
		{button{"/deploy", url.Values{"full": {"yes"}, "agent": {"web03"}}}, "deploy full=true [web03] []"},
		{button{"/resource/deploy", url.Values{"id": {failed}}}, "deploy full=true [] [" + failed + "]"},
		{button{"/resource/unpark", url.Values{"id": {parked}}}, "unpark [" + parked + "]"},
		{button{"/resource/unpark", url.Values{"all": {"yes"}}}, "unpark []"},
		{button{"/agents/pause", url.Values{"agent": {"web01"}, "pause": {"yes"}}}, "pause web01=true"},
		{button{"/agents/pause", url.Values{"agent": {"web01"}}}, "pause web01=false"},
		{button{"/resource/facts", url.Values{"id": {failed}}}, "refresh facts [" + failed + "]"},
		{button{"/versions/7/dryrun", nil}, "dry run "},
		{button{"/versions/7/dryrun", url.Values{"id": {failed}}}, "dry run "},
		{button{"/dryruns/" + r.DryRun.String() + "/cancel", nil}, ""}, // it has ended
		{button{"/versions/8/release", nil}, "version 8 released"},
	} {
		before := len(r.Told())
		if b.told == "" {
			if w := post(h, env+b.path, b.values); w.Code != http.StatusConflict {
				t.Errorf("%s: %d", b.path, w.Code)
			}
			continue
		}
		press(t, h, env, b.button)
		told := r.Told()[before:]
		if !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, b.told) }) {
			t.Errorf("%s %v: the deployer was told %q, want %q", b.path, b.values, told, b.told)
		}
	}
}

// The buttons that decide something leave it in the record, with who decided it and why.
func TestButtonsAreRecorded(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	ctx, id := t.Context(), r.Production.ID
	person := func(why string, more ...string) url.Values {
		v := url.Values{"by": {"ann"}, "reason": {why}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	ok := func(err error) { t.Helper(); must(t, err) }
	environment := func() intent.Environment {
		e, err := r.Store.Environment(ctx, id)
		ok(err)
		return e
	}
	notice := func() intent.Notification {
		n, err := r.Store.Notification(ctx, id, r.Notices[1].ID)
		ok(err)
		return n
	}
	secrets := func() string {
		names, err := r.Control.SecretNames(ctx, id)
		ok(err)
		return strings.Join(names, " ")
	}
	following := func() control.Following {
		f, err := r.Control.Following(ctx, id)
		ok(err)
		return f
	}
	active := func() string {
		v, err := r.Store.ActiveVersion(ctx, id)
		ok(err)
		if b := v.Provenance.RolledBack; b != nil {
			return fmt.Sprintf("from %d to %d by %s: %s", b.From, b.To, b.By, b.Reason)
		}
		return "not rolled back"
	}
	seen, commit, rewritten := r.Notices[1].ID.String(), r.Waiting.Commit, strings.Repeat("a", 40)
	for _, b := range []struct {
		button
		effect func() any
		want   any
	}{
		{button{"/compile", nil}, func() any {
			open, err := r.Store.OpenCompiles(ctx, id)
			ok(err)
			last := open[len(open)-1]
			return fmt.Sprint(last.Trigger.Type, " ", last.Update)
		}, "console true"},
		{button{"/notifications", url.Values{"id": {seen}}}, func() any { return notice().Read }, true},
		{
			button{"/notifications", url.Values{"id": {seen}, "clear": {"yes"}}},
			func() any { return notice().Cleared }, true,
		},
		{button{"/notifications", url.Values{"all": {"yes"}}}, func() any {
			n, err := r.Store.UnreadNotifications(ctx, id)
			ok(err)
			return n
		}, 0},
		{button{"/dryruns", url.Values{"commit": {"feature"}}}, func() any {
			runs, err := r.Store.DryRuns(ctx, id, 0)
			ok(err)
			return runs[0].Commit
		}, "feature"},
		{
			button{"/settings/secret", url.Values{"name": {"webhook"}, "value": {"x"}}},
			func() any { return secrets() }, "webhook webhook-previous",
		},
		{
			button{"/settings/secret", url.Values{"variable": {"API_TOKEN"}, "value": {"x"}}},
			func() any { return secrets() }, "variable:API_TOKEN webhook webhook-previous",
		},
		{
			button{"/settings/secret", url.Values{"name": {"git-password"}, "value": {"x"}, "for": {"project"}}},
			func() any {
				names, err := r.Control.ProjectSecretNames(ctx, r.Project.ID)
				ok(err)
				return strings.Join(names, " ")
			}, "git-password",
		},
		{
			button{"/override", person("the fix cannot wait", "minutes", "60", "agents", "web*, db")},
			func() any {
				all, err := r.Store.Overrides(ctx, id, 1)
				ok(err)
				o := all[0]
				return fmt.Sprint(o.By, ": ", o.Reason, " ", o.Agents, " ", o.Until.Sub(r.Now()).Round(time.Minute))
			}, "ann: the fix cannot wait [web* db] 1h0m0s",
		},
		{button{"/git/accept", person("history was cleaned", "commit", rewritten)}, func() any {
			a, err := r.Store.Acceptance(ctx, id, rewritten)
			ok(err)
			return a.By + ": " + a.Reason
		}, "ann: history was cleaned"},
		{button{"/git/unblock", person("it was the network", "commit", r.Blocked)}, func() any {
			blocks, err := r.Store.GitBlocks(ctx, id)
			ok(err)
			return len(blocks)
		}, 0},
		{
			button{"/promote/approve", person("well", "commit", commit)},
			func() any { a := following().Waiting().Approved; return a.By + ": " + a.Reason }, "ann: well",
		},
		{
			button{"/promote/pause", person("the fair")},
			func() any { a := following().Paused; return a.By + ": " + a.Reason }, "ann: the fair",
		},
		{button{"/promote/resume", person("it is over")}, func() any { return following().Paused == nil }, true},
		{button{"/promote", person("it cannot wait", "commit", commit)}, func() any {
			p, err := r.Store.LastPromoted(ctx, id)
			ok(err)
			return p.Commit
		}, commit},
		{
			button{"/rollback", person("the shop is down")},
			func() any { return active() }, "from 7 to 6 by ann: the shop is down",
		},
		{
			button{"/rollback", person("still down", "version", "4")},
			func() any { return active() }, "from 11 to 4 by ann: still down",
		},
		{button{"/halt", person("the move")}, func() any {
			return fmt.Sprint(environment().HaltedBy, ": ", environment().HaltedReason)
		}, "ann: the move"},
		{button{"/resume", nil}, func() any { return environment().Halted }, false},
	} {
		press(t, h, "/e/"+id.String(), b.button)
		if got := b.effect(); got != b.want {
			t.Errorf("%s %v: %v, want %v", b.path, b.values, got, b.want)
		}
	}
}

// A form may lead back to a page of the console, never elsewhere, and an address cannot put words into a page.
func TestRedirectsStayInTheConsole(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	for _, evil := range []string{
		"https://evil.example/", "//evil.example/", `/\evil.example/`, "javascript:alert(1)", "evil", "/%0d%0aX: y",
	} {
		w := post(h, "/e/"+r.Production.ID.String()+"/halt", url.Values{"back": {evil}, "reason": {"a test"}})
		location := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//") ||
			strings.Contains(location, "evil") {
			t.Errorf("%q leads to %q", evil, location)
		}
	}
	w := post(
		h,
		"/e/"+r.Production.ID.String()+"/halt",
		url.Values{"reason": {"a test"}, "back": {"/e/" + r.Production.ID.String() + "/agents?start=a&first=b"}},
	)
	if got := w.Header().Get("Location"); !strings.Contains(got, "/agents?") || !strings.Contains(got, "start=a") ||
		strings.Contains(got, "done") || !strings.Contains(w.Header().Get("Set-Cookie"), flashCookie) {
		t.Errorf("back: %q", got)
	}
	if body := get(t, h, "/?done=You+were+hacked").Body.String(); strings.Contains(body, "hacked") {
		t.Error("an address put words into a page")
	}
}

// Clearing and deleting an environment need its name typed; a protected environment does not offer them.
func TestDestructionNeedsTheName(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	for _, what := range []string{"clear", "delete"} {
		if w := post(h, env+"/settings/"+what, url.Values{"confirm": {"prod"}}); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), "nothing was done") {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
	if v, err := r.Store.ActiveVersion(t.Context(), r.Production.ID); err != nil || v == nil {
		t.Fatalf("the environment was cleared: %v", err)
	}
	post(h, env+"/settings/set", url.Values{"name": {"protected_environment"}, "value": {"true"}})
	if body := get(t, h, env+"/settings").Body.String(); strings.Contains(body, "confirm-delete") {
		t.Error("a protected environment offers to delete itself")
	}
	if w := post(h, env+"/settings/delete", url.Values{"confirm": {"production"}}); w.Code != http.StatusForbidden {
		t.Errorf("protected: %d", w.Code)
	}
	post(h, env+"/settings/set", url.Values{"name": {"protected_environment"}, "reset": {"yes"}})
	if w := post(h, env+"/settings/delete", url.Values{"confirm": {"production"}}); w.Code != http.StatusSeeOther {
		t.Errorf("delete: %d %s", w.Code, w.Body)
	}
	if get(t, h, env).Code != http.StatusNotFound {
		t.Error("the environment is still there")
	}
}

// A refused form keeps what was typed, but not the secrets.
func TestARefusedFormKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	values := url.Values{
		"project":      {"infra"},
		"name":         {"production"},
		"repository":   {"https://git.example.com/x.git"},
		"git-password": {"hunter2"},
	}
	w := post(h, "/environments", values)
	body := w.Body.String()
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, `value="https://git.example.com/x.git"`) ||
		!strings.Contains(body, "an environment with this name already") ||
		strings.Contains(body, "hunter2") {
		t.Errorf("%d %s", w.Code, body)
	}
	values.Set("name", "preview")
	w = post(h, "/environments", values)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	env, err := uuid.Parse(strings.TrimSuffix(strings.TrimPrefix(w.Header().Get("Location"), "/e/"), "?done=created"))
	must(t, err)
	if open, err := r.Store.OpenCompiles(t.Context(), env); err != nil || len(open) != 1 || !open[0].Update {
		t.Errorf("a new environment is not compiled at once: %v %v", open, err)
	}
}

// The form sets all that decides what is deployed. A new project is not left behind by a form that was refused.
func TestTheFormOfANewEnvironmentSetsEverything(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	values := url.Values{
		"project": {"lonely"}, "name": {"spare"}, "repository": {r.Production.Source.URL}, "branch": {"main"},
		"follow": {"production"}, "halted": {"yes"}, "tags": {"spare live"},
		"settings": {"follow_soak = 3600\r\n\r\nfollow_approval=true"}, "webhook-secret": {"hunter2"},
	}
	refused := func(says string) {
		t.Helper()
		w := post(h, "/environments", values)
		body := w.Body.String()
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, says) ||
			!strings.Contains(body, `value="spare live"`) || strings.Contains(body, "hunter2") {
			t.Errorf("no %q: %d %s", says, w.Code, body)
		}
	}
	refused("the environment production is not of the project of spare")
	if projects, err := r.Store.Projects(t.Context()); err != nil ||
		slices.ContainsFunc(projects, func(p intent.Project) bool { return p.Name == "lonely" }) {
		t.Errorf("the project was made: %v, %v", projects, err)
	}
	values.Set("project", r.Production.ProjectName)
	values.Set("settings", "follow_soak")
	refused("is not a setting")
	values.Set("settings", "follow_soak = soon")
	refused("follow_soak")
	values.Set("settings", "follow_soak = 3600\r\n\r\nfollow_approval=true")
	w := post(h, "/environments", values)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	id, err := uuid.Parse(strings.TrimSuffix(strings.TrimPrefix(w.Header().Get("Location"), "/e/"), "?done=created"))
	must(t, err)
	e, err := r.Store.Environment(t.Context(), id)
	must(t, err)
	if !e.Halted || e.Follows() != "production" || e.Int("follow_soak") != 3600 || !e.Bool("follow_approval") ||
		!slices.Equal(e.Tags, []string{"live", "spare"}) {
		t.Errorf("%+v", e)
	}
	if open, err := r.Store.OpenCompiles(t.Context(), id); err != nil || len(open) != 0 {
		t.Errorf("it is compiled: %v %v", open, err)
	}
}

// The page of a contested resource does not say that it is as intended, and deploys it only by unparking it.
func TestThePageOfAContestedResource(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	r.Start(t)
	env := "/e/" + r.Production.ID.String()
	body := get(t, h, resourceURL(r.Production.ID, r.ContestedFile)).Body.String()
	for _, want := range []string{
		"differs", "does not count as deployed", "Unpark and deploy", "Why is it not deployed?",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(body, "Deploy now") {
		t.Error("there is a button that would be refused")
	}
	id := url.Values{"id": {r.ContestedFile.String()}}
	if w := post(h, env+"/resource/deploy", id); w.Code != http.StatusConflict {
		t.Errorf("deployed as any other: %d", w.Code)
	}
	press(t, h, env, button{"/resource/unpark", id})
}

// Every answer forbids inline scripts and frames. The style sheet and the script have names that depend on their
// content, and may be cached forever.
func TestHeaders(t *testing.T) {
	t.Parallel()
	_, h := rich(t)
	w := get(t, h, "/")
	policy := w.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") ||
		!strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy: %s", policy)
	}
	body := w.Body.String()
	for _, inline := range []string{" style=", "<style", "onclick", "<script>"} {
		if strings.Contains(body, inline) {
			t.Errorf("the page has %s", inline)
		}
	}
	_, rest, _ := strings.Cut(body, `<script defer src="`)
	script, _, _ := strings.Cut(rest, `"`)
	w = get(t, h, script)
	if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") ||
		!strings.Contains(w.Header().Get("Content-Type"), "javascript") {
		t.Errorf("%s: %d %v", script, w.Code, w.Header())
	}
	if get(t, h, "/static/../console.go").Code == 200 || get(t, h, "/static/console.js").Code != 404 {
		t.Error("a file is served that should not be")
	}
}

// The pages of a list show every row exactly once.
func TestListsArePagedToTheEnd(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	for _, sort := range []string{
		"", "?sort=status.desc", "?sort=resource_id_value.asc", "?agent=web0&sort=agent.desc",
	} {
		next, seen := "/e/"+r.Production.ID.String()+"/resources"+sort, map[string]bool{}
		for next != "" {
			body := get(t, h, next).Body.String()
			row := `<td><a class="mono" href="/e/` + r.Production.ID.String() + `/resource?id=`
			for _, link := range strings.Split(body, row)[1:] {
				id, _, _ := strings.Cut(link, `"`)
				if seen[id] {
					t.Fatalf("%s: %s twice", sort, id)
				}
				seen[id] = true
			}
			_, rest, more := strings.Cut(body, `rel="next" href="`)
			next = ""
			if more {
				next, _, _ = strings.Cut(rest, `"`)
				next = strings.ReplaceAll(next, "&amp;", "&")
			}
		}
		want := 204
		if strings.Contains(sort, "agent=web0") {
			want = 204 - 20 // web10 has twenty
		}
		if len(seen) != want {
			t.Errorf("%s: %d rows, want %d", sort, len(seen), want)
		}
	}
}

// Administrators of the server see what a project uses and set what it may use; an empty field lifts a limit.
func TestQuotasOfAProject(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	settings := "/e/" + r.Production.ID.String() + "/settings"
	w := post(h, settings+"/quota", url.Values{"environments": {"3"}, "disk": {"5G"}, "resources": {""}})
	if w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	quota, err := r.Store.Quota(t.Context(), r.Project.ID)
	if err != nil || len(quota) != 2 || quota[intent.QuotaEnvironments] != 3 || quota[intent.QuotaDisk] != 5<<30 {
		t.Errorf("%v, %v", quota, err)
	}
	page := get(t, h, settings).Body.String()
	for _, text := range []string{
		`name="disk" value="5G"`, `name="environments" value="3"`, "Quotas of the project", "used up",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %q", text)
		}
	}
	if w := post(h, settings+"/quota", url.Values{"disk": {"much"}}); w.Code != http.StatusBadRequest {
		t.Errorf("a wrong number is answered %d", w.Code)
	}
}
