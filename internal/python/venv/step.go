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
	var err error
	if box != nil {
		err = m.c.Confine(cmd, *box)
	}
	if err == nil {
		err = cmd.Run()
	}
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left running
	}
	step.Completed = time.Now()
	step.Output, step.ErrOutput = mask(stdout.String()), mask(stderr.String())
	if cmd.ProcessState != nil {
		step.ReturnCode = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && step.ErrOutput == "" {
		step.ErrOutput = err.Error()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return step, err
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
