package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
)

// Somebody writes graffiti on a note each time that it was put right, until the server gives up. From then on the
// graffiti stays, and nothing says that the note is deployed: not the list of resources, nor why, nor the drift, nor
// what an environment that follows this one sees. Deploying it takes --unpark, and reaches no other note.
func TestAContestedResourceIsNowhereDeployed(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	p, env := w.newPlace(t), t.Name()
	p.push("two notes", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"}, [3]string{"b", "two", "calm"})))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	w.must(t, "settings", "set", env, "autostart_agent_repair_interval", "1")
	contested := func() bool { return p.settled()["a"].State.Parked == intent.ParkedContested }
	p.until("the note to be contested", func() bool {
		if p.note("a") != "graffiti" && !contested() {
			p.scribble("a", "graffiti")
		}
		return contested()
	})
	p.scribble("a", "graffiti")
	note := "lab::Note[desk,path=" + filepath.Join(p.site, "a") + "]"
	if out := w.must(t, "resource", "list", env, "--status", "deployed"); strings.Contains(out, note) {
		t.Errorf("it is listed as deployed:\n%s", out)
	}
	mentions(t, w.must(t, "resource", "list", env, "--status", "non_compliant"), note)
	mentions(t, w.must(t, "resource", "why", env, note), "It is not deployed", "something else keeps changing it back")
	mentions(t, w.must(t, "drift", "list", env, "--open"), note, "graffiti")
	leader, err := w.store.Followed(t.Context(), p.env)
	if err != nil || leader.Differ != 1 || leader.Drifted != 1 {
		t.Errorf("the gates see %+v, %v", leader, err)
	}
	code, _, errs := w.ordain(t, "", "resource", "deploy", env, note)
	if code == 0 || !strings.Contains(errs, "contested") || !strings.Contains(errs, "--unpark") {
		t.Errorf("deployed all the same: %d %s", code, errs)
	}
	w.must(t, "settings", "set", env, "autostart_agent_repair_interval", "0")
	before := len(p.attempts("b"))
	mentions(t, w.must(t, "resource", "deploy", env, note, "--unpark"), note)
	p.until("the note to be right again", func() bool {
		return p.note("a") == "one" && p.settled()["a"].State.Status() == intent.StatusDeployed
	})
	if after := len(p.attempts("b")); after != before {
		t.Errorf("another resource was deployed %d times", after-before)
	}
	if out := w.must(t, "drift", "list", env, "--open"); strings.Contains(out, note) {
		t.Errorf("drift is open:\n%s", out)
	}
}

func (p *place) scribble(note, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.site, note), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// Staging took a commit back, which is still the tip of the branch when production is created on the command line to
// follow it. Production never compiles that commit: it gets the fix, once a person has approved it.
func TestANewEnvironmentFollowsBeforeItDeploys(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	staging := w.newPlace(t)
	staging.push("a note", mergeFiles(labModule, staging.named([3]string{"a", "one", "calm"})))
	staging.bind(intent.Source{URL: "file://" + staging.bare, Branch: "main"}, nil)
	staging.compiledWell()
	staging.settled()
	staging.push("a mistake", staging.named([3]string{"a", "bad", "calm"}))
	staging.compiledWell()
	staging.settled()
	bad := staging.head()
	e, err := w.store.Environment(t.Context(), staging.env)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.control.RollBack(control.As(t.Context(), "ida", "it is a mistake"), staging.env, 0); err != nil {
		t.Fatal(err)
	}
	name := "production-of-" + e.Name
	create := func(more ...string) (int, string) {
		code, _, errs := w.ordain(t, "hush\n", append([]string{
			"environment", "create", name, "--project", e.ProjectName, "--repo", e.Source.URL, "--branch", "main",
		}, more...)...)
		return code, errs
	}
	if code, errs := create("--follow", "nobody"); code == 0 || !strings.Contains(errs, "no environment nobody") {
		t.Errorf("%d %s", code, errs)
	}
	if code, errs := create("--signer", "nonsense"); code == 0 || !strings.Contains(errs, "git_allowed_signers") {
		t.Errorf("%d %s", code, errs)
	}
	if code, errs := create("--secret", "webhook"); code != 2 || !strings.Contains(errs, "NAME=FILE") {
		t.Errorf("%d %s", code, errs)
	}
	code, errs := create("--follow", e.Name, "--halted", "--setting", "follow_approval=true",
		"--setting", "git_poll_interval=1", "--secret", "webhook=-", "--tag", "live")
	if code != 0 {
		t.Fatal(errs)
	}
	mentions(t, w.must(t, "environment", "secrets", name), "webhook")
	all, err := w.store.Environments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	production := &place{world: w, t: t, bare: staging.bare, work: staging.work, site: staging.site}
	for _, one := range all {
		if one.Name == name {
			production.env = one.ID
			if !one.Halted || one.Follows() != e.Name || !one.Bool("follow_approval") || len(one.Tags) != 1 {
				t.Errorf("%+v", one)
			}
		}
	}
	w.must(t, "environment", "resume", name)
	staging.push("mend it", staging.named([3]string{"a", "three", "calm"}))
	staging.compiledWell()
	good := staging.head()
	production.waitHeld(good, "approval of this commit")
	w.must(t, "git", "approve", name, good, "--reason", "it looks well")
	if c := production.compiledWell(); c.Revision.Commit != good {
		t.Errorf("the first compile is of %s; the mistake is %s", c.Revision.Commit, bad)
	}
}

// A commit has a mistake. Its dry run says what it is and where, and where the whole report is.
func TestADryRunOfABrokenCommitSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	p, env := w.newPlace(t), t.Name()
	p.push("a note", mergeFiles(labModule, p.model([3]string{"a", "one", "calm"})))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	p.git("checkout", "-q", "-b", "broken")
	p.commit("a mistake", map[string]string{"main.cf": "import lab\nlab::Note(path=\"/x\", txt=\"one\")\n"})
	p.git("push", "-q", "origin", "broken")
	code, out, errs := w.ordain(t, "", "dryrun", env, "--commit", "broken")
	if code != 3 {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	mentions(t, out, "main.cf:2", "txt", "lab::Note(path=\"/x\", txt=\"one\")",
		"ordain compile-report show "+env+" ")
}
