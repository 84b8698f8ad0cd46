package target

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/layout"
	"ordain.dev/ordain/server/agent/protocol"
)

// An agent joins, gets a module, deploys a resource with it, and answers. The answer stays on its disk until it is
// recorded; a command that comes twice runs once; a handler's call reaches the server.
func TestACommandRunsOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now())
	c, _ := inProcess(t, s, nil)
	l := s.link()
	for file, mode := range map[string]os.FileMode{
		"agent": 0o700, "agent/identity.pem": 0o600, "agent/journal": 0o600,
	} {
		if info, err := os.Stat(filepath.Join(c.StateDir, file)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v (%v)", file, info.Mode().Perm(), mode, err)
		}
	}
	b, needs := l.blueprint(l.hello.Machine.Pythons[0])
	file := filepath.Join(t.TempDir(), "ran")
	m := deployment(1, b, needs, "a", file, "ask")
	m.Payload.Variables = map[string]string{"TOKEN": "correct horse"}
	l.send(m)
	call := await[*protocol.CallMessage](l)
	if call.ID != m.ID || call.Method != "get_param" {
		t.Errorf("the handler called %+v", call)
	}
	l.send(protocol.ReturnedMessage{
		Type: protocol.Returned, ID: m.ID, Call: call.Call, Code: http.StatusNotFound, Body: json.RawMessage("{}"),
	})
	a := l.answer(m.ID)
	if a.Status != "deployed" || a.Change != "updated" || !strings.Contains(text(a), "the server says 404") {
		t.Errorf("the answer is %s", text(a))
	}
	l.send(m) // it knows the answer
	if again := l.answer(m.ID); again.DurationMS != a.DurationMS {
		t.Errorf("the second answer differs: %s", text(again))
	}
	answer := filepath.Join(c.StateDir, "agent", "answers", m.ID)
	if _, err := os.Stat(answer); err != nil {
		t.Errorf("the answer is not on the disk: %v", err)
	}
	l.record(m.ID)
	eventually(t, "the answer is deleted", func() bool { _, err := os.Stat(answer); return os.IsNotExist(err) })
	l.send(m) // the server forgot that it had the answer
	if lost := l.answer(m.ID); lost.Status != protocol.Lost {
		t.Errorf("a recorded command is answered with %s", text(lost))
	}
	if n := ranTimes(t, file, "a"); n != 1 {
		t.Errorf("the handler ran %d times", n)
	}
	err := filepath.WalkDir(c.StateDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(content), "correct horse") {
			t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A handler runs; its agent is killed. The next agent answers that the command is lost, and does not run it again,
// while an answer that was there already is sent.
func TestKilledDuringACommand(t *testing.T) {
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now())
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	first := asProcess(t, dir, s.token)
	l := s.link()
	b, needs := l.blueprint(l.hello.Machine.Pythons[0])
	done, cut := deployment(1, b, needs, "a", file, ""), deployment(2, b, needs, "b", file, "wait")
	l.send(done)
	if a := l.answer(done.ID); a.Status != "deployed" {
		t.Fatalf("the answer is %s", text(a))
	}
	l.send(cut)
	eventually(t, "the handler runs", func() bool { return ranTimes(t, file, "b") == 1 })
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	asProcess(t, dir, "")
	l = s.link()
	if l.hello.Seen != 2 || len(l.hello.Unrecorded) != 2 || len(l.hello.Running) != 0 {
		t.Errorf("hello says seen %d, unrecorded %v, running %v", l.hello.Seen, l.hello.Unrecorded, l.hello.Running)
	}
	got := map[string]string{}
	for len(got) < 2 {
		m := await[*protocol.AnswerMessage](l)
		a, err := protocol.DecodeAnswer(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		got[m.ID] = a.Status
	}
	if got[done.ID] != "deployed" || got[cut.ID] != protocol.Lost {
		t.Errorf("the answers are %v", got)
	}
	l.send(cut)
	if a := l.answer(cut.ID); a.Status != protocol.Lost {
		t.Errorf("the answer is %s", text(a))
	}
	if n := ranTimes(t, file, "b"); n != 1 {
		t.Errorf("the handler ran %d times", n)
	}
}

// A content that was damaged on the disk is found when it is used: the command is refused, the server hears of it, and
// after it was sent again the next command works.
func TestDamagedContent(t *testing.T) {
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now())
	c, _ := inProcess(t, s, nil)
	l := s.link()
	b, needs := l.blueprint(l.hello.Machine.Pythons[0])
	path := filepath.Join(c.StateDir, "agent", "contents", needs[0])
	if err := os.WriteFile(path, []byte("import os; os.system('evil')"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := deployment(1, b, needs, "a", filepath.Join(t.TempDir(), "ran"), "")
	l.send(m)
	if stored := await[*protocol.StoredMessage](l); stored.Hash != needs[0] || stored.Error == "" {
		t.Errorf("the agent says %+v", stored)
	}
	l.send(m)
	if a := l.answer(m.ID); a.Status != protocol.Refused || !strings.Contains(text(a), "damaged on the agent's disk") {
		t.Errorf("the answer is %s", text(a))
	}
	l.blueprint(b.Python)
	m = deployment(2, b, needs, "a", filepath.Join(t.TempDir(), "ran"), "")
	l.send(m)
	if a := l.answer(m.ID); a.Status != "deployed" {
		t.Errorf("the answer is %s", text(a))
	}
}

// The deadline counts from the arrival of a command. What runs then is ended, and so is what the server cancels; what
// has not begun never does.
func TestDeadlineAndCancel(t *testing.T) {
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now())
	inProcess(t, s, nil)
	l := s.link()
	b, needs := l.blueprint(l.hello.Machine.Pythons[0])
	file := filepath.Join(t.TempDir(), "ran")
	late, early := deployment(1, b, needs, "late", file, "wait"), deployment(2, b, needs, "early", file, "")
	late.DeadlineMS, early.DeadlineMS = 500, 0
	l.send(late)
	if a := l.answer(late.ID); a.Status != protocol.Late {
		t.Errorf("the answer is %s", text(a))
	}
	l.send(early)
	if a := l.answer(early.ID); a.Status != protocol.Late {
		t.Errorf("the answer is %s", text(a))
	}
	runs, waits := deployment(3, b, needs, "runs", file, "wait"), deployment(4, b, needs, "waits", file, "")
	l.send(runs)
	eventually(t, "the handler runs", func() bool { return ranTimes(t, file, "runs") == 1 })
	l.send(waits)
	l.send(protocol.CancelMessage{Type: protocol.Cancel, ID: waits.ID})
	if a := l.answer(waits.ID); a.Status != protocol.Cancelled {
		t.Errorf("the answer is %s", text(a))
	}
	l.send(protocol.CancelMessage{Type: protocol.Cancel, ID: runs.ID})
	if a := l.answer(runs.ID); a.Status != "failed" || !strings.Contains(text(a), "was cancelled") {
		t.Errorf("the answer is %s", text(a))
	}
	next := deployment(5, b, needs, "next", file, "")
	l.send(next)
	if a := l.answer(next.ID); a.Status != "deployed" || ranTimes(t, file, "waits")+ranTimes(t, file, "early") > 0 {
		t.Errorf("the answer is %s", text(a))
	}
}

// A handler says more than an answer may have: 100 MB of log lines are cut by the process, and 100 MB of facts make an
// answer that says why there is none.
func TestLargeAnswers(t *testing.T) {
	tool.Heavy(t, "waits for links that end")
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now())
	inProcess(t, s, nil)
	l := s.link()
	b, needs := l.blueprint(l.hello.Machine.Pythons[0])
	file := filepath.Join(t.TempDir(), "ran")
	lines, facts := deployment(1, b, needs, "lines", file, "large"), deployment(2, b, needs, "facts", file, "facts")
	l.send(lines)
	if a := l.answer(lines.ID); a.Status != "deployed" || len(a.Lines) < 50 {
		t.Errorf("the answer has %d lines and the status %s", len(a.Lines), a.Status)
	}
	l.send(facts)
	switch a := l.answer(facts.ID); {
	case a.Status != "failed", !strings.Contains(text(a), "a frame of 100004604 bytes is above the limit"):
		t.Errorf("the answer has the status %s, %d facts and the lines %.500s", a.Status, len(a.Facts), a.Lines)
	}
	large := protocol.AnswerBody{Status: "deployed", Change: "updated"}
	large.Facts = []protocol.Fact{{Name: "all", Value: strings.Repeat("y", 100_000_000)}}
	kept, err := (&Agent{paths: testLayout(t).Agent()}).keep("id", large)
	if err != nil || !strings.Contains(string(kept), "may have 67108864") ||
		!strings.Contains(string(kept), "status deployed") {
		t.Errorf("what is sent in place of 100 MB: %.500s (%v)", kept, err)
	}
}

