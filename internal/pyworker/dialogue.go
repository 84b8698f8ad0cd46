package pyworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

type dialogue struct {
	p      *process
	next   int64
	broken error // set once the conversation cannot go on
}

// StartDialogue starts a worker and waits until it is ready. The context is
// for the start only.
func StartDialogue(ctx context.Context, c Config) (Dialogue, error) {
	p, err := start(ctx, c)
	if err != nil {
		return nil, err
	}
	return &dialogue{p: p}, nil
}

// Ask implements Dialogue. When ctx ends first the worker is killed: it is
// single-threaded and cannot be asked to give up.
func (d *dialogue) Ask(ctx context.Context, op string, args, reply any, answer Handler) error {
	if d.broken != nil {
		return d.broken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.next++
	id := d.next
	packet, err := packed(request{ID: id, Op: op, Args: args})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		d.p.kill()
		_ = d.p.out.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	if err := d.p.write(packet); err != nil {
		return d.fail(ctx, err)
	}
	for {
		f, err := readFrame(d.p.frames)
		if err != nil {
			return d.fail(ctx, err)
		}
		switch {
		case f.Re == id:
			if f.Err != nil {
				return f.Err
			}
			if reply == nil {
				return nil
			}
			if err := json.Unmarshal(f.OK, reply); err != nil {
				return fmt.Errorf("pyworker: reply to %s: %w", op, err)
			}
			return nil
		case f.Re != 0:
			return d.fail(ctx, fmt.Errorf("%w: a reply to %d while %d is asked", ErrFrame, f.Re, id))
		case f.ID == 0: // a notice
			continue
		}
		var value any
		if answer == nil {
			err = &Failure{Kind: "protocol", Message: "nobody answers " + f.Op + " here"}
		} else {
			value, err = answer(f.Op, f.Args)
		}
		if d.broken != nil { // a question inside the answer broke the conversation
			return d.broken
		}
		packet, err := answered(f.ID, value, err)
		if err == nil {
			err = d.p.write(packet)
		}
		if err != nil {
			return d.fail(ctx, err)
		}
	}
}

// fail ends the conversation and says why as well as it can be known.
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
		d.broken = errors.New("pyworker: the dialogue is closed")
	}
	return nil
}

// LastWords implements Dialogue.
func (d *dialogue) LastWords() string { return d.p.words.String() }
