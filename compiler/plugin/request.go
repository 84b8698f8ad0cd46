package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"ordain.dev/ordain/compiler/eval"
)

// HangError means that Python code did not return in time.
type HangError struct {
	What  string
	After time.Duration
	Stack string // of the worker, when it was stopped
}

// Error implements error.
func (e *HangError) Error() string {
	text := fmt.Sprintf("%s did not return within %s and was stopped", e.What, e.After)
	if e.Stack != "" {
		text += "; it was here:\n" + e.Stack
	}
	return text
}

// grace is how long a worker that hangs has to print its stack.
const grace = 500 * time.Millisecond

// ask sends a request, and answers what Python asks until the reply arrives. A worker that takes too
// long is told to print its stack and is then killed.
func (h *Host) ask(op string, args, reply any, what string) error {
	if err := h.awake(); err != nil {
		return err
	}
	h.settle()
	return h.request(op, args, reply, what)
}

// awake waits until the worker can take requests.
func (h *Host) awake() error {
	h.Begin()
	<-h.started
	if h.startErr != nil {
		return h.startErr
	}
	if h.preloaded != nil {
		<-h.preloaded
		if !h.joined {
			h.joined = true
			h.settlePrinted(h.loadErr)
		}
		return h.loadErr
	}
	return nil
}

// request is ask for a worker that is awake.
func (h *Host) request(op string, args, reply any, what string) error {
	return h.guarded(what, func(ctx context.Context) error { return h.dialogue.Ask(ctx, op, args, reply, h.answer) })
}

// noticed shows lines that Python prints at once, and keeps them until the reply arrives, which repeats them.
func (h *Host) noticed(op string, args json.RawMessage) {
	var notice struct {
		Lines []string `json:"lines"`
	}
	if op != "printed" || json.Unmarshal(args, &notice) != nil {
		return
	}
	if h.config.OnPrint != nil && !h.searching {
		for _, line := range notice.Lines {
			h.config.OnPrint(line)
		}
	}
	if len(h.printed) < mostPrinted {
		h.printed = append(h.printed, notice.Lines...)
	}
}

// mostPrinted bounds how many lines are kept in case the worker dies.
const mostPrinted = 10_000

// guarded runs do, and ends the worker if it takes too long.
func (h *Host) guarded(what string, do func(ctx context.Context) error) error {
	err := h.within(h.config.CallTimeout, what, do)
	h.settlePrinted(err)
	return err
}

func (h *Host) within(limit time.Duration, what string, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(h.alive)
	defer cancel(nil)
	hang := &HangError{What: what, After: limit}
	warn := time.AfterFunc(limit, func() {
		h.stackRequested.Store(true)
		_ = syscall.Kill(h.pid, syscall.SIGUSR1)
	})
	defer warn.Stop()
	kill := time.AfterFunc(limit+grace, func() { cancel(hang) })
	defer kill.Stop()
	err := do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), hang) {
		hang.Stack = moduleFrames(h.dialogue.LastWords(), h.config.RuntimeDir)
		return hang
	}
	return err
}

// settlePrinted drops the lines that were printed during a request, because the reply has them too.
// A request that failed has no reply: then they are pending output.
func (h *Host) settlePrinted(err error) {
	if err != nil {
		h.pending = append(h.pending, h.printed...)
	}
	h.printed = nil
}

// Is makes errors.Is compare hangs by identity.
func (e *HangError) Is(target error) bool { return error(e) == target }

// Request sends a request of package export. heap is what Python reads of the model meanwhile. An
// exception in Python code is a *RequestError.
func (h *Host) Request(op string, args, reply any, heap eval.Heap, what string) error {
	raw, known := h.answerFromTable(op, args)
	if !known {
		h.useModulesOf(args)
		if err := h.awake(); err != nil {
			return err
		}
		h.settle()
		h.heap, h.slots = heap, nil
		h.wire.begin()
		defer func() { h.heap = nil }()
		if err := h.request(op, args, &raw, what); err != nil {
			return err
		}
	}
	var common struct {
		Output []string   `json:"output"`
		Error  *exception `json:"error"`
		Warn   []string   `json:"warn"`
	}
	if err := json.Unmarshal(raw, &common); err != nil {
		return fmt.Errorf("plugin: reply to %s: %w", op, err)
	}
	h.pending = append(h.pending, common.Output...)
	h.warned = append(h.warned, common.Warn...)
	if common.Error != nil {
		return &RequestError{PluginError: common.Error.pluginError()}
	}
	if err := json.Unmarshal(raw, reply); err != nil {
		return fmt.Errorf("plugin: reply to %s: %w", op, err)
	}
	return nil
}

// Raised parses an exception in a reply to Request.
func Raised(raw json.RawMessage) error {
	var e exception
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("plugin: an exception in a reply: %w", err)
	}
	return &RequestError{PluginError: e.pluginError()}
}

// RequestError is an exception that Python code raised during an export.
type RequestError struct{ eval.PluginError }

// Error implements error.
func (e *RequestError) Error() string { return e.Message }
