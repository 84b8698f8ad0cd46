package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/forge/forgetest"
)

// waitForge waits until done reports true. It asks whenever the forge changes.
func (p *place) waitForge(h *host, what string, done func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		moved := h.Moved()
		if done() {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			outbox, err := p.store.Outbox(context.Background(), p.env, 200)
			pulls, _ := p.store.PullRequests(context.Background(), p.env)
			p.t.Fatalf("waited in vain for %s\nstatuses: %+v\noutbox: %+v %v\npulls: %+v\n%s", what, h.Statuses(),
				outbox, err, pulls, p.story())
		}
	}
}

// waitComment waits until the only comment on a pull request contains all words.
func (p *place) waitComment(h *host, number int, words ...string) forgetest.Comment {
	p.t.Helper()
	var last forgetest.Comment
	defer func() {
		if p.t.Failed() {
			p.t.Logf("the comment on %d:\n%s", number, last.Body)
		}
	}()
	p.waitForge(h, "a comment with "+strings.Join(words, ", "), func() bool {
		all := h.Comments(number)
		if len(all) == 0 {
			return false
		}
		last = all[0]
		if len(all) > 1 {
			p.t.Fatalf("there are %d comments: %+v", len(all), all)
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
func (p *place) waitStatus(h *host, commit, what, state string) string {
	p.t.Helper()
	name := "ordain/" + strings.NewReplacer("/", "-", " ", "-").Replace(p.t.Name()) + "/" + what
	p.waitForge(h, what+" of "+commit+" "+state, func() bool { return h.Status(commit, name).State == state })
	var all []string
	for _, s := range h.Statuses() {
		if s.Commit == commit && s.Context == name {
			all = append(all, s.State)
		}
	}
	return strings.Join(all, " ")
}

// pauseAgent pauses or resumes the only agent.
func (p *place) pauseAgent(paused bool) {
	p.t.Helper()
	if err := p.control.PauseAgent(p.t.Context(), p.env, "desk", paused); err != nil {
		p.t.Fatal(err)
	}
}

// stateNames returns the forge's names for commit states.
func (h *host) stateNames() (pending, failure string) {
	if h.Kind == "gitlab" {
		return "running", "failed"
	}
	return "pending", "failure"
}

// previewOf returns a pull request with its preview, as the server has it.
func (p *place) previewOf(number int) intent.PullRequest {
	p.t.Helper()
	q, err := p.store.PullRequest(p.t.Context(), p.env, number)
	if err != nil {
		p.t.Fatal(err)
	}
	return q
}

// wantUntouched fails if what is deployed, or which versions are released, has changed.
func (p *place) wantUntouched(before string) {
	p.t.Helper()
	if after := p.deployedState() + p.released(); after != before {
		p.t.Errorf("previews changed\n%s\nto\n%s", before, after)
	}
}

func (p *place) released() string {
	p.t.Helper()
	page, err := p.store.Versions(p.t.Context(), p.env, intent.ListQuery{})
	if err != nil {
		p.t.Fatal(err)
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
			w := sharedWorld(t)
			p, h := w.hosted(t, kind, labModule)
			p.push("two notes", p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "one", "calm"}))
			base := p.head()
			if c := p.compiledWell(); c.Trigger.Type != "webhook" {
				t.Errorf("a push started a compile by %+v", c.Trigger)
			}
			p.settled()
			pending, failure := h.stateNames()
			for _, what := range []string{"compile", "deploy"} {
				if said := p.waitStatus(h, base, what, "success"); !strings.HasSuffix(said, "success") {
					t.Errorf("%s: the forge was told %q", what, said)
				}
			}
			before := p.deployedState() + p.released()

			head := p.branch("origin", "feature", "main",
				p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "two", "calm"}))
			h.opens(7, "ida", hostRepo, "feature")
			first := p.waitComment(h, 7, "#### Changed", "- text: one", "+ text: two",
				"| 0 | 1 | 0 | 0 | 1 | 0 | 0 |", head[:7])
			dropped := p.previewOf(7)
			// The author pushes a change; one of the notes is on an unreachable target.
			head = p.branch(
				"origin",
				"feature",
				"main",
				p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "three", "calm"},
					[3]string{"far", "x", "away"}),
			)
			second := p.waitComment(h, 7, "+ text: three", "#### Unknown", "far", "no route to desk",
				"| 0 | 1 | 0 | 0 | 1 | 1 | 0 |", head[:7])
			if second.ID != first.ID || second.Edits == 0 || strings.Contains(second.Body, "two") {
				t.Errorf("the comment was not brought up to date: %+v", second)
			}
			p.waitPreviewRemoved(dropped)
			p.wantUntouched(before)

			// The base branch is pushed to, so the preview is computed again. The deployment
			// is pending while the agent is paused.
			p.pauseAgent(true)
			p.push("kept moves", p.model([3]string{"kept", "five", "calm"}, [3]string{"changed", "one", "calm"}))
			base = p.head()
			p.compiledWell()
			p.waitStatus(h, base, "deploy", pending)
			p.pauseAgent(false)
			p.settled()
			p.waitStatus(h, base, "deploy", "success")
			p.waitComment(h, 7, "No preview", "main.cf", head[:7]) // the same lines
			p.branch("origin", "feature", "main",
				p.model([3]string{"kept", "five", "calm"}, [3]string{"changed", "three", "calm"}))
			p.waitComment(h, 7, "+ text: three", "| 0 | 1 | 0 | 0 | 1 | 0 | 0 |")
			p.push("beside", map[string]string{"README": "hello\n"})
			base = p.head()
			newest := p.compiledWell()
			p.waitComment(h, 7, "+ text: three", fmt.Sprintf("where version %d is deployed", *newest.Version))
			p.waitStatus(h, base, "compile", "success")

			if kind == "github" {
				p.previewFromFork(h)
				p.previewByNonWriter(h)
			}
			p.waitStatus(h, base, "deploy", "success")
			before = p.deployedState() + p.released()
			p.wantUntouched(before)
			last := p.previewOf(7)
			h.closes(7, kind == "github")
			p.waitComment(h, 7, map[bool]string{true: "merged", false: "closed"}[kind == "github"], "removed")
			p.waitPreviewRemoved(last)
			if kind == "github" { // and its merge is a push
				p.compiledWell()
				p.settled()
				if p.note("changed") != "three" {
					t.Errorf("the merge deployed %q", p.note("changed"))
				}
			} else {
				p.wantUntouched(before)
			}

			// A commit that cannot be compiled or deployed has a failure as its status.
			p.git("pull", "-q", "origin", "main")
			p.push("broken", map[string]string{"main.cf": "import lab\nlab::Nothing(path=3)\n"})
			p.failsIn("Recompiling configuration model")
			if said := p.waitStatus(h, p.head(), "compile", failure); !strings.HasSuffix(said, failure) {
				t.Errorf("the forge was told %q", said)
			}
			p.push("sore", p.model([3]string{"kept", "five", "calm"}, [3]string{"sore", "x", "raise"}))
			p.compiledWell()
			p.settled()
			p.waitStatus(h, p.head(), "compile", "success")
			p.waitStatus(h, p.head(), "deploy", failure)
		})
	}
}

