package bus

import "testing"

// A slow subscriber gets one Lagged event, and the publisher never waits for it.
func TestSlowSubscriberLags(t *testing.T) {
	var b Bus
	slow := b.Subscribe(nil)
	defer slow.Close()
	for range queueLength + 1 {
		b.Publish(Event{Topic: Compile})
	}
	if e := <-slow.Events(); e.Topic != Lagged {
		t.Fatalf("first event after an overflow is %q, want %q", e.Topic, Lagged)
	}
	select {
	case e := <-slow.Events():
		t.Fatalf("unexpected %v: the backlog is replaced by one event", e)
	default:
	}
}

// Each subscriber gets the events that it wants, in order, until it closes.
func TestSubscribersGetTheEventsTheyWant(t *testing.T) {
	var b Bus
	versions := b.Subscribe(func(e Event) bool { return e.Topic == Version })
	all := b.Subscribe(nil)
	b.Publish(Event{Topic: Compile, ID: "c"})
	b.Publish(Event{Topic: Version, ID: "1"})
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
	b.Publish(Event{Topic: Version})
	if e := <-all.Events(); e.Topic != Version {
		t.Errorf("the other subscriber heard %v", e)
	}
	all.Close()
}
