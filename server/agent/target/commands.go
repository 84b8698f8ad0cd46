package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/executor"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/agent/protocol"
	"ordain.dev/ordain/server/agent/trust"
)

// The life of a command:
//
//	arrives ─▶ on disk ─▶ runs ─▶ answered, on disk ─▶ recorded: forgotten, but for its id
//	   │          │         └ crash ─▶ answered as lost at the next start
//	   └ crash ───┴ crash: it arrives again, and runs then

// command is a command from its arrival until its answer is recorded.
type command struct {
	id   string
	ctx  context.Context
	end  context.CancelCauseFunc
	gone chan struct{} // closed when its answer is recorded

	mu        sync.Mutex
	answered  bool
	answer    []byte // if it could not be written to the disk
	sentOn    *link  // the answer is being sent on this connection
	cancelled bool
	deadline  *time.Timer
	progress  progress
}

// parseID returns the id of a command. The protocol has checked that it is one.
func parseID(id string) uuid.UUID {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return uuid.UUID{}
	}
	return parsed
}

func (a *Agent) newCommand(id string) *command {
	c := &command{id: id, gone: make(chan struct{})}
	c.ctx, c.end = context.WithCancelCause(context.WithValue(a.ctx, commandKey{}, id))
	return c
}

func (a *Agent) answerFile(id string) string { return filepath.Join(a.paths.Answers(), id) }

// recall reads the journal after a start. What was running when the agent ended is answered as lost.
func (a *Agent) recall() (err error) {
	if a.journal, err = openJournal(a.paths.Journal()); err != nil {
		return err
	}
	open, recorded, _ := a.journal.known()
	for _, id := range recorded {
		a.recorded[id] = true
	}
	keep := map[string]bool{}
	for _, id := range open {
		keep[id] = true
		c := a.newCommand(id)
		c.answered = true
		a.commands[id] = c
		if _, err := os.Stat(a.answerFile(id)); err == nil {
			continue
		}
		lost := said(
			protocol.Lost,
			"ERROR",
			"The agent ended while it carried out this command, or before it began. What the "+
				"handler had done by then stays as it is.",
		)
		if _, err := a.keep(id, lost); err != nil {
			return err
		}
		a.log.Warn("a command was cut off when the agent ended", "command", id)
	}
	entries, err := os.ReadDir(a.paths.Answers())
	if err != nil {
		return fault.Disk("target.recall", a.paths.Answers(), err)
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			_ = os.Remove(filepath.Join(a.paths.Answers(), e.Name()))
		}
	}
	return nil
}

// state lists the commands for a hello.
func (a *Agent) state() (running, unrecorded []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	running, unrecorded = []string{}, []string{}
	for id, c := range a.commands {
		if len(running)+len(unrecorded) == protocol.MaxCommands {
			break
		}
		if c.isAnswered() {
			unrecorded = append(unrecorded, id)
		} else {
			running = append(running, id)
		}
	}
	return running, unrecorded
}

func (c *command) isAnswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered
}

// take takes a command that arrived. It does not wait.
func (a *Agent) take(m *protocol.CommandMessage) {
	a.mu.Lock()
	known := a.commands[m.ID]
	recorded := a.recorded[m.ID]
	if known == nil {
		known = a.newCommand(m.ID)
		a.commands[m.ID] = known
		delete(a.recorded, m.ID)
		a.mu.Unlock()
		if recorded { // the server has lost the answer, for example because its database was restored
			a.finish(
				known,
				said(protocol.Lost, "ERROR", "This command was carried out before. The server had recorded its "+
					"answer, so the agent no longer has it."),
			)
			return
		}
		a.start(known, m)
		return
	}
	a.mu.Unlock()
	if known.isAnswered() {
		a.send(known)
	}
}

