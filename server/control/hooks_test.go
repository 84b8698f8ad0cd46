package control_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/source"
)

// commit is the full name of a commit that begins with c.
func commit(c string) string { return c + strings.Repeat("0", 39) + "1" }

func pushed(ref, to string) intent.HookEvent {
	return intent.HookEvent{
		Kind:          intent.HookPush,
		Name:          "push",
		Ref:           ref,
		Commit:        to,
		DefaultBranch: "main",
		Sender:        "ada",
		Subject:       "the doors",
	}
}

// receive records a webhook for the environment of the stage, and gives its id.
func (s *stage) receive(key string, e intent.HookEvent) uuid.UUID {
	s.t.Helper()
	d := intent.Delivery{
		ID: uuid.New(), Forge: "github", Key: key, Received: time.Now(), Size: 7, Event: e, Verified: true,
		Outcomes: []intent.DeliveryOutcome{{Environment: s.env, State: intent.OutcomeWaiting}},
	}
	if _, err := s.keepers.RecordDelivery(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
	return d.ID
}

// outcome waits until a webhook was acted on.
func (s *stage) outcome(id uuid.UUID) intent.DeliveryOutcome {
	s.t.Helper()
	moves := s.events.Subscribe(nil)
	defer moves.Close()
	for {
		d, err := s.store.Delivery(s.t.Context(), s.env, id)
		if err != nil {
			s.t.Fatal(err)
		}
		if o := d.Outcomes[0]; o.State != intent.OutcomeWaiting {
			return o
		}
		select {
		case <-moves.Events():
		case <-time.After(time.Minute):
			s.t.Fatal("nothing acts on the webhook")
		}
	}
}

func (s *stage) setTip(tip string) {
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	s.parts.tip = tip
}

// A push to what the environment follows gives a compile, which names who
// pushed; what does not concern it gives none, and the record says why.
func TestWhatAWebhookStarts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setTip(commit("a"))
	o := s.outcome(s.receive("1", pushed("refs/heads/main", commit("a"))))
	if o.State != intent.OutcomeStarted || o.Compile == nil || !strings.Contains(o.Reason, "compile of a000000") ||
		o.Handled == nil {
		t.Fatalf("%+v", o)
	}
	c, _ := s.done(*o.Compile)
	if c.Trigger.Type != "webhook" || c.Trigger.Message != "ada pushed a000000 to main: the doors" {
		t.Errorf("asked for by %+v", c.Trigger)
	}
	ping, star := intent.HookEvent{
		Kind: intent.HookPing,
		Name: "ping",
	}, intent.HookEvent{
		Kind: intent.HookOther,
		Name: "star",
	}
	deleted := pushed("refs/heads/main", "")
	deleted.Deleted = true
	tag := pushed("refs/tags/v1", commit("b"))
	tag.Kind = intent.HookTag
	for why, e := range map[string]intent.HookEvent{
		"it follows main, not next":   pushed("refs/heads/next", commit("b")),
		"it follows main, not tags":   tag,
		"main was deleted":            deleted,
		"it is set up well":           ping,
		`"star" start nothing`:        star,
		"a000000 is compiled already": pushed("refs/heads/main", commit("a")),
	} {
		if o := s.outcome(s.receive("", e)); o.State != intent.OutcomeSkipped || !strings.Contains(o.Reason, why) {
			t.Errorf("%s: %+v", why, o)
		}
	}
	if err := s.Halt(t.Context(), s.env); err != nil {
		t.Fatal(err)
	}
	if o := s.outcome(s.receive("", pushed("refs/heads/main", commit("b")))); o.State != intent.OutcomeSkipped ||
		!strings.Contains(o.Reason, "halted") {
		t.Errorf("%+v", o)
	}
	if n := s.compiles(); n != 1 {
		t.Errorf("%d compiles, want 1", n)
	}
}

func (s *stage) compiles() int {
	s.t.Helper()
	page, err := s.store.Compiles(s.t.Context(), s.env, intent.ListQuery{})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(page.Items)
}

