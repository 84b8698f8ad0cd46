package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/server/agent/protocol"
)

// suite is what the checks share: the stage, and the program with its folder and its connection.
type suite struct {
	cfg   Config
	stage *stage
	dir   string // of the agent
	work  string // of the handlers

	program *program // nil: it does not run
	link    *link    // nil: it is not connected
	hello   *protocol.HelloMessage
	seq     int64
	pings   int64
}

func newSuite(cfg Config, dir string) (*suite, error) {
	s := &suite{cfg: cfg, dir: filepath.Join(dir, "agent"), work: filepath.Join(dir, "work")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	// Handlers may run as another user than the agent.
	err := os.Mkdir(s.work, 0o700)
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.Chmod(s.work, 0o777))
	}
	if err != nil {
		return nil, err
	}
	s.stage, err = newStage()
	return s, err
}

func (s *suite) end() {
	s.kill()
	s.stage.close()
}

// patience returns a context for one step of the agent.
func (s *suite) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Patience)
}

// program is a process of the agent.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // how it ended
}

// start starts the program with a join token.
func (s *suite) start(token string) error { return s.startIn(s.dir, token) }

func (s *suite) startIn(dir, token string) error {
	args := make([]string, 0, len(s.cfg.Program))
	for _, a := range s.cfg.Program {
		args = append(args, strings.NewReplacer("{dir}", dir, "{work}", s.work).Replace(a))
	}
	p := &program{cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "ORDAIN_JOIN_TOKEN="+token, "ORDAIN_AGENT_DIR="+dir)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output := &shared{w: s.cfg.Output}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("the agent cannot be started: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	s.program = p
	return nil
}

type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// kill ends the agent's processes at once.
func (s *suite) kill() {
	if s.program != nil {
		_ = syscall.Kill(-s.program.cmd.Process.Pid, syscall.SIGKILL)
		<-s.program.ended
		s.program = nil
	}
	s.drop()
}

// drop forgets the connection.
func (s *suite) drop() {
	if s.link != nil {
		s.link.cut()
		s.link, s.hello = nil, nil
	}
	for {
		select {
		case l := <-s.stage.links:
			l.cut()
		default:
			return
		}
	}
}

// awaitLink waits for the agent to connect, and answers its hello.
func (s *suite) awaitLink(ctx context.Context) error {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	select {
	case s.link = <-s.stage.links:
	case <-s.program.ended:
		return fmt.Errorf("the agent ended instead of connecting: %v", s.program.err)
	case <-ctx.Done():
		return errors.New("the agent did not connect in time")
	}
	hello, err := await[protocol.HelloMessage](ctx, s.link, "hello", nil)
	if err != nil {
		return err
	}
	s.hello = hello
	m := protocol.WelcomeMessage{
		Type: protocol.Welcome, Protocol: 1, Server: "conformance", Environment: s.stage.who.Environment.String(),
		Agent: s.stage.who.Agent, Now: time.Now().UTC(), PingSeconds: 600, MaxMessage: protocol.MaxMessage,
		MaxAnswer: protocol.MaxAnswer,
	}
	s.stage.mu.Lock()
	change := s.stage.welcome
	s.stage.mu.Unlock()
	if change != nil {
		change(&m)
	}
	return s.link.send(ctx, m)
}

// connected makes sure that the agent runs and is connected.
func (s *suite) connected(ctx context.Context) error {
	if s.link != nil {
		select {
		case <-s.link.ended:
			s.drop()
		default:
			s.link.mu.Lock()
			broken := s.link.broken
			s.link.mu.Unlock()
			if broken == nil {
				return nil
			}
			s.drop()
		}
	}
	if s.program != nil {
		select {
		case <-s.program.ended:
			s.kill()
		default:
		}
	}
	if s.program == nil {
		token := ""
		s.stage.mu.Lock()
		joined := len(s.stage.joins) > 0
		s.stage.mu.Unlock()
		if !joined {
			token = s.stage.newToken()
		}
		if err := s.start(token); err != nil {
			return err
		}
	}
	return s.awaitLink(ctx)
}

// reconnected cuts the connection, and waits for the next one.
func (s *suite) reconnected(ctx context.Context) error {
	s.link.cut()
	s.link, s.hello = nil, nil
	return s.awaitLink(ctx)
}

// alive checks that the agent answers a ping.
func (s *suite) alive(ctx context.Context) error {
	ctx, cancel := s.patience(ctx)
	defer cancel()
	s.pings++
	id := 1000 + s.pings
	if err := s.link.send(ctx, protocol.PingMessage{Type: protocol.Ping, ID: id}); err != nil {
		return err
	}
	_, err := await(ctx, s.link, "the pong", func(m *protocol.PongMessage) bool { return m.ID == id })
	return err
}
