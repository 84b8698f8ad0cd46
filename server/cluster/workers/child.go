package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/server/cluster/desk"
	"ordain.dev/ordain/server/cluster/provisioner/link"
	"ordain.dev/ordain/server/cluster/task"
)

// Limits of the kernel for a provisioner and everything that its plug-ins start.
const (
	processesMax = 8192
	fileSizeMax  = 8 << 30
	openFilesMax = 65536
)

// endPatience is how long a provisioner may take to end its plug-ins when its connection has ended.
const endPatience = 5 * time.Second

// child is a provisioner that runs.
type child struct {
	project uuid.UUID
	room    int
	since   time.Time
	pid     int
	lines   *lines

	draining context.Context // ends when the provisioner is to end after its tasks
	drain    context.CancelFunc

	link    *link.Link
	private *isolation.Private
	asked   atomic.Int64  // when it asked the desk for anything the last time, in Unix nanoseconds
	exited  chan struct{} // closed when its process has ended
	ended   chan struct{} // closed when nothing of it is left
	err     error         // how it ended; set before ended is closed

	mu   sync.Mutex
	gone bool
}

// start starts the provisioner of a project. ended is called when it has ended, for whatever reason.
func (s *Service) start(project uuid.UUID, room int, ended func(*child)) (*child, error) {
	c := &child{
		project: project, room: room, since: s.now(), exited: make(chan struct{}), ended: make(chan struct{}),
	}
	c.draining, c.drain = context.WithCancel(context.Background())
	c.asked.Store(c.since.UnixNano())
	log := s.c.Logger.With("project", project)
	c.lines = &lines{log: log, now: s.now}
	cmd, confine, err := s.command(c)
	if err == nil {
		err = c.run(cmd, confine)
	}
	if err != nil {
		c.private.Close()
		return nil, err
	}
	log.Info("a provisioner was started", "pid", c.pid, "room", room)
	who := desk.Who{Project: project, Name: s.name}
	handler := s.c.Desk.Handler(func(*http.Request) (desk.Who, error) { return who, nil })
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		c.link.Serve(context.Background(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.asked.Store(s.now().UnixNano())
			c.serve(handler, w, r)
		}))
	}()
	go func() {
		<-c.exited
		c.link.Close() // also if a process that it left behind has the other end
		<-serving
		c.private.Close()
		c.drain()
		close(c.ended)
		ended(c)
	}()
	return c, nil
}

type confineFunc func() (func() (*isolation.Space, error), error)

// command makes the folders of a provisioner, and the command that starts it.
func (s *Service) command(c *child) (*exec.Cmd, confineFunc, error) {
	paths := s.c.Layout.Provisioner(c.project)
	program := s.c.Program
	args := append(program[1:len(program):len(program)], "provisioner", "--desk-fd", "3", "--state-dir", paths.Data(),
		"--room", strconv.Itoa(c.room))
	if s.c.Plugins != "" {
		args = append(args, "--plugins", s.c.Plugins)
	}
	if s.c.Isolation == nil {
		args = append(args, "--isolation", "off")
	}
	cmd := exec.Command(program[0], args...)
	cmd.Dir = "/"
	// Nothing of the server's environment: it may have secrets, such as the address of the database.
	cmd.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
	}, s.c.Environ...)
	cmd.Stdout, cmd.Stderr = c.lines, c.lines
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	for dir, mode := range map[string]os.FileMode{s.c.Layout.Provisioners(): 0o711, paths.Dir(): 0o750} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return nil, nil, fault.Disk("workers.start", dir, err)
		}
	}
	if err := os.RemoveAll(paths.Runs()); err != nil { // of a server that was killed
		return nil, nil, fault.Disk("workers.start", paths.Runs(), err)
	}
	if s.c.Isolation == nil {
		if err := os.MkdirAll(paths.Data(), 0o700); err != nil {
			return nil, nil, fault.Disk("workers.start", paths.Data(), err)
		}
		cmd.Env = append(cmd.Env, "HOME="+paths.Data())
		return cmd, nil, nil
	}
	cell, err := s.users.cell(c.project)
	if err != nil {
		return nil, nil, err
	}
	if err := cell.Share(paths.Dir()); err != nil {
		return nil, nil, fault.Disk("workers.start", paths.Dir(), err)
	}
	if c.private, err = cell.Open(paths.Runs(), "provisioner"); err != nil {
		return nil, nil, fault.Disk("workers.start", paths.Runs(), err)
	}
	cmd.Env = append(cmd.Env, c.private.Environ...)
	access := isolation.Access{
		Read:   append([]string{program[0]}, s.c.Read...),
		Write:  []string{paths.Data()},
		Limits: isolation.Limits{FileSize: fileSizeMax, OpenFiles: openFilesMax},
	}
	if s.c.Plugins != "" {
		access.Read = append(access.Read, s.c.Plugins)
	}
	if cell.Exact() {
		access.Limits.Processes = processesMax
	}
	return cmd, func() (func() (*isolation.Space, error), error) { return c.private.Confine(cmd, access) }, nil
}

