package gitsync

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// signs makes a key, configures the working copy to sign with it, and returns its line of
// allowed signers.
func (o *origin) signs(name string) string {
	o.t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		tool.Missing(o.t, "there is no ssh-keygen")
	}
	key := filepath.Join(o.t.TempDir(), "key")
	if out, err := exec.Command(
		"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key,
	).CombinedOutput(); err != nil {
		o.t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		o.t.Fatal(err)
	}
	o.git("config", "gpg.format", "ssh")
	o.git("config", "user.signingkey", key)
	return name + " " + string(public)
}

func (o *origin) commit(message string, options ...string) string {
	o.t.Helper()
	o.git(append([]string{"commit", "-q", "--allow-empty", "-m", message}, options...)...)
	return o.git("rev-parse", "HEAD")
}

// judge fetches a source, and verifies its commit against a policy.
func judge(t *testing.T, s *Syncer, src Source, p intent.GitPolicy) (intent.Signer, error) {
	t.Helper()
	rev, _ := fetch(t, s, src)
	return s.Verify(t.Context(), src, rev, p)
}

func wantRefusal(t *testing.T, err error, kind intent.GitKind, words ...string) {
	t.Helper()
	r := (*intent.Refusal)(nil)
	if !errors.As(err, &r) || r.Kind != kind {
		t.Errorf("the answer is %v, want a refusal of kind %s", err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the refusal does not say %q: %v", w, err)
		}
	}
}

// The tip must be signed, or every commit since the deployed one, including those that a
// merge brings, as the policy asks.
func TestSignedCommits(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	src := Source{URL: o.bare, Branch: "main"}
	set := o.signs("ada@example.com")
	tip, all := intent.GitPolicy{Verify: VerifyTip, Signers: set}, intent.GitPolicy{Verify: VerifyAll, Signers: set}

	base := o.commit("unsigned, long ago")
	o.git("push", "-q", "origin", "HEAD")
	_, err := judge(t, s, src, tip)
	wantRefusal(t, err, intent.GitUnsigned, "not signed", "git_allowed_signers")
	all.Base = base

	o.commit("signed", "-S")
	o.git("push", "-q", "origin", "HEAD")
	for _, p := range []intent.GitPolicy{tip, all} {
		if who, err := judge(t, s, src, p); err != nil || who.Name != "ada@example.com" {
			t.Errorf("%s: signed by %+v, %v", p.Verify, who, err)
		}
	}

	o.git("checkout", "-q", "-b", "side", base)
	o.commit("slipped in")
	o.git("checkout", "-q", "main")
	o.git("merge", "-q", "-S", "--no-ff", "-m", "merge side", "side")
	o.git("push", "-q", "origin", "HEAD")
	if _, err := judge(t, s, src, tip); err != nil {
		t.Errorf("the tip is signed: %v", err)
	}
	_, err = judge(t, s, src, all)
	wantRefusal(t, err, intent.GitUnsigned, "Ada", "not signed")

	all.Base = o.git("rev-parse", "HEAD")
	if _, err := judge(t, s, src, all); err != nil {
		t.Errorf("what is deployed already is held against the policy again: %v", err)
	}
}

// A signed tag counts only under the name that it was made with, and for its commit.
func TestSignedTags(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	policy := intent.GitPolicy{Verify: VerifyTags, Signers: o.signs("ada@example.com")}
	o.commit("one")
	o.git("tag", "-s", "-m", "first", "v1")
	o.git("tag", "-a", "-m", "not signed", "v2")
	o.git("tag", "light")
	v1 := o.git("rev-parse", "refs/tags/v1")
	o.git("push", "-q", "origin", "HEAD", "--tags", v1+":refs/tags/v9")
	who, err := judge(t, s, Source{URL: o.bare, Branch: "v1"}, policy)
	if err != nil || who.Name != "ada@example.com" {
		t.Errorf("v1 is signed by %+v, %v", who, err)
	}
	for tag, words := range map[string]string{
		"v2": "not signed", "light": "not annotated", "v9": "passed off", "main": "named by no tag",
	} {
		_, err := judge(t, s, Source{URL: o.bare, Branch: tag}, policy)
		wantRefusal(t, err, intent.GitUnsigned, words)
	}
}

func TestRewrittenHistoryIsRefused(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	src := Source{URL: o.bare, Branch: "main"}
	first := o.commit("first")
	deployed := o.commit("deployed")
	o.git("push", "-q", "origin", "HEAD")
	if _, err := judge(t, s, src, intent.GitPolicy{Base: deployed}); err != nil {
		t.Error(err)
	}
	o.commit("more")
	o.git("push", "-q", "origin", "HEAD")
	if _, err := judge(t, s, src, intent.GitPolicy{Base: deployed}); err != nil {
		t.Error(err)
	}
	o.git("reset", "-q", "--hard", first)
	o.git("push", "-q", "--force", "origin", "HEAD")
	_, err := judge(t, s, src, intent.GitPolicy{Base: deployed})
	wantRefusal(t, err, intent.GitRewritten, "does not descend from "+deployed[:7], "ordain git accept")
	o.commit("another")
	o.git("push", "-q", "--force", "origin", "HEAD")
	_, err = judge(t, s, src, intent.GitPolicy{Base: deployed})
	wantRefusal(t, err, intent.GitRewritten)
	if _, err := judge(t, s, src, intent.GitPolicy{Base: deployed, Rewrites: true}); err != nil {
		t.Errorf("it is followed all the same: %v", err)
	}
}

