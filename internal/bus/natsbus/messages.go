package natsbus

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

// maxAnswers is how many questions of others this process answers at a time.
const maxAnswers = 16

// tooLarge is the header of an answer that was too large to be sent.
const tooLarge = "Ordain-Too-Large"

// Publish puts an event into the queue of the sender, or drops it.
func (c *Conn) Publish(e bus.Event) {
	if c.session.Load() != nil {
		select {
		case c.queue <- e:
			return
		default:
		}
	}
	c.owed.Store(true)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// emit sends an event.
func (c *Conn) emit(nc *nats.Conn, e bus.Event) error {
	e = e.Portable()
	return nc.Publish(c.subject+"event."+e.Environment.String()+"."+string(e.Topic), []byte(e.ID))
}

// subscribe subscribes to the events and questions of other processes.
func (c *Conn) subscribe(nc *nats.Conn) error {
	var missed int
	events, err := nc.Subscribe(c.subject+"event.*.*", func(m *nats.Msg) {
		if n, err := m.Sub.Dropped(); err == nil && n != missed {
			missed = n
			c.cfg.Bus.Lag()
		}
		c.receive(m)
	})
	if err != nil {
		return err
	}
	questions, err := nc.Subscribe(c.subject+"ask.*.*", c.respond)
	if err != nil {
		return err
	}
	return errors.Join(events.SetPendingLimits(pendingEvents, pendingEventBytes),
		questions.SetPendingLimits(pendingQuestions, pendingQuestionsBytes))
}

// receive delivers an event of another process.
func (c *Conn) receive(m *nats.Msg) {
	environment, topic, _ := strings.Cut(strings.TrimPrefix(m.Subject, c.subject+"event."), ".")
	e, err := bus.ParseEvent(environment, topic, m.Data)
	if err != nil {
		c.refuse(err)
		return
	}
	c.cfg.Bus.Receive(e)
}

// refuse counts a message that no process of ours sends, and logs the first and then fewer and fewer of them.
func (c *Conn) refuse(err error) {
	if n := c.dropped.Add(1); n&(n-1) == 0 {
		c.cfg.Logger.Warn("the event bus brought a message that cannot be one of ours, and it was ignored",
			"error", err, "so far", n)
	}
}

// Ask asks the other processes, and returns the first answer.
func (c *Conn) Ask(
	ctx context.Context, env intent.EnvironmentID, question string, body []byte,
) ([]byte, error) {
	const op = "natsbus.Ask"
	nc := c.session.Load()
	if nc == nil {
		return nil, fault.New(op, fault.Unavailable, "the event bus is not connected, so that nobody can be asked")
	}
	m, err := nc.RequestWithContext(ctx, c.subject+"ask."+env.String()+"."+question, body)
	switch {
	case err != nil:
		return nil, fault.Wrap(op, fault.Unavailable, err).Say("the owner of the environment does not answer")
	case m.Header.Get(tooLarge) != "" || len(m.Data) > bus.MaxAnswer:
		return nil, bus.ErrTooLarge
	}
	return m.Data, nil
}

// respond answers a question of another process, unless the environment is not ours: then its owner answers.
func (c *Conn) respond(m *nats.Msg) {
	environment, question, _ := strings.Cut(strings.TrimPrefix(m.Subject, c.subject+"ask."), ".")
	env, err := uuid.Parse(environment)
	switch {
	case err != nil || env.String() != environment:
		c.refuse(errors.New("a question without a valid environment"))
		return
	case !bus.IsQuestion(question):
		c.refuse(errors.New("a question without a valid name"))
		return
	case len(m.Data) > bus.MaxQuestion:
		c.refuse(errors.New("a question that is too large"))
		return
	case !strings.HasPrefix(m.Reply, c.subject+"reply."):
		c.refuse(errors.New("a question whose answer should go elsewhere"))
		return
	}
	select {
	case c.answers <- struct{}{}:
	default:
		return // too many at a time; no decision depends on an answer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.answering.Go(func() {
		defer func() { <-c.answers }()
		ctx, cancel := context.WithTimeout(context.Background(), bus.AnswerTime)
		defer cancel()
		answer, mine := c.cfg.Bus.Respond(ctx, env, question, m.Data)
		if !mine {
			return
		}
		reply := nats.NewMsg(m.Reply)
		if reply.Data = answer; len(answer) > bus.MaxAnswer {
			reply.Data = nil
			reply.Header.Set(tooLarge, "true")
		}
		_ = m.RespondMsg(reply) // when it does not arrive, the asker reports that
	})
}