// run starts the process, and waits for its end in the background.
func (c *child) run(cmd *exec.Cmd, confine confineFunc) error {
	var err error
	if c.link, err = link.New(); err != nil {
		return err
	}
	cmd.ExtraFiles = []*os.File{c.link.Child} // descriptor 3
	started := make(chan error, 1)
	go func() {
		ready := func() (*isolation.Space, error) { return nil, nil }
		if confine != nil {
			if ready, err = confine(); err != nil {
				started <- err
				return
			}
		}
		err := cmd.Start()
		space, startErr := ready()
		defer func() { space.Close() }() // there may be a space in spite of an error
		if err != nil {
			started <- err
			return
		}
		if startErr != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			started <- startErr
			return
		}
		c.pid = cmd.Process.Pid
		started <- nil
		isolation.AwaitEnd(c.pid)
		c.mu.Lock()
		c.gone = true                             // from now on, its id may belong to another process
		_ = syscall.Kill(-c.pid, syscall.SIGKILL) // what it left in its group
		c.mu.Unlock()
		space.End()
		c.err = cmd.Wait()
		if errors.Is(c.err, exec.ErrWaitDelay) { // something that escaped holds its output open
			c.err = nil
		}
		close(c.exited)
	}()
	if err := <-started; err != nil {
		c.link.Close()
		return fault.Wrap("workers.start", fault.Unavailable, err).Say("a provisioner cannot be started")
	}
	_ = c.link.Child.Close()
	return nil
}

// serve answers a request. A provisioner that is to end is told so when it asks for tasks. While it waits for some, the
// wait ends first. A signal could reach it while tasks are on their way, and nobody would have them.
func (c *child) serve(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != task.TakePath {
		handler.ServeHTTP(w, r)
		return
	}
	if c.draining.Err() != nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(task.Taken{Ending: true}) // the provisioner may be gone
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(c.draining, cancel)
	defer stop()
	handler.ServeHTTP(w, r.WithContext(ctx))
}

// signal sends a signal to the process, unless it has ended.
func (c *child) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		_ = syscall.Kill(c.pid, sig)
	}
}

// end ends the provisioner and everything that it has started, and waits for that. It gets some time to end its
// plug-ins by itself.
func (c *child) end() {
	c.link.Close()
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	select {
	case <-c.exited:
	case <-timer.C:
		c.signal(syscall.SIGKILL)
	}
	<-c.ended
}

// problem says how a provisioner ended that should not have.
func (c *child) problem() string {
	how := "it ended by itself"
	if c.err != nil {
		how = c.err.Error()
	}
	if last := c.lines.Last(); last != "" {
		how += fmt.Sprintf("; the last that it logged was: %.500s", last)
	}
	return how
}
