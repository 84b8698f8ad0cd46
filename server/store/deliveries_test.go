package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/store/storetest"
)

func delivery(key string, at time.Time, envs ...intent.EnvironmentID) intent.Delivery {
	d := intent.Delivery{
		ID: uuid.New(), Forge: "github", Key: key, Received: at, Size: 42, Verified: true,
		Event: intent.HookEvent{
			Kind:       intent.HookPush,
			Name:       "push",
			Repository: "ops/site",
			Ref:        "refs/heads/main",
			Commit:     strings.Repeat("a", 40),
			Sender:     "eve\x00\xff",
			Paths:      []string{"a", "b"},
		},
	}
	for _, env := range envs {
		d.Outcomes = append(d.Outcomes, intent.DeliveryOutcome{Environment: env, State: intent.OutcomeWaiting})
	}
	return d
}

// A webhook is recorded once for each environment, however often it is sent; it waits until it is handled, and is
// deleted when it is old.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ctx := t.Context()
	one, two := newEnvironment(t, s), newEnvironment(t, s)
	record := func(ds ...intent.Delivery) string {
		t.Helper()
		var out []string
		for _, took := range get(s.RecordDeliveries(ctx, ds))(t) {
			out = append(out, fmt.Sprint(len(took)))
		}
		return strings.Join(out, " ")
	}
	first := delivery("k1", after(1), one, two)
	if got := record(first, delivery("k1", after(2), one), delivery("k2", after(3), two), delivery("", after(4), one),
		delivery("", after(5), one)); got != "2 0 1 1 1" {
		t.Errorf("taken %s", got)
	}
	if got := record(delivery("k1", after(6), one, two), delivery("k3", after(7), uuid.New())); got != "0 0" {
		t.Errorf("taken again: %s", got)
	}
	waiting := get(s.WaitingDeliveries(ctx, one, 10))(t)
	if len(waiting) != 3 || waiting[0].ID != first.ID || waiting[0].Event.Sender != "eve\uFFFD\uFFFD" ||
		len(waiting[0].Event.Paths) != 2 ||
		!waiting[0].Received.Equal(after(1)) {
		t.Fatalf("%+v", waiting)
	}
	if envs := get(s.WaitingEnvironments(ctx))(t); len(envs) != 2 {
		t.Errorf("%v", envs)
	}
	now, run := after(9), uuid.New()
	done := map[uuid.UUID]intent.DeliveryOutcome{
		first.ID: {State: intent.OutcomeStarted, Reason: "why", Compile: &run, Handled: &now},
	}
	must(t, s.FinishDeliveries(ctx, one, done))
	must(
		t,
		s.FinishDeliveries(ctx, one,
			map[uuid.UUID]intent.DeliveryOutcome{first.ID: {State: intent.OutcomeFailed, Handled: &now}}),
	)
	if o := get(s.Delivery(ctx, one, first.ID))(t).Outcomes[0]; o.State != intent.OutcomeStarted || o.Reason != "why" ||
		*o.Compile != run ||
		o.Environment != one {
		t.Errorf("%+v", o)
	}
	if o := get(s.Delivery(ctx, two, first.ID))(t).Outcomes[0]; o.State != intent.OutcomeWaiting {
		t.Errorf("another environment's: %+v", o)
	}
	_, err := s.Delivery(ctx, one, uuid.New())
	want(t, err, fault.NotFound)

	list := get(s.Deliveries(ctx, one, intent.ListQuery{Limit: 2}))(t)
	if len(list.Items) != 2 || list.Total != 3 || !list.Items[0].Received.Equal(after(5)) {
		t.Errorf("%+v", list)
	}
	for filter, n := range map[string]int{"state=started": 1, "ref=main": 3, "event=tag": 0, "forge=github": 3,
		"commit=aaaa": 3, "repository=site": 3} {
		name, value, _ := strings.Cut(filter, "=")
		if got := get(s.Deliveries(ctx, one, intent.ListQuery{Filters: map[string][]string{name: {value}}}))(t); len(
			got.Items,
		) != n {
			t.Errorf("%s: %d", filter, len(got.Items))
		}
	}
	// What is waiting is kept, however old it is.
	if n := get(s.DeleteDeliveriesBefore(ctx, one, after(100)))(t); n != 1 {
		t.Errorf("%d are gone", n)
	}
	if d := get(s.Delivery(ctx, two, first.ID))(t); d.ID != first.ID {
		t.Error("what another environment still has is gone")
	}
	must(t, s.ClearEnvironment(ctx, two))
	if left := get(s.Deliveries(ctx, two, intent.ListQuery{}))(t); len(left.Items) != 0 {
		t.Errorf("%+v", left)
	}
}

// A refused delivery never stands in the way of the delivery that it pretends to be.
func TestARefusedDeliveryTakesNoKey(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	at := after(1)
	refused := delivery("k", at, env)
	refused.Verified = false
	refused.Outcomes[0] = intent.DeliveryOutcome{
		Environment: env,
		State:       intent.OutcomeRefused,
		Reason:      "no",
		Handled:     &at,
	}
	for i, d := range []intent.Delivery{refused, delivery("k", after(2), env)} {
		if took := get(s.RecordDeliveries(t.Context(), []intent.Delivery{d}))(t); len(took[0]) != 1 {
			t.Errorf("%d. was not taken", i+1)
		}
	}
}

// The same webhook arrives at several servers at once: one takes it.
func TestOneServerTakesADelivery(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	env := newEnvironment(t, s)
	var wg sync.WaitGroup
	took := make(chan int, 20)
	for range 20 {
		wg.Go(func() {
			out, err := s.RecordDeliveries(t.Context(), []intent.Delivery{delivery("k", after(1), env)})
			if err != nil {
				t.Error(err)
				return
			}
			took <- len(out[0])
		})
	}
	wg.Wait()
	close(took)
	sum := 0
	for n := range took {
		sum += n
	}
	if sum != 1 {
		t.Errorf("%d took it", sum)
	}
}

// Secrets of webhooks and repositories of modules are read for all environments at once.
func TestSecretsAndModulesOfAllEnvironments(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ctx := t.Context()
	env := newEnvironment(t, s)
	for name, sealed := range map[string]string{"webhook": "a", "webhook-previous": "b", "git-password": "c"} {
		must(t, s.SetSecret(ctx, env, name, []byte(sealed)))
	}
	if got := get(s.HookSecrets(ctx))(t); len(got) != 1 || len(got[env]) != 2 ||
		string(got[env]["webhook-previous"]) != "b" {
		t.Errorf("%q", got)
	}
	must(t, s.SetModules(ctx, env, map[string]string{"std": "https://x/std", "web": "https://x/web"}))
	must(t, s.SetModules(ctx, env, map[string]string{"web": "https://y/web"}))
	if got := get(s.Modules(ctx))(t); len(got[env]) != 1 || got[env]["web"] != "https://y/web" {
		t.Errorf("%v", got)
	}
	must(t, s.SetModules(ctx, env, nil))
	if got := get(s.Modules(ctx))(t); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
