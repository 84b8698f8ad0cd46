package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/agent/protocol"
)

// passed stands for a deadline that has passed, which is 0 on the wire.
const passed = -1

// command sends a command with the next seq, and a new id unless it has one.
func (s *suite) command(ctx context.Context, m protocol.CommandMessage) (id string, err error) {
	s.seq = max(s.seq, s.hello.Seen) + 1
	m.Type, m.Seq = protocol.Command, s.seq
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	switch m.DeadlineMS {
	case 0:
		m.DeadlineMS = defaultDeadline.Milliseconds()
	case passed:
		m.DeadlineMS = 0
	}
	if m.Needs == nil {
		m.Needs = []string{}
	}
	return m.ID, s.send(ctx, m)
}

// send sends a message within the agent's patience.
func (s *suite) send(ctx context.Context, m any) error {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	return s.link.send(ctx, m)
}

// answer waits for the answer of a command, and puts its parts together.
func (s *suite) answer(ctx context.Context, id string) (*protocol.AnswerBody, error) {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	var all []byte
	for part := 0; ; part++ {
		m, err := await(
			ctx,
			s.link,
			"the answer of a command",
			func(m *protocol.AnswerMessage) bool { return m.ID == id },
		)
		if err != nil {
			return nil, err
		}
		if m.Part != part {
			return nil, fmt.Errorf("part %d of an answer has the number %d", part, m.Part)
		}
		if all = append(all, m.Data...); len(all) > protocol.MaxAnswer {
			return nil, errors.New("an answer is too large")
		}
		if m.Last {
			break
		}
	}
	return protocol.DecodeAnswer(all)
}

// record tells the agent that an answer was recorded.
func (s *suite) record(ctx context.Context, ids ...string) error {
	return s.send(ctx, protocol.RecordedMessage{Type: protocol.Recorded, IDs: ids})
}
