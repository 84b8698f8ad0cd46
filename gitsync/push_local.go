package gitsync

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"ordain.dev/ordain/internal/fault"
)

// localPush pushes to a repository on this machine by running git receive-pack, as git push does: only the git program
// knows all that a repository may ask for before a branch moves, such as hooks, the branch that is checked out, and
// formats that go-git cannot write. Git runs hooks only in repositories that belong to the user of the server
// (safe.directory), so that nobody else's code runs.
type localPush struct {
	path   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	said   *limited // the standard error
	cancel context.CancelFunc
	exited bool
}

// AdvertisedReferencesContext implements pushSession.
func (l *localPush) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, fault.New(opWrite, fault.Unavailable,
			"the git program, which commits to repositories on this machine need, is not installed").
			Hint("install git on the server, or let the environment use an https:// or ssh:// URL")
	}
	// The process outlives ctx, which bounds this question only.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel, l.said = cancel, &limited{max: 8 << 10}
	l.cmd = exec.CommandContext(life, program, "receive-pack", l.path)
	l.cmd.Env = pushEnvironment()
	l.cmd.Dir = "/"
	l.cmd.Stderr = l.said
	l.cmd.WaitDelay = time.Second // a child of a hook may keep it open
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if l.out, err = l.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, l.kill)
	defer stop()
	adv := packp.NewAdvRefs()
	if err := adv.Decode(l.out); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, l.explain(err)
	}
	return adv, nil
}

// explain returns the reason that git wrote before it exited.
func (l *localPush) explain(err error) error {
	l.end()
	said := (&refusedError{said: l.said.text(), status: "git receive-pack"}).Error()
	if mentions(said, []string{"dubious ownership"}) {
		return fault.New(opWrite, fault.Forbidden,
			"the repository "+l.path+" belongs to another user, so that Git refuses to run its hooks").
			Hint("make the user that runs the server its owner, or have that user trust it: " +
				"git config --global --add safe.directory " + shellQuote(l.path))
	}
	return fault.Wrap(opWrite, fault.Unavailable, err).Say(fmt.Sprintf("%s cannot be written to: %s", l.path, said)).
		Hint("run git fsck in it")
}

// send implements pushSession.
func (l *localPush) send(ctx context.Context, request *bytes.Buffer) (io.ReadCloser, error) {
	stop := context.AfterFunc(ctx, l.kill)
	_, err := request.WriteTo(l.in)
	if err == nil {
		err = l.in.Close()
	}
	if err != nil {
		stop()
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, l.explain(err)
	}
	return closing{l.out, func() { stop() }}, nil
}

// kill ends the process at once.
func (l *localPush) kill() {
	l.cancel()
	l.out.Close()
}

// hookTime is how long hooks may still run after Git reported that a branch moved.
const hookTime = 20 * time.Second

// end waits for the end of the process. Without a request, git leaves when its standard input ends.
func (l *localPush) end() {
	if l.cmd == nil || l.cmd.Process == nil || l.exited {
		return
	}
	l.exited = true
	l.in.Close()
	defer time.AfterFunc(hookTime, l.kill).Stop()
	_, _ = io.Copy(io.Discard, l.out)
	_ = l.cmd.Wait() // the report says whether the push succeeded
}

// Close implements pushSession.
func (l *localPush) Close() error {
	l.end()
	if l.cancel != nil {
		l.cancel()
	}
	return nil
}

// pushEnvironment returns the environment of git receive-pack, and of hooks: none of the server's secrets.
func pushEnvironment() []string {
	env := []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0"}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
