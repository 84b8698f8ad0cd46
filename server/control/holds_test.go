package control_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/control"
	"ordain.dev/ordain/server/store"
)

// notes exports n notes on n agents, in two sets.
func notes(n int) []export.Resource {
	out := make([]export.Resource, n)
	for i := range out {
		out[i] = export.Resource{
			ID: intent.ResourceID{
				Type:      "lab::Note",
				Agent:     fmt.Sprintf("desk%d", i),
				Attribute: "n",
				Value:     fmt.Sprint(i),
			},
			Attributes: []byte(`{}`), AttributeHash: "x", ResourceSet: []string{"odd", "even"}[i%2],
		}
	}
	return out
}

// export compiles a tip that exports these and waits for its end; it gives the
// last stage's output.
func (s *stage) export(tip string, r control.CompileRequest, exported []export.Resource) string {
	s.t.Helper()
	s.parts.mu.Lock()
	s.parts.tip, s.parts.exported = tip, exported
	s.parts.mu.Unlock()
	r.Update, r.Trigger = true, intent.Trigger{Type: "api"}
	id, _, err := s.RequestCompile(s.t.Context(), s.env, r)
	if err != nil {
		s.t.Fatal(err)
	}
	if c, _ := s.done(id); !*c.Success {
		s.t.Fatalf("the compile of %s failed", tip)
	}
	_, stages, err := s.store.Compile(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return stages[len(stages)-1].Output
}

// unread waits until so many notifications are unread and gives their titles, newest first.
func (s *stage) unread(n int) (titles []string, all []intent.Notification) {
	s.t.Helper()
	return s.notices(n, "false")
}

// notices waits until there are n notifications that are read, or unread, and returns them, newest first.
func (s *stage) notices(n int, read string) (titles []string, all []intent.Notification) {
	s.t.Helper()
	moves := s.events.Subscribe(nil)
	defer moves.Close()
	for {
		page, err := s.store.Notifications(s.t.Context(), s.env,
			intent.ListQuery{Sort: "last", Desc: true, Filters: map[string][]string{"read": {read}}})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page.Items) >= n {
			for _, x := range page.Items {
				titles = append(titles, x.Title)
			}
			return titles, page.Items
		}
		select {
		case <-moves.Events():
		case <-time.After(time.Minute):
			s.t.Fatalf("only %d have read=%s", len(page.Items), read)
		}
	}
}

// A commit that takes away much compiles well and is held: the report says so,
// people are told, and the deployer hears of nothing, also when the release is
// asked for plainly. A partial compile counts against the whole. A newer commit
// that is whole goes by it; a confirmation releases what is held.
func TestACommitThatTakesAwayMuchIsHeld(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	heard := func(want ...int) {
		t.Helper()
		s.parts.mu.Lock()
		defer s.parts.mu.Unlock()
		if !slices.Equal(s.parts.released, want) {
			t.Fatalf("the deployer heard of %v, want %v", s.parts.released, want)
		}
	}
	whole := control.CompileRequest{}
	s.export("c1", whole, notes(40))
	if said := s.export("c2", whole, notes(10)); !strings.Contains(
		said,
		"held: version 2 is not released: it takes away 30 of 40 resources",
	) {
		t.Fatalf("the report says %q", said)
	}
	heard(1)
	if err := s.Release(t.Context(), s.env, 2); !errors.As(err, new(*store.HeldError)) {
		t.Fatal(err)
	}
	if asked, err := s.store.Requests(t.Context(), s.env, 0); err != nil || len(asked) > 0 {
		t.Fatalf("a held release asks for %+v, %v", asked, err)
	}
	heard(1)
	if told := s.parts.toldOf(); slices.Contains(told, "released 2") {
		t.Errorf("the deployer was told %q", told)
	}
	if titles, all := s.unread(1); titles[0] != "Version 2 is held" || all[0].URI != "/api/v2/desiredstate/2" ||
		all[0].Severity != intent.SeverityWarning {
		t.Fatalf("%+v", all)
	}
	// Version 2 is the newest, and what a partial export is merged with.
	if said := s.export("c3", control.CompileRequest{Partial: true}, notes(1)); !strings.Contains(
		said,
		"held: version 3",
	) {
		t.Fatalf("the report says %q", said)
	}
	heard(1)
	s.export("c4", whole, notes(39))
	heard(1, 4)
	s.export("c5", control.CompileRequest{Partial: true, RemovedSets: []string{"odd"}}, nil)
	heard(1, 4)
	if err := s.Confirm(t.Context(), s.env, 5, " ", "why"); !fault.Is(err, fault.Invalid) {
		t.Fatal(err)
	}
	if err := s.Confirm(t.Context(), s.env, 5, "ida", strings.Repeat("x", 1001)); !fault.Is(err, fault.Invalid) {
		t.Fatal(err)
	}
	if err := s.Confirm(t.Context(), s.env, 3, "ida", "too late"); !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
	if err := s.Confirm(t.Context(), s.env, 5, "ida", "odd ones are odd"); err != nil {
		t.Fatal(err)
	}
	heard(1, 4, 5)
	v, err := s.store.Version(t.Context(), s.env, 5)
	if err != nil || v.Confirmed.By != "ida" || v.Confirmed.Reason != "odd ones are odd" {
		t.Errorf("%+v, %v", v, err)
	}
}