// What a killed server recorded and did not act on is acted on by the next.
func TestWebhooksSurviveTheServer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setTip(commit("a"))
	s.Stop()
	id := s.receive("1", pushed("refs/heads/main", commit("a"))) // nobody runs who could act
	if d, err := s.store.Delivery(t.Context(), s.env, id); err != nil || d.Outcomes[0].State != intent.OutcomeWaiting {
		t.Fatalf("%+v %v", d, err)
	}
	s.restart()
	if o := s.outcome(id); o.State != intent.OutcomeStarted {
		t.Fatalf("%+v", o)
	}
}

// A storm of webhooks is recorded whole, each once, and gives one compile and
// few looks at the repository.
func TestAStormGivesOneCompile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setTip(commit("f"))
	hold, holding := make(chan struct{}), make(chan struct{}, 10)
	s.parts.mu.Lock()
	s.parts.hold, s.parts.holding = hold, holding
	s.parts.mu.Unlock()
	const n = 300
	ids := make([]uuid.UUID, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { ids[i] = s.receive(fmt.Sprint(i), pushed("refs/heads/main", fmt.Sprintf("%040x", i+1))) })
	}
	wg.Wait()
	<-holding // the compile runs
	started := 0
	for _, id := range ids {
		if o := s.outcome(id); o.State == intent.OutcomeStarted {
			started++
		} else if o.State != intent.OutcomeSkipped || o.Compile == nil {
			t.Fatalf("%+v", o)
		}
	}
	// One more, while the compile runs, is answered by it too.
	if o := s.outcome(s.receive("late", pushed("refs/heads/main", commit("f")))); o.State != intent.OutcomeSkipped ||
		o.Compile == nil {
		t.Errorf("%+v", o)
	}
	close(hold)
	s.parts.mu.Lock()
	if s.parts.asked > n/10 {
		t.Errorf("%d webhooks gave %d looks at the repository", n, s.parts.asked)
	}
	s.parts.mu.Unlock()
	page, err := s.store.Compiles(t.Context(), s.env, intent.ListQuery{})
	if err != nil || started == 0 {
		t.Fatal(err, started)
	}
	for _, c := range page.Items {
		s.done(c.ID)
	}
	versions, err := s.store.Versions(t.Context(), s.env, intent.ListQuery{})
	if err != nil || len(versions.Items) != 1 {
		t.Fatalf("%d versions of %d compiles, %v", len(versions.Items), len(page.Items), err)
	}
	// The same again: every one was received before.
	for i := range n {
		d := intent.Delivery{
			ID:       uuid.New(),
			Forge:    "github",
			Key:      fmt.Sprint(i),
			Received: time.Now(),
			Verified: true,
			Event:    pushed("refs/heads/main", commit("e")),
			Outcomes: []intent.DeliveryOutcome{{Environment: s.env, State: intent.OutcomeWaiting}},
		}
		if took, err := s.keepers.RecordDelivery(t.Context(), d); err != nil || len(took) != 0 {
			t.Fatalf("taken again: %v %v", took, err)
		}
	}
}