func TestOnlySomeRefsMayBeDeployed(t *testing.T) {
	o, s := newOrigin(t), newSyncer(t)
	main := o.commit("on main")
	o.git("push", "-q", "origin", "HEAD")
	o.git("checkout", "-q", "-b", "feature/x")
	side := o.commit("on the side")
	o.git("tag", "v1")
	o.git("push", "-q", "origin", "HEAD", "--tags")
	for _, c := range []struct {
		branch, refs string
		refused      bool
	}{
		{"main", "main", false},
		{"", "main", false},
		{"feature/x", "main", true},
		{"feature/x", "feature/*", false},
		{"v1", "main", true},
		{"v1", "refs/tags/v*", false},
		{main, "main", false},
		{side, "main", true},
	} {
		_, err := judge(t, s, Source{URL: o.bare, Branch: c.branch}, intent.GitPolicy{Refs: []string{c.refs}})
		switch {
		case c.refused:
			wantRefusal(t, err, intent.GitProtected, c.refs)
		case err != nil:
			t.Errorf("%q with %q: %v", c.branch, c.refs, err)
		}
	}
}

// For histories with merges and wrong clocks, since agrees with git rev-list and git
// merge-base.
func TestSinceAgreesWithGit(t *testing.T) {
	tool.Long(t, "asks git about many histories")
	o, s := newOrigin(t), newSyncer(t)
	random := rand.New(rand.NewPCG(3, 4))
	var script strings.Builder // one process for all: fast-import
	const many = 60
	for i := range many {
		fmt.Fprintf(&script, "commit refs/heads/c%d\nmark :%d\ncommitter A <a@x> %d +0000\ndata 1\nx\n", i, i+1,
			1_700_000_000+random.IntN(400))
		if i == 0 {
			continue
		}
		from := random.IntN(i)
		fmt.Fprintf(&script, "from :%d\n", from+1)
		if other := random.IntN(i); other != from && random.IntN(3) == 0 {
			fmt.Fprintf(&script, "merge :%d\n", other+1)
		}
	}
	o.feed(script.String(), "fast-import", "--quiet")
	o.git("push", "-q", "origin", "refs/heads/*:refs/heads/*")
	src := Source{URL: o.bare, Branch: "c0"}
	fetch(t, s, src)
	p, err := src.locate()
	if err != nil {
		t.Fatal(err)
	}
	m, err := openMirror(s.MirrorPath(p.shown))
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	for range 150 {
		tip, base := random.IntN(many), random.IntN(many)
		a, b := o.git("rev-parse", fmt.Sprintf("c%d", tip)), o.git("rev-parse", fmt.Sprintf("c%d", base))
		want := strings.Fields(o.git("rev-list", a, "^"+b))
		fresh, descends, err := m.since(t.Context(), plumbing.NewHash(a), plumbing.NewHash(b))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range fresh {
			got = append(got, c.Hash.String())
		}
		// Wrong clocks may make it look at more, never at less.
		for _, h := range want {
			if !slices.Contains(got, h) {
				t.Errorf("c%d since c%d: %s is left out", tip, base, h)
			}
		}
		if ancestor := o.git("merge-base", a, b) == b; ancestor != descends {
			t.Errorf("c%d descends from c%d: %v, git says %v", tip, base, descends, ancestor)
		}
	}
}

// What is deployed was fetched by another process. The mirror of this one was made later,
// with a depth that does not reach back to it: that is not a rewritten history. A commit
// that the mirror lacks says so, too.
func TestAMirrorThatBeginsLater(t *testing.T) {
	t.Parallel()
	o, s := newOrigin(t), newSyncer(t)
	deployed := o.push("one", map[string]string{"a": "1"})
	o.push("two", map[string]string{"a": "2"})
	o.push("three", map[string]string{"a": "3"})
	src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main", Depth: 1}
	policy := intent.GitPolicy{Base: deployed}
	if _, err := judge(t, s, src, policy); err != nil {
		t.Errorf("a commit that descends from the deployed one: %v", err)
	}
	o.git("checkout", "-q", "--orphan", "other")
	o.commit("another beginning")
	o.git("push", "-q", "--force", "origin", "other:main")
	_, err := judge(t, s, src, policy)
	wantRefusal(t, err, intent.GitRewritten)
	src.Depth = 0
	tip, _ := fetch(t, s, src)
	policy.Base = tip.Commit
	unseen := intent.Revision{Commit: o.push("four", map[string]string{"a": "4"}), Branch: "main"}
	_, err = s.Verify(t.Context(), src, unseen, policy)
	if !fault.Is(err, fault.Unavailable) ||
		!strings.Contains(fmt.Sprint(errors.Unwrap(err)), "does not have the commit") {
		t.Errorf("a commit that was not fetched: %v", err)
	}
}