// Compiles that fail are told, and what cannot be fetched by another title.
// What is older than the retention goes.
func TestPeopleAreToldOfFailedCompiles(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.parts.mu.Lock()
	s.parts.broken = true
	s.parts.mu.Unlock()
	broken := s.request("api")
	s.done(broken)
	_, all := s.unread(1)
	if n := all[0]; n.Title != "Compilation failed" || *n.Compile != broken ||
		n.URI != "/api/v2/compilereport/"+broken.String() ||
		!strings.Contains(n.Message, "the model has errors") {
		t.Errorf("%+v", n)
	}
	s.parts.mu.Lock()
	s.parts.fetchErr = fault.New("fake", fault.Unauthorized, "the repository wants a password")
	s.parts.mu.Unlock()
	s.done(s.request("api"))
	titles, all := s.unread(2)
	if titles[0] != "Pulling updates during compile failed" || !strings.Contains(all[0].Message, "wants a password") {
		t.Errorf("%+v", all[0])
	}
	if err := s.SetSetting(t.Context(), s.env, "notification_retention", 0); err != nil {
		t.Fatal(err)
	}
	if err := s.keepers.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.store.UnreadNotifications(t.Context(), s.env); n != 0 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
}

// A name that no agent has is refused with the one that may be meant.
func TestUnknownAgents(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.export("c1", control.CompileRequest{}, notes(12))
	for what, err := range map[string]error{
		"pause":   s.PauseAgent(t.Context(), s.env, "desk1l", true),
		"unpause": s.PauseAgent(t.Context(), s.env, "desk1l", false),
		"deploy":  func() error { _, err := s.Deploy(t.Context(), s.env, false, []string{"desk1l"}); return err }(),
	} {
		if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "did you mean desk1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	page, err := s.store.Agents(t.Context(), s.env, intent.ListQuery{})
	if err != nil || len(page.Items) != 12 ||
		slices.ContainsFunc(page.Items, func(a intent.Agent) bool { return a.Paused }) {
		t.Errorf("%+v, %v", page.Items, err)
	}
}

// A setting of project.yml that cannot be set leaves all of them as they were,
// and says so where the commit is reported.
func TestBadSettingsOfAProjectChangeNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.parts.mu.Lock()
	s.parts.settings = map[string]any{"auto_full_compile": "0 0 30 2 *", "prune_share": 50}
	s.parts.mu.Unlock()
	id := s.request("api")
	if c, _ := s.done(id); *c.Success {
		t.Error("the compile succeeded")
	}
	_, stages, err := s.store.Compile(t.Context(), id)
	if err != nil || !strings.Contains(stages[len(stages)-1].ErrOutput, "never comes") {
		t.Errorf("%+v, %v", stages[len(stages)-1], err)
	}
	e, err := s.store.Environment(t.Context(), s.env)
	if err != nil || len(e.Settings) != 0 || len(e.Protected) != 0 {
		t.Errorf("%v %v %v", e.Settings, e.Protected, err)
	}
}