// waitPreviewRemoved waits until the version of a preview is removed.
func (p *place) waitPreviewRemoved(q intent.PullRequest) {
	p.t.Helper()
	if q.Preview == nil || q.Preview.Version == 0 {
		p.t.Errorf("there was no preview: %+v", q)
		return
	}
	p.until("the version of the preview to go", func() bool {
		_, err := p.store.Version(p.t.Context(), p.env, q.Preview.Version)
		return fault.Is(err, fault.NotFound)
	})
}

// previewFromFork opens a pull request from a fork. None of its code runs before a
// person approves exactly that commit, from the command line; a later commit needs
// another approval.
func (p *place) previewFromFork(h *host) {
	t := p.t
	h.create("mallory/shop")
	fork := h.url("mallory", "mallory/shop")
	stolen := filepath.Join(p.site, "..", "stolen")
	evil := map[string]string{
		"libs/lab/plugins/__init__.py": fmt.Sprintf("open(%q, 'w').write('x')\n",
			stolen) + labModule["libs/lab/plugins/__init__.py"],
	}
	head := p.branch(fork, "gift", "main", evil)
	h.opens(8, "mallory", "mallory/shop", "gift")
	env := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	p.waitComment(h, 8, "Needs approval", "fork", "ordain pull approve "+env+" 8 "+head)
	for want, args := range map[string][]string{
		"somebody approves": {"pull", "preview", env, "8"},
		"was pushed to":     {"pull", "approve", env, "8", nowhere},
	} {
		if code, _, errs := p.ordain(t, "", args...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("ordain %v: %d %s", args, code, errs)
		}
	}
	notes := p.model([3]string{"kept", "five", "calm"}, [3]string{"changed", "one", "calm"},
		[3]string{"gift", "one", "calm"})
	notes["libs/lab/plugins/__init__.py"] = labModule["libs/lab/plugins/__init__.py"]
	harmless := p.branch(fork, "gift", "main", notes)
	p.waitComment(h, 8, "Needs approval", harmless)
	if code, _, errs := p.ordain(t, "", "pull", "approve", env, "8", head); code == 0 ||
		!strings.Contains(errs, harmless) {
		t.Errorf("a commit that was replaced was approved: %d %s", code, errs)
	}
	if q := p.previewOf(8); q.Preview != nil || q.Approved != "" {
		t.Errorf("without approval: %+v", q)
	}
	mentions(t, p.must(t, "pull", "approve", env, "8", harmless, "--by", "ida"), "approved")
	p.waitComment(h, 8, "#### Created", "gift", "approved by `ida`", harmless[:7])
	notes = p.model([3]string{"kept", "five", "calm"}, [3]string{"changed", "one", "calm"},
		[3]string{"gift", "two", "calm"})
	later := p.branch(fork, "gift", "main", notes)
	p.waitComment(h, 8, "Needs approval", later)
	mentions(t, p.must(t, "pull", "show", env, "8"), "Needs approval", later)
	if _, err := os.Stat(stolen); err == nil {
		t.Error("code of the fork ran without approval")
	}
	h.closes(8, false)
	p.waitComment(h, 8, "closed")
	if code, _, errs := p.ordain(t, "", "pull", "approve", env, "8", later); code == 0 ||
		!strings.Contains(errs, "closed") {
		t.Errorf("a closed one was approved: %d %s", code, errs)
	}
}

