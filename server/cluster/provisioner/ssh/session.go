package ssh

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"ordain.dev/ordain/internal/fault"
)

const (
	// grace is how long a command that is ended may take: the watchdog gives it five seconds.
	grace = 15 * time.Second
	// quiet is how long output is awaited after a command has ended: a service that it left behind may hold the stream.
	quiet = time.Second
	// longest is how long it is awaited at most, however much there is.
	longest = 10 * time.Second
)

// session is a command on the machine. It is used in place of x/crypto's Session, which returns the exit status only
// once nobody holds the output any more.
type session struct {
	channel gossh.Channel
	stdin   sync.Mutex    // is held for writing to the channel, and for ending that
	silent  bool          // whether the standard input has ended
	ended   chan struct{} // is closed when the command has ended, or the connection has
	// known, status and signal may be read when ended is closed.
	known  bool
	status int
	signal string
}

// start starts a command. Its standard input is the session's channel.
func (c *Client) start(ctx context.Context, line string) (*session, error) {
	type result struct {
		s   *session
		err error
	}
	got := make(chan result, 1)
	go func() {
		s, err := c.open(line)
		got <- result{s, err}
	}()
	select {
	case r := <-got:
		return r.s, r.err
	case <-ctx.Done():
		go func() {
			if r := <-got; r.s != nil {
				_ = r.s.channel.Close()
			}
		}()
		return nil, fault.Wrap("ssh.start", fault.Unavailable, context.Cause(ctx)).
			Say(c.address + " did not start the command in time")
	}
}

func (c *Client) open(line string) (*session, error) {
	channel, requests, err := c.conn.OpenChannel("session", nil)
	if err != nil {
		return nil, c.lost(err)
	}
	s := &session{channel: channel, ended: make(chan struct{})}
	go s.watch(requests)
	ok, err := channel.SendRequest("exec", true, gossh.Marshal(struct{ Command string }{line}))
	if err != nil {
		_ = channel.Close()
		return nil, c.lost(err)
	}
	if !ok {
		_ = channel.Close()
		return nil, fault.New("ssh.start", fault.Forbidden, c.address+" does not let "+c.config.User+" run commands").
			Hint("remove what restricts the user or the key in the machine's sshd_config and authorized keys")
	}
	return s, nil
}

// watch waits for the exit status.
func (s *session) watch(requests <-chan *gossh.Request) {
	var once sync.Once
	end := func() { once.Do(func() { close(s.ended) }) }
	defer end()
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var m struct{ Status uint32 }
			if gossh.Unmarshal(r.Payload, &m) == nil && !s.known {
				s.known, s.status = true, int(m.Status)
				end()
			}
		case "exit-signal":
			var m struct {
				Signal   string
				Core     bool
				Message  string
				Language string
			}
			if gossh.Unmarshal(r.Payload, &m) == nil && !s.known {
				s.known, s.status, s.signal = true, 255, m.Signal
				end()
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

// say writes a byte to the standard input of the command.
func (s *session) say(b byte) error {
	s.stdin.Lock()
	defer s.stdin.Unlock()
	if s.silent {
		return io.EOF
	}
	_, err := s.channel.Write([]byte{b})
	return err
}

// eof ends the standard input of the command.
func (s *session) eof() {
	s.stdin.Lock()
	defer s.stdin.Unlock()
	s.silent = true
	_ = s.channel.CloseWrite()
}

func (c *Client) lost(err error) error {
	return fault.Wrap("ssh.Run", fault.Unavailable, err).Say("the connection to " + c.address + " broke").
		Hint("what ran there is ended; check the machine and the network")
}

// output passes on what a command prints until it is closed, and keeps the last of it.
type output struct {
	to      io.Writer
	streams sync.WaitGroup
	all     chan struct{} // is closed when the streams have ended

	mu     sync.Mutex
	closed bool
	last   []byte
	moved  chan struct{} // has an element after new output
}

const keptOutput = 4 << 10

func copyOutput(s *session, to io.Writer) *output {
	o := &output{to: to, all: make(chan struct{}), moved: make(chan struct{}, 1)}
	for _, stream := range []io.Reader{s.channel, s.channel.Stderr()} {
		o.streams.Go(func() { _, _ = io.Copy(o, stream) })
	}
	go func() {
		o.streams.Wait()
		close(o.all)
	}()
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	if o.to != nil {
		_, _ = o.to.Write(p) // whether the output can be shown does not matter to the command
	}
	o.last = append(o.last, p...)
	if over := len(o.last) - keptOutput; over > 0 {
		o.last = append(o.last[:0], o.last[over:]...)
	}
	select {
	case o.moved <- struct{}{}:
	default:
	}
	return len(p), nil
}

// finish waits for the rest of the output of a command that has ended, and returns the last of it.
func (o *output) finish() string {
	end := time.NewTimer(longest)
	defer end.Stop()
	still := time.NewTimer(quiet)
	defer still.Stop()
	for waiting := true; waiting; {
		select {
		case <-o.moved:
			still.Reset(quiet)
		case <-o.all:
			waiting = false
		case <-still.C:
			waiting = false
		case <-end.C:
			waiting = false
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return strings.ToValidUTF8(string(o.last), "�")
}

// Quote makes a word of a text, for a shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
