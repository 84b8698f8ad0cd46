package gitsync

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"ordain.dev/ordain/internal/fault"
)

var ada = Identity{Name: "Ada Lovelace", Email: "ada@example.org"}

// put is a Write of one file.
func put(path, content string) Write {
	return Write{Files: []FileChange{{path, []byte(content)}}, Author: ada, Message: "clusters: change " + path}
}

func write(t testing.TB, s *Syncer, src Source, w Write) string {
	t.Helper()
	commit, err := s.Write(context.Background(), src, w)
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	return commit
}

// tip returns what a branch of the origin points to, as git sees it.
func (o *origin) tip(branch string) string {
	o.t.Helper()
	return o.run(o.bare, "rev-parse", "refs/heads/"+branch)
}

// show returns a file of the origin at a revision.
func (o *origin) show(rev, path string) string {
	o.t.Helper()
	return o.run(o.bare, "show", rev+":"+path)
}

// hook installs a hook in the origin.
func (o *origin) hook(name, script string) {
	o.t.Helper()
	path := filepath.Join(o.bare, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		o.t.Fatal(err)
	}
}

// ways are the ways to reach a repository that Write knows.
func ways(t *testing.T, story func(t *testing.T, o *origin, src Source)) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		o := newOrigin(t)
		story(t, o, Source{URL: o.bare, Branch: "main"})
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		o := newOrigin(t)
		o.run(o.bare, "config", "http.receivepack", "true")
		server := o.serve("s3cr3t")
		story(t, o, Source{URL: server.URL + "/origin.git", Branch: "main",
			Credentials: Credentials{Username: "ada", Password: "s3cr3t"}})
	})
	t.Run("ssh", func(t *testing.T) {
		t.Parallel()
		o := newOrigin(t)
		_, src := o.serveSSH()
		story(t, o, src)
	})
}

// A person changes a cluster in the console. The commit is theirs, it is on the branch, and everything else of the
// repository is as it was: other files, executables, links. The mirror knows the commit without another fetch.
func TestWriteCommitsInAPersonsName(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, o *origin, src Source) {
		before := o.push("first", map[string]string{
			"main.cf": "model", "run.sh": "#!/bin/sh", "link": "->main.cf", "clusters/a.yaml": "a: 1",
			"clusters/b.yaml": "b: 1", "clusters-old": "sorts between", "old/gone.yaml": "x"})
		s := newSyncer(t)
		w := Write{Base: before, Author: ada, Message: "clusters: b has two nodes\r\n\r\nAsked for in the console."}
		w.Files = []FileChange{
			{"clusters/b.yaml", []byte("b: 2\n")}, {"clusters/deep/er/c.yaml", []byte("c: 1\n")},
			{"old/gone.yaml", nil}, {"run.sh", []byte("#!/bin/sh\nexit\n")}, {"never/there.yaml", nil}}
		commit := write(t, s, src, w)

		if o.tip("main") != commit {
			t.Fatalf("main is at %s, not at %s", o.tip("main"), commit)
		}
		if !s.Has(src, commit) {
			t.Error("the mirror lacks the commit")
		}
		got := o.run(o.bare, "log", "-1", "--format=%an <%ae>|%cn <%ce>|%P|%B", "main")
		want := "Ada Lovelace <ada@example.org>|Ordain <ordain@localhost>|" + before +
			"|clusters: b has two nodes\n\nAsked for in the console."
		if got != want {
			t.Errorf("the commit is\n%s\nwant\n%s", got, want)
		}
		changed := o.run(o.bare, "diff", "--raw", "--abbrev=1", "--no-renames", before, commit)
		for i, line := range strings.Split(changed, "\n") {
			head, path, _ := strings.Cut(line, "\t")
			fields := strings.Fields(head)
			changed := fmt.Sprint(fields[0], " ", fields[1], " ", fields[4], " ", path)
			want := []string{":100644 100644 M clusters/b.yaml", ":000000 100644 A clusters/deep/er/c.yaml",
				":100644 000000 D old/gone.yaml", ":100755 100755 M run.sh"}
			if i >= len(want) || changed != want[i] {
				t.Errorf("changed: %s", changed)
			}
		}
		o.run(o.bare, "fsck", "--strict", "--no-dangling")

		// The mirror is a correct one: git finds no fault in it, and the next fetch brings nothing new.
		o.run(s.MirrorOf(src), "fsck", "--strict", "--no-dangling")
		rev, report := fetch(t, s, src)
		if rev.Commit != commit || rev.Author != ada.Name || report.Cloned || report.Rebuilt || report.Rewritten {
			t.Errorf("the fetch after it: %+v %+v", rev, report)
		}
		// And the commit can be checked out.
		dir := filepath.Join(t.TempDir(), "checkout")
		checkout(t, s, src, commit, dir)
		wantTree(t, dir, map[string]string{
			"main.cf": "model", "run.sh": "#!/bin/sh\nexit\n", "link": "->main.cf", "clusters/a.yaml": "a: 1",
			"clusters/b.yaml": "b: 2\n", "clusters/deep/er/c.yaml": "c: 1\n", "clusters-old": "sorts between"})

		// Committing the same again changes nothing: a call whose answer was lost may be repeated.
		if again := write(t, s, src, w); again != commit || o.tip("main") != commit {
			t.Errorf("the same again made the commit %s", again)
		}
		// The person who works with git goes on.
		o.git("pull", "-q", "--rebase", "origin", "main")
		after := o.push("second", map[string]string{"main.cf": "model 2"})
		if rev, _ := fetch(t, s, src); rev.Commit != after {
			t.Errorf("the fetch found %s, not %s", rev.Commit, after)
		}
	})
}

