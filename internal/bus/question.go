package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// Bounds of questions and answers.
const (
	AnswerTime  = time.Second // after which an answer is too late, or sooner when the context of Ask ends
	MaxQuestion = 64 << 10    // bytes of a question's body
	MaxAnswer   = 512 << 10   // bytes of an answer
)

// ErrTooLarge is the error of Ask when the answer is larger than MaxAnswer.
var ErrTooLarge error = fault.New("bus.Ask", fault.Exhausted,
	fmt.Sprintf("the answer is larger than %d KiB", MaxAnswer>>10))

// Answerer answers a question about an environment. It returns false when the environment is not this process's.
type Answerer func(ctx context.Context, env intent.EnvironmentID, body []byte) (answer []byte, mine bool)

// Answer makes the bus answer a question, until withdraw is called. The name of a question consists of lower-case
// letters, digits and hyphens. Answerers are called concurrently, and return when their context ends.
func (b *Bus) Answer(question string, answer Answerer) (withdraw func()) {
	if !IsQuestion(question) {
		panic(fmt.Sprintf("bus: %q cannot be the name of a question", question))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answers == nil {
		b.answers = make(map[string]map[int]Answerer)
	}
	if b.answers[question] == nil {
		b.answers[question] = make(map[int]Answerer)
	}
	b.next++
	id := b.next
	b.answers[question][id] = answer
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.answers[question], id)
	}
}

// IsQuestion reports whether a text can be the name of a question.
func IsQuestion(name string) bool {
	for _, c := range []byte(name) {
		if c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Ask asks the process that owns an environment, which may be this one. It fails with Unavailable when no answer comes
// in AnswerTime. The answer of another process is not to be trusted more than the process itself.
func (b *Bus) Ask(ctx context.Context, env intent.EnvironmentID, question string, body []byte) ([]byte, error) {
	const op = "bus.Ask"
	if !IsQuestion(question) || len(body) > MaxQuestion {
		return nil, fault.New(op, fault.Invalid, "this cannot be asked: "+question)
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	if answer, mine := b.Respond(ctx, env, question, body); mine {
		if len(answer) > MaxAnswer {
			return nil, ErrTooLarge
		}
		return answer, nil
	}
	b.mu.Lock()
	link := b.link
	b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, fault.Wrap(op, fault.Unavailable, ctx.Err()).Say("the owner of the environment does not answer")
	case link == nil:
		return nil, fault.New(op, fault.Unavailable, "no process that could answer owns the environment")
	}
	return link.Ask(ctx, env, question, body)
}

// Respond returns the answer of this process. It returns false when the environment is not this process's.
func (b *Bus) Respond(ctx context.Context, env intent.EnvironmentID, question string, body []byte) ([]byte, bool) {
	b.mu.Lock()
	answerers := slices.Collect(maps.Values(b.answers[question]))
	b.mu.Unlock()
	for _, answer := range answerers {
		if reply, mine := answer(ctx, env, body); mine {
			return reply, true
		}
	}
	return nil, false
}
