package venv

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Step describes a command that was run, for reports. It contains no secrets.
type Step struct {
	Command    string
	Output     string // standard output
	ErrOutput  string // standard error
	ReturnCode int    // -1 when it did not run or was killed
	Started    time.Time
	Completed  time.Time
}

const maxOutput = 64 << 10 // of each stream; the end is kept

// run runs a command in its own process group, of which nothing is left when run returns.
// With a box, the command is confined.
func (m *Maker) run(
	ctx context.Context,
	owner string,
	box *Sandbox,
	dir string,
	env []string,
	name string,
	args ...string,
) (Step, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	var stdout, stderr tail
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	mask := func(text string) string {
		if m.c.Mask != nil {
			text = m.c.Mask(owner, text)
		}
		return Redact(text)
	}
	step := Step{
		Command:    mask(strings.Join(append([]string{name}, args...), " ")),
		ReturnCode: -1,
		Started:    time.Now(),
	}
	err := m.start(cmd, box)
	step.Completed = time.Now()
	step.Output, step.ErrOutput = mask(stdout.String()), mask(stderr.String())
	if cmd.ProcessState != nil {
		step.ReturnCode = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && step.ErrOutput == "" {
		step.ErrOutput = mask(err.Error())
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return step, err
}

// start starts a command and waits for its end and that of its process group.
func (m *Maker) start(cmd *exec.Cmd, box *Sandbox) error {
	if box == nil {
		err := cmd.Start()
		if err == nil {
			err = cmd.Wait()
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		return err
	}
	started, err := m.c.Confine(cmd, *box)
	if err != nil {
		return err
	}
	err = cmd.Start()
	end, confineErr := started()
	if err == nil {
		if confineErr != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		err = errors.Join(confineErr, cmd.Wait())
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if end != nil {
		end()
	}
	return err
}

var credentials = regexp.MustCompile(`(\w+://)[^/\s@"']+@`)

// Redact masks user names and passwords in the addresses of a text.
func Redact(text string) string { return credentials.ReplaceAllString(text, "${1}***@") }

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	buf bytes.Buffer
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if t.buf.Len() > 2*maxOutput {
		t.trim()
	}
	return len(p), nil
}

func (t *tail) trim() {
	if excess := t.buf.Len() - maxOutput; excess > 0 {
		t.buf.Next(excess)
		t.cut = true
	}
}

func (t *tail) String() string {
	t.trim()
	text := strings.ToValidUTF8(t.buf.String(), "\uFFFD")
	if t.cut {
		return "… (cut)\n" + text
	}
	return text
}