// Ten people change ten clusters at once, on two servers that do not share their mirrors. Every change is on the
// branch, in one line of history.
func TestWritersAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, o *origin, src Source) {
		o.push("first", map[string]string{"main.cf": "model"})
		const writers = 10
		one, other := newSyncer(t), newSyncer(t)
		var all sync.WaitGroup
		failed := make([]error, writers)
		for i := range writers {
			s := one
			if i >= 8 { // few, because these may have to try again
				s = other
			}
			all.Go(func() {
				w := put(fmt.Sprintf("clusters/c%d.yaml", i), fmt.Sprintf("n: %d\n", i))
				for {
					_, failed[i] = s.Write(context.Background(), src, w)
					if s == one || !fault.Is(failed[i], fault.Conflict) {
						return
					}
				}
			})
		}
		all.Wait()
		for i, err := range failed {
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
				continue
			}
			if got := o.show("main", fmt.Sprintf("clusters/c%d.yaml", i)); got != fmt.Sprintf("n: %d", i) {
				t.Errorf("writer %d: %q", i, got)
			}
		}
		if n := o.run(o.bare, "rev-list", "--count", "--first-parent", "main"); n != fmt.Sprint(writers+1) {
			t.Errorf("%s commits, want %d", n, writers+1)
		}
		for _, s := range []*Syncer{one, other} {
			if rev, _ := fetch(t, s, src); rev.Commit != o.tip("main") {
				t.Error("a mirror is behind")
			}
		}
	})
}

// Somebody pushes in the moment between our look at the branch and our push. The commit is made again on top of theirs.
// When that happens each time, Write gives up and says so.
func TestWriteTriesAgainWhenSomebodyPushes(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.push("first", map[string]string{"main.cf": "model", "clusters/a.yaml": "a: 1"})
	_, src := o.serveSSH()
	// The hook of the origin runs when our push arrives; it moves the branch once before git looks at it again.
	o.hook("pre-receive", `[ -e once ] && exit 0
touch once
unset GIT_QUARANTINE_PATH
git update-ref refs/heads/main refs/heads/theirs
`)
	o.git("checkout", "-q", "-b", "theirs")
	o.write(map[string]string{"other.cf": "theirs"})
	o.git("add", "-A")
	o.git("commit", "-q", "-m", "theirs")
	theirs := o.head()
	o.run(o.bare, "fetch", "-q", o.work, "theirs:theirs")
	commit := write(t, newSyncer(t), src, put("clusters/a.yaml", "a: 2\n"))
	if parent := o.run(o.bare, "rev-parse", "main^"); parent != theirs || o.tip("main") != commit {
		t.Errorf("the commit is on %s, not on theirs", parent)
	}

	o.hook("pre-receive", `unset GIT_QUARANTINE_PATH
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x
next=$(env -u GIT_OBJECT_DIRECTORY -u GIT_ALTERNATE_OBJECT_DIRECTORIES git commit-tree -m busy -p main main^{tree})
env -u GIT_OBJECT_DIRECTORY -u GIT_ALTERNATE_OBJECT_DIRECTORIES git update-ref refs/heads/main $next
echo x >>tries
`)
	_, err := newSyncer(t).Write(context.Background(), src, put("clusters/a.yaml", "a: 3\n"))
	wantFault(t, err, fault.Conflict, "others pushed", "5 times")
	if tries, _ := os.ReadFile(filepath.Join(o.bare, "tries")); len(tries) != 2*maxWrites {
		t.Errorf("it tried %d times", len(tries)/2)
	}
}

