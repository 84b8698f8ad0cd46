package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/webhooks/forge/forgetest"
)

// forged binds a place to a fake forge of a kind, with previews.
func (p *place) forged(kind string) *forgetest.Server {
	p.t.Helper()
	f := forgetest.New(p.t, kind)
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, map[string]string{control.SecretForgeToken: forgetest.Token})
	for name, value := range map[string]any{"forge": kind, "forge_api": f.URL, "pull_previews": "trusted"} {
		if err := p.control.SetSetting(p.t.Context(), p.env, name, value); err != nil {
			p.t.Fatal(err)
		}
	}
	return f
}

// forgeRepository makes the bare repository lie as forges name it.
func (w *world) forgeRepository(t *testing.T) *place {
	p := w.unbound(t)
	p.bare = t.TempDir() + "/acme/shop.git"
	p.git("init", "-q", "--bare", "-b", "main", p.bare)
	p.git("remote", "set-url", "origin", p.bare)
	return p
}

// proposes pushes a branch as the forge shows a pull request, and gives its head.
func (p *place) proposes(f *forgetest.Server, number int, from string, files map[string]string, author string, fork bool) string {
	p.t.Helper()
	p.git("checkout", "-q", "-B", "feature", from)
	p.commit("a change by "+author, files)
	ref := fmt.Sprintf("refs/pull/%d/head", number)
	if f.Kind == "gitlab" {
		ref = fmt.Sprintf("refs/merge-requests/%d/head", number)
	}
	p.git("push", "-q", "-f", "origin", "HEAD:"+ref)
	head := p.head()
	p.git("checkout", "-q", "main")
	f.Put(forgetest.Pull{Number: number, State: "open", Title: "A change", Author: author, Fork: fork, Base: "main", Head: head})
	if err := p.control.PullMoved(p.t.Context(), p.env, number); err != nil {
		p.t.Fatal(err)
	}
	return head
}

// forgeHas waits until something is so at the forge.
func (p *place) forgeHas(f *forgetest.Server, what string, done func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		moved := f.Moved()
		if done() {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			outbox, err := p.control.Outbox(context.Background(), p.env)
			p.t.Fatalf("waited in vain for %s\ncomments: %+v\nstatuses: %+v\noutbox: %+v %v\n%s", what, f.Comments(7), f.Statuses(), outbox, err, p.story())
		}
	}
}

// comment waits until the only comment on a pull request holds all words.
func (p *place) commentHas(f *forgetest.Server, number int, words ...string) forgetest.Comment {
	p.t.Helper()
	var last forgetest.Comment
	p.forgeHas(f, "a comment with "+strings.Join(words, ", "), func() bool {
		all := f.Comments(number)
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

// A pull request that changes one note: while nothing is deployed, its one
// comment tells what would change, and is brought up to date after a force
// push. A fork waits for a person, for each of its commits.
func TestPullRequestsArePreviewedBeforeTheMerge(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"github", "gitlab", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := sharedWorld(t).forgeRepository(t)
			p.push("main", merge(labModule, p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "one", "calm"})))
			base := p.head()
			f := p.forged(kind)
			f.Writer("ida")
			p.compiledWell()
			p.settled()
			good, env := "success", strings.ReplaceAll(t.Name(), "/", "-")
			p.forgeHas(f, "the statuses of the deployed commit", func() bool {
				return f.Status(base, "ordain/"+env+"/compile").State == good && f.Status(base, "ordain/"+env+"/deploy").State == good
			})
			before := p.deployedState()
			head := p.proposes(f, 7, "main", p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "two", "calm"}), "ida", false)
			first := p.commentHas(f, 7, "#### Changed", "- text: one", "+ text: two", "| 0 | 1 | 0 | 0 | 1 | 0 | 0 |", head[:7])
			// The author thinks again.
			head = p.proposes(f, 7, "main", p.model([3]string{"kept", "one", "calm"}, [3]string{"changed", "three", "calm"}, [3]string{"sore", "x", "raise"}), "ida", false)
			second := p.commentHas(f, 7, "+ text: three", "#### Unknown", "pencil", head[:7])
			if second.ID != first.ID || strings.Contains(second.Body, "two") {
				t.Errorf("the comment was not brought up to date: %+v", second)
			}
			if after := p.deployedState(); after != before {
				t.Errorf("a preview changed\n%s\nto\n%s", before, after)
			}
			p.stranger(f, base)
			f.Put(forgetest.Pull{Number: 7, State: "merged", Author: "ida", Base: "main", Head: head})
			if err := p.control.PullMoved(t.Context(), p.env, 7); err != nil {
				t.Fatal(err)
			}
			p.commentHas(f, 7, "merged", "removed")
		})
	}
}

