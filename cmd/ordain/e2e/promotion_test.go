package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/promote"
)

// named returns a main.cf whose notes have the environment in their names, so that two
// environments of one commit write different files.
func (p *place) named(notes ...[3]string) map[string]string {
	var b strings.Builder
	b.WriteString("import std\nimport lab\nwhere = std::environment_name()\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "lab::Note(path=\"%s/{{where}}-%s\", text=%q, mood=%q)\n", p.site, n[0], n[1], n[2])
	}
	return map[string]string{"main.cf": b.String()}
}

// waitPromotion waits until is reports true for the state of promotions.
func (p *place) waitPromotion(what string, is func(control.Following) bool) control.Following {
	p.t.Helper()
	var f control.Following
	p.until(what, func() bool {
		var err error
		if f, err = p.control.Following(p.t.Context(), p.env); err != nil {
			p.t.Fatal(err)
		}
		return is(f)
	})
	return f
}

// waitHeld waits until a commit is waiting, for a reason that contains why.
func (p *place) waitHeld(commit, why string) {
	p.t.Helper()
	p.waitPromotion(commit[:7]+" to wait for "+why, func(f control.Following) bool {
		w := f.Waiting()
		return w != nil && w.Commit == commit && strings.Contains(promote.Waits(*w), why)
	})
}

