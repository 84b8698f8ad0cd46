// Package bus tells live pages, waiting commands and other processes that something
// changed. Events carry no data: a subscriber reads the database again. So events may be
// lost, merged or arrive twice without harm, and publishing never waits: a subscriber
// that does not keep up gets one Lagged event instead.
//
//	Publish ──▶ subscribers of this process
//	       └──▶ Link ═══ other processes ═══ Receive ──▶ their subscribers
//
// A Bus without a Link serves one process. With one (package natsbus) it also carries
// events between processes. Whenever the link may have lost events, each subscriber gets
// one Lagged event.
//
// A process may also ask a live question, such as which executors run, and gets the
// answer of whichever process owns the environment. No decision may depend on an answer.
package bus

import (
	"sync"

	"ordain.dev/ordain/internal/intent"
)

// Topic says what changed.
type Topic string

// Topics.
const (
	Environment  Topic = "environment"  // made, changed, halted, deleted
	Compile      Topic = "compile"      // ID: the compile; it was requested, a stage began or ended, output arrived
	Version      Topic = "version"      // ID: the number; stored or released
	Resource     Topic = "resource"     // ID: a resource id, or empty for several
	DryRun       Topic = "dryrun"       // ID: the dry run
	Notification Topic = "notification" // written, read or cleared
	Delivery     Topic = "delivery"     // webhooks arrived or were processed
	Pull         Topic = "pull"         // pull requests, or what is to be sent to the forge
	Promotion    Topic = "promotion"    // ID: the promotion, or empty; a gate opened or closed, or it ended
	Process      Topic = "process"      // recorded work was scheduled, began or ended
	Request      Topic = "request"      // the owner of the environment is asked for something
	People       Topic = "people"       // somebody may do less than before, or more, or has logged out
	Command      Topic = "command"      // ID: the agent; commands wait for it, or what it may do changed
	Answered     Topic = "answered"     // ID: the command; its agent answered it, or it ended otherwise
	Cluster      Topic = "cluster"      // ID: the cluster, or empty for several; it, a job or a task of it changed
	Catalogue    Topic = "catalogue"    // ID: the project, empty for all; what clusters can be made of has changed
	Authors      Topic = "authors"      // ID: the commit; it is known now who wrote a file of it
	Lagged       Topic = "lagged"       // the subscriber missed events and must read everything again
)

// Event says that something changed.
type Event struct {
	Environment intent.EnvironmentID
	Topic       Topic
	ID          string
}

// Bus carries events inside one process, and through its link to others. It is safe for
// concurrent use; the zero value is ready.
type Bus struct {
	mu      sync.Mutex
	next    int
	subs    map[int]*Subscription
	answers map[string]map[int]Answerer // by question
	link    Link                        // nil: there are no other processes
}

const (
	// queueLength is how many events can wait for a subscriber, and hintsLength how many for one
	// to whom every event says the same.
	queueLength = 256
	hintsLength = 2
)

// Subscription receives events until it is closed.
type Subscription struct {
	bus    *Bus
	id     int
	wanted func(Event) bool
	events chan Event
}

// Subscribe returns a subscription to the events that wanted accepts; nil accepts all.
func (b *Bus) Subscribe(wanted func(Event) bool) *Subscription {
	return b.subscribe(wanted, queueLength)
}

// SubscribeHints is Subscribe for a subscriber that does the same for every event: it reads
// something again. Few events wait for it, so that a subscription of each of very many
// environments takes little memory.
func (b *Bus) SubscribeHints(wanted func(Event) bool) *Subscription {
	return b.subscribe(wanted, hintsLength)
}

func (b *Bus) subscribe(wanted func(Event) bool, length int) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = make(map[int]*Subscription)
	}
	b.next++
	s := &Subscription{bus: b, id: b.next, wanted: wanted, events: make(chan Event, length)}
	b.subs[s.id] = s
	return s
}

// Publish sends an event to all subscribers that want it, here and in other processes. It never blocks.
func (b *Bus) Publish(e Event) {
	if link := b.deliver(e); link != nil {
		link.Publish(e)
	}
}

// deliver sends an event to the subscribers of this process, and returns the link.
func (b *Bus) deliver(e Event) Link {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		if s.wanted != nil && !s.wanted(e) {
			continue
		}
		select {
		case s.events <- e:
		default:
			s.lag(e.Environment)
		}
	}
	return b.link
}

// lag replaces what waits for the subscriber by one Lagged event. The bus is locked, so that nothing is added
// meanwhile.
func (s *Subscription) lag(env intent.EnvironmentID) {
	for {
		select {
		case <-s.events:
			continue
		default:
		}
		s.events <- Event{Environment: env, Topic: Lagged}
		return
	}
}

// Events returns the channel of events. Close closes it.
func (s *Subscription) Events() <-chan Event { return s.events }

// Close ends the subscription. It may be called twice.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	if _, live := s.bus.subs[s.id]; live {
		delete(s.bus.subs, s.id)
		close(s.events)
	}
}
