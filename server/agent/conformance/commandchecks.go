package conformance

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/server/agent/protocol"
)

var commandChecks = []check{
	{"prepare", "prepare makes a process ready, and is answered with done", checkPrepare},
	{"deploy", "deploy runs the handler's code, and says what it changed", checkDeploy},
	{"again", "deploying what is as intended changes nothing", checkAgain},
	{"dryrun", "dryrun says what would change, and changes nothing", checkDryRun},
	{"facts", "facts returns what the handler learns", checkFacts},
	{"failed", "a handler that raises an exception ends as failed, with a line about it", checkFailed},
	{"variables", "variables reach the handler, and secret ones never the disk", checkVariables},
	{"call", "a handler's call to the server gets its answer", checkCall},
	{"big-answer", "a large answer comes in parts", checkBigAnswer},
	{"twice", "a command that comes twice runs once, and its answer is sent again", checkTwice},
	{
		"deadline",
		"a command ends with late at its deadline; one whose deadline has passed does not begin",
		checkDeadline,
	},
	{"cancel", "a command that runs is ended by cancel, and answered", checkCancel},
	{"cut", "a command goes on while the connection is cut, and runs once", checkCut},
	{"unrecorded", "an answer is kept until it is recorded, and sent again after a cut", checkUnrecorded},
	{"killed", "a command that ran when the agent was killed is lost, and does not run again", checkKilled},
	{"kept", "after a kill the agent connects with its certificate, and has its contents and answers", checkKept},
	{"forget", "forget deletes contents", checkForget},
}

func checkPrepare(ctx context.Context, s *suite) error {
	id, err := s.run(ctx, protocol.Prepare, thing{name: "prepared"}, func(m *protocol.CommandMessage) {
		m.Payload.Task = nil
	})
	if err != nil {
		return err
	}
	_, err = s.finish(ctx, id, protocol.Done)
	return err
}

func checkDeploy(ctx context.Context, s *suite) error {
	t := thing{name: "deployed", text: "as intended"}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	a, err := s.finish(ctx, id, "deployed")
	if err != nil {
		return err
	}
	if a.Change != "created" {
		return fmt.Errorf("the change is %q, not created", a.Change)
	}
	if text, err := os.ReadFile(s.path(t)); err != nil || string(text) != t.text {
		return fmt.Errorf("the handler did not write what it should have: %q, %v", text, err)
	}
	for _, line := range a.Lines {
		var l struct {
			Level, Msg string
			Timestamp  time.Time
		}
		if err := json.Unmarshal(line, &l); err != nil || l.Level == "" || l.Timestamp.IsZero() {
			return fmt.Errorf("a line of the log is not as the schema says: %.200s", line)
		}
	}
	return s.once(t)
}

func checkAgain(ctx context.Context, s *suite) error {
	t := thing{name: "again", text: "as intended"}
	for _, change := range []string{"created", "nochange"} {
		id, err := s.run(ctx, protocol.Deploy, t, nil)
		if err != nil {
			return err
		}
		a, err := s.finish(ctx, id, "deployed")
		if err != nil {
			return err
		}
		if a.Change != change {
			return fmt.Errorf("the change is %q, not %s", a.Change, change)
		}
	}
	return s.once(t)
}

func checkDryRun(ctx context.Context, s *suite) error {
	t := thing{name: "dry", text: "new"}
	if err := s.write(t, "old"); err != nil {
		return err
	}
	id, err := s.run(ctx, protocol.DryRun, t, nil)
	if err != nil {
		return err
	}
	a, err := s.finish(ctx, id, "dry")
	if err != nil {
		return err
	}
	var changes map[string]struct{ Current, Desired any }
	if err := json.Unmarshal(a.Changes, &changes); err != nil || changes["text"].Current != "old" ||
		changes["text"].Desired != "new" {
		return fmt.Errorf("the changes do not say that text would change from old to new: %.300s", a.Changes)
	}
	if did := s.did(t); did != "" {
		return fmt.Errorf("the handler changed something: %q", did)
	}
	return nil
}

