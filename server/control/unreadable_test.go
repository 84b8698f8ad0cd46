package control_test

import (
	"errors"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// look has the watcher report a look at the repository, which went as fetching would
// go now. It waits for the compiles that this led to.
func (s *stage) look(failures int, err error) {
	s.t.Helper()
	s.parts.mu.Lock()
	s.parts.fetchErr = err
	s.parts.mu.Unlock()
	s.watcher.cfg.OnLook(s.t.Context(), s.env, failures, err)
	s.idle()
}

var (
	errGone    = fault.New("x", fault.NotFound, "there is no Git repository at /repo").Hint("check the path")
	errBranch  = fault.New("x", fault.NotFound, `there is no branch or tag "main" in /repo`).Hint("push it")
	errOffline = fault.Wrap("x", fault.Unavailable, errors.New("dial tcp 192.0.2.1:443: connection refused")).
			Say("the host of /repo refuses connections")
)

// A source that cannot be read leaves one failed report and one notification when that
// begins, again when the reason changes or when it was readable in between, and none at
// each look. When it can be read again, that shows as well.
func TestASourceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	expect := func(compiles, notices int, kind intent.GitKind, title string) {
		t.Helper()
		if n := s.compiles(); n != compiles {
			t.Fatalf("%d compiles, want %d", n, compiles)
		}
		titles, _ := s.unread(notices)
		if len(titles) != notices || notices > 0 && titles[0] != title {
			t.Fatalf("the notifications are %q, want %d, the newest %q", titles, notices, title)
		}
		if got := s.git(); got.Kind != kind {
			t.Fatalf("the state of Git is %+v", got)
		}
	}
	const failed, well = "Pulling updates during compile failed", "The repository can be read again"
	s.look(0, nil)
	expect(1, 0, intent.GitOK, "")
	s.look(1, errBranch)
	expect(2, 1, intent.GitFailing, failed)
	page, err := s.store.Compiles(t.Context(), s.env, intent.ListQuery{Sort: "requested", Desc: true, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	newest := page.Items[0]
	if newest.Success == nil || *newest.Success || newest.Trigger.Type != intent.TriggerSource {
		t.Errorf("the report is %+v", newest)
	}
	if got := s.git(); !strings.Contains(got.Message, "no branch or tag") || got.Advice != "push it" {
		t.Errorf("the state of Git is %+v", got)
	}
	for n := range 5 {
		s.look(2+n, errBranch)
	}
	expect(2, 1, intent.GitFailing, failed)
	s.look(7, errGone)
	expect(3, 2, intent.GitFailing, failed)
	s.Stop()
	s.restart()
	s.look(1, errGone)
	expect(3, 2, intent.GitFailing, failed)
	s.look(0, nil)
	expect(4, 3, intent.GitOK, well)
	s.look(0, nil)
	expect(4, 3, intent.GitOK, well)
	s.look(1, errGone)
	expect(5, 4, intent.GitFailing, failed)
	s.look(0, nil)
	expect(6, 5, intent.GitOK, well)
}

// An outage that passes by itself bothers nobody. One that lasts is reported, once,
// however its details differ from look to look.
func TestAnOutage(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	s.look(1, errOffline)
	s.look(2, errOffline)
	s.look(0, nil)
	if n := s.compiles(); n != 1 {
		t.Errorf("%d compiles, want 1", n)
	}
	for n := range 6 {
		s.look(1+n, errOffline)
		s.look(1+n, fault.New("x", fault.Exhausted, "/repo did not answer in time"))
	}
	if n := s.compiles(); n != 2 {
		t.Errorf("%d compiles, want 2", n)
	}
	if titles, _ := s.unread(1); len(titles) != 1 {
		t.Errorf("the notifications are %q", titles)
	}
}

// Where looks succeed and fetching fails, it is tried again, ever less often, and
// nobody is bothered again.
func TestASourceThatCanBeLookedAtAndNotFetched(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	s.parts.mu.Lock()
	s.parts.fetchErr = fault.New("x", fault.Invalid, "the repository /repo is damaged")
	s.parts.mu.Unlock()
	if err := s.SourceMoved(t.Context(), s.env, "c2", "poll", ""); err != nil {
		t.Fatal(err)
	}
	s.idle()
	if got := s.git(); got.Kind != intent.GitFailing {
		t.Fatalf("the state of Git is %+v", got)
	}
	for range 10 {
		s.watcher.cfg.OnLook(t.Context(), s.env, 0, nil)
		s.idle()
	}
	if n := s.compiles(); n != 3 {
		t.Errorf("%d compiles, want 3: the first, the one that failed, and one more try", n)
	}
	if titles, _ := s.unread(1); len(titles) != 1 {
		t.Errorf("the notifications are %q", titles)
	}
}

// A webhook that finds the repository gone leads to the same, though nobody polls.
func TestAWebhookOfASourceThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	s.parts.mu.Lock()
	s.parts.fetchErr, s.parts.tipErr = errGone, errGone
	s.parts.mu.Unlock()
	s.receive("1", pushed("refs/heads/main", commit("b")))
	if titles, all := s.unread(1); titles[0] != "Pulling updates during compile failed" ||
		!strings.Contains(all[0].Message, "no Git repository") {
		t.Errorf("%q, %+v", titles, all)
	}
	page, err := s.store.Compiles(t.Context(), s.env, intent.ListQuery{Sort: "requested", Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	if second := page.Items[1]; second.Trigger.Type != intent.TriggerSource {
		t.Errorf("the report that came of it is %+v", second)
	}
}
