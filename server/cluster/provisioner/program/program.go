// Package program runs plug-ins that are programs of their own, in any language. docs/plugins.md is the protocol, as
// authors of plug-ins need it.
//
//	Call ──▶ document: the task, paths of files and of a work folder ──▶ standard input ─┐
//	                                                                                    ▼
//	         an empty folder, few variables, a cell of its own, a process group ──▶ the program
//	                                                                                    │
//	Result ◀── one JSON object on file descriptor 3 ◀───────────────────────────────────┤
//	Out    ◀── everything on standard output and standard error ◀───────────────────────┘
//
// The result has a descriptor of its own because plug-ins run other programs, which print what they like on standard
// output. Nothing secret is among the arguments or variables. When the context of the call ends, the program and
// everything that it has started is killed; a plug-in has to survive that at any moment anyway.
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// Config says where plug-ins are, and how they run.
type Config struct {
	Folder string // has a folder for each plug-in
	// Cell confines the plug-ins: they reach their own folder, the files of their task, the network, and what the
	// operator allows. nil: they run with all rights of the provisioner.
	Cell *isolation.Cell
	// Environ are further variables, as HTTPS_PROXY.
	Environ []string
	Logger  *slog.Logger
}

// Program is a plug-in. It implements plugin.Provider and plugin.Automator. Open or Load makes it.
type Program struct {
	Manifest Manifest

	c    Config
	dir  string
	path string // of the executable
}

var (
	_ plugin.Provider  = (*Program)(nil)
	_ plugin.Automator = (*Program)(nil)
)

// Create implements plugin.Provider.
func (p *Program) Create(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return p.carryOut(ctx, c)
}

// Confirm implements plugin.Provider.
func (p *Program) Confirm(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return p.carryOut(ctx, c)
}

// Delete implements plugin.Provider.
func (p *Program) Delete(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return p.carryOut(ctx, c)
}

// Bootstrap implements plugin.Automator.
func (p *Program) Bootstrap(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return p.carryOut(ctx, c)
}

// Run implements plugin.Automator.
func (p *Program) Run(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	return p.carryOut(ctx, c)
}

// Document is what a program reads from its standard input.
type Document struct {
	Protocol int `json:"protocol"`
	task.Task
	Work  string                       `json:"work"`  // an empty folder, which is also the working directory
	Files map[string]map[string]string `json:"files"` // paths, by type and name of the resource
}

func (p *Program) carryOut(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	r, err := p.openRoom(c)
	if err != nil {
		return plugin.Result{}, err
	}
	defer r.close()
	text, err := json.Marshal(Document{Protocol: Protocol, Task: c.Task, Work: r.work, Files: r.files})
	if err != nil {
		return plugin.Result{}, fault.Wrap("program.Run", fault.Internal, err)
	}
	return p.speak(ctx, c, r, text)
}

// Speak runs the program with any text as its document. It is for tests of plug-ins.
func (p *Program) Speak(ctx context.Context, c plugin.Call, text []byte) (plugin.Result, error) {
	r, err := p.openRoom(c)
	if err != nil {
		return plugin.Result{}, err
	}
	defer r.close()
	return p.speak(ctx, c, r, text)
}

// Limits of the kernel for a confined plug-in and everything that it starts.
const (
	processesMax = 1024
	fileSizeMax  = 4 << 30
	openFilesMax = 65536
)

// speak runs the program, and returns what it answers.
func (p *Program) speak(ctx context.Context, c plugin.Call, r *room, text []byte) (plugin.Result, error) {
	answers, theirs, err := os.Pipe()
	if err != nil {
		return plugin.Result{}, fault.Wrap("program.Run", fault.Exhausted, err)
	}
	defer answers.Close()
	cmd := exec.Command(p.path)
	cmd.Dir, cmd.Env = r.work, p.environ(c, r)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), c.Out, c.Out
	cmd.ExtraFiles = []*os.File{theirs} // descriptor 3
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = drain
	said := make(chan []byte, 1)
	go func() {
		answer, _ := io.ReadAll(io.LimitReader(answers, answerMax+1))
		_, _ = io.Copy(io.Discard, answers) // the program must not wait for a reader
		said <- answer
	}()
	err = p.run(ctx, cmd, r, func() { _ = theirs.Close() })
	_ = answers.SetReadDeadline(time.Now().Add(drain))
	answer := <-said
	if ctx.Err() != nil && (err != nil || len(answer) == 0) {
		return plugin.Result{}, context.Cause(ctx)
	}
	return p.understand(answer, err)
}

