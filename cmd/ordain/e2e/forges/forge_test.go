package forges

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/forge/forgetest"
)

// waitForge waits until done reports true. It asks whenever the forge changes.
func waitForge(p *lab.Place, h *lab.Host, what string, done func() bool) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.T.Context(), lab.Patience)
	defer cancel()
	for {
		moved := h.Moved()
		if done() {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			outbox, err := p.Store.Outbox(context.Background(), p.Env, 200)
			pulls, _ := p.Store.PullRequests(context.Background(), p.Env)
			p.T.Fatalf("waited in vain for %s\nstatuses: %+v\noutbox: %+v %v\npulls: %+v\n%s", what, h.Statuses(),
				outbox, err, pulls, p.Story())
		}
	}
}

// waitComment waits until the only comment on a pull request contains all words.
func waitComment(p *lab.Place, h *lab.Host, number int, words ...string) forgetest.Comment {
	p.T.Helper()
	var last forgetest.Comment
	defer func() {
		if p.T.Failed() {
			p.T.Logf("the comment on %d:\n%s", number, last.Body)
		}
	}()
	waitForge(p, h, "a comment with "+strings.Join(words, ", "), func() bool {
		all := h.Comments(number)
		if len(all) == 0 {
			return false
		}
		last = all[0]
		if len(all) > 1 {
			p.T.Fatalf("there are %d comments: %+v", len(all), all)
		}
		for _, w := range words {
			if !strings.Contains(last.Body, w) {
				return false
			}
		}
		return true
	})
	return last
}

// waitStatus waits until a status context of a commit has a state, and returns all
// states that it has had, in order.
func waitStatus(p *lab.Place, h *lab.Host, commit, what, state string) string {
	p.T.Helper()
	name := "ordain/" + strings.NewReplacer("/", "-", " ", "-").Replace(p.T.Name()) + "/" + what
	waitForge(p, h, what+" of "+commit+" "+state, func() bool { return h.Status(commit, name).State == state })
	var all []string
	for _, s := range h.Statuses() {
		if s.Commit == commit && s.Context == name {
			all = append(all, s.State)
		}
	}
	return strings.Join(all, " ")
}

// pauseAgent pauses or resumes the only agent.
func pauseAgent(p *lab.Place, paused bool) {
	p.T.Helper()
	if err := p.Control.PauseAgent(p.T.Context(), p.Env, "desk", paused); err != nil {
		p.T.Fatal(err)
	}
}

// stateNames returns the forge's names for commit states.
func stateNames(h *lab.Host) (pending, failure string) {
	if h.Kind == "gitlab" {
		return "running", "failed"
	}
	return "pending", "failure"
}

// previewOf returns a pull request with its preview, as the server has it.
func previewOf(p *lab.Place, number int) intent.PullRequest {
	p.T.Helper()
	q, err := p.Store.PullRequest(p.T.Context(), p.Env, number)
	if err != nil {
		p.T.Fatal(err)
	}
	return q
}

// wantUntouched fails if what is deployed, or which versions are released, has changed.
func wantUntouched(p *lab.Place, before string) {
	p.T.Helper()
	if after := p.DeployedState() + released(p); after != before {
		p.T.Errorf("previews changed\n%s\nto\n%s", before, after)
	}
}

func released(p *lab.Place) string {
	p.T.Helper()
	page, err := p.Store.Versions(p.T.Context(), p.Env, intent.ListQuery{})
	if err != nil {
		p.T.Fatal(err)
	}
	var b strings.Builder
	for _, v := range page.Items {
		if v.Released != nil {
			fmt.Fprintf(&b, "released %d\n", v.Number)
		}
	}
	return b.String()
}

