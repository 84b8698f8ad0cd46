package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/servertest"
)

// What operators come for, each in at most three clicks from the list of environments or from the overview of one, and
// read from the screen. Typing is no click; a button that sends a form is one. The tasks are the table "Ten tasks" of
// issue 26, with what that table found missing: cancelling a run, and a search that leads to the commit that failed.
//
// All tasks share one server and one browser, and follow each other: the first ones only read, the last ones need the
// environment that one of them makes.
func TestTasksOfOperators(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	b := browse(t, h)
	b.look(1280, 900, "light")
	const environments = "/"
	overview := envURL(r.Production.ID)

	b.task(t, "find the resource that failed and why", environments, func(p *person) {
		p.click("production")
		p.reads("Not as intended")
		p.click("/srv/www/site-023/index.html", "failed", "fs::File")
		p.reads("No space left on device: /srv/www/site-023/index.html", "failed 3 times in a row", "content")
	})
	b.task(t, "see what drifted", overview, func(p *person) {
		p.click("Drift")
		p.reads("Found", "Desired", "fs::File[web07,path=/srv/www/site-186/index.html]", "mode 600 644", "not yet")
	})
	b.task(t, "see who decided a value", overview, func(p *person) {
		p.click("/srv/www/site-023/index.html", "failed", "fs::File")
		p.reads("Decided", "main.cf:12", "Noor Haddad")
	})
	b.task(t, "compare two versions", overview, func(p *person) {
		p.click("Versions")
		p.click("Changes", "7", "Serve the new landing page")
		p.reads("Version 6 to 7", "1 no longer managed 12 changed 1 added",
			"content: “Hello” → “Welcome” on 10 fs::File",
			"fs::File[web01,path=/srv/www/left.html]")
	})
	b.task(t, "find the commit that failed and why", environments, func(p *person) {
		p.enters("Environment, commit, words", "9f03ab1")
		p.submits(kb.Enter)
		p.reads("Invalid value 'eighty', expected int", "main.cf", "write the number without quotes: port = 80")
	})
	b.task(t, "follow a run", environments, func(p *person) {
		p.click("production")
		p.click("Give the site its own log folder")
		p.reads("running", "Live")
		must(p.t, r.Store.AppendStage(p.t.Context(), installing(p.t, r), "Prepared 3 packages in 12 ms\n", ""))
		moved(r, bus.Compile)
		p.reads("Prepared 3 packages in 12 ms")
	})
	b.task(t, "dry-run a version", overview, func(p *person) {
		p.click("version 7")
		p.click("Dry run")
		p.reads("Dry run of version 7", "of 204 resources processed")
		playDryRun(p.t, r, r.Production.ID)
		p.reads("1 resource", "/srv/www/site-023/index.html", "Hello", "Welcome")
	})
	b.task(t, "change a setting", overview, func(p *person) {
		p.click("Settings")
		p.enters("Find an option", "poll")
		p.enters("Poll the repository every", "45")
		p.click("Save", "git_poll_interval")
		p.reads("Saved", "45")
	})
	b.task(t, "halt and resume", overview, func(p *person) {
		p.click("Halt")
		p.enters("Why it is halted", "the disks are replaced")
		p.click("Halt production")
		p.reads("Nothing is compiled or deployed in production until it is resumed", "the disks are replaced")
		p.click("Resume")
		p.reads("Halt")
		if strings.Contains(p.screen(), "the disks are replaced") {
			p.t.Error("the screen still says that the environment is halted")
		}
	})
	b.task(t, "cancel a run", overview, func(p *person) {
		p.click("Give the site its own log folder")
		p.click("Cancel this run")
		p.enters("Your name", "ida")
		p.enters("Why it is cancelled", "the wrong branch")
		p.click("Cancel the run")
		p.reads("ancelled by ida", "the wrong branch")
	})

	r.Start(t)
	b.task(t, "redeliver a webhook", overview, func(p *person) {
		p.click("Webhooks")
		p.click("push to main", "4c81d20")
		p.click("Redeliver")
		p.reads("The webhook is handled again.", "nothing to do", "it follows the environment staging, not its branch")
	})
	b.task(t, "make a project and an environment", environments, func(p *person) {
		p.click("New environment")
		p.enters("Project", "shop")
		p.enters("Name", "counter")
		p.enters("Git repository", modelAtHand(t)) // it outlives the task
		p.click("Create")
		p.reads("The environment was created.", "counter", "shop")
	})
	b.task(t, "sync", environments, func(p *person) {
		p.click("counter")
		p.click("Sync")
		p.reads("The counter", "succeeded", "the console") // the run moves to its end by itself
	})
	b.task(t, "dry-run a branch", environments, func(p *person) {
		p.click("counter")
		p.click("Versions")
		p.enters("Dry-run a commit, branch or tag", "main")
		p.submits(kb.Enter)
		p.reads("Dry run of commit main", "running")
		playDryRun(p.t, r, environmentNamed(p.t, r, "counter"))
		p.reads("It would change nothing.", "Dry run again")
	})
	b.task(t, "roll back", overview, func(p *person) {
		p.click("Git")
		p.enters("Your name", "ida", "What is wrong with it")
		p.enters("What is wrong with it", "the shop is down")
		p.click("Roll back")
		p.reads("rolled back", "the shop is down")
	})
}

// playDryRun does what the deployer of a server of tests, which only notes what it is told, leaves undone: it looks at
// all resources for the newest dry run, finds that the failed file differs, and ends the dry run.
func playDryRun(t *testing.T, r *servertest.Rich, env intent.EnvironmentID) {
	t.Helper()
	var run intent.DryRun
	if !poll(func() bool {
		runs, err := r.Store.DryRuns(t.Context(), env, 0)
		must(t, err)
		run = runs[0]
		return run.Version > 0 // the version of a branch has to be compiled first
	}) {
		t.Fatal("the dry run got no version")
	}
	resources, err := r.Store.GraphNodes(t.Context(), env, intent.GraphScope{}, 1000)
	must(t, err)
	var diffs []intent.ResourceDiff
	for _, one := range resources {
		diff := intent.ResourceDiff{ID: one.ID, Kind: intent.DiffUnmodified}
		if one.ID == r.FailedFile {
			diff.Kind, diff.Attributes = intent.DiffModified, map[string]intent.AttributeChange{
				"content": {Current: "<p>Hello.</p>", Desired: "<p>Welcome.</p>"},
			}
		}
		diffs = append(diffs, diff)
	}
	must(t, r.Store.AddDryRunDiffs(t.Context(), env, run.ID, diffs))
	must(t, r.Store.EndDryRun(t.Context(), env, run.ID, intent.DryRunDone, "", nil, r.Now()))
	r.Bus.Publish(bus.Event{Environment: env, Topic: bus.DryRun})
}

// environmentNamed returns the id of an environment that was made at the console.
func environmentNamed(t *testing.T, r *servertest.Rich, name string) intent.EnvironmentID {
	t.Helper()
	all, err := r.Store.Environments(t.Context())
	must(t, err)
	for _, e := range all {
		if e.Name == name {
			return e.ID
		}
	}
	t.Fatalf("there is no environment %s", name)
	return intent.EnvironmentID{}
}

// modelAtHand returns the path of a repository with one commit.
func modelAtHand(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "main.cf"), []byte("import std\n"), 0o644))
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	git(t, dir, "add", "main.cf")
	git(t, dir, "commit", "--quiet", "--no-gpg-sign", "--message=The counter")
	return dir
}
