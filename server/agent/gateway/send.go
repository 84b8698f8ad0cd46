package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/store"
)

// outbox is what waits to be written on a link. Short messages come before commands, also between the parts of a
// content. Guarded by the link's mutex.
type outbox struct {
	short    [][]byte
	commands []store.ClaimedCommand
	bytes    int
	writing  bool // the goroutine that writes runs
	last     bool // the last of the short messages is bye; nothing comes after it
}

// maxShort is how many short messages wait at most: pings, and answers to calls and renewals.
const maxShort = 1024

// post queues a short message. It reports false, and closes the link, when too much waits.
func (l *link) post(message any) bool {
	data, ok := message.([]byte)
	if !ok {
		var err error
		if data, err = protocol.Encode(message); err != nil {
			l.g.c.Logger.Error("a message cannot be encoded", "error", err) // it holds broken JSON of a desk
			return false
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.out.last || l.closed:
		return false
	case len(l.out.short) >= maxShort || l.out.bytes+len(data) > protocol.MaxWaiting:
		l.tooSlow()
		return false
	}
	l.out.short = append(l.out.short, data)
	l.out.bytes += len(data)
	l.write()
	return true
}

// give queues commands that were claimed for the agent.
func (l *link) give(commands []store.ClaimedCommand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out.last || l.closed {
		return
	}
	for _, c := range commands {
		if _, has := l.flight[c.ID]; has { // the agent has it from an earlier connection
			continue
		}
		l.flight[c.ID] = struct{}{}
		l.out.commands = append(l.out.commands, c)
		l.out.bytes += len(c.Payload)
	}
	l.write()
}

// bye says why the connection ends, and ends it. Only the first call counts.
func (l *link) bye(reason protocol.Reason, message string, retry int) {
	data, err := protocol.Encode(protocol.ByeMessage{
		Type: protocol.Bye, Reason: reason, Message: message, RetrySeconds: retry,
	})
	if err != nil {
		l.cut()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out.last || l.closed {
		return
	}
	l.out.short, l.out.commands, l.out.last = append(l.out.short, data), nil, true
	l.write()
}

// cut ends the connection at once.
func (l *link) cut() { _ = l.ws.CloseNow() }

// tooSlow ends the connection of an agent that does not read. The caller holds the mutex.
func (l *link) tooSlow() {
	if !l.slow {
		l.slow = true
		go l.cut()
	}
}

// write starts the goroutine that writes, unless it runs. The caller holds the mutex.
func (l *link) write() {
	if l.out.writing || l.closed {
		return
	}
	l.out.writing = true
	l.g.all.Add(1)
	go func() {
		defer l.g.all.Done()
		l.writeAll()
	}()
}

// writeAll writes until nothing waits.
func (l *link) writeAll() {
	for {
		l.mu.Lock()
		switch {
		case l.closed:
			l.out = outbox{last: true}
			l.mu.Unlock()
			return
		case len(l.out.short) > 0:
			l.mu.Unlock()
			if !l.writeShort() {
				return
			}
			continue
		case len(l.out.commands) == 0:
			l.out.writing, l.out.short, l.out.commands = false, nil, nil
			l.mu.Unlock()
			return
		}
		c := l.out.commands[0]
		l.mu.Unlock()
		if !l.writeCommand(c) {
			return
		}
		l.mu.Lock()
		if len(l.out.commands) > 0 { // bye takes them away
			l.out.commands = l.out.commands[1:]
		}
		l.out.bytes -= len(c.Payload)
		l.mu.Unlock()
	}
}

// writeShort writes all short messages that wait. It reports false when the link has ended.
func (l *link) writeShort() bool {
	for {
		l.mu.Lock()
		if len(l.out.short) == 0 {
			l.mu.Unlock()
			return true
		}
		data := l.out.short[0]
		l.out.short = l.out.short[1:]
		l.out.bytes -= len(data)
		end := l.out.last && len(l.out.short) == 0
		l.mu.Unlock()
		if !l.writeMessage(data) {
			return false
		}
		if end {
			_ = l.ws.Close(websocket.StatusNormalClosure, "") // it waits a moment for the agent's own farewell
			return false
		}
	}
}

// writeMessage writes one message, which the agent has to take within some seconds.
func (l *link) writeMessage(data []byte) bool {
	ctx, cancel := context.WithTimeout(context.Background(), protocol.SlowTimeout)
	err := l.ws.Write(ctx, websocket.MessageText, data)
	cancel()
	if err == nil {
		if len(data) > small { // it found room, because the agent read what was before it
			l.heard.Store(time.Now().UnixNano())
		}
		return true
	}
	if ctx.Err() == context.DeadlineExceeded {
		l.mu.Lock()
		l.tooSlow()
		l.mu.Unlock()
	}
	l.cut()
	return false
}

// writeCommand writes a command, and before it the contents that the agent lacks. It reports false when the link has
// ended.
func (l *link) writeCommand(c store.ClaimedCommand) bool {
	payload, err := l.g.c.Record.Open(c.Environment, c.ID, c.Payload)
	if err != nil {
		l.fail(c, "The command cannot be opened: "+err.Error())
		return true
	}
	if payload.Variables == nil {
		payload.Variables, payload.Plain, err = l.g.vars.of(l.g.work, c.Environment)
		if err != nil {
			l.fail(c, "The environment variables of the handlers cannot be read: "+err.Error())
			return true
		}
	}
	asked := time.Now()
	for _, hash := range c.Needs {
		ok, err := l.writeContent(hash)
		if err != nil {
			l.fail(c, fmt.Sprintf("The content %s, which the command needs, cannot be read: %v", hash, err))
			return true
		}
		if !ok {
			return false
		}
	}
	left := c.LeftMS
	if left > 0 { // sending contents took some of it
		left = max(1, left-time.Since(asked).Milliseconds())
	}
	data, err := protocol.Encode(protocol.CommandMessage{
		Type: protocol.Command, Seq: c.Seq, ID: c.ID.String(), DeadlineMS: left, Action: protocol.Action(c.Action),
		Needs: c.Needs, Payload: payload,
	})
	if err == nil && len(data) > protocol.MaxMessage {
		err = fmt.Errorf("it has %d bytes with the variables, and may have %d", len(data), protocol.MaxMessage)
	}
	if err != nil {
		l.fail(c, "The command cannot be sent: "+err.Error())
		return true
	}
	return l.writeMessage(data)
}

// writeContent writes a content unless the agent has it.
func (l *link) writeContent(hash string) (ok bool, err error) {
	if l.holding(hash) {
		return true, nil
	}
	for number := 0; ; number++ {
		data, last, err := l.g.contents.part(l.g.work, hash, number)
		if err != nil {
			return false, err
		}
		if !l.writeShort() || !l.writeMessage(data) {
			return false, nil
		}
		if last {
			break
		}
	}
	l.hold(hash)
	return true, nil
}