// Somebody else changed the cluster after the person read it. Nothing is committed, and the file is named. Changes of
// other files do not matter.
func TestWriteRefusesToOverwriteWhatChangedSince(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, o *origin, src Source) {
		read := o.push("first", map[string]string{"clusters/a.yaml": "a: 1", "clusters/b.yaml": "b: 1",
			"clusters/c.yaml": "c"})
		o.push("by somebody else", map[string]string{"clusters/b.yaml": "b: 2", "clusters/c.yaml": "",
			"clusters/d.yaml": "d"})
		s := newSyncer(t)
		for _, changed := range []string{"clusters/b.yaml", "clusters/c.yaml", "clusters/d.yaml"} {
			w := put("clusters/a.yaml", "a: 2\n")
			w.Base = read
			w.Files = append(w.Files, FileChange{changed, []byte("mine")})
			tip := o.tip("main")
			_, err := s.Write(context.Background(), src, w)
			wantFault(t, err, fault.Conflict, changed+" changed since commit "+short(read))
			if strings.Contains(err.Error(), "a.yaml") || o.tip("main") != tip {
				t.Errorf("%s: %v", changed, err)
			}
		}
		w := put("clusters/a.yaml", "a: 2\n")
		w.Base = read
		write(t, s, src, w)
		if o.show("main", "clusters/b.yaml") != "b: 2" {
			t.Error("the change of the other was lost")
		}
		w.Base = strings.Repeat("1", 40)
		w.Files[0].Content = []byte("a: 3\n")
		_, err := s.Write(context.Background(), src, w)
		wantFault(t, err, fault.Conflict, "does not have commit 1111111")
	})
}

// The forge protects the branch. The fault says so in a way that programs recognize, with the forge's own words; and
// the commit can go to a new branch instead.
func TestWriteSaysThatABranchIsProtected(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, o *origin, src Source) {
		before := o.push("first", map[string]string{"main.cf": "model"})
		o.hook("pre-receive", `while read old new ref; do
	if [ "$ref" = refs/heads/main ]; then
		echo "GH006: Protected branch update failed for $ref." >&2
		echo "At least 1 approving review is required." >&2
		exit 1
	fi
done
`)
		s := newSyncer(t)
		w := put("clusters/a.yaml", "a: 1\n")
		_, err := s.Write(context.Background(), src, w)
		wantFault(t, err, fault.Forbidden, "branch main", "GH006", "At least 1 approving review is required.",
			"pre-receive hook declined", "pull request")
		if !errors.Is(err, ErrProtected) {
			t.Errorf("%v is not ErrProtected", err)
		}
		if rev, _ := fetch(t, s, src); rev.Commit != before || o.tip("main") != before {
			t.Error("the branch moved")
		}
		w.NewBranch = "ordain/cluster-a"
		commit := write(t, s, src, w)
		if o.tip("ordain/cluster-a") != commit || o.tip("main") != before ||
			o.run(o.bare, "rev-parse", commit+"^") != before {
			t.Error("the new branch is not right")
		}
		src.Branch = "ordain/cluster-a"
		if rev, _ := fetch(t, s, src); rev.Commit != commit {
			t.Error("the fetch does not find the new branch")
		}
		w.Branch = "main"
		_, err = s.Write(context.Background(), src, w)
		wantFault(t, err, fault.Conflict, `"ordain/cluster-a" exists already`)
		o.run(s.MirrorOf(src), "fsck", "--strict", "--no-dangling")
	})
}

