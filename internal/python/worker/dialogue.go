package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

type dialogue struct {
	p      *process
	next   int64
	posted int64 // number of the request that Post sent
	broken error // why the conversation cannot go on
	notice func(op string, args json.RawMessage)
}

// StartDialogue starts a worker and waits until it is ready. The context applies
// only to the start.
func StartDialogue(ctx context.Context, c Config) (Dialogue, error) {
	p, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	return &dialogue{p: p, notice: c.OnNotice}, nil
}

// Ask implements Dialogue. When ctx ends first, the worker is killed, because it is
// single-threaded and cannot be asked to give up.
func (d *dialogue) Ask(ctx context.Context, op string, args, reply any, answer Handler) error {
	id, err := d.send(ctx, op, args)
	if err != nil {
		return err
	}
	f, err := d.await(ctx, id, "", answer)
	if err != nil {
		return err
	}
	return f.into(reply, op)
}

// Post implements Dialogue.
func (d *dialogue) Post(ctx context.Context, op string, args any) (err error) {
	d.posted, err = d.send(ctx, op, args)
	return err
}

// Result implements Dialogue.
func (d *dialogue) Result(ctx context.Context, into any, answer Handler) (bool, error) {
	if d.broken != nil {
		return false, d.broken
	}
	f, err := d.await(ctx, d.posted, "result", answer)
	if err != nil {
		return false, err
	}
	if f.Re != 0 {
		return false, f.into(nil, "")
	}
	return true, decode(f.Args, into, "a result")
}

// decode reads JSON. If into is a json.RawMessage, it returns the text itself.
func decode(text json.RawMessage, into any, what string) error {
	if raw, is := into.(*json.RawMessage); is {
		*raw = text
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s of the Python worker: %w", what, err)
	}
	return nil
}

// HasResult implements Dialogue.
func (d *dialogue) HasResult() bool { return d.broken == nil && d.peek(resultFrame) != nil }

// peek returns the next frame if all of it is in the buffer and it has this
// beginning, or nil.
func (d *dialogue) peek(beginning string) []byte {
	there, _ := d.p.frames.Peek(d.p.frames.Buffered())
	if len(there) < 4 {
		return nil
	}
	size := binary.BigEndian.Uint32(there)
	if body := there[4:]; uint64(len(body)) >= uint64(size) && bytes.HasPrefix(body[:size], []byte(beginning)) {
		return body[:size]
	}
	return nil
}

// into decodes the value of a reply.
func (f frame) into(reply any, op string) error {
	if f.Err != nil {
		return f.Err
	}
	if reply == nil {
		return nil
	}
	return decode(f.OK, reply, "reply to "+op)
}

// send writes a request and returns its number.
func (d *dialogue) send(ctx context.Context, op string, args any) (int64, error) {
	if d.broken != nil {
		return 0, d.broken
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	packet, err := packed(request{ID: d.next + 1, Op: op, Args: args})
	if err != nil {
		return 0, err
	}
	d.next++
	stop := d.killWith(ctx)
	defer stop()
	if err := d.p.write(packet); err != nil {
		return 0, d.fail(ctx, err)
	}
	return d.next, nil
}

// killWith kills the worker if ctx ends before stop is called.
func (d *dialogue) killWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		d.p.kill()
		_ = d.p.out.SetReadDeadline(time.Unix(1, 0))
	})
}

// await answers the worker's requests until the reply to request id arrives, or a
// notice of this name.
func (d *dialogue) await(ctx context.Context, id int64, notice string, answer Handler) (frame, error) {
	stop := func() bool { return false }
	defer func() { stop() }()
	for watched := false; ; {
		if !watched && d.peek("") == nil { // reading may have to wait
			stop, watched = d.killWith(ctx), true
		}
		f, err := readFrame(d.p.frames)
		if err != nil {
			return f, d.fail(ctx, err)
		}
		switch {
		case f.Re == id:
			return f, nil
		case f.Re != 0:
			return f, d.fail(ctx, fmt.Errorf("%w: a reply to request %d while %d is under way", ErrFrame, f.Re, id))
		case f.ID == 0 && f.Op == notice:
			return f, nil
		case f.ID == 0: // another notice
			if d.notice != nil {
				d.notice(f.Op, f.Args)
			}
			continue
		}
		var value any
		if answer == nil {
			err = &Failure{Kind: "protocol", Message: "no request " + f.Op + " is answered here"}
		} else {
			value, err = answer(f.Op, f.Args)
		}
		if d.broken != nil { // a request that answer sent has ended the conversation
			return f, d.broken
		}
		packet, err := answered(f.ID, value, err)
		if err == nil {
			err = d.p.write(packet)
		}
		if err != nil {
			return f, d.fail(ctx, err)
		}
	}
}

// fail ends the conversation and returns the best explanation that is known.
func (d *dialogue) fail(ctx context.Context, err error) error {
	d.p.kill()
	<-d.p.ended
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("the Python worker was stopped: %w", context.Cause(ctx))
	case errors.Is(err, ErrFrame):
	default:
		err = d.p.endErr
	}
	if words := d.p.words.String(); words != "" {
		err = fmt.Errorf("%w; its last words:\n%s", err, words)
	}
	d.broken = err
	return err
}

// Close implements Dialogue.
func (d *dialogue) Close(grace time.Duration) error {
	d.p.close(grace)
	if d.broken == nil {
		d.broken = errors.New("the conversation with the Python worker is closed")
	}
	return nil
}

// LastWords implements Dialogue.
func (d *dialogue) LastWords() string { return d.p.words.String() }

// RSS implements Dialogue.
func (d *dialogue) RSS() int64 { return d.p.rss() }

// EndOthers implements Dialogue.
func (d *dialogue) EndOthers() { d.p.space.End(d.p.pid) }

// Done implements Dialogue.
func (d *dialogue) Done() <-chan struct{} { return d.p.ended }