// A preview changes what is deployed, or its comment is outdated. A pull request lives
// through everything at each forge, with signed webhooks only: it is previewed, pushed
// to, overtaken by its base, and closed. Its one comment is kept up to date, and
// nothing that is deployed changes.
func TestPreviewsOfPullRequests(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"github", "gitlab", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := lab.SharedWorld(t)
			p, h := w.Hosted(t, kind, lab.Module)
			p.Push("two notes", p.Model([3]string{"kept", "one", "calm"}, [3]string{"changed", "one", "calm"}))
			base := p.Head()
			if c := p.CompiledWell(); c.Trigger.Type != "webhook" {
				t.Errorf("a push started a compile by %+v", c.Trigger)
			}
			p.Settled()
			pending, failure := stateNames(h)
			for _, what := range []string{"compile", "deploy"} {
				if said := waitStatus(p, h, base, what, "success"); !strings.HasSuffix(said, "success") {
					t.Errorf("%s: the forge was told %q", what, said)
				}
			}
			before := p.DeployedState() + released(p)

			head := p.Branch("origin", "feature", "main",
				p.Model([3]string{"kept", "one", "calm"}, [3]string{"changed", "two", "calm"}))
			h.Opens(7, "ida", lab.HostRepo, "feature")
			first := waitComment(p, h, 7, "#### Changed", "- text: one", "+ text: two",
				"| 0 | 1 | 0 | 0 | 1 | 0 | 0 |", head[:7])
			dropped := previewOf(p, 7)
			// The author pushes a change; one of the notes is on an unreachable target.
			head = p.Branch(
				"origin",
				"feature",
				"main",
				p.Model([3]string{"kept", "one", "calm"}, [3]string{"changed", "three", "calm"},
					[3]string{"far", "x", "away"}),
			)
			second := waitComment(p, h, 7, "+ text: three", "#### Unknown", "far", "no route to desk",
				"| 0 | 1 | 0 | 0 | 1 | 1 | 0 |", head[:7])
			if second.ID != first.ID || second.Edits == 0 || strings.Contains(second.Body, "two") {
				t.Errorf("the comment was not brought up to date: %+v", second)
			}
			waitPreviewRemoved(p, dropped)
			wantUntouched(p, before)

			// The base branch is pushed to, so the preview is computed again. The deployment
			// is pending while the agent is paused.
			pauseAgent(p, true)
			p.Push("kept moves", p.Model([3]string{"kept", "five", "calm"}, [3]string{"changed", "one", "calm"}))
			base = p.Head()
			p.CompiledWell()
			waitStatus(p, h, base, "deploy", pending)
			pauseAgent(p, false)
			p.Settled()
			waitStatus(p, h, base, "deploy", "success")
			waitComment(p, h, 7, "No preview", "main.cf", head[:7]) // the same lines
			p.Branch("origin", "feature", "main",
				p.Model([3]string{"kept", "five", "calm"}, [3]string{"changed", "three", "calm"}))
			waitComment(p, h, 7, "+ text: three", "| 0 | 1 | 0 | 0 | 1 | 0 | 0 |")
			p.Push("beside", map[string]string{"README": "hello\n"})
			base = p.Head()
			newest := p.CompiledWell()
			waitComment(p, h, 7, "+ text: three", fmt.Sprintf("where version %d is deployed", *newest.Version))
			waitStatus(p, h, base, "compile", "success")

			if kind == "github" {
				previewFromFork(p, h)
				previewByNonWriter(p, h)
			}
			waitStatus(p, h, base, "deploy", "success")
			before = p.DeployedState() + released(p)
			wantUntouched(p, before)
			last := previewOf(p, 7)
			h.Closes(7, kind == "github")
			waitComment(p, h, 7, map[bool]string{true: "merged", false: "closed"}[kind == "github"], "removed")
			waitPreviewRemoved(p, last)
			if kind == "github" { // and its merge is a push
				p.CompiledWell()
				p.Settled()
				if p.Note("changed") != "three" {
					t.Errorf("the merge deployed %q", p.Note("changed"))
				}
			} else {
				wantUntouched(p, before)
			}

			// A commit that cannot be compiled or deployed has a failure as its status.
			p.Git("pull", "-q", "origin", "main")
			p.Push("broken", map[string]string{"main.cf": "import lab\nlab::Nothing(path=3)\n"})
			p.FailsIn("Recompiling configuration model")
			if said := waitStatus(p, h, p.Head(), "compile", failure); !strings.HasSuffix(said, failure) {
				t.Errorf("the forge was told %q", said)
			}
			p.Push("sore", p.Model([3]string{"kept", "five", "calm"}, [3]string{"sore", "x", "raise"}))
			p.CompiledWell()
			p.Settled()
			waitStatus(p, h, p.Head(), "compile", "success")
			waitStatus(p, h, p.Head(), "deploy", failure)
		})
	}
}