// drain is how long output is read after the end of the program, because something that escaped may hold it open.
const drain = time.Second

// run starts the program and waits for its end, and for that of whatever it has started.
func (p *Program) run(ctx context.Context, cmd *exec.Cmd, r *room, given func()) error {
	ended := make(chan error, 1)
	go onOneThread(func() {
		started := func() (*isolation.Space, error) { return nil, nil }
		var err error
		if r.private != nil {
			if started, err = r.confine(p, cmd); err != nil {
				given()
				ended <- err
				return
			}
		}
		err = cmd.Start()
		space, startErr := started()
		given()
		defer func() { space.Close() }() // there may be a space in spite of an error
		if err != nil {
			ended <- fault.Wrap("program.Run", fault.Unavailable, err).
				Say("the plug-in " + p.path + " cannot be started")
			return
		}
		process := &process{pid: cmd.Process.Pid, space: space}
		stop := context.AfterFunc(ctx, process.kill)
		if startErr != nil { // it has ended already, or waits for what does not come
			process.kill()
		}
		err = process.wait(cmd)
		stop()
		ended <- errors.Join(startErr, err)
	})
	return <-ended
}

// process is a program that runs.
type process struct {
	pid   int
	space *isolation.Space

	mu    sync.Mutex
	ended bool // its id may belong to another process
}

// kill kills the process and its group. The end of the process kills the rest.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // if it has no group yet
	}
}

// leave kills what the process has left behind.
func (p *process) leave() {
	p.mu.Lock()
	p.ended = true
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.mu.Unlock()
	p.space.End()
}

// answerMax is the size of the largest answer: facts, secrets, and their JSON.
const answerMax = 2*task.MaxFacts + 64<<10

// Answer is what a program writes to descriptor 3.
type Answer struct {
	Status    task.Status       `json:"status"`
	Problem   string            `json:"problem"`
	Hostname  string            `json:"hostname"`
	Addresses map[string]string `json:"addresses"`
	Facts     task.Fields       `json:"facts"`
	Secret    task.Fields       `json:"secret"`
}

// understand makes a result of the answer of a program that ended with an error or nil.
func (p *Program) understand(text []byte, end error) (plugin.Result, error) {
	broken := func(format string, args ...any) (plugin.Result, error) {
		return plugin.Result{}, fault.New("program.Run", fault.Internal,
			fmt.Sprintf("the plug-in %s ", p.Manifest.Name)+fmt.Sprintf(format, args...)).
			Hint("its output may say why")
	}
	if f := (*fault.Error)(nil); errors.As(end, &f) {
		return plugin.Result{}, f
	}
	if errors.Is(end, exec.ErrWaitDelay) { // something that escaped holds its output open
		end = nil
	}
	how := "normally"
	if end != nil {
		how = "with " + end.Error()
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return broken("ended %s, and did not answer", how)
	}
	if len(text) > answerMax {
		return broken("gave an answer of more than %d KiB", answerMax>>10)
	}
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return broken("gave an answer that is not one JSON object: %s", err)
	}
	if a.Problem == "" && a.Status != task.Done {
		a.Problem = "the plug-in " + p.Manifest.Name + " did not say why"
	}
	switch a.Status {
	case task.Done:
		if end != nil {
			return broken("ended %s, although it answered that the task is done", how)
		}
		return plugin.Result{Hostname: a.Hostname, Addresses: a.Addresses, Facts: a.Facts, Secret: a.Secret}, nil
	case task.Failed:
		return plugin.Result{}, errors.New(a.Problem)
	case task.Refused:
		return plugin.Result{}, plugin.Refuse(a.Problem)
	}
	return broken("answered with the status %q, and not with done, failed or refused", a.Status)
}

