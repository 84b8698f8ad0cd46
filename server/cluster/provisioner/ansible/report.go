package ansible

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// report reads the output of Ansible on its way, for what to say when it fails.
type report struct {
	host string
	out  io.Writer

	line    []byte
	task    string
	tasks   int
	plays   int
	skipped int      // plays that no host matches
	failed  *failure // the last one that nobody ignored
	errors  []string // messages of Ansible itself
	inError bool
}

type failure struct {
	task, message string
	unreachable   bool
}

const (
	maxLine   = 256 << 10
	maxErrors = 20 // lines
)

var (
	titleLine = regexp.MustCompile(`^(TASK|RUNNING HANDLER|PLAY) \[(.*)\] \**$`)
	fatalLine = regexp.MustCompile(`^(?:fatal|failed): \[[^\]]*\](?:: (FAILED|UNREACHABLE)!|: )?.*?=> (\{.*)$`)
	errorLine = regexp.MustCompile(`^\[?ERROR(?:\]:|!) ?(.*)$`)
)

func (r *report) Write(p []byte) (int, error) {
	_, _ = r.out.Write(p)
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		r.line = append(r.line, part[:min(len(part), maxLine-len(r.line))]...)
		if end < 0 {
			break
		}
		r.flush()
		rest = rest[end+1:]
	}
	return len(p), nil
}

// flush reads the line that has been written so far.
func (r *report) flush() {
	line := strings.TrimRight(string(r.line), "\r \t")
	r.line = r.line[:0]
	if r.inError {
		if r.inError = line != ""; r.inError {
			r.addError(line)
		}
	}
	switch {
	case strings.HasPrefix(line, "...ignoring"):
		r.failed = nil
	case line == "skipping: no hosts matched":
		r.skipped++
	}
	if m := titleLine.FindStringSubmatch(line); m != nil {
		r.inError = false
		if m[1] == "PLAY" {
			r.plays++
			return
		}
		r.task, r.tasks = m[2], r.tasks+1
	} else if m := fatalLine.FindStringSubmatch(line); m != nil {
		r.failed = &failure{task: r.task, message: messageOf(m[2]), unreachable: m[1] == "UNREACHABLE"}
	} else if m := errorLine.FindStringSubmatch(line); m != nil {
		r.inError = true
		r.addError(m[1])
	}
}

func (r *report) addError(line string) {
	r.errors = append(r.errors, line)
	r.errors = r.errors[max(0, len(r.errors)-maxErrors):]
}

// messageOf returns what a result says of a failure.
func messageOf(text string) string {
	var result struct {
		Msg      any    `json:"msg"`
		Stderr   string `json:"stderr"`
		Stdout   string `json:"stdout"`
		Censored string `json:"censored"`
	}
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		return shorten(text)
	}
	var parts []string
	if result.Msg != nil {
		parts = append(parts, strings.TrimSpace(fmt.Sprint(result.Msg)))
	}
	for _, more := range []string{result.Stderr, result.Stdout, result.Censored} {
		more = strings.TrimSpace(more)
		if more != "" && !strings.Contains(strings.Join(parts, "\n"), more) {
			parts = append(parts, more)
			break
		}
	}
	return shorten(strings.Join(parts, ": "))
}

// shorten returns the end of a long text.
func shorten(text string) string {
	const most = 1500
	if len(text) > most {
		return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}

// Exit statuses of ansible-playbook that say that it could not use what it was given. The last one is also that of an
// unreachable node.
var unusable = map[int]bool{1: true, 5: true, 4: true}

// judge returns the error of a play that ended.
func (r *report) judge(c plugin.Call, err error) error {
	var exit *exec.ExitError
	refuse := func(text, hint string) error {
		return &plugin.Refused{Err: fault.New("ansible.Run", fault.Invalid, target.Mask(c, text)).Hint(hint)}
	}
	where := fmt.Sprintf("%s of the service %s failed on %s: ", c.Action, c.Service.Name, c.Node.Hostname)
	fail := func(text string) error {
		return fault.New("ansible.Run", fault.Unavailable, where+target.Mask(c, text))
	}
	said := shorten(strings.Join(r.errors, "\n"))
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		if r.plays > 0 && r.skipped == r.plays {
			return refuse("no play of the playbook is for the machine "+c.Node.Hostname,
				"write hosts: all, the name of a service of the machine, or its host name")
		}
		return nil
	case !errors.As(err, &exit):
		return err
	case r.failed != nil && r.failed.unreachable:
		if strings.Contains(r.failed.message, "Host key verification failed") ||
			strings.Contains(r.failed.message, "HOST IDENTIFICATION HAS CHANGED") {
			return &plugin.Refused{Err: fault.New("ansible.Run", fault.Forbidden,
				where+"the host key of the machine is not the pinned one; nothing was sent to it").
				Hint("find out whether the machine was installed anew, or another one answers at its address")}
		}
		return fail("Ansible cannot reach it: " + r.failed.message)
	case r.failed != nil:
		return fail(fmt.Sprintf("the task %q: %s", r.failed.task, r.failed.message))
	case r.tasks == 0 && unusable[exit.ExitCode()]:
		return refuse("Ansible cannot use the playbook: "+said, "correct the playbook, and upload its archive again")
	case said != "":
		return fail(said)
	}
	return fail(fmt.Sprintf("Ansible ended with %s, and did not say why", exit))
}