// A pull request whose model is wrong, one that does not merge and one that
// would take much away: each comment says so in words, and nothing deployed changes.
// A commit that was merged is taken back by a pull request of the server's.
func TestWhatAPreviewCannotShow(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).forgeRepository(t)
	var notes [][3]string
	for i := range 12 {
		notes = append(notes, [3]string{fmt.Sprintf("n%d", i), "one", "calm"})
	}
	p.push("main", merge(labModule, p.model(notes...)))
	root := p.head()
	f := p.forged("github")
	f.Writer("ida")
	p.compiledWell()
	p.settled()
	p.push("mine", map[string]string{"README": "mine\n"})
	p.compiledWell()
	p.settled()
	before := p.deployedState()
	p.proposes(f, 1, "main", map[string]string{"main.cf": "import lab\n\nlab::Nothing(path=3)\n"}, "ida", false)
	p.commentHas(f, 1, "No preview", "main.cf:3")
	p.proposes(f, 2, root, map[string]string{"README": "yours\n"}, "ida", false)
	p.commentHas(f, 2, "No preview", "README (the same lines changed on both sides)")
	p.proposes(f, 3, "main", p.model(notes[0]), "ida", false)
	p.commentHas(f, 3, "This would be held", "No longer managed", "n11")
	if after := p.deployedState(); after != before {
		t.Errorf("a preview changed\n%s\nto\n%s", before, after)
	}
	page, err := p.control.OpenRevert(t.Context(), p.env, p.head(), "it was wrong")
	if err != nil || !strings.HasPrefix(page, f.URL) {
		t.Errorf("%q, %v", page, err)
	}
	if _, err := p.control.OpenRevert(t.Context(), p.env, root, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("the first commit was taken back: %v", err)
	}
}

// stranger proposes from a fork: nothing of it runs before a person approves that commit.
func (p *place) stranger(f *forgetest.Server, base string) {
	p.t.Helper()
	ctx := p.t.Context()
	evil := map[string]string{"libs/lab/plugins/__init__.py": "open(" + fmt.Sprintf("%q", p.site+"/stolen") + ", 'w').write('x')\n" + labModule["libs/lab/plugins/__init__.py"]}
	head := p.proposes(f, 8, base, evil, "mallory", true)
	p.commentHas(f, 8, "Needs approval", "fork", "ordain pull approve", head)
	if err := p.control.PreviewPull(ctx, p.env, 8); !fault.Is(err, fault.Conflict) {
		p.t.Errorf("a preview without approval: %v", err)
	}
	if err := p.control.ApprovePull(ctx, p.env, 8, base, "ida"); !fault.Is(err, fault.Conflict) {
		p.t.Errorf("another commit was approved: %v", err)
	}
	if p.note("stolen") == "x" {
		p.t.Fatal("the code of a stranger ran")
	}
	harmless := p.proposes(f, 8, base, p.model([3]string{"gift", "one", "calm"}), "mallory", true)
	p.commentHas(f, 8, "Needs approval", harmless)
	if err := p.control.ApprovePull(ctx, p.env, 8, head, "ida"); !fault.Is(err, fault.Conflict) {
		p.t.Errorf("a commit that was replaced was approved: %v", err)
	}
	if err := p.control.ApprovePull(ctx, p.env, 8, harmless, "ida"); err != nil {
		p.t.Fatal(err)
	}
	p.commentHas(f, 8, "#### Created", "gift", "approved by `ida`")
	later := p.proposes(f, 8, base, p.model([3]string{"gift", "two", "calm"}), "mallory", true)
	p.commentHas(f, 8, "Needs approval", later)
}
