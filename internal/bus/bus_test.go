package bus_test

import (
	"testing"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/bus/bustest"
)

// One bus in memory does all that is promised of several.
func TestBusInMemory(t *testing.T) {
	t.Parallel()
	bustest.Test(t, func(*testing.T) (here, there *bus.Bus) {
		b := &bus.Bus{}
		return b, b
	})
}

// A slow subscriber gets one Lagged event, and the publisher never waits for it.
func TestSlowSubscriberLags(t *testing.T) {
	var b bus.Bus
	slow := b.Subscribe(nil)
	defer slow.Close()
	for range 257 {
		b.Publish(bus.Event{Topic: bus.Compile})
	}
	if e := <-slow.Events(); e.Topic != bus.Lagged {
		t.Fatalf("first event after an overflow is %q, want %q", e.Topic, bus.Lagged)
	}
	select {
	case e := <-slow.Events():
		t.Fatalf("unexpected %v: the backlog is replaced by one event", e)
	default:
	}
}

// Each subscriber gets the events that it wants, in order, until it closes.
func TestSubscribersGetTheEventsTheyWant(t *testing.T) {
	var b bus.Bus
	versions := b.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Version })
	all := b.Subscribe(nil)
	b.Publish(bus.Event{Topic: bus.Compile, ID: "c"})
	b.Publish(bus.Event{Topic: bus.Version, ID: "1"})
	if e := <-versions.Events(); e.ID != "1" {
		t.Errorf("filtered subscriber heard %v", e)
	}
	if a, z := <-all.Events(), <-all.Events(); a.ID != "c" || z.ID != "1" {
		t.Errorf("heard %v then %v, want compile then version", a, z)
	}
	versions.Close()
	versions.Close()
	if _, open := <-versions.Events(); open {
		t.Error("a closed subscription still delivers")
	}
	b.Publish(bus.Event{Topic: bus.Version})
	if e := <-all.Events(); e.Topic != bus.Version {
		t.Errorf("the other subscriber heard %v", e)
	}
	all.Close()
}

// A subscriber of hints misses none: however many events come before it looks, one of those that
// wait for it came after it looked last.
func TestHintsAreNotLost(t *testing.T) {
	var b bus.Bus
	hints := b.SubscribeHints(func(e bus.Event) bool { return e.Topic == bus.Version })
	defer hints.Close()
	for range 3 {
		for range 100 {
			b.Publish(bus.Event{Topic: bus.Version})
		}
		n := 0
		for len(hints.Events()) > 0 {
			<-hints.Events()
			n++
		}
		if n == 0 {
			t.Fatal("a hundred events, and no hint")
		}
		if n > 2 {
			t.Errorf("%d events wait for a subscriber of hints", n)
		}
	}
}