func checkFacts(ctx context.Context, s *suite) error {
	t := thing{name: "facts", text: "x"}
	if err := s.write(t, "four"); err != nil {
		return err
	}
	id, err := s.run(ctx, protocol.Facts, t, nil)
	if err != nil {
		return err
	}
	a, err := s.answer(ctx, id)
	if err != nil {
		return err
	}
	if err := s.record(ctx, id); err != nil {
		return err
	}
	if !slices.ContainsFunc(a.Facts, func(f protocol.Fact) bool { return f.Name == "length" && f.Value == "4" }) {
		return fmt.Errorf(
			"the fact length is missing; status %s, facts %v, lines: %.600s",
			a.Status,
			a.Facts,
			linesOf(a),
		)
	}
	return nil
}

func checkFailed(ctx context.Context, s *suite) error {
	id, err := s.run(ctx, protocol.Deploy, thing{name: "failed", what: "fail"}, nil)
	if err != nil {
		return err
	}
	a, err := s.finish(ctx, id, "failed")
	if err != nil {
		return err
	}
	if !strings.Contains(linesOf(a), "no such luck") {
		return errors.New("no line says which exception the handler raised")
	}
	return s.alive(ctx)
}

func checkVariables(ctx context.Context, s *suite) error {
	secret := "conformance-" + uuid.NewString()
	t := thing{name: "variables", what: "secret"}
	id, err := s.run(ctx, protocol.Deploy, t, func(m *protocol.CommandMessage) {
		m.Payload.Variables = map[string]string{"CONFORMANCE_SECRET": secret, "CONFORMANCE_PLAIN": " plain"}
		m.Payload.Plain = []string{"CONFORMANCE_PLAIN"}
	})
	if err != nil {
		return err
	}
	if _, err = s.finish(ctx, id, "deployed"); err != nil {
		return err
	}
	want := fmt.Sprintf("%d plain", len(secret))
	if text, err := os.ReadFile(s.path(t)); err != nil || string(text) != want {
		return fmt.Errorf("the handler saw other variables: it wrote %q, %v", text, err)
	}
	return filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // files come and go
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, []byte(secret)) {
			return errors.New("a secret variable is on the disk, in " + strings.TrimPrefix(path, s.dir))
		}
		return nil
	})
}

func checkCall(ctx context.Context, s *suite) error {
	content := []byte("from the server")
	sum := sha1.Sum(content)
	t := thing{name: "call", what: "file", text: hex.EncodeToString(sum[:])}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	step, cancel := s.patience(ctx)
	defer cancel()
	for served := false; !served; {
		m, err := await[protocol.CallMessage](step, s.link, "the handler's call", nil)
		if err != nil {
			return err
		}
		body := any(true)
		if m.Method == protocol.FileMethod {
			body = map[string]any{"size": len(content), "data": content}
			served = true
		} else if m.Method != protocol.StatFileMethod {
			return fmt.Errorf("the handler reads a file, and the agent calls %s", m.Method)
		}
		if m.ID != id {
			return errors.New("the call names another command")
		}
		coded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		if err := s.link.send(step, protocol.ReturnedMessage{
			Type: protocol.Returned, ID: id, Call: m.Call, Code: 200, Body: coded,
		}); err != nil {
			return err
		}
	}
	if _, err := s.finish(ctx, id, "deployed"); err != nil {
		return err
	}
	if text, err := os.ReadFile(s.path(t)); err != nil || string(text) != string(content) {
		return fmt.Errorf("the handler got %q, %v", text, err)
	}
	return nil
}

func checkBigAnswer(ctx context.Context, s *suite) error {
	id, err := s.run(ctx, protocol.Deploy, thing{name: "big", what: "big"}, nil)
	if err != nil {
		return err
	}
	a, err := s.finish(ctx, id, "deployed")
	if err != nil {
		return err
	}
	size := 0
	for _, l := range a.Lines {
		size += len(l)
	}
	if size < 2<<20 {
		return fmt.Errorf("the handler logged 3 MB, and the answer has %d bytes of lines", size)
	}
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if s.link.raw > protocol.MaxMessage {
		return fmt.Errorf("a message has %d bytes", s.link.raw)
	}
	return nil
}