// waitPreviewRemoved waits until the version of a preview is removed.
func waitPreviewRemoved(p *lab.Place, q intent.PullRequest) {
	p.T.Helper()
	if q.Preview == nil || q.Preview.Version == 0 {
		p.T.Errorf("there was no preview: %+v", q)
		return
	}
	p.Until("the version of the preview to go", func() bool {
		_, err := p.Store.Version(p.T.Context(), p.Env, q.Preview.Version)
		return fault.Is(err, fault.NotFound)
	})
}

// previewFromFork opens a pull request from a fork. None of its code runs before a
// person approves exactly that commit, from the command line; a later commit needs
// another approval.
func previewFromFork(p *lab.Place, h *lab.Host) {
	t := p.T
	h.Create("mallory/shop")
	fork := h.CloneURL("mallory", "mallory/shop")
	stolen := filepath.Join(p.Site, "..", "stolen")
	evil := map[string]string{
		"libs/lab/plugins/__init__.py": fmt.Sprintf("open(%q, 'w').write('x')\n",
			stolen) + lab.Module["libs/lab/plugins/__init__.py"],
	}
	head := p.Branch(fork, "gift", "main", evil)
	h.Opens(8, "mallory", "mallory/shop", "gift")
	env := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	waitComment(p, h, 8, "Needs approval", "fork", "ordain pull approve "+env+" 8 "+head)
	for want, args := range map[string][]string{
		"somebody approves": {"pull", "preview", env, "8"},
		"was pushed to":     {"pull", "approve", env, "8", lab.Nowhere},
	} {
		if code, _, errs := p.Ordain(t, "", args...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("ordain %v: %d %s", args, code, errs)
		}
	}
	notes := p.Model([3]string{"kept", "five", "calm"}, [3]string{"changed", "one", "calm"},
		[3]string{"gift", "one", "calm"})
	notes["libs/lab/plugins/__init__.py"] = lab.Module["libs/lab/plugins/__init__.py"]
	harmless := p.Branch(fork, "gift", "main", notes)
	waitComment(p, h, 8, "Needs approval", harmless)
	if code, _, errs := p.Ordain(t, "", "pull", "approve", env, "8", head); code == 0 ||
		!strings.Contains(errs, harmless) {
		t.Errorf("a commit that was replaced was approved: %d %s", code, errs)
	}
	if q := previewOf(p, 8); q.Preview != nil || q.Approved != "" {
		t.Errorf("without approval: %+v", q)
	}
	lab.Mentions(t, p.Must(t, "pull", "approve", env, "8", harmless, "--by", "ida"), "approved")
	waitComment(p, h, 8, "#### Created", "gift", "approved by `ida`", harmless[:7])
	notes = p.Model([3]string{"kept", "five", "calm"}, [3]string{"changed", "one", "calm"},
		[3]string{"gift", "two", "calm"})
	later := p.Branch(fork, "gift", "main", notes)
	waitComment(p, h, 8, "Needs approval", later)
	lab.Mentions(t, p.Must(t, "pull", "show", env, "8"), "Needs approval", later)
	if _, err := os.Stat(stolen); err == nil {
		t.Error("code of the fork ran without approval")
	}
	h.Closes(8, false)
	waitComment(p, h, 8, "closed")
	if code, _, errs := p.Ordain(t, "", "pull", "approve", env, "8", later); code == 0 ||
		!strings.Contains(errs, "closed") {
		t.Errorf("a closed one was approved: %d %s", code, errs)
	}
}

// previewByNonWriter opens a pull request of an author who may not write to the
// repository, although the branch is in it. It waits until the author may write.
func previewByNonWriter(p *lab.Place, h *lab.Host) {
	p.Branch("origin", "by-a-guest", "main", map[string]string{"README": "a guest was here\n"})
	h.Opens(9, "guest", lab.HostRepo, "by-a-guest")
	waitComment(p, h, 9, "Needs approval", "may not write")
	h.Writer("guest")
	p.Branch("origin", "by-a-guest", "main", map[string]string{"README": "a writer was here\n"})
	waitComment(p, h, 9, "It would change nothing")
	h.Closes(9, false)
	waitComment(p, h, 9, "closed")
}