func testLayout(t *testing.T) *layout.Layout {
	t.Helper()
	l, err := layout.New(layout.Config{StateDir: t.TempDir(), LogDir: t.TempDir(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Two programs use copies of one state directory. The second takes the connection over, the first says so and comes
// back; the one that is connected does what is asked.
func TestTwoAgentsWithOneName(t *testing.T) {
	tool.Heavy(t, "waits for links that end")
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now())
	c, _ := inProcess(t, s, nil)
	first := s.link()
	copied := c
	copied.StateDir = filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied.StateDir, os.DirFS(c.StateDir)); err != nil {
		t.Fatal(err)
	}
	start(t, copied)
	second := s.link()
	first.send(protocol.ByeMessage{Type: protocol.Bye, Reason: protocol.Replaced, Message: "another one connected"})
	third := s.link()
	if third == first || third == second {
		t.Fatal("the first agent did not come back")
	}
	for _, l := range []*fakeLink{second, third} {
		m := protocol.CommandMessage{Type: protocol.Command, Seq: 1, ID: deployment(1, nil, nil, "", "", "").ID,
			DeadlineMS: 10_000, Action: protocol.Forget, Needs: []string{},
			Payload: protocol.Payload{Hashes: []string{}}}
		l.send(m)
		if a := l.answer(m.ID); a.Status != protocol.Done {
			t.Errorf("the answer is %s", text(a))
		}
	}
}

// The server's certificates begin in a year, as far as this machine's clock knows: the agent joins and works all the
// same. A server of another authority is refused whatever the clock says.
func TestAClockAYearOff(t *testing.T) {
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now().AddDate(10, 0, 0))
	c, stop := inProcess(t, s, nil)
	s.link()
	stop()
	other := newServer(t, "127.0.0.1", time.Now())
	about := filepath.Join(c.StateDir, "agent", "agent.json")
	content, err := os.ReadFile(about)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(about, []byte(strings.ReplaceAll(string(content), s.url, other.url)), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.lock.Unlock() }()
	if _, err := a.connect(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("the agent connects to a server of another authority: %v", err)
	}
	token, _ := protocol.ParseToken(s.token)
	token.URL = other.url // something answers in the server's place
	c.StateDir = t.TempDir()
	if err := Join(t.Context(), c, token.String()); err == nil || !strings.Contains(err.Error(), "is not the one") {
		t.Errorf("joining a server of another authority: %v", err)
	}
}

// A runtime that the server sends is used instead of the program's own one.
func TestTheServersRuntime(t *testing.T) {
	t.Parallel()
	s := newServer(t, "127.0.0.1", time.Now())
	c, _ := inProcess(t, s, nil)
	l := s.link()
	b, needs := l.blueprint(l.hello.Machine.Pythons[0])
	archive, own := runtime.Archive()
	if l.hello.Holds[0] != own {
		t.Errorf("the agent does not hold its own runtime: %v", l.hello.Holds)
	}
	other := append(archive[:len(archive):len(archive)], 0) // bytes after the end are allowed in a zip archive
	b.Runtime = l.give(other)
	m := deployment(1, b, append(needs[:1:1], b.Runtime), "a", filepath.Join(t.TempDir(), "ran"), "")
	l.send(m)
	if a := l.answer(m.ID); a.Status != "deployed" {
		t.Errorf("the answer is %s", text(a))
	}
	if _, err := os.Stat(filepath.Join(c.StateDir, "cache", "runtime-"+b.Runtime[:20])); err != nil {
		t.Error(err)
	}
}