// environ returns the variables of a program: few, and none that is secret.
func (p *Program) environ(c plugin.Call, r *room) []string {
	return slices.Concat(
		[]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"},
		p.c.Environ,
		r.environ,
		[]string{
			"ORDAIN_PROTOCOL=" + strconv.Itoa(Protocol), "ORDAIN_ACTION=" + string(c.Action), "ORDAIN_TAG=" + c.Tag,
			"ORDAIN_PLUGIN=" + p.dir,
		},
	)
}

// room is where one call runs.
type room struct {
	private *isolation.Private // nil: not confined
	work    string
	files   map[string]map[string]string
	environ []string
}

// openRoom makes the folders of a call. A confined program has a user of its own, as a rule, so it gets copies of its
// files: the originals may be readable for their owner only, and belong to other tasks as well.
func (p *Program) openRoom(c plugin.Call) (_ *room, err error) {
	r := &room{
		work:    c.Work,
		files:   map[string]map[string]string{},
		environ: []string{"HOME=" + c.Work, "TMPDIR=" + c.Work},
	}
	if p.c.Cell != nil {
		if err := os.Chmod(c.Work, 0o711); err != nil {
			return nil, fault.Disk("program.Run", c.Work, err)
		}
		if r.private, err = p.c.Cell.Open(c.Work, "plugin", "work", "files"); err != nil {
			return nil, fault.Disk("program.Run", c.Work, err)
		}
		r.work, r.environ = filepath.Join(r.private.Dir, "work"), r.private.Environ
		defer func() {
			if err != nil {
				r.close()
			}
		}()
	}
	for i, each := range c.Resources {
		path, err := c.Files.Path(each.Type, each.Name)
		if err != nil {
			return nil, err
		}
		if r.private != nil {
			dir := filepath.Join(r.private.Dir, "files", strconv.Itoa(i))
			own := filepath.Join(dir, filepath.Base(path))
			if err := os.Mkdir(dir, 0o700); err != nil {
				return nil, fault.Disk("program.Run", dir, err)
			}
			if err := copyAll(path, own); err != nil {
				return nil, fault.Disk("program.Run", own, err)
			}
			path = own
		}
		if r.files[each.Type] == nil {
			r.files[each.Type] = map[string]string{}
		}
		r.files[each.Type][each.Name] = path
	}
	if r.private != nil {
		if err := p.c.Cell.Give(filepath.Join(r.private.Dir, "files")); err != nil {
			return nil, fault.Disk("program.Run", r.private.Dir, err)
		}
	}
	return r, nil
}

func (r *room) close() { r.private.Close() }

// confine prepares a command that is confined to its folders.
func (r *room) confine(p *Program, cmd *exec.Cmd) (func() (*isolation.Space, error), error) {
	access := isolation.Access{
		Read:   []string{p.dir, filepath.Join(r.private.Dir, "files")},
		Write:  []string{r.work},
		Limits: isolation.Limits{FileSize: fileSizeMax, OpenFiles: openFilesMax},
	}
	if p.c.Cell.Exact() {
		access.Limits.Processes = processesMax
	}
	started, err := r.private.Confine(cmd, access)
	if err != nil {
		return nil, fault.Wrap(
			"program.Run",
			fault.Unavailable,
			err,
		).Say(
			"the plug-in " + p.path + " cannot be confined",
		)
	}
	return started, nil
}

// copyAll copies a file, or a folder with everything in it. Its links are relative, and stay as they are.
func copyAll(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.Mkdir(target, info.Mode().Perm()|0o700)
		case d.Type()&os.ModeSymlink != 0:
			led, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(led, target)
		}
		return copyFile(path, target, info.Mode().Perm())
	})
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Chmod(to, mode)
}
