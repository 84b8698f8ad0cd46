package deploys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/control"
)

// Somebody writes graffiti on a note each time that it was put right, until the server gives up. From then on the
// graffiti stays, and nothing says that the note is deployed: not the list of resources, nor why, nor the drift, nor
// what an environment that follows this one sees. Deploying it takes --unpark, and reaches no other note.
func TestAContestedResourceIsNowhereDeployed(t *testing.T) {
	t.Parallel()
	tool.Long(t, "three pushes and their deployments")
	w := lab.SharedWorld(t)
	p, env := w.NewPlace(t), t.Name()
	p.Push(
		"two notes",
		lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"}, [3]string{"b", "two", "calm"})),
	)
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	w.Must(t, "settings", "set", env, "autostart_agent_repair_interval", "1")
	contested := func() bool { return p.Settled()["a"].State.Parked == intent.ParkedContested }
	p.Until("the note to be contested", func() bool {
		if p.Note("a") != "graffiti" && !contested() {
			scribble(p, "a", "graffiti")
		}
		return contested()
	})
	scribble(p, "a", "graffiti")
	note := "lab::Note[desk,path=" + filepath.Join(p.Site, "a") + "]"
	if out := w.Must(t, "resource", "list", env, "--status", "deployed"); strings.Contains(out, note) {
		t.Errorf("it is listed as deployed:\n%s", out)
	}
	lab.Mentions(t, w.Must(t, "resource", "list", env, "--status", "non_compliant"), note)
	lab.Mentions(
		t,
		w.Must(t, "resource", "why", env, note),
		"It is not deployed",
		"something else keeps changing it back",
	)
	lab.Mentions(t, w.Must(t, "drift", "list", env, "--open"), note, "graffiti")
	leader, err := w.Store.Followed(t.Context(), p.Env)
	if err != nil || leader.Differ != 1 || leader.Drifted != 1 {
		t.Errorf("the gates see %+v, %v", leader, err)
	}
	code, _, errs := w.Ordain(t, "", "resource", "deploy", env, note)
	if code == 0 || !strings.Contains(errs, "contested") || !strings.Contains(errs, "--unpark") {
		t.Errorf("deployed all the same: %d %s", code, errs)
	}
	w.Must(t, "settings", "set", env, "autostart_agent_repair_interval", "0")
	before := len(p.Attempts("b"))
	lab.Mentions(t, w.Must(t, "resource", "deploy", env, note, "--unpark"), note)
	p.Until("the note to be right again", func() bool {
		return p.Note("a") == "one" && p.Settled()["a"].State.Status() == intent.StatusDeployed
	})
	if after := len(p.Attempts("b")); after != before {
		t.Errorf("another resource was deployed %d times", after-before)
	}
	if out := w.Must(t, "drift", "list", env, "--open"); strings.Contains(out, note) {
		t.Errorf("drift is open:\n%s", out)
	}
}

func scribble(p *lab.Place, note, text string) {
	p.T.Helper()
	if err := os.WriteFile(filepath.Join(p.Site, note), []byte(text), 0o644); err != nil {
		p.T.Fatal(err)
	}
}

// Staging took a commit back, which is still the tip of the branch when production is created on the command line to
// follow it. Production never compiles that commit: it gets the fix, once a person has approved it.
func TestANewEnvironmentFollowsBeforeItDeploys(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	w := lab.SharedWorld(t)
	staging := w.NewPlace(t)
	staging.Push("a note", lab.MergeFiles(lab.Module, staging.Named([3]string{"a", "one", "calm"})))
	staging.Bind(intent.Source{URL: "file://" + staging.Bare, Branch: "main"}, nil)
	staging.CompiledWell()
	staging.Settled()
	staging.Push("a mistake", staging.Named([3]string{"a", "bad", "calm"}))
	staging.CompiledWell()
	staging.Settled()
	bad := staging.Head()
	e, err := w.Store.Environment(t.Context(), staging.Env)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Control.RollBack(control.As(t.Context(), "ida", "it is a mistake"), staging.Env, 0); err != nil {
		t.Fatal(err)
	}
	name := "production-of-" + e.Name
	create := func(more ...string) (int, string) {
		code, _, errs := w.Ordain(t, "hush\n", append([]string{
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
	lab.Mentions(t, w.Must(t, "environment", "secrets", name), "webhook")
	all, err := w.Store.Environments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	production := &lab.Place{World: w, T: t, Bare: staging.Bare, Work: staging.Work, Site: staging.Site}
	for _, one := range all {
		if one.Name == name {
			production.Env = one.ID
			if !one.Halted || one.Follows() != e.Name || !one.Bool("follow_approval") || len(one.Tags) != 1 {
				t.Errorf("%+v", one)
			}
		}
	}
	w.Must(t, "environment", "resume", name)
	staging.Push("mend it", staging.Named([3]string{"a", "three", "calm"}))
	staging.CompiledWell()
	good := staging.Head()
	production.WaitHeld(good, "approval of this commit")
	w.Must(t, "git", "approve", name, good, "--reason", "it looks well")
	if c := production.CompiledWell(); c.Revision.Commit != good {
		t.Errorf("the first compile is of %s; the mistake is %s", c.Revision.Commit, bad)
	}
}

// A commit has a mistake. Its dry run says what it is and where, and where the whole report is.
func TestADryRunOfABrokenCommitSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	tool.Long(t, "a push, and three dry runs")
	w := lab.SharedWorld(t)
	p, env := w.NewPlace(t), t.Name()
	p.Push("a note", lab.MergeFiles(lab.Module, p.Model([3]string{"a", "one", "calm"})))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	p.Git("checkout", "-q", "-b", "broken")
	p.Commit("a mistake", map[string]string{"main.cf": "import lab\nlab::Note(path=\"/x\", txt=\"one\")\n"})
	p.Git("push", "-q", "origin", "broken")
	code, out, errs := w.Ordain(t, "", "dryrun", env, "--commit", "broken")
	if code != 3 {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	lab.Mentions(t, out, "main.cf:2", "txt", "lab::Note(path=\"/x\", txt=\"one\")",
		"ordain compile-report show "+env+" ")
}