// A person sends a webhook again; one that was refused cannot be.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setTip(commit("a"))
	id := s.receive("1", pushed("refs/heads/main", commit("a")))
	s.done(*s.outcome(id).Compile)
	s.setTip(commit("b"))
	again, err := s.Redeliver(t.Context(), s.env, id)
	if err != nil || again.ReplayOf == nil || *again.ReplayOf != id || again.ID == id || again.Key != "" {
		t.Fatalf("%+v %v", again, err)
	}
	if o := s.outcome(again.ID); o.State != intent.OutcomeStarted || !strings.Contains(o.Reason, "b000000") {
		t.Fatalf("%+v", o)
	}
	now := time.Now()
	refused := intent.Delivery{
		ID:       uuid.New(),
		Forge:    "github",
		Received: now,
		Event:    pushed("refs/heads/main", commit("c")),
		Outcomes: []intent.DeliveryOutcome{
			{Environment: s.env, State: intent.OutcomeRefused, Reason: "no", Handled: &now},
		},
	}
	if _, err := s.keepers.RecordDelivery(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Redeliver(t.Context(), s.env, refused.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("a refused one was sent again: %v", err)
	}
	if _, err := s.Redeliver(t.Context(), s.env, uuid.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}

// The repository is away for a moment: the webhook waits and is not lost.
func TestAWebhookWaitsForTheRepository(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.parts.mu.Lock()
	s.parts.tip, s.parts.tipErr = commit("a"), fault.New("fake", fault.Unavailable, "the forge is down")
	s.parts.mu.Unlock()
	id := s.receive("1", pushed("refs/heads/main", commit("a")))
	if o := s.outcome(id); o.State != intent.OutcomeStarted {
		t.Fatalf("%+v", o)
	}
	s.parts.mu.Lock()
	defer s.parts.mu.Unlock()
	if s.parts.asked != 2 {
		t.Errorf("the repository was asked %d times", s.parts.asked)
	}
}

// A push that changes nothing of the project's folder, or of trigger_paths,
// starts nothing; nor does the watcher that sees it later.
func TestPathsThatTrigger(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	e, err := s.store.Environment(t.Context(), s.env)
	if err != nil {
		t.Fatal(err)
	}
	e.Source.Subdir = "shop"
	if _, err := s.UpdateEnvironment(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	a, b, c, d := commit("a"), commit("b"), commit("c"), commit("d")
	s.parts.mu.Lock()
	s.parts.tip = a
	s.parts.changed = map[string][]string{
		a + " " + b: {"bank/main.cf", "shops/main.cf", "README.md"},
		a + " " + c: {"bank/main.cf", "shop/main.cf"},
		c + " " + d: {"shop/docs/intro.md"},
	}
	s.parts.mu.Unlock()
	s.done(*s.outcome(s.receive("", pushed("refs/heads/main", a))).Compile)
	s.setTip(b)
	if o := s.outcome(s.receive("", pushed("refs/heads/main", b))); o.State != intent.OutcomeSkipped ||
		o.Reason != "nothing of shop changed between a000000 and b000000; 3 files elsewhere did" {
		t.Fatalf("%+v", o)
	}
	if err := s.SourceMoved(t.Context(), s.env, b, "poll", ""); err != nil || s.compiles() != 1 {
		t.Fatalf("%v, %d compiles", err, s.compiles())
	}
	s.setTip(c)
	o := s.outcome(s.receive("", pushed("refs/heads/main", c)))
	if o.State != intent.OutcomeStarted {
		t.Fatalf("%+v", o)
	}
	s.done(*o.Compile)
	if err := s.SetSetting(t.Context(), s.env, "trigger_paths", "shop\n!shop/docs"); err != nil {
		t.Fatal(err)
	}
	s.setTip(d)
	if o := s.outcome(s.receive("", pushed("refs/heads/main", d))); o.State != intent.OutcomeSkipped ||
		!strings.Contains(o.Reason, "nothing of shop, !shop/docs changed") {
		t.Fatalf("%+v", o)
	}
	// History was rewritten: what cannot be compared is compiled.
	s.setTip(commit("9"))
	if o := s.outcome(s.receive("", pushed("refs/heads/main", commit("9")))); o.State != intent.OutcomeStarted {
		t.Fatalf("%+v", o)
	}
}

// The webhook's secret is changed: the one before verifies still, until the
// next change; removed, none does.
func TestSecretsOfWebhooksRotate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	secrets := func() string {
		t.Helper()
		targets, err := s.keepers.HookTargets(t.Context())
		if err != nil || len(targets) != 1 {
			t.Fatal(targets, err)
		}
		var out []string
		for _, b := range targets[0].Secrets {
			out = append(out, string(b))
		}
		if len(out) == 2 && out[0] > out[1] {
			out[0], out[1] = out[1], out[0]
		}
		return strings.Join(out, " ")
	}
	for _, step := range []struct{ set, want string }{{"one", "one"}, {"two", "one two"}, {"two", "one two"}, {"three",
		"three two"}, {"", ""}, {"four", "four"}} {
		if err := s.SetSecret(t.Context(), s.env, source.SecretWebhook, step.set); err != nil {
			t.Fatal(err)
		}
		if got := secrets(); got != step.want {
			t.Errorf("after %q: %q, want %q", step.set, got, step.want)
		}
	}
	// Without one of its own an environment has those of its project.
	e, err := s.store.Environment(t.Context(), s.env)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"shared-before", "shared"} {
		if err := s.SetProjectSecret(t.Context(), e.ProjectID, source.SecretWebhook, value); err != nil {
			t.Fatal(err)
		}
	}
	if got := secrets(); got != "four" {
		t.Errorf("with one of its own: %q", got)
	}
	if err := s.SetSecret(t.Context(), s.env, source.SecretWebhook, ""); err != nil {
		t.Fatal(err)
	}
	if got := secrets(); got != "shared shared-before" {
		t.Errorf("without: %q", got)
	}
}

