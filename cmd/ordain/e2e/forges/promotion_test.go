package forges

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
)

// Production gets a commit that has not passed its gates in staging. A commit that
// fails, drifts or is not approved waits, and one that is rolled back is never
// promoted. What is promoted is the same commit, verified again.
func TestACommitIsPromotedThroughItsGates(t *testing.T) {
	tool.Heavy(t, "runs a server beside a forge")
	t.Parallel()
	w := lab.SharedWorld(t)
	staging := w.NewPlace(t)
	staging.Push("a note", lab.MergeFiles(lab.Module, staging.Named([3]string{"a", "one", "calm"})))
	source := intent.Source{URL: "file://" + staging.Bare, Branch: "main"}
	staging.Bind(source, nil)
	first := staging.CompiledWell()
	e, err := w.Store.Environment(t.Context(), staging.Env)
	if err != nil {
		t.Fatal(err)
	}
	name := "production-of-" + e.Name
	made, err := w.Control.CreateEnvironment(
		t.Context(),
		control.NewEnvironment{
			Environment: intent.Environment{ProjectID: e.ProjectID, Name: name, Source: intent.Source{URL: source.URL}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	// It may begin to compile its branch before follow is set.
	production := &lab.Place{World: w, T: t, Env: made.ID, Bare: staging.Bare, Work: staging.Work, Site: staging.Site}
	for _, s := range [][2]string{{"follow_approval", "true"}, {"follow_soak", "1"}, {"follow", e.Name}} {
		w.Must(t, "settings", "set", name, s[0], s[1])
	}
	if code, _, errs := w.Ordain(t, "", "settings", "set", e.Name, "follow", name); code == 0 ||
		!strings.Contains(errs, "circle") {
		t.Errorf("a circle: %d %s", code, errs)
	}
	staging.Settled()

	// A commit that cannot be deployed waits, even if it is approved.
	w.Must(t, "settings", "set", e.Name, "autostart_agent_deploy_interval", "0")
	staging.Push("it breaks", staging.Named([3]string{"a", "two", "raise"}))
	staging.CompiledWell()
	bad := staging.Head()
	production.WaitHeld(bad, "1 resource is not compliant: lab::Note[desk,path="+filepath.Join(staging.Site,
		e.Name)+"-a]")
	lab.Mentions(
		t,
		w.Must(t, "git", "approve", name, bad[:12], "--reason", "in a hurry"),
		"in a hurry",
		"not compliant",
	)
	if code, _, errs := w.Ordain(t, "", "git", "approve", name, first.Revision.Commit, "--reason",
		"that one"); code == 0 ||
		!strings.Contains(errs, bad) {
		t.Errorf("approving what does not wait: %d %s", code, errs)
	}
	// The fix is another commit: it soaks, and the approval does not count for it.
	staging.Push("mend it", staging.Named([3]string{"a", "three", "calm"}))
	staging.CompiledWell()
	good := staging.Head()
	production.WaitHeld(good, "approval of this commit")
	w.Must(t, "settings", "set", e.Name, "drift_policy", "report")
	if err := os.WriteFile(filepath.Join(staging.Site, e.Name+"-a"), []byte("graffiti"), 0o644); err != nil {
		t.Fatal(err)
	}
	staging.Settled()
	w.Must(t, "settings", "set", e.Name, "autostart_agent_repair_interval", "1")
	production.WaitHeld(good, "record of drift is open")
	w.Must(t, "git", "approve", name, good, "--reason", "it looks well", "--by", "ida")
	production.WaitHeld(good, "record of drift is open")
	if v, err := w.Store.ActiveVersion(t.Context(), production.Env); err != nil ||
		v != nil && v.Provenance.Commit == good {
		t.Errorf("promoted while staging drifts: %+v, %v", v, err)
	}
	w.Must(t, "settings", "set", e.Name, "drift_policy", "heal")
	f := production.WaitPromotion("the promotion",
		func(f control.Following) bool { return len(f.Promotions) > 0 && f.Promotions[0].Made > 0 })
	v, err := w.Store.ActiveVersion(t.Context(), production.Env)
	if err != nil || v == nil || v.Provenance.Commit != good || v.Provenance.Trigger.Type != "promotion" ||
		f.Promotions[0].Made != v.Number {
		t.Fatalf("production has %+v, %v", v, err)
	}
	production.Settled()
	if got := production.Note(name + "-a"); got != "three" {
		t.Errorf("production's note says %q", got)
	}
	w.Must(t, "settings", "set", e.Name, "autostart_agent_repair_interval", "0")
	list := w.Must(t, "git", "promotions", name)
	lab.Mentions(t, list, "follows      "+e.Name, good, "promoted; it is version",
		"superseded: "+e.Name+" moved on to "+good[:7])

	// A commit that was rolled back in staging is never promoted.
	w.Must(t, "git", "pause", name, "--reason", "the fair", "--by", "ida")
	staging.Push("a bad idea", staging.Named([3]string{"a", "four", "calm"}))
	staging.CompiledWell()
	idea := staging.Head()
	production.WaitHeld(idea, "ida paused promotions: the fair")
	w.Must(t, "rollback", e.Name, "--reason", "a bad idea")
	production.WaitPromotion("the end of the bad idea", func(f control.Following) bool {
		return f.Waiting() == nil && strings.Contains(f.Idle, "was rolled back")
	})
	if code, _, errs := w.Ordain(t, "", "promote", name, idea, "--reason", "all the same"); code == 0 {
		t.Errorf("promoted what was rolled back: %s", errs)
	}
	w.Must(t, "git", "resume", name, "--reason", "the fair is over")
	// A person promotes the next one without waiting for its gates.
	staging.Push("a better idea", staging.Named([3]string{"a", "five", "calm"}))
	staging.CompiledWell()
	better := staging.Head()
	production.WaitHeld(better, "approval")
	lab.Mentions(
		t,
		w.Must(t, "promote", name, better, "--reason", "customers wait", "--by", "ida"),
		better[:7],
		"promoted",
	)
	production.WaitPromotion("the better idea",
		func(f control.Following) bool { return f.Promotions[0].Made > 0 && f.Promotions[0].Commit == better })
	lab.Mentions(
		t,
		w.Must(t, "override", "history", name),
		"customers wait",
		"the fair is over",
		"approval of this commit",
	)
	page, err := w.Store.Compiles(t.Context(), production.Env, intent.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range page.Items {
		if c.Revision != nil && (c.Revision.Commit == bad || c.Revision.Commit == idea) {
			t.Errorf("production compiled %+v", c)
		}
	}
}

// The server is killed while a commit soaks. After the restart, the soak continues from
// its beginning in the first server, and the commit is promoted afterwards, not before.
func TestASoakSurvivesAKilledServer(t *testing.T) {
	tool.Long(t, "starts a server twice, and soaks")
	t.Parallel()
	dir, err := lab.WorldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := (&lab.World{Dir: dir}).NewPlace(t)
	p.Push("a note", lab.MergeFiles(lab.Module, p.Named([3]string{"a", "one", "calm"})))
	c := lab.StartChild(t, dir)
	staging := c.Bind("file://" + p.Bare)
	c.WaitDeployed(staging, 1)
	call := func(method, path, env string, body, into any) {
		t.Helper()
		if err := c.Client.Call(t.Context(), method, path, env, body, into); err != nil {
			t.Fatal(err)
		}
	}
	var e struct {
		Project string `json:"project_id"`
	}
	call(http.MethodGet, "/api/v2/environment/"+staging, "", nil, &e)
	var made struct {
		ID string `json:"id"`
	}
	call(http.MethodPut, "/api/v2/environment", "",
		map[string]any{"project_id": e.Project, "name": "production", "repository": "", "branch": ""}, &made)
	// It does not compile before it follows staging, so it never compiles its branch.
	production := made.ID
	call(http.MethodPost, "/api/v2/environment_settings/server_compile", production,
		map[string]any{"value": false}, nil)
	call(http.MethodPost, "/api/v2/environment/"+production, "",
		map[string]any{"name": "production", "repository": "file://" + p.Bare, "branch": "main"}, nil)
	const soak = 10 // seconds
	for name, value := range map[string]any{"follow_soak": soak, "follow": "e"} {
		call(http.MethodPost, "/api/v2/environment_settings/"+name, production, map[string]any{"value": value}, nil)
	}
	call(http.MethodPost, "/api/v2/environment_settings/server_compile", production, map[string]any{"value": true}, nil)
	type following struct {
		Promotions []struct {
			State, Text, Commit string
			Since               string
			Ended               *string
		} `json:"promotions"`
	}
	wait := func(what string, is func(following) bool) (f following) {
		t.Helper()
		lab.WaitFor(t, func() bool {
			f = following{}
			err := c.Client.Call(t.Context(), http.MethodGet, "/api/v2/git/promotions", production, nil, &f)
			return err == nil && is(f)
		}, func() string { return fmt.Sprintf("want %s, have %+v\n%s", what, f, c.Log()) })
		return f
	}
	before := wait("the soak", func(f following) bool {
		return len(f.Promotions) > 0 && strings.Contains(f.Promotions[0].Text, "soak until")
	})
	c.Kill()
	c = lab.StartChild(t, dir)
	after := wait("the promotion",
		func(f following) bool { return len(f.Promotions) > 0 && f.Promotions[0].State == "promoted" })
	if len(after.Promotions) != 1 || after.Promotions[0].Since != before.Promotions[0].Since ||
		after.Promotions[0].Commit != p.Head() {
		t.Errorf("%+v became %+v", before, after)
	}
	at := func(text string) time.Time {
		t.Helper()
		when, err := time.Parse("2006-01-02T15:04:05.999999-07:00", text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	if soaked := at(*after.Promotions[0].Ended).Sub(at(after.Promotions[0].Since)); soaked < soak*time.Second ||
		soaked > soak*time.Second+lab.Patience {
		t.Errorf("it soaked %s", soaked)
	}
	c.WaitDeployed(production, 1)
	if got := p.Note("production-a"); got != "one" {
		t.Errorf("production's note says %q", got)
	}
}