// Production gets a commit that has not passed its gates in staging. A commit that
// fails, drifts or is not approved waits, and one that is rolled back is never
// promoted. What is promoted is the same commit, verified again.
func TestACommitIsPromotedThroughItsGates(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	staging := w.newPlace(t)
	staging.push("a note", mergeFiles(labModule, staging.named([3]string{"a", "one", "calm"})))
	source := intent.Source{URL: "file://" + staging.bare, Branch: "main"}
	staging.bind(source, nil)
	first := staging.compiledWell()
	e, err := w.store.Environment(t.Context(), staging.env)
	if err != nil {
		t.Fatal(err)
	}
	name := "production-of-" + e.Name
	made, err := w.control.CreateEnvironment(
		t.Context(),
		control.NewEnvironment{
			Environment: intent.Environment{ProjectID: e.ProjectID, Name: name, Source: intent.Source{URL: source.URL}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	// It may begin to compile its branch before follow is set.
	production := &place{world: w, t: t, env: made.ID, bare: staging.bare, work: staging.work, site: staging.site}
	for _, s := range [][2]string{{"follow_approval", "true"}, {"follow_soak", "1"}, {"follow", e.Name}} {
		w.must(t, "settings", "set", name, s[0], s[1])
	}
	if code, _, errs := w.ordain(t, "", "settings", "set", e.Name, "follow", name); code == 0 ||
		!strings.Contains(errs, "circle") {
		t.Errorf("a circle: %d %s", code, errs)
	}
	staging.settled()

	// A commit that cannot be deployed waits, even if it is approved.
	w.must(t, "settings", "set", e.Name, "autostart_agent_deploy_interval", "0")
	staging.push("it breaks", staging.named([3]string{"a", "two", "raise"}))
	staging.compiledWell()
	bad := staging.head()
	production.waitHeld(bad, "1 resource is not compliant: lab::Note[desk,path="+filepath.Join(staging.site,
		e.Name)+"-a]")
	mentions(t, w.must(t, "git", "approve", name, bad[:12], "--reason", "in a hurry"), "in a hurry", "not compliant")
	if code, _, errs := w.ordain(t, "", "git", "approve", name, first.Revision.Commit, "--reason",
		"that one"); code == 0 ||
		!strings.Contains(errs, bad) {
		t.Errorf("approving what does not wait: %d %s", code, errs)
	}
	// The fix is another commit: it soaks, and the approval does not count for it.
	staging.push("mend it", staging.named([3]string{"a", "three", "calm"}))
	staging.compiledWell()
	good := staging.head()
	production.waitHeld(good, "approval of this commit")
	w.must(t, "settings", "set", e.Name, "drift_policy", "report")
	if err := os.WriteFile(filepath.Join(staging.site, e.Name+"-a"), []byte("graffiti"), 0o644); err != nil {
		t.Fatal(err)
	}
	staging.settled()
	w.must(t, "settings", "set", e.Name, "autostart_agent_repair_interval", "1")
	production.waitHeld(good, "record of drift is open")
	w.must(t, "git", "approve", name, good, "--reason", "it looks well", "--by", "ida")
	production.waitHeld(good, "record of drift is open")
	if v, err := w.store.ActiveVersion(t.Context(), production.env); err != nil ||
		v != nil && v.Provenance.Commit == good {
		t.Errorf("promoted while staging drifts: %+v, %v", v, err)
	}
	w.must(t, "settings", "set", e.Name, "drift_policy", "heal")
	f := production.waitPromotion("the promotion",
		func(f control.Following) bool { return len(f.Promotions) > 0 && f.Promotions[0].Made > 0 })
	v, err := w.store.ActiveVersion(t.Context(), production.env)
	if err != nil || v == nil || v.Provenance.Commit != good || v.Provenance.Trigger.Type != "promotion" ||
		f.Promotions[0].Made != v.Number {
		t.Fatalf("production has %+v, %v", v, err)
	}
	production.settled()
	if got := production.note(name + "-a"); got != "three" {
		t.Errorf("production's note says %q", got)
	}
	w.must(t, "settings", "set", e.Name, "autostart_agent_repair_interval", "0")
	list := w.must(t, "git", "promotions", name)
	mentions(t, list, "follows      "+e.Name, good, "promoted; it is version",
		"superseded: "+e.Name+" moved on to "+good[:7])

	// A commit that was rolled back in staging is never promoted.
	w.must(t, "git", "pause", name, "--reason", "the fair", "--by", "ida")
	staging.push("a bad idea", staging.named([3]string{"a", "four", "calm"}))
	staging.compiledWell()
	idea := staging.head()
	production.waitHeld(idea, "ida paused promotions: the fair")
	w.must(t, "rollback", e.Name, "--reason", "a bad idea")
	production.waitPromotion("the end of the bad idea", func(f control.Following) bool {
		return f.Waiting() == nil && strings.Contains(f.Idle, "was rolled back")
	})
	if code, _, errs := w.ordain(t, "", "promote", name, idea, "--reason", "all the same"); code == 0 {
		t.Errorf("promoted what was rolled back: %s", errs)
	}
	w.must(t, "git", "resume", name, "--reason", "the fair is over")
	// A person promotes the next one without waiting for its gates.
	staging.push("a better idea", staging.named([3]string{"a", "five", "calm"}))
	staging.compiledWell()
	better := staging.head()
	production.waitHeld(better, "approval")
	mentions(t, w.must(t, "promote", name, better, "--reason", "customers wait", "--by", "ida"), better[:7], "promoted")
	production.waitPromotion("the better idea",
		func(f control.Following) bool { return f.Promotions[0].Made > 0 && f.Promotions[0].Commit == better })
	mentions(t, w.must(t, "override", "history", name), "customers wait", "the fair is over", "approval of this commit")
	page, err := w.store.Compiles(t.Context(), production.env, intent.ListQuery{})
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
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	t.Parallel()
	dir, err := worldDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := (&world{dir: dir}).newPlace(t)
	p.push("a note", mergeFiles(labModule, p.named([3]string{"a", "one", "calm"})))
	c := startChild(t, dir)
	staging := c.bind("file://" + p.bare)
	c.waitDeployed(staging, 1)
	call := func(method, path, env string, body, into any) {
		t.Helper()
		if err := c.client.Call(t.Context(), method, path, env, body, into); err != nil {
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
		map[string]any{"name": "production", "repository": "file://" + p.bare, "branch": "main"}, nil)
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
		waitFor(t, func() bool {
			f = following{}
			err := c.client.Call(t.Context(), http.MethodGet, "/api/v2/git/promotions", production, nil, &f)
			return err == nil && is(f)
		}, func() string { return fmt.Sprintf("want %s, have %+v\n%s", what, f, c.log()) })
		return f
	}
	before := wait("the soak", func(f following) bool {
		return len(f.Promotions) > 0 && strings.Contains(f.Promotions[0].Text, "soak until")
	})
	c.kill()
	c = startChild(t, dir)
	after := wait("the promotion",
		func(f following) bool { return len(f.Promotions) > 0 && f.Promotions[0].State == "promoted" })
	if len(after.Promotions) != 1 || after.Promotions[0].Since != before.Promotions[0].Since ||
		after.Promotions[0].Commit != p.head() {
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
		soaked > soak*time.Second+patience {
		t.Errorf("it soaked %s", soaked)
	}
	c.waitDeployed(production, 1)
	if got := p.note("production-a"); got != "one" {
		t.Errorf("production's note says %q", got)
	}
}
