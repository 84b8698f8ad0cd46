package venv

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Step is one command that was run, for reports. Nothing in it is secret.
type Step struct {
	Command    string
	Output     string // standard output
	ErrOutput  string // standard error
	ReturnCode int    // -1 when it did not run or was killed
	Started    time.Time
	Completed  time.Time
}

const maxOutput = 64 << 10 // of each stream; the end is kept

// run runs a command in a process group of its own, which ends with ctx.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (Step, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	var stdout, stderr tail
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	step := Step{
		Command:    Redact(strings.Join(append([]string{name}, args...), " ")),
		ReturnCode: -1,
		Started:    time.Now(),
	}
	err := cmd.Run()
	step.Completed = time.Now()
	step.Output, step.ErrOutput = Redact(stdout.String()), Redact(stderr.String())
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

var credentials = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\w+://)[^/\s@"']+@`) })

// Redact takes user names and passwords out of the addresses in a text.
func Redact(text string) string { return credentials().ReplaceAllString(text, "${1}***@") }

// tail keeps the end of what is written to it.
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
	if over := t.buf.Len() - maxOutput; over > 0 {
		t.buf.Next(over)
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