// previewByNonWriter opens a pull request of an author who may not write to the
// repository, although the branch is in it. It waits until the author may write.
func (p *place) previewByNonWriter(h *host) {
	p.branch("origin", "by-a-guest", "main", map[string]string{"README": "a guest was here\n"})
	h.opens(9, "guest", hostRepo, "by-a-guest")
	p.waitComment(h, 9, "Needs approval", "may not write")
	h.Writer("guest")
	p.branch("origin", "by-a-guest", "main", map[string]string{"README": "a writer was here\n"})
	p.waitComment(h, 9, "It would change nothing")
	h.closes(9, false)
	p.waitComment(h, 9, "closed")
}

// A preview that cannot be computed is silent. One pull request has a broken model, one
// does not merge, and one would take many resources away: each comment says so, and
// nothing that is deployed changes. The server opens a pull request that reverts a
// merged commit.
func TestPreviewsThatCannotBeComputed(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	p, h := w.hosted(t, "github", labModule)
	root := p.head()
	var notes [][3]string
	for i := range 12 {
		notes = append(notes, [3]string{fmt.Sprintf("n%d", i), "one", "calm"})
	}
	p.push("notes, and a file of mine", mergeFiles(p.model(notes...), map[string]string{"README": "mine\n"}))
	p.compiledWell()
	p.settled()
	before := p.deployedState() + p.released()
	p.branch("origin", "wrong", "main", map[string]string{"main.cf": "import lab\n\nlab::Nothing(path=3)\n"})
	p.branch("origin", "clash", root, map[string]string{"README": "yours\n"})
	p.branch("origin", "fewer", "main", p.model(notes[0]))
	h.opens(1, "ida", hostRepo, "wrong")
	h.opens(2, "ida", hostRepo, "clash")
	h.opens(3, "ida", hostRepo, "fewer")
	p.waitComment(h, 1, "No preview", "main.cf:3")
	p.waitComment(h, 2, "No preview", "README (the same lines changed on both sides)")
	p.waitComment(h, 3, "This would be held", "No longer managed", "n11")
	p.wantUntouched(before)
	page, err := p.control.OpenRevert(t.Context(), p.env, p.head(), "it was wrong")
	if err != nil || !strings.HasPrefix(page, h.URL) {
		t.Errorf("%q, %v", page, err)
	}
	if _, err := p.control.OpenRevert(t.Context(), p.env, root, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("the first commit was taken back: %v", err)
	}
}

// A preview blocks a deployment, or the other way round. While a compile of the
// environment waits, a preview is computed; while a preview waits, a push is deployed.
func TestAPreviewAndACompileDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	files := map[string]string{}
	for name, text := range labModule {
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
	p, h := w.hosted(t, "github", files)
	gate := func(name string) (line string, waits func(), open func()) {
		path := filepath.Join(p.site, name)
		return fmt.Sprintf("x = lab::gate(%q)\n", path), func() {
				p.until(name+" to be reached", func() bool { _, err := os.Stat(path + ".waits"); return err == nil })
			}, func() {
				if err := os.WriteFile(path+".go", nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
	}
	note := func(text, suffix string) map[string]string {
		model := p.model([3]string{"kept", text, "calm"})
		return map[string]string{"main.cf": model["main.cf"] + suffix}
	}
	line, reached, open := gate("compile")
	p.push("a compile that waits", note("two", line))
	reached()
	head := p.branch("origin", "quick", "main", note("three", ""))
	h.opens(1, "ida", hostRepo, "quick")
	p.waitComment(h, 1, "- text: one", "+ text: three", head[:7]) // with the first note, which is deployed still
	if p.note("kept") != "one" {
		t.Errorf("deployed: %q", p.note("kept"))
	}
	open()
	p.compiledWell()
	p.settled()
	if p.note("kept") != "two" {
		t.Errorf("deployed: %q", p.note("kept"))
	}
	p.waitComment(h, 1, "- text: two", "+ text: three") // what it is compared with moved

	line, reached, open = gate("preview")
	head = p.branch("origin", "slow", "main", note("four", line))
	h.opens(2, "ida", hostRepo, "slow")
	reached()
	p.push("a push", note("five", ""))
	p.compiledWell()
	p.settled()
	if p.note("kept") != "five" {
		t.Errorf("deployed: %q", p.note("kept"))
	}
	if q := p.previewOf(2); q.PreviewState() != intent.PreviewRunning {
		t.Errorf("the preview is %s", q.PreviewState())
	}
	p.waitComment(h, 2, "Computing", head[:7])
	open()
	p.waitComment(h, 2, "No preview", "main.cf") // its base moved on, on the same lines
}
