// Package bustest holds buses to what package bus promises, however they are connected.
package bustest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// patience is how long an event may take on a busy machine.
const patience = 30 * time.Second

// Next returns the next event that is no Lagged one, which connections may cause at any time.
func Next(t testing.TB, s *bus.Subscription) bus.Event {
	t.Helper()
	for {
		if e := anyEvent(t, s); e.Topic != bus.Lagged {
			return e
		}
	}
}

// AwaitLagged waits for a Lagged event.
func AwaitLagged(t testing.TB, s *bus.Subscription) {
	t.Helper()
	for {
		if e := anyEvent(t, s); e.Topic == bus.Lagged {
			return
		}
	}
}

func anyEvent(t testing.TB, s *bus.Subscription) bus.Event {
	t.Helper()
	select {
	case e := <-s.Events():
		return e
	case <-time.After(patience):
		t.Fatal("no event came")
		return bus.Event{}
	}
}

// Test tests two connected buses that connect returns; they may be the same.
func Test(t *testing.T, connect func(t *testing.T) (here, there *bus.Bus)) {
	env := uuid.New()
	t.Run("events reach everybody who wants them, in order", func(t *testing.T) {
		here, there := connect(t)
		near := here.Subscribe(func(e bus.Event) bool { return e.Environment == env && e.Topic == bus.Version })
		far := there.Subscribe(func(e bus.Event) bool { return e.Environment == env && e.Topic != bus.Compile })
		for i := range 20 {
			here.Publish(bus.Event{Environment: env, Topic: bus.Version, ID: strconv.Itoa(i)})
			here.Publish(bus.Event{Environment: env, Topic: bus.Compile, ID: uuid.NewString()})
			here.Publish(bus.Event{Environment: uuid.New(), Topic: bus.Version, ID: "7"})
		}
		sent := []bus.Event{
			{Environment: env, Topic: bus.Request},
			{Environment: env, Topic: bus.Resource, ID: `std::File[west,path=/srv/ü "x".y*>]`},
			{Environment: env, Topic: bus.Command, ID: "router-7.example.org"},
			{Environment: env, Topic: bus.Version, ID: "20"},
		}
		for _, e := range sent {
			here.Publish(e)
		}
		for i := range 21 {
			if e := Next(t, near); e.ID != strconv.Itoa(i) {
				t.Fatalf("the near subscriber got %v, want version %d", e, i)
			}
		}
		var got []bus.Event
		for range 20 {
			if e := Next(t, far); e.Topic != bus.Version {
				t.Fatalf("the far subscriber got %v", e)
			}
		}
		for range sent {
			got = append(got, Next(t, far))
		}
		if !slices.Equal(got, sent) {
			t.Fatalf("the far subscriber got %v, want %v", got, sent)
		}
		near.Close()
		far.Close()
		here.Publish(sent[0])
	})
	t.Run("a subscriber that does not read lags, and goes on", func(t *testing.T) {
		here, there := connect(t)
		slow, quick := there.Subscribe(nil), there.Subscribe(func(e bus.Event) bool { return e.Topic == bus.People })
		defer slow.Close()
		defer quick.Close()
		for range 10_000 {
			here.Publish(bus.Event{Environment: env, Topic: bus.Request})
		}
		AwaitLagged(t, slow)
		// What is published while the flood still fills the queues may be dropped, too.
		for _, s := range []*bus.Subscription{slow, quick} {
			limit := time.After(patience)
			for got := false; !got; {
				here.Publish(bus.Event{Topic: bus.People})
				select {
				case e := <-s.Events():
					got = e.Topic == bus.People
				case <-time.After(10 * time.Millisecond):
				case <-limit:
					t.Fatal("no event came after the flood")
				}
			}
		}
	})
	t.Run("an ID that nobody else would accept is left out", func(t *testing.T) {
		here, there := connect(t)
		far := there.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Resource })
		defer far.Close()
		long := bus.Event{Environment: env, Topic: bus.Resource, ID: string(make([]byte, bus.MaxID+1))}
		here.Publish(long)
		if e := Next(t, far); e != (bus.Event{Environment: env, Topic: bus.Resource}) && here != there {
			t.Errorf("got an ID of %d bytes", len(e.ID))
		}
	})
	t.Run("the owner answers", func(t *testing.T) { answers(t, connect, env) })
}

func answers(t *testing.T, connect func(t *testing.T) (here, there *bus.Bus), env intent.EnvironmentID) {
	here, there := connect(t)
	ctx := t.Context()
	unavailable := func(what string) {
		t.Helper()
		began := time.Now()
		_, err := here.Ask(ctx, env, "executors", nil)
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v, want a fault of the kind Unavailable", what, err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("%s: it took %s", what, took)
		}
	}
	unavailable("nobody answers")
	for _, b := range []*bus.Bus{here, there} { // these own other environments
		defer b.Answer("executors", func(context.Context, intent.EnvironmentID, []byte) ([]byte, bool) {
			return []byte("wrong"), false
		})()
	}
	unavailable("the environment is nobody's")
	withdraw := there.Answer("executors",
		func(_ context.Context, of intent.EnvironmentID, body []byte) ([]byte, bool) {
			return append([]byte("so "), body...), of == env
		})
	for _, b := range []*bus.Bus{here, there} {
		answer, err := b.Ask(ctx, env, "executors", []byte("many"))
		if err != nil || string(answer) != "so many" {
			t.Errorf("the answer is %q, %v", answer, err)
		}
	}
	withdraw()
	defer there.Answer("executors", func(ctx context.Context, _ intent.EnvironmentID, _ []byte) ([]byte, bool) {
		<-ctx.Done()
		return nil, false
	})()
	unavailable("the answer does not come in time")
	defer there.Answer("large", func(context.Context, intent.EnvironmentID, []byte) ([]byte, bool) {
		return make([]byte, bus.MaxAnswer+1), true
	})()
	if _, err := here.Ask(ctx, env, "large", nil); !errors.Is(err, bus.ErrTooLarge) {
		t.Errorf("an answer that is too large: %v", err)
	}
	defer there.Answer("largest", func(_ context.Context, _ intent.EnvironmentID, body []byte) ([]byte, bool) {
		return make([]byte, bus.MaxAnswer), len(body) == bus.MaxQuestion
	})()
	if answer, err := here.Ask(ctx, env, "largest", make([]byte, bus.MaxQuestion)); len(answer) != bus.MaxAnswer {
		t.Errorf("the largest answer to the largest question has %d bytes, %v", len(answer), err)
	}
	if _, err := here.Ask(ctx, env, "largest", make([]byte, bus.MaxQuestion+1)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a question that is too large: %v", err)
	}
	if _, err := here.Ask(ctx, env, "a.*", nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a question with a name that is none: %v", err)
	}
}