// resend sends the last command once more.
func (s *suite) resend(ctx context.Context, t thing, id string) error {
	s.seq--
	_, err := s.run(ctx, protocol.Deploy, t, func(m *protocol.CommandMessage) { m.ID = id })
	return err
}

func checkTwice(ctx context.Context, s *suite) error {
	t := thing{name: "twice", text: "x", what: "slow"}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	if err := s.begun(ctx, t); err != nil {
		return err
	}
	if err := s.resend(ctx, t, id); err != nil {
		return err
	}
	if err := s.alive(ctx); err != nil {
		return err
	}
	if err := s.release(t); err != nil {
		return err
	}
	first, err := s.answer(ctx, id)
	if err != nil {
		return err
	}
	if err := s.resend(ctx, t, id); err != nil {
		return err
	}
	second, err := s.answer(ctx, id)
	if err != nil {
		return fmt.Errorf("after it was answered, the same command came again: %w", err)
	}
	if first.Status != "deployed" || second.Status != first.Status || second.Change != first.Change {
		return fmt.Errorf("the answers are %s, %s and %s, %s", first.Status, first.Change, second.Status, second.Change)
	}
	if err := s.record(ctx, id); err != nil {
		return err
	}
	return s.once(t)
}

func checkDeadline(ctx context.Context, s *suite) error {
	t := thing{name: "late", what: "slow"}
	id, err := s.run(ctx, protocol.Deploy, t, func(m *protocol.CommandMessage) { m.DeadlineMS = 1500 })
	if err != nil {
		return err
	}
	if _, err := s.finish(ctx, id, protocol.Late); err != nil {
		return err
	}
	if err := s.release(t); err != nil {
		return err
	}
	never := thing{name: "never"}
	id, err = s.run(ctx, protocol.Deploy, never, func(m *protocol.CommandMessage) { m.DeadlineMS = passed })
	if err != nil {
		return err
	}
	if _, err := s.finish(ctx, id, protocol.Late); err != nil {
		return err
	}
	if did := s.did(never); did != "" {
		return errors.New("a command whose deadline had passed was carried out")
	}
	id, err = s.run(ctx, protocol.Deploy, thing{name: "after-late"}, nil)
	if err != nil {
		return err
	}
	_, err = s.finish(ctx, id, "deployed") // the next one is not held up
	return err
}

func checkCancel(ctx context.Context, s *suite) error {
	t := thing{name: "cancelled", what: "slow"}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	if err := s.begun(ctx, t); err != nil {
		return err
	}
	if err := s.send(ctx, protocol.CancelMessage{Type: protocol.Cancel, ID: id}); err != nil {
		return err
	}
	if _, err := s.answer(ctx, id); err != nil {
		return err
	}
	if err := s.record(ctx, id); err != nil {
		return err
	}
	if err := s.release(t); err != nil {
		return err
	}
	id, err = s.run(ctx, protocol.Deploy, thing{name: "after-cancel"}, nil)
	if err != nil {
		return err
	}
	if _, err := s.finish(ctx, id, "deployed"); err != nil {
		return err
	}
	if did := s.did(t); did != "begin" {
		return fmt.Errorf("the handler of a cancelled command went on: %q", did)
	}
	return nil
}

func checkCut(ctx context.Context, s *suite) error {
	t := thing{name: "cut", text: "x", what: "slow"}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	if err := s.begun(ctx, t); err != nil {
		return err
	}
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	if !slices.Contains(s.hello.Running, id) {
		return errors.New("the next hello does not have the command in running")
	}
	if s.hello.Seen < s.seq {
		return fmt.Errorf("the next hello has seen %d, and %d was sent", s.hello.Seen, s.seq)
	}
	if err := s.resend(ctx, t, id); err != nil { // a server that lost its memory does that
		return err
	}
	if err := s.release(t); err != nil {
		return err
	}
	if _, err := s.finish(ctx, id, "deployed"); err != nil {
		return err
	}
	return s.once(t)
}

