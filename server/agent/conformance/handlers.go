package conformance

import (
	"context"
	_ "embed" // handler.py
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/server/agent/protocol"
)

//go:embed handler.py
var handler []byte

const (
	handlerPath   = "inmanta_plugins/conformance/__init__.py"
	handlerModule = "inmanta_plugins.conformance"
)

// blueprint returns what a process of the suite's handler needs, with the hashes of its contents.
func (s *suite) blueprint() (*protocol.Blueprint, []string, error) {
	archive, hash := runtime.Archive()
	if len(s.hello.Machine.Pythons) == 0 {
		return nil, nil, errors.New("the agent has no Python, so that it cannot run handlers: machine.pythons is empty")
	}
	code := protocol.Hash(handler)
	if protocol.Hash(archive) != hash {
		return nil, nil, errors.New("the Python runtime of this program is damaged")
	}
	return &protocol.Blueprint{
		Hash: "conformance-" + code[:16], Python: s.hello.Machine.Pythons[0],
		Modules: map[string]string{handlerModule: handlerPath}, Files: map[string]string{handlerPath: code},
		Wheels: []protocol.Wheel{}, Runtime: hash,
	}, []string{code, hash}, nil
}

// thing is what the suite's handler is to keep.
type thing struct {
	name string
	text string
	what string
}

func (s *suite) path(t thing) string { return filepath.Join(s.work, t.name) }

// run sends a command about a thing.
func (s *suite) run(
	ctx context.Context, action protocol.Action, t thing, change func(*protocol.CommandMessage),
) (id string, err error) {
	if err := s.connected(ctx); err != nil {
		return "", err
	}
	archive, _ := runtime.Archive()
	if err := s.give(ctx, archive, handler); err != nil {
		return "", err
	}
	b, needs, err := s.blueprint()
	if err != nil {
		return "", err
	}
	agent := s.stage.who.Agent
	attributes, err := json.Marshal(map[string]any{
		"agent": agent, "name": t.name, "path": s.path(t), "text": t.text, "what": t.what, "purged": false,
		"purge_on_delete": false, "send_event": false, "receive_events": true, "report_only": false,
		"references": []any{}, "mutators": []any{},
	})
	if err != nil {
		return "", err
	}
	m := protocol.CommandMessage{
		Action: action, Needs: needs, DeadlineMS: (3 * s.cfg.Patience).Milliseconds(),
		Payload: protocol.Payload{Blueprint: b, Task: &protocol.Task{
			Resource: protocol.Resource{
				ID: "conformance::Thing[" + agent + ",name=" + t.name + "]", Version: 1, Attributes: attributes,
				Requires: []string{},
			},
			Reason: "conformance", Requires: map[string]string{}, Lanes: 1,
			TimeoutMS: (3 * s.cfg.Patience).Milliseconds(),
		}},
	}
	if change != nil {
		change(&m)
	}
	return s.command(ctx, m)
}

// finish waits for the answer of a command, which has to have this status, and has it recorded.
func (s *suite) finish(ctx context.Context, id, status string) (*protocol.AnswerBody, error) {
	a, err := s.answer(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := s.record(ctx, id); err != nil {
		return nil, err
	}
	if a.Status != status {
		return a, fmt.Errorf("the command was answered with the status %s, not %s; its lines: %.600s", a.Status, status,
			linesOf(a))
	}
	return a, nil
}

func linesOf(a *protocol.AnswerBody) string {
	var out []string
	for _, l := range a.Lines {
		var line struct{ Level, Msg string }
		_ = json.Unmarshal(l, &line) // then it is empty
		out = append(out, line.Level+" "+line.Msg)
	}
	return strings.Join(out, " | ")
}

// write makes the file of a thing, which the handler may change.
func (s *suite) write(t thing, text string) error {
	if err := os.WriteFile(s.path(t), []byte(text), 0o600); err != nil {
		return err
	}
	return os.Chmod(s.path(t), 0o666)
}

// did returns what the handler noted about a thing.
func (s *suite) did(t thing) string {
	text, _ := os.ReadFile(s.path(t) + ".log") // none: it did nothing
	return strings.Join(strings.Fields(string(text)), " ")
}

// begun waits until the handler has begun with a thing.
func (s *suite) begun(ctx context.Context, t thing) error {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	for s.did(t) == "" {
		select {
		case <-ctx.Done():
			return errors.New("the handler of a command did not begin in time")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// release lets the handler of a slow thing go on.
func (s *suite) release(t thing) error { return os.WriteFile(s.path(t)+".go", nil, 0o600) }

// once checks that the handler ran from begin to end exactly once.
func (s *suite) once(t thing) error {
	if did := s.did(t); did != "begin end" {
		return fmt.Errorf("the handler should have run once, and did: %q", did)
	}
	return nil
}
