package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Command is something to run.
type Command struct {
	// Text is for /bin/sh. It appears in the machine's list of processes.
	Text string
	// Sudo runs it as root.
	Sudo bool
	// Out takes what it prints on both streams, in order. It may be nil.
	Out io.Writer
	// Limit is how long it may take; 0 is as long as the context allows.
	Limit time.Duration
}

// ExitError is a command that ended without success.
type ExitError struct {
	Status int
	Signal string // if a signal ended the shell itself
	Last   string // the last lines of output
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("the command ended with exit status %d", e.Status)
	if e.Signal != "" {
		text = "the command was ended by the signal " + e.Signal
	} else if e.Status > 128 && e.Status < 128+65 {
		text += fmt.Sprintf(" (signal %d)", e.Status-128)
	}
	if e.Last != "" {
		text += "; the last lines it printed:\n" + e.Last
	}
	return text
}

// Run runs a command until it ends. An exit status other than 0 is an *ExitError. When ctx or the limit ends, the
// command and all that it started in its session are ended: with SIGTERM first, five seconds later with SIGKILL; Run
// returns after that. If the connection breaks, the machine does the same by itself.
func (c *Client) Run(ctx context.Context, cmd Command) error {
	if cmd.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cmd.Limit, errLimit)
		defer cancel()
	}
	s, err := c.start(ctx, c.line(cmd.Sudo, watched(c.config.Beat), cmd.Text))
	if err != nil {
		return err
	}
	defer s.channel.Close()
	out := copyOutput(s, cmd.Out)
	quit := make(chan struct{})
	defer close(quit)
	go s.beat(c.config.Beat, quit)

	stopped := false
	select {
	case <-s.ended:
	case <-ctx.Done():
		stopped = true
		go s.eof() // which may wait for a connection that passes nothing any more
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
		}
	}
	last := lines(out.finish())
	if stopped {
		cause := context.Cause(ctx)
		f := fault.Wrap("ssh.Run", fault.Exhausted, cause)
		switch {
		case errors.Is(cause, errLimit):
			f = fault.New("ssh.Run", fault.Exhausted,
				fmt.Sprintf("the command did not end within its time limit of %s, and was ended", cmd.Limit)).
				Hint("look at its output; raise the time limit if the command really needs longer")
		case errors.Is(cause, context.DeadlineExceeded):
			f.Say("the command did not end in time, and was ended")
		default:
			f.Kind = fault.Unavailable
			f.Say("the command was ended")
		}
		if last != "" {
			f.Advice = strings.TrimPrefix(f.Advice+"; the last lines it printed:\n"+last, "; ")
		}
		return f
	}
	return s.result(c, last)
}

var errLimit = errors.New("the time limit is over")

// result turns the exit status into an error.
func (s *session) result(c *Client, last string) error {
	switch {
	case !s.known:
		return c.lost(io.ErrUnexpectedEOF)
	case s.status != 0 || s.signal != "":
		return &ExitError{Status: s.status, Signal: s.signal, Last: last}
	}
	return nil
}

// beat writes signs of life for the watchdog.
func (s *session) beat(every time.Duration, quit <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-s.ended:
			return
		case <-tick.C:
			if s.say('.') != nil {
				return
			}
		}
	}
}

// line is the command line for the login shell, which may be any: a script for /bin/sh with its $0.
func (c *Client) line(sudo bool, script, argument string) string {
	line := "exec /bin/sh -c " + Quote(script) + " " + Quote(argument)
	if sudo {
		line = "exec sudo -n -H -- " + strings.TrimPrefix(line, "exec ")
	}
	return line
}

// awaitSilence is shell text that sets c to the byte that arrives next on file descriptor 3, or to nothing at the end
// of the stream and after four times the beat. Without timeout(1) only the end of the stream counts.
func awaitSilence(beat time.Duration) string {
	seconds := strconv.FormatFloat((4 * beat).Seconds(), 'f', -1, 64)
	return "if command -v timeout >/dev/null 2>&1; " +
		"then c=$(timeout " + seconds + " dd bs=1 count=1 2>/dev/null <&3); " +
		"else c=$(dd bs=1 count=1 2>/dev/null <&3); fi; "
}

// watched is the script that runs $0 in a session of its own, beside a watchdog. It has no newline and no exclamation
// mark, which some login shells do not take within quotes.
//
// The watchdog may be ended until it has noticed something: then it ignores SIGTERM, and the script waits for it.
func watched(beat time.Duration) string {
	return `exec 3<&0 </dev/null; ` +
		`setsid /bin/sh -c "$0" 2>&1 3<&- & p=$!; ` +
		// z sends a signal to the process group, and to whatever else is in the session.
		`z() { kill -s $1 -- -$p; for f in /proc/[0-9]*/stat; do read -r l <$f || continue; ` +
		`set -- $1 ${l%% *} ${l##*) }; if [ "$6" = $p ]; then kill -s $1 $2; fi; done; }; ` +
		`( exec >/dev/null 2>&1; c=.; while [ -n "$c" ]; do ` + awaitSilence(beat) + `done; ` +
		`trap "" TERM; z TERM; for i in 1 2 3 4 5; do kill -s 0 -- -$p || break; sleep 1; done; z KILL ) & w=$!; ` +
		`wait $p; s=$?; { kill $w; wait $w; } 2>/dev/null; exit $s`
}

// lines returns the last lines of output, at most twelve, and of those the last two thousand bytes.
func lines(text string) string {
	all := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	last := strings.Join(all[max(0, len(all)-12):], "\n")
	return strings.ToValidUTF8(last[max(0, len(last)-2000):], "")
}

// Ask runs a short command that needs nothing but /bin/sh, and returns what it prints. It has no watchdog: it must end
// by itself, or when its standard input, which is empty, has ended.
func (c *Client) Ask(ctx context.Context, text string, sudo bool) (string, error) {
	s, err := c.start(ctx, c.line(sudo, text, "ordain"))
	if err != nil {
		return "", err
	}
	defer s.channel.Close()
	out := copyOutput(s, nil)
	s.eof()
	select {
	case <-s.ended:
	case <-ctx.Done():
		return "", fault.Wrap("ssh.Ask", fault.Unavailable, context.Cause(ctx)).
			Say(c.address + " does not answer in time")
	}
	answer := out.finish()
	return answer, s.result(c, lines(answer))
}