// A preview that cannot be computed is silent. One pull request has a broken model, one
// does not merge, and one would take many resources away: each comment says so, and
// nothing that is deployed changes. The server opens a pull request that reverts a
// merged commit.
func TestPreviewsThatCannotBeComputed(t *testing.T) {
	t.Parallel()
	tool.Long(t, "a dozen pull requests")
	w := lab.SharedWorld(t)
	p, h := w.Hosted(t, "github", lab.Module)
	root := p.Head()
	var notes [][3]string
	for i := range 12 {
		notes = append(notes, [3]string{fmt.Sprintf("n%d", i), "one", "calm"})
	}
	p.Push("notes, and a file of mine", lab.MergeFiles(p.Model(notes...), map[string]string{"README": "mine\n"}))
	p.CompiledWell()
	p.Settled()
	before := p.DeployedState() + released(p)
	p.Branch("origin", "wrong", "main", map[string]string{"main.cf": "import lab\n\nlab::Nothing(path=3)\n"})
	p.Branch("origin", "clash", root, map[string]string{"README": "yours\n"})
	p.Branch("origin", "fewer", "main", p.Model(notes[0]))
	h.Opens(1, "ida", lab.HostRepo, "wrong")
	h.Opens(2, "ida", lab.HostRepo, "clash")
	h.Opens(3, "ida", lab.HostRepo, "fewer")
	waitComment(p, h, 1, "No preview", "main.cf:3")
	waitComment(p, h, 2, "No preview", "README (the same lines changed on both sides)")
	waitComment(p, h, 3, "This would be held", "No longer managed", "n11")
	wantUntouched(p, before)
	page, err := p.Control.OpenRevert(t.Context(), p.Env, p.Head(), "it was wrong")
	if err != nil || !strings.HasPrefix(page, h.URL) {
		t.Errorf("%q, %v", page, err)
	}
	if _, err := p.Control.OpenRevert(t.Context(), p.Env, root, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("the first commit was taken back: %v", err)
	}
}

// A preview blocks a deployment, or the other way round. While a compile of the
// environment waits, a preview is computed; while a preview waits, a push is deployed.
func TestAPreviewAndACompileDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	tool.Long(t, "holds compiles and previews back")
	w := lab.SharedWorld(t)
	files := map[string]string{}
	for name, text := range lab.Module {
		files[name] = text
	}
	files["libs/lab/plugins/__init__.py"] += `

@plugin
def gate(path: "string") -> "string":
    open(path + ".waits", "w").close()
    while not os.path.exists(path + ".go"):
        time.sleep(0.02)
    return "open"
`
	p, h := w.Hosted(t, "github", files)
	gate := func(name string) (line string, waits func(), open func()) {
		path := filepath.Join(p.Site, name)
		return fmt.Sprintf("x = lab::gate(%q)\n", path), func() {
				p.Until(name+" to be reached", func() bool { _, err := os.Stat(path + ".waits"); return err == nil })
			}, func() {
				if err := os.WriteFile(path+".go", nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
	}
	note := func(text, suffix string) map[string]string {
		model := p.Model([3]string{"kept", text, "calm"})
		return map[string]string{"main.cf": model["main.cf"] + suffix}
	}
	line, reached, open := gate("compile")
	p.Push("a compile that waits", note("two", line))
	reached()
	head := p.Branch("origin", "quick", "main", note("three", ""))
	h.Opens(1, "ida", lab.HostRepo, "quick")
	waitComment(p, h, 1, "- text: one", "+ text: three", head[:7]) // with the first note, which is deployed still
	if p.Note("kept") != "one" {
		t.Errorf("deployed: %q", p.Note("kept"))
	}
	open()
	p.CompiledWell()
	p.Settled()
	if p.Note("kept") != "two" {
		t.Errorf("deployed: %q", p.Note("kept"))
	}
	waitComment(p, h, 1, "- text: two", "+ text: three") // what it is compared with moved

	line, reached, open = gate("preview")
	head = p.Branch("origin", "slow", "main", note("four", line))
	h.Opens(2, "ida", lab.HostRepo, "slow")
	reached()
	p.Push("a push", note("five", ""))
	p.CompiledWell()
	p.Settled()
	if p.Note("kept") != "five" {
		t.Errorf("deployed: %q", p.Note("kept"))
	}
	if q := previewOf(p, 2); q.PreviewState() != intent.PreviewRunning {
		t.Errorf("the preview is %s", q.PreviewState())
	}
	waitComment(p, h, 2, "Computing", head[:7])
	open()
	waitComment(p, h, 2, "No preview", "main.cf") // its base moved on, on the same lines
}