// start carries out a command once it is in the journal.
func (a *Agent) start(c *command, m *protocol.CommandMessage) {
	if m.DeadlineMS == 0 {
		a.finish(c, said(protocol.Late, "ERROR", "The command arrived after its deadline."))
		return
	}
	after := time.Duration(m.DeadlineMS) * time.Millisecond
	timer := time.AfterFunc(after, func() {
		a.finish(c, said(protocol.Late, "ERROR", "The command was not done within its %s.", after))
		c.end(executor.ErrEnd)
	})
	c.mu.Lock()
	c.deadline = timer
	c.mu.Unlock()
	a.all.Add(1)
	a.journal.add(journalLine{Command: m.ID, Seq: m.Seq}, func(err error) {
		go func() {
			defer a.all.Done()
			switch {
			case err != nil:
				a.log.Error("a command is refused because it cannot be written to the disk", "error", err)
				a.finish(c, said(protocol.Refused, "ERROR", "The agent cannot write to its disk: %v", err))
			case c.isCancelled():
				a.finish(c, said(protocol.Cancelled, "INFO", "The command was cancelled before it began."))
			default:
				a.finish(c, a.carryOut(c, m))
			}
		}()
	})
}

func (c *command) isCancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// carryOut does what a command says.
func (a *Agent) carryOut(c *command, m *protocol.CommandMessage) (answer protocol.AnswerBody) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil { // a bug that one command triggers must not end the agent
			a.log.Error("a command could not be carried out", "command", m.ID, "panic", p)
			answer = said(string(intent.StatusFailed), "CRITICAL", "The agent gave up: %v", p)
		}
	}()
	if err := a.contents.lacking(m.Needs); err != nil {
		return said(protocol.Refused, "ERROR", "The command cannot be carried out: %v.", err)
	}
	done := func(err error) protocol.AnswerBody {
		var no refused
		status := string(intent.StatusUnavailable)
		switch {
		case err == nil:
			return protocol.AnswerBody{
				Status: protocol.Done, Change: string(intent.NoChange), DurationMS: time.Since(began).Milliseconds(),
			}
		case errors.As(err, &no), fault.Is(err, fault.NotFound):
			status = protocol.Refused
		}
		return said(status, "ERROR", "The command cannot be carried out: %v.", err)
	}
	switch m.Action {
	case protocol.Deploy, protocol.DryRun, protocol.Facts:
		a.work.setVariables(m.Payload.Variables, m.Payload.Plain)
		t, err := a.work.task(c.ctx, m)
		if err != nil {
			return done(err)
		}
		t.OnLine = func(l intent.LogLine) { a.progress(c, l) }
		return a.run(c, t, hashes(m.Payload.Blueprint))
	case protocol.Prepare:
		a.work.setVariables(m.Payload.Variables, m.Payload.Plain)
		b, err := a.work.blueprint(c.ctx, m.Payload.Blueprint)
		if err == nil {
			err = a.work.Prepare(c.ctx, []intent.Blueprint{b})
		}
		return done(err)
	case protocol.Forget:
		a.forget(m.Payload.Hashes)
		return done(nil)
	}
	return said(protocol.Refused, "ERROR", "This agent does not know the action %.40q. Install a newer one.", m.Action)
}

// run runs a task.
func (a *Agent) run(c *command, t executor.Task, needs []string) protocol.AnswerBody {
	r := a.work.Run(c.ctx, t)
	if !r.NotBegun {
		return answerOf(r)
	}
	answer := answerOf(r)
	switch err := a.contents.lacking(needs); {
	case c.isCancelled():
		answer.Status = protocol.Cancelled
	case err != nil: // it was found damaged just now
		answer.Status = protocol.Refused
		answer.Lines = append(answer.Lines, ownLine("ERROR", "The command cannot be carried out: "+err.Error()+"."))
	}
	return answer
}

// forget deletes contents, with the processes and folders that are made of them.
func (a *Agent) forget(gone []string) {
	doomed := map[string]bool{}
	for _, hash := range gone {
		doomed[hash] = true
	}
	a.work.mu.Lock()
	var drop []string
	for key, b := range a.work.prints {
		for _, hash := range hashes(b.arrived) {
			if doomed[hash] {
				drop = append(drop, b.made.Hash())
				delete(a.work.prints, key)
				break
			}
		}
	}
	for _, hash := range gone {
		if name, ok := a.work.sha1s[hash]; ok {
			delete(a.work.sources, name)
			delete(a.work.sha1s, hash)
		}
	}
	a.work.mu.Unlock()
	a.work.Drop(drop)
	a.contents.remove(gone, "the server asked the agent to delete it")
}

