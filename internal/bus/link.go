package bus

import (
	"context"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// Link connects a Bus to those of other processes. It calls Receive, Lag and Respond of the Bus for what they send.
type Link interface {
	// Publish hands an event to the other processes. It never blocks. When the link drops an event, it makes the
	// others lag as soon as it can.
	Publish(e Event)
	// Ask returns the first answer of another process. It fails with Unavailable when none comes in time.
	Ask(ctx context.Context, env intent.EnvironmentID, question string, body []byte) ([]byte, error)
}

// SetLink makes the bus use a link; nil: none.
func (b *Bus) SetLink(l Link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.link = l
}

// Receive delivers an event of another process, which ParseEvent has checked, to the subscribers of this one.
func (b *Bus) Receive(e Event) {
	if e.Topic == Lagged {
		b.Lag()
		return
	}
	b.deliver(e)
}

// Lag tells every subscriber of this process that events may have been lost.
func (b *Bus) Lag() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		s.lag(intent.EnvironmentID{})
	}
}

// MaxID is how many bytes the ID of an event may have when it comes from another process.
const MaxID = 1024

// forms says which IDs the events of a topic may have. An empty one is always allowed: it means any.
var forms = map[Topic]func(string) bool{
	Environment: isEmpty, Compile: isUUID, Version: isNumber, Resource: isText, DryRun: isUUID, Notification: isUUID,
	Delivery: isEmpty, Pull: isEmpty, Promotion: isUUID, People: isEmpty, Request: isEmpty, Command: isText,
	Answered: isUUID, Cluster: isUUID, Catalogue: isUUID,
	Lagged: isEmpty,
}

// ParseEvent reads an event that another process claims to have sent. It refuses what no process sends.
func ParseEvent(environment, topic string, id []byte) (Event, error) {
	env, err := uuid.Parse(environment)
	if err != nil || env.String() != environment {
		return Event{}, errors.New("an event without a valid environment")
	}
	form, known := forms[Topic(topic)]
	if !known {
		return Event{}, errors.New("an event of an unknown topic, perhaps of a newer version")
	}
	if len(id) > MaxID {
		return Event{}, fmt.Errorf("an event of %d bytes, more than %d", len(id), MaxID)
	}
	e := Event{Environment: env, Topic: Topic(topic), ID: string(id)}
	if e.ID != "" && !form(e.ID) {
		return Event{}, fmt.Errorf("an event %s with an ID of another form", topic)
	}
	return e, nil
}

// Portable returns the event in a form that other processes accept: without an ID that they would refuse.
func (e Event) Portable() Event {
	if form := forms[e.Topic]; form == nil || len(e.ID) > MaxID || e.ID != "" && !form(e.ID) {
		e.ID = ""
	}
	return e
}

func isEmpty(id string) bool { return id == "" }

func isUUID(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}

func isNumber(id string) bool {
	for _, c := range []byte(id) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(id) <= len("18446744073709551615")
}

// isText reports whether an ID is readable text.
func isText(id string) bool {
	if !utf8.ValidString(id) {
		return false
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
