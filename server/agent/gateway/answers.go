package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/record"
	"ordain.dev/ordain/server/store"
)

// partial is an answer in several parts while they arrive.
type partial struct {
	id      uuid.UUID
	next    int
	data    []byte
	tooMany bool // it is larger than an answer may be; its data was dropped
	stalled *time.Timer
}

// placeTime is how long an agent waits for a place for a large answer, before it has to come again.
const placeTime = 20 * time.Second

// answered handles a part of an answer.
func (l *link) answered(m *protocol.AnswerMessage) error {
	id, err := uuid.Parse(m.ID)
	if err != nil {
		return violation("an answer has no id")
	}
	l.mu.Lock()
	_, has := l.flight[id]
	_, over := l.over[id]
	l.mu.Unlock()
	if !has && !over {
		return l.foreign(id)
	}
	switch p := l.partial; {
	case p == nil && m.Part != 0, p != nil && (p.id != id || p.next != m.Part):
		return violation(fmt.Sprintf("part %d of the answer %s is not the next one", m.Part, id))
	case p == nil && m.Last:
		return l.keep(id, m.Data, over)
	case p == nil:
		ctx, cancel := context.WithTimeout(l.calling, placeTime)
		defer cancel()
		if err := l.g.big.Acquire(ctx, 1); err != nil {
			return farewell("too many agents send large answers at the same time; send it again")
		}
		l.partial = &partial{id: id, stalled: time.AfterFunc(2*stallTime, l.cut)}
	}
	p := l.partial
	p.stalled.Reset(2 * stallTime)
	p.next++
	if p.tooMany = p.tooMany || len(p.data)+len(m.Data) > l.g.c.MaxAnswer; p.tooMany {
		p.data = nil
	} else {
		p.data = append(p.data, m.Data...)
	}
	if !m.Last {
		return nil
	}
	defer l.dropPartial()
	if p.tooMany {
		text := fmt.Sprintf("The agent's answer is larger than %d bytes, and was not kept. The resource may have been "+
			"changed", l.g.c.MaxAnswer)
		return l.keep(id, own("failed", text), over)
	}
	return l.keep(id, p.data, over)
}

// dropPartial gives back what an unfinished answer takes.
func (l *link) dropPartial() {
	if l.partial != nil {
		l.partial.stalled.Stop()
		l.partial = nil
		l.g.big.Release(1)
	}
}

// foreign is the violation of an agent that answers what it was not asked.
func (l *link) foreign(id uuid.UUID) error {
	states, err := l.g.c.Store.AgentCommandStates(l.calling, []uuid.UUID{id})
	if err != nil {
		return farewell("the server cannot read the record now")
	}
	for _, s := range states {
		if s.Environment != l.who.Environment || s.Agent != l.who.Agent {
			return violation("it answers the command " + id.String() + ", which was sent to another agent")
		}
		if s.Answered { // once more, after an interrupted connection or a cancellation
			l.post(protocol.RecordedMessage{Type: protocol.Recorded, IDs: []string{id.String()}})
			return nil
		}
	}
	return violation("it answers the command " + id.String() + ", which was not sent to it")
}

// own is an answer that the server gives in place of an agent.
func own(status, text string) []byte {
	data, _ := json.Marshal(protocol.AnswerBody{ // it has only texts
		Status: status, Change: "nochange", Lines: []json.RawMessage{record.Line("ERROR", text)},
	})
	return data
}

// keep passes an answer on to the recorder.
func (l *link) keep(id uuid.UUID, data []byte, over bool) error {
	if over { // nobody waits for it any more
		l.mu.Lock()
		delete(l.over, id)
		l.mu.Unlock()
		l.post(protocol.RecordedMessage{Type: protocol.Recorded, IDs: []string{id.String()}})
		return nil
	}
	body, err := protocol.DecodeAnswer(data)
	if err != nil {
		l.g.problem(l.who.Identity, "it sent an answer that cannot be understood: "+err.Error())
		data = own("failed", "The agent's answer cannot be understood, so that it is not known what became of the "+
			"resource: "+err.Error())
		body = &protocol.AnswerBody{Status: "failed"}
	}
	sealed, err := l.g.c.Record.Seal(l.who.Environment, id, data)
	if err != nil {
		return farewell("the server cannot seal the answer: " + err.Error())
	}
	return l.g.recorder.add(l.calling, l, store.NewAgentAnswer{
		ID: id, Environment: l.who.Environment, Agent: l.who.Agent, Status: body.Status, Sealed: sealed,
	})
}

// fail answers a command in place of the agent, to which it cannot be sent.
func (l *link) fail(c store.ClaimedCommand, why string) {
	l.g.c.Logger.Error("a command cannot be sent", "environment", c.Environment, "agent", c.Agent, "command", c.ID,
		"reason", why)
	if err := l.keep(c.ID, own(protocol.Refused, why), false); err != nil {
		l.cut() // the next link tries again
	}
}

// recorder writes answers into the record, many at a time.
type recorder struct {
	g     *Gateway
	given chan given
}

type given struct {
	link   *link
	answer store.NewAgentAnswer
}

const (
	maxBatch      = 200
	maxBatchBytes = 16 << 20
	retryFirst    = 100 * time.Millisecond
	retryLast     = 5 * time.Second
)

func newRecorder(g *Gateway) *recorder { return &recorder{g: g, given: make(chan given, maxBatch)} }

// add waits until there is room for another answer.
func (r *recorder) add(ctx context.Context, l *link, a store.NewAgentAnswer) error {
	select {
	case r.given <- given{l, a}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run records answers until ctx ends.
func (r *recorder) run(ctx context.Context) {
	for {
		var batch []given
		select {
		case one := <-r.given:
			batch = append(batch, one)
		case <-ctx.Done():
			return
		}
		size := len(batch[0].answer.Sealed)
	more:
		for len(batch) < maxBatch && size < maxBatchBytes {
			select {
			case one := <-r.given:
				batch = append(batch, one)
				size += len(one.answer.Sealed)
			default:
				break more
			}
		}
		r.record(ctx, batch)
	}
}

// record records a batch, however often that takes, and tells the agents.
func (r *recorder) record(ctx context.Context, batch []given) {
	answers := make([]store.NewAgentAnswer, 0, len(batch))
	for _, one := range batch {
		answers = append(answers, one.answer)
	}
	var recorded []uuid.UUID
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		var err error
		if recorded, err = r.g.c.Store.RecordAgentAnswers(ctx, answers); err == nil {
			break
		}
		r.g.c.Logger.Error("answers of agents cannot be recorded; the server keeps trying", "answers", len(answers),
			"error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return // the agents have them still
		}
	}
	for _, one := range batch {
		one.link.recorded(one.answer.ID)
	}
	for _, id := range recorded {
		for _, one := range batch {
			if one.answer.ID == id {
				r.g.c.Bus.Publish(bus.Event{Environment: one.answer.Environment, Topic: bus.Answered, ID: id.String()})
				break
			}
		}
	}
}

// recorded tells the agent that an answer need not be kept, and takes further commands.
func (l *link) recorded(id uuid.UUID) {
	l.mu.Lock()
	delete(l.flight, id)
	more := l.more && len(l.flight) <= window/2
	l.mu.Unlock()
	l.post(protocol.RecordedMessage{Type: protocol.Recorded, IDs: []string{id.String()}})
	if more {
		l.g.look(l)
	}
}