// cancel ends a command.
func (a *Agent) cancelCommand(id string) {
	a.mu.Lock()
	c := a.commands[id]
	a.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	c.cancelled = true
	c.mu.Unlock()
	c.end(executor.ErrEnd)
}

// finish answers a command, once: the answer is on the disk before it is sent.
func (a *Agent) finish(c *command, answer protocol.AnswerBody) {
	c.mu.Lock()
	if c.answered {
		c.mu.Unlock()
		return
	}
	c.answered = true
	if c.deadline != nil {
		c.deadline.Stop()
	}
	c.progress.stop()
	// The answer is on the disk before anybody sees that there is one; the lock keeps others waiting until then.
	text, err := a.keep(c.id, answer)
	if err != nil {
		c.answer = text
	}
	c.mu.Unlock()
	if err != nil {
		a.log.Error("an answer cannot be written to the disk; it is lost if the agent ends now", "error", err)
	}
	a.send(c)
}

// keep writes an answer to the disk and returns it as it is sent.
func (a *Agent) keep(id string, answer protocol.AnswerBody) ([]byte, error) {
	text, err := json.Marshal(answer)
	if err == nil && len(text) > protocol.MaxAnswer {
		err = fmt.Errorf("it has %d bytes, and may have %d", len(text), protocol.MaxAnswer)
	}
	if err != nil {
		short := said(
			string(intent.StatusFailed),
			"ERROR",
			"What the handler did is not known to the server, because the "+
				"answer cannot be sent: %v. The handler had ended with the status %s and the change %s.",
			err,
			answer.Status,
			answer.Change,
		)
		short.DurationMS = answer.DurationMS
		if text, err = json.Marshal(short); err != nil {
			return nil, err
		}
	}
	return text, trust.WriteFile(a.answerFile(id), text)
}

// forgetRecorded forgets commands whose answers the server has recorded.
func (a *Agent) forgetRecorded(ids []string) {
	for _, id := range ids {
		a.mu.Lock()
		c := a.commands[id]
		if c == nil || !c.isAnswered() {
			a.mu.Unlock()
			continue
		}
		delete(a.commands, id)
		if len(a.recorded) > 2*knownRecorded {
			clear(a.recorded) // the journal has the last ones again at the next start
		}
		a.recorded[id] = true
		a.mu.Unlock()
		c.end(nil)
		close(c.gone)
		file := a.answerFile(id)
		a.journal.add(journalLine{Recorded: id}, func(err error) {
			if err == nil {
				_ = os.Remove(file)
			}
		})
	}
}

// Progress is sent for commands that take longer than progressAfter, at most that often, and at most progressLines at a
// time. It is for people who watch: the answer has all lines.
const (
	progressAfter = time.Second
	progressLines = 500
	progressBytes = 1 << 20
)

// progress collects the lines that were not sent.
type progress struct {
	lines   []json.RawMessage
	size    int
	timer   *time.Timer
	stopped bool
}

func (p *progress) stop() {
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// progress takes a line that a handler has just logged.
func (a *Agent) progress(c *command, l intent.LogLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.progress
	if p.stopped || len(p.lines) >= progressLines || p.size >= progressBytes {
		return
	}
	for _, text := range encodeLines([]intent.LogLine{l}) {
		if len(text) < progressBytes {
			p.lines, p.size = append(p.lines, text), p.size+len(text)
		}
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(progressAfter, func() { a.sendProgress(c) })
	}
}

func (a *Agent) sendProgress(c *command) {
	c.mu.Lock()
	lines, stopped := c.progress.lines, c.progress.stopped
	c.progress.lines, c.progress.size, c.progress.timer = nil, 0, nil
	c.mu.Unlock()
	a.mu.Lock()
	l := a.link
	a.mu.Unlock()
	if l != nil && !stopped && len(lines) > 0 {
		_ = l.send(protocol.ProgressMessage{Type: protocol.Progress, ID: c.id, Lines: lines})
	}
}
