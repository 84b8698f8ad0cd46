package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ordain.dev/ordain/server/agent/protocol"
)

var linkChecks = []check{
	{"clock", "an agent whose clock is a year off works", checkClock},
	{"silence", "a connection without pings is given up, and the agent connects again", checkSilence},
	{"bye", "after bye draining the agent connects again", checkBye},
	{"rotate", "rotate renews the certificate, which is used from the next connection on", checkRotate},
	{"stranger", "an agent shows its token to no server with another CA", checkStranger},
	{"refused-token", "an agent whose token is refused ends with an error", checkRefusedToken},
	{"revoked", "a revoked agent ends, with an error", checkRevoked},
	{"refused-connection", "an agent that is refused with 403 ends, with an error", checkRefusedConnection},
}

func checkClock(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	s.stage.setWelcome(func(m *protocol.WelcomeMessage) { m.Now = m.Now.AddDate(1, 0, 0) })
	defer s.stage.setWelcome(nil)
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	return s.alive(ctx)
}

func (s *stage) setWelcome(change func(*protocol.WelcomeMessage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.welcome = change
}

func checkSilence(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	s.stage.setWelcome(func(m *protocol.WelcomeMessage) { m.PingSeconds = 1 })
	if err := s.reconnected(ctx); err != nil {
		s.stage.setWelcome(nil)
		return err
	}
	s.stage.setWelcome(nil)
	old := s.link
	step, cancel := s.patience(ctx)
	defer cancel()
	select {
	case <-old.ended:
	case <-step.Done():
		return errors.New("the server said that it pings every second, and did not; the agent kept the connection")
	}
	s.link, s.hello = nil, nil
	if err := s.awaitLink(ctx); err != nil {
		return err
	}
	return s.alive(ctx)
}

func checkBye(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	if err := s.send(ctx, protocol.ByeMessage{
		Type: protocol.Bye, Reason: protocol.Draining, Message: "the server stops", RetrySeconds: 1,
	}); err != nil {
		return err
	}
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	return s.alive(ctx)
}

func checkRotate(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	step, cancel := s.patience(ctx)
	defer cancel()
	if err := s.link.send(step, protocol.RotateMessage{Type: protocol.Rotate}); err != nil {
		return err
	}
	m, err := await[protocol.RenewMessage](step, s.link, "renew", nil)
	if err != nil {
		return err
	}
	issued, err := s.stage.authority.SignAgent(m.Request, s.stage.who, time.Now(), 24*time.Hour)
	if err != nil {
		return err
	}
	if err := s.link.send(step, protocol.CertificateMessage{
		Type: protocol.Certificate, Certificate: issued.PEM,
	}); err != nil {
		return err
	}
	if err := s.alive(ctx); err != nil {
		return err
	}
	if err := s.reconnected(ctx); err != nil {
		return err
	}
	usedNow := func() bool {
		s.stage.mu.Lock()
		defer s.stage.mu.Unlock()
		return s.stage.used[issued.Serial]
	}
	if !usedNow() {
		return errors.New("the agent connected with the certificate of before")
	}
	s.stage.mu.Lock()
	s.stage.used[issued.Serial] = false
	s.stage.mu.Unlock()
	s.kill()
	if err := s.connected(ctx); err != nil {
		return err
	}
	if !usedNow() {
		return errors.New("after a restart the agent connected with the certificate of before")
	}
	return nil
}

// ends waits until the program has ended, with a status that is not 0.
func (s *suite) ends(ctx context.Context) error {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	select {
	case <-s.program.ended:
		if s.program.err == nil {
			return errors.New("the agent ended with status 0")
		}
		return nil
	case <-ctx.Done():
		return errors.New("the agent did not end")
	}
}

// aside starts a second agent, in a folder of its own, and waits for its end.
func (s *suite) aside(ctx context.Context, name, token string) error {
	s.kill()
	defer s.kill()
	dir := filepath.Join(filepath.Dir(s.dir), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := s.startIn(dir, token); err != nil {
		return err
	}
	return s.ends(ctx)
}

func checkStranger(ctx context.Context, s *suite) error {
	s.stage.mu.Lock()
	before := s.stage.asked
	s.stage.mu.Unlock()
	text := s.stage.newToken()
	token, err := protocol.ParseToken(text)
	if err != nil {
		return err
	}
	token.CA = protocol.Hash([]byte("another CA"))
	ended := s.aside(ctx, "stranger", token.String())
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	if s.stage.asked != before {
		return errors.New("the agent sent its token to a server whose CA has another hash than the token says")
	}
	return ended
}

func checkRefusedToken(ctx context.Context, s *suite) error {
	text := s.stage.newToken()
	s.stage.mu.Lock()
	s.stage.token = protocol.JoinToken{} // it is used up
	before := s.stage.asked
	s.stage.mu.Unlock()
	if err := s.aside(ctx, "refused", text); err != nil {
		return err
	}
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	if n := s.stage.asked - before; n != 1 {
		return fmt.Errorf("the agent tried a token %d times that is used up", n)
	}
	return nil
}

func checkRevoked(ctx context.Context, s *suite) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	defer s.kill()
	if err := s.send(ctx, protocol.ByeMessage{
		Type: protocol.Bye, Reason: protocol.IsRevoked, Message: "this agent was revoked",
	}); err != nil {
		return err
	}
	s.link.cut()
	return s.ends(ctx)
}

func checkRefusedConnection(ctx context.Context, s *suite) error {
	s.kill()
	s.stage.mu.Lock()
	s.stage.refuse = &protocol.Refusal{Reason: "revoked", Message: "this agent was revoked"}
	s.stage.mu.Unlock()
	defer func() {
		s.kill()
		s.stage.mu.Lock()
		s.stage.refuse = nil
		s.stage.mu.Unlock()
	}()
	if err := s.start(""); err != nil {
		return err
	}
	return s.ends(ctx)
}