// The credentials may only read, as deploy keys usually do.
func TestWriteSaysThatTheCredentialsMayOnlyRead(t *testing.T) {
	t.Parallel()
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		o := newOrigin(t)
		o.push("first", map[string]string{"main.cf": "model"})
		src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main"}
		_, err := newSyncer(t).Write(context.Background(), src, put("a", "a")) // git http-backend says 403
		wantFault(t, err, fault.Forbidden, "may only be read")
	})
	t.Run("http with credentials", func(t *testing.T) {
		t.Parallel()
		o := newOrigin(t)
		o.push("first", map[string]string{"main.cf": "model"})
		backend := o.serve("s3cr3t")
		for _, code := range []int{401, 403, 404} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.String(), "receive-pack") {
					w.WriteHeader(code)
					return
				}
				backend.Config.Handler.ServeHTTP(w, r)
			}))
			defer server.Close()
			src := Source{URL: server.URL + "/origin.git", Branch: "main",
				Credentials: Credentials{Username: "ada", Password: "s3cr3t"}}
			_, err := newSyncer(t).Write(context.Background(), src, put("a", "a"))
			wantFault(t, err, fault.Forbidden, "may only be read", "write access")
		}
	})
	t.Run("http without credentials", func(t *testing.T) {
		t.Parallel()
		o := newOrigin(t)
		o.push("first", map[string]string{"main.cf": "model"})
		backend := o.serve("")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.String(), "receive-pack") {
				w.WriteHeader(401)
				return
			}
			backend.Config.Handler.ServeHTTP(w, r)
		}))
		defer server.Close()
		src := Source{URL: server.URL + "/origin.git", Branch: "main"}
		_, err := newSyncer(t).Write(context.Background(), src, put("a", "a"))
		wantFault(t, err, fault.Unauthorized, "asks for credentials")
	})
	t.Run("ssh", func(t *testing.T) {
		t.Parallel()
		for _, said := range []string{
			"ERROR: The key you are authenticating with has been marked as read only.",
			"ERROR: This deploy key does not have write access to this project.",
			"Forgejo: Key: 1:ordain is not authorized to write to ada/shop.",
		} {
			o := newOrigin(t)
			o.push("first", map[string]string{"main.cf": "model"})
			server, src := o.serveSSH()
			server.change(func(s *sshd) {
				s.run = func(command string, ch ssh.Channel) uint32 {
					if strings.HasPrefix(command, "git-receive-pack") {
						fmt.Fprintln(ch.Stderr(), said)
						return 1
					}
					return s.shell(command, ch)
				}
			})
			_, err := newSyncer(t).Write(context.Background(), src, put("a", "a"))
			wantFault(t, err, fault.Forbidden, "may only be read", said, "key")
		}
	})
}

// What cannot be committed on: a branch that is gone, a tag, a commit, and the branch of a working copy.
func TestWriteNeedsABranch(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.push("first", map[string]string{"main.cf": "model"})
	o.git("tag", "v1.0.0")
	o.git("push", "-q", "origin", "v1.0.0", "main:refs/heads/short")
	s := newSyncer(t)
	ctx := context.Background()
	fetch(t, s, Source{URL: o.bare, Branch: "short"})
	o.git("push", "-q", "origin", ":short")
	_, err := s.Write(ctx, Source{URL: o.bare, Branch: "short"}, put("a", "a"))
	wantFault(t, err, fault.NotFound, `no branch or tag "short"`)
	for _, branch := range []string{"v1.0.0", "semver:^1", "refs/tags/v1.0.0"} {
		_, err := s.Write(ctx, Source{URL: o.bare, Branch: branch}, put("a", "a"))
		wantFault(t, err, fault.Conflict, "not a branch")
	}
	_, err = s.Write(ctx, Source{URL: o.bare, Branch: first}, put("a", "a"))
	if err == nil {
		t.Error("a commit was committed on")
	}
	_, err = s.Write(ctx, Source{URL: o.work, Branch: "main"}, put("a", "a"))
	wantFault(t, err, fault.Conflict, "checked out", "bare repository")
	if errors.Is(err, ErrProtected) {
		t.Error("a pull request would not help")
	}
	// The default branch is a branch, too.
	if commit := write(t, s, Source{URL: o.bare}, put("a", "a")); o.tip("main") != commit {
		t.Error("the default branch did not move")
	}
	// An environment that follows a tag may name the branch.
	w := put("b", "b")
	w.Branch = "main"
	if commit := write(t, s, Source{URL: o.bare, Branch: "v1.0.0"}, w); o.tip("main") != commit {
		t.Error("the branch did not move")
	}
}

// Mirrors of one branch, and with a shortened history, take commits too.
func TestWriteIntoASmallMirror(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for i := range 5 {
		o.push("again", map[string]string{"main.cf": fmt.Sprint("model ", i)})
	}
	o.git("push", "-q", "origin", "HEAD:refs/heads/other")
	o.run(o.bare, "config", "http.receivepack", "true")
	src := Source{URL: o.serve("").URL + "/origin.git", Branch: "main", Depth: 2, Only: "main"}
	s := newSyncer(t)
	commit := write(t, s, src, put("a", "a\n"))
	w := put("b", "b\n")
	w.NewBranch = "ordain/b"
	aside := write(t, s, src, w)
	for range 2 {
		if rev, _ := fetch(t, s, src); rev.Commit != commit || o.tip("ordain/b") != aside {
			t.Errorf("fetched %s", rev.Commit)
		}
	}
	if commit = write(t, s, src, put("c", "c\n")); o.tip("main") != commit {
		t.Error("the second commit is not there")
	}
	o.run(o.bare, "fsck", "--strict", "--no-dangling")
}