func checkUnrecorded(ctx context.Context, s *suite) error {
	t := thing{name: "unrecorded", text: "x"}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	if _, err := s.answer(ctx, id); err != nil {
		return err
	}
	for range 2 {
		if err := s.reconnected(ctx); err != nil {
			return err
		}
		if !slices.Contains(s.hello.Unrecorded, id) {
			return errors.New("the next hello does not have the command in unrecorded")
		}
		a, err := s.answer(ctx, id)
		if err != nil {
			return fmt.Errorf("after a cut: %w", err)
		}
		if a.Status != "deployed" {
			return fmt.Errorf("the answer that was sent again has the status %s", a.Status)
		}
	}
	if err := s.record(ctx, id); err != nil {
		return err
	}
	if err := s.alive(ctx); err != nil {
		return err
	}
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	if slices.Contains(s.hello.Unrecorded, id) {
		return errors.New("after recorded, the next hello still has the command in unrecorded")
	}
	return s.once(t)
}

func checkKilled(ctx context.Context, s *suite) error {
	t := thing{name: "killed", what: "slow"}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	if err := s.begun(ctx, t); err != nil {
		return err
	}
	s.kill()
	if err := s.connected(ctx); err != nil {
		return err
	}
	if !slices.Contains(s.hello.Unrecorded, id) && !slices.Contains(s.hello.Running, id) {
		return errors.New("the next hello has the command neither in unrecorded nor in running")
	}
	if _, err := s.finish(ctx, id, protocol.Lost); err != nil {
		return err
	}
	if err := s.release(t); err != nil {
		return err
	}
	if err := s.alive(ctx); err != nil {
		return err
	}
	if did := s.did(t); did != "begin" {
		return fmt.Errorf("the handler of the lost command ran again: %q", did)
	}
	return nil
}

func checkKept(ctx context.Context, s *suite) error {
	t := thing{name: "kept", text: "x"}
	id, err := s.run(ctx, protocol.Deploy, t, nil)
	if err != nil {
		return err
	}
	if _, err := s.answer(ctx, id); err != nil {
		return err
	}
	s.stage.mu.Lock()
	asked := s.stage.asked
	s.stage.mu.Unlock()
	s.kill()
	if err := s.connected(ctx); err != nil {
		return err
	}
	s.stage.mu.Lock()
	again := s.stage.asked - asked
	s.stage.mu.Unlock()
	if again > 0 {
		return errors.New("the agent asked to join again")
	}
	if !slices.Contains(s.hello.Holds, protocol.Hash(handler)) {
		return errors.New("holds does not have the handler's code any more")
	}
	if _, err := s.finish(ctx, id, "deployed"); err != nil {
		return fmt.Errorf("the answer that was not recorded before the kill: %w", err)
	}
	return s.once(t)
}

func checkForget(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	hash := protocol.Hash([]byte("to be forgotten"))
	if err := s.give(ctx, []byte("to be forgotten")); err != nil {
		return err
	}
	id, err := s.command(ctx, protocol.CommandMessage{
		Action: protocol.Forget, Payload: protocol.Payload{Hashes: []string{hash, protocol.Hash(handler)}},
	})
	if err != nil {
		return err
	}
	if _, err := s.finish(ctx, id, protocol.Done); err != nil {
		return err
	}
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	if slices.Contains(s.hello.Holds, hash) || slices.Contains(s.hello.Holds, protocol.Hash(handler)) {
		return errors.New("the next hello still has the content in holds")
	}
	t := thing{name: "after-forget"}
	if id, err = s.run(ctx, protocol.Deploy, t, nil); err != nil {
		return err
	}
	_, err = s.finish(ctx, id, "deployed")
	return err
}
