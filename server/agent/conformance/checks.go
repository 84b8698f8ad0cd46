package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/server/agent/protocol"
)

var checks = slices.Concat(basicChecks, commandChecks, linkChecks)

var basicChecks = []check{
	{"join", "it joins with the token, and connects with the certificate that it gets", checkJoin},
	{"hello", "hello is the first message, and has every key", checkHello},
	{"ping", "each ping is answered with its id", checkPing},
	{"unknown", "messages of unknown types, and unknown keys, are ignored", checkUnknown},
	{"content", "a content in several parts is kept under its hash", checkContent},
	{"wrong-content", "a content that does not match its hash is thrown away", checkWrongContent},
	{"refused", "an unknown action, and a command whose content is missing, are refused", checkRefused},
}

func checkJoin(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	switch {
	case len(s.stage.joins) != 1 || s.stage.asked != 1:
		return fmt.Errorf("the agent asked %d times to join, and succeeded %d times", s.stage.asked, len(s.stage.joins))
	case s.stage.joins[0].Program == "":
		return errors.New("the request to join does not say which program it comes from")
	case s.link.ws.Subprotocol() != protocol.Subprotocol:
		return errors.New("the WebSocket has no subprotocol " + protocol.Subprotocol)
	}
	return nil
}

func checkHello(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	m := s.hello
	switch {
	case m.Protocol < 1:
		return errors.New("hello has no version of the protocol")
	case m.Program == "" || m.Machine.OS == "" || m.Machine.Arch == "" || m.Machine.Pythons == nil:
		return errors.New("hello does not say the program, or the machine's os, arch and pythons")
	case m.Running == nil || m.Unrecorded == nil || m.Holds == nil:
		return errors.New("hello lacks one of the lists running, unrecorded and holds; they may be empty")
	}
	return nil
}

func checkPing(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	for range 3 {
		if err := s.alive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func checkUnknown(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	ctx, cancel := s.patience(ctx)
	defer cancel()
	for _, text := range []string{
		`{"type":"something new","id":"x","list":[1,2,{"a":null}]}`,
		`{"new":{"a":[]},"type":"ping","id":7,"more":"text"}`,
	} {
		if err := s.link.send(ctx, []byte(text)); err != nil {
			return err
		}
	}
	if _, err := await(ctx, s.link, "the pong", func(m *protocol.PongMessage) bool { return m.ID == 7 }); err != nil {
		return err
	}
	return s.alive(ctx)
}

// put sends a content in parts, under a hash.
func (s *suite) put(ctx context.Context, hash string, content []byte, part int) error {
	for at := 0; at == 0 || at < len(content); at += part {
		end := min(at+part, len(content))
		m := protocol.ContentMessage{
			Type: protocol.Content, Hash: hash, Size: int64(len(content)), Offset: int64(at), Data: content[at:end],
			Last: end == len(content),
		}
		if m.Data == nil {
			m.Data = []byte{}
		}
		if err := s.link.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// give sends contents that the agent does not hold, and waits until it has them.
func (s *suite) give(ctx context.Context, contents ...[]byte) error {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	for _, content := range contents {
		hash := protocol.Hash(content)
		if slices.Contains(s.hello.Holds, hash) {
			continue
		}
		if err := s.put(ctx, hash, content, 256<<10); err != nil {
			return err
		}
		m, err := await(ctx, s.link, "stored", func(m *protocol.StoredMessage) bool { return m.Hash == hash })
		if err != nil {
			return err
		}
		if m.Error != "" {
			return errors.New("the agent did not keep a content: " + m.Error)
		}
		s.hello.Holds = append(s.hello.Holds, hash)
	}
	return nil
}

func checkContent(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	large := []byte(strings.Repeat("0123456789abcdef", 40_000)) // 640 kB: three parts
	if err := s.give(ctx, large, []byte{}, []byte("small")); err != nil {
		return err
	}
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	for _, content := range [][]byte{large, {}, []byte("small")} {
		if !slices.Contains(s.hello.Holds, protocol.Hash(content)) {
			return fmt.Errorf("the next hello does not list a content of %d bytes in holds", len(content))
		}
	}
	return nil
}

func checkWrongContent(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	step, cancel := s.patience(ctx)
	defer cancel()
	hash := protocol.Hash([]byte("something else"))
	if err := s.put(step, hash, []byte("print('not what the hash says')"), 10); err != nil {
		return err
	}
	m, err := await(
		step,
		s.link,
		"stored with an error",
		func(m *protocol.StoredMessage) bool { return m.Hash == hash },
	)
	if err != nil {
		return err
	}
	if m.Error == "" {
		return errors.New("the agent kept a content that does not match its hash")
	}
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	if slices.Contains(s.hello.Holds, hash) {
		return errors.New("the next hello lists the content in holds")
	}
	return nil
}

func checkRefused(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	missing := protocol.CommandMessage{
		Action: protocol.Prepare, Needs: []string{protocol.Hash([]byte("never sent"))},
		Payload: protocol.Payload{Blueprint: &protocol.Blueprint{
			Hash: "missing", Modules: map[string]string{}, Wheels: []protocol.Wheel{},
			Files: map[string]string{"inmanta_plugins/missing/__init__.py": protocol.Hash([]byte("never sent"))},
		}},
	}
	for what, m := range map[string]protocol.CommandMessage{
		"a command whose content is missing": missing,
		"an unknown action":                  {Action: "juggle"},
	} {
		id, err := s.command(ctx, m)
		if err != nil {
			return err
		}
		a, err := s.answer(ctx, id)
		if err != nil {
			return err
		}
		if a.Status != protocol.Refused || len(a.Lines) == 0 {
			return fmt.Errorf("%s was answered with the status %s and %d lines, not with %s and a line that says why",
				what, a.Status, len(a.Lines), protocol.Refused)
		}
		if err := s.record(ctx, id); err != nil {
			return err
		}
	}
	return s.alive(ctx)
}

const defaultDeadline = 60 * time.Second