// A push to a module's repository compiles the projects that use it.
func TestAModulesPushCompilesItsProjects(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setTip(commit("a"))
	s.done(*s.outcome(s.receive("", pushed("refs/heads/main", commit("a")))).Compile)
	d := intent.Delivery{
		ID:       uuid.New(),
		Forge:    "github",
		Received: time.Now(),
		Verified: true,
		Event:    pushed("refs/tags/2.0.0", commit("7")),
		Outcomes: []intent.DeliveryOutcome{{Environment: s.env, Module: "doors", State: intent.OutcomeWaiting}},
	}
	if _, err := s.keepers.RecordDelivery(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	o := s.outcome(d.ID)
	if o.State != intent.OutcomeStarted || !strings.Contains(o.Reason, "module doors") {
		t.Fatalf("%+v", o)
	}
	c, stages := s.done(*o.Compile)
	if c.Trigger.Type != "module" || len(stages) < 5 {
		t.Errorf("%+v went through %v only", c.Trigger, stages)
	}
}

// A webhook of the branch proves to the watcher that webhooks arrive; one of
// another branch, or that a person sends again, does not.
func TestTheWatcherHearsOfWebhooks(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.done(s.request("api"))
	s.setTip(commit("b"))
	first := s.receive("1", pushed("refs/heads/main", commit("a")))
	s.outcome(first)
	s.idle()
	s.outcome(s.receive("2", pushed("refs/heads/next", commit("c"))))
	again, err := s.Redeliver(t.Context(), s.env, first)
	if err != nil {
		t.Fatal(err)
	}
	s.outcome(again.ID)
	heard := []string{}
	for _, told := range s.parts.toldOf() {
		if strings.HasPrefix(told, "heard ") {
			heard = append(heard, told)
		}
	}
	if want := "heard " + commit("a") + " " + commit("b"); len(heard) != 1 || heard[0] != want {
		t.Errorf("%q, want %q", heard, want)
	}
}

// One webhook that the database refuses takes none of those down that are recorded
// with it; its sender is told, and there is no record of it.
func TestAWebhookThatCannotBeRecordedFailsAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Stop() // it records all the same, and acts on nothing
	const n, bad = 40, 7
	ids, errs := make([]uuid.UUID, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		d := intent.Delivery{
			ID: uuid.New(), Forge: "github", Key: fmt.Sprint("k", i), Received: time.Now(), Size: 7, Verified: true,
			Event:    pushed("refs/heads/main", commit("a")),
			Outcomes: []intent.DeliveryOutcome{{Environment: s.env, State: intent.OutcomeWaiting}},
		}
		if i == bad {
			d.Outcomes[0].State = "no such state"
		}
		ids[i] = d.ID
		all.Go(func() { _, errs[i] = s.keepers.RecordDelivery(t.Context(), d) })
	}
	all.Wait()
	for i, id := range ids {
		_, err := s.store.Delivery(t.Context(), s.env, id)
		switch {
		case i == bad && (errs[i] == nil || !fault.Is(err, fault.NotFound)):
			t.Errorf("the one that cannot be recorded was answered with %v, its record with %v", errs[i], err)
		case i != bad && (errs[i] != nil || err != nil):
			t.Errorf("the %d. was answered with %v, its record with %v", i, errs[i], err)
		}
	}
}
