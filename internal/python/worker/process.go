package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/isolation"
)

// helloDeadline is how long a worker may take to start and say hello.
const helloDeadline = 30 * time.Second

// drain is how long output is read after the process has ended, because a child may
// still hold the pipe open.
const drain = 250 * time.Millisecond

// process is a worker process with its pipes and output.
type process struct {
	pid     int
	mark    string
	wait    func() error // waits for the end of the process
	in      *os.File     // our end of fd 3
	out     *os.File     // our end of fd 4
	frames  *bufio.Reader
	words   *lastWords
	runtime string // folder of our own code
	space   *isolation.Space
	keep    bool   // processes of the space outlive this one
	onEnd   func() // called after the end, if set
	hangUp  func() // ends a copy of a template, which may not be ours to kill

	stdout, stderr *os.File

	writing sync.Mutex
	ended   chan struct{} // closed when the process is gone and its output read
	endErr  error         // how it ended; set before ended is closed
}

func (c Config) validate() error {
	switch {
	case c.Python == "":
		return errors.New("worker: Config.Python is empty: name an interpreter")
	case c.RuntimeDir == "":
		return errors.New("worker: Config.RuntimeDir is empty: it comes from runtime.Unpack")
	case c.Role != "compile" && c.Role != "handler" && c.Role != "template":
		return fmt.Errorf("worker: Config.Role is %q: want compile, handler or template", c.Role)
	}
	return nil
}

// theirs are the worker's ends of the pipes: requests, replies, standard output and
// standard error.
type theirs [4]*os.File

func (t theirs) close() { closeAll(t[0], t[1], t[2], t[3]) }

// newProcess makes the pipes for a worker that is about to be started.
func newProcess(c Config) (_ *process, other theirs, err error) {
	p := &process{words: &lastWords{}, runtime: c.RuntimeDir, ended: make(chan struct{})}
	var made []io.Closer
	defer func() {
		if err != nil {
			closeAll(made...)
			err = fmt.Errorf("start a Python worker: %w", err)
		}
	}()
	if other[0], p.in, err = os.Pipe(); err != nil {
		return nil, other, err
	}
	made = append(made, other[0], p.in)
	if p.out, other[1], err = os.Pipe(); err != nil {
		return nil, other, err
	}
	made = append(made, p.out, other[1])
	if p.stdout, other[2], err = os.Pipe(); err != nil {
		return nil, other, err
	}
	made = append(made, p.stdout, other[2])
	if p.stderr, other[3], err = os.Pipe(); err != nil {
		return nil, other, err
	}
	p.frames = bufio.NewReaderSize(p.out, 64<<10)
	return p, other, nil
}

func (p *process) closePipes() { closeAll(p.in, p.out, p.stdout, p.stderr) }

// start runs the worker and waits for its hello.
func start(ctx context.Context, c Config) (*process, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	p, other, err := newProcess(c)
	if err != nil {
		return nil, err
	}
	cmd, err := c.command(other)
	started := func() (*isolation.Space, error) { return nil, nil }
	if err == nil && c.Confine != nil {
		started, err = c.Confine(cmd)
	}
	if err == nil {
		err = startOnLastingThread(cmd)
		var startErr error
		if p.space, startErr = started(); err == nil && startErr != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			err = startErr
		}
	}
	other.close()
	if err != nil {
		p.closePipes()
		p.space.Close()
		if c.Ended != nil {
			c.Ended()
		}
		return nil, fmt.Errorf("start a Python worker with %s: %w", c.Python, err)
	}
	p.pid, p.wait = cmd.Process.Pid, func() error { return describeEnd(cmd.Wait()) }
	p.mark, p.keep, p.onEnd = c.Mark, c.KeepOthers, c.Ended
	p.follow(c.OnOutput)
	if _, err := p.awaitHello(ctx, c.Role); err != nil {
		return nil, p.failedStart(err)
	}
	return p, nil
}

// failedStart kills a worker that did not start properly, and adds its output to the error.
func (p *process) failedStart(err error) error {
	p.kill()
	<-p.ended
	closeAll(p.in, p.out)
	if words := p.words.String(); words != "" {
		err = fmt.Errorf("%w; it printed:\n%s", err, words)
	}
	return err
}

func (c Config) command(other theirs) (*exec.Cmd, error) {
	options, err := json.Marshal(struct {
		Path     []string `json:"path"`
		Memory   uint64   `json:"memory"`
		Data     uint64   `json:"data"`
		FileSize uint64   `json:"file_size"`
		Tasks    int      `json:"tasks"`
		Alone    bool     `json:"tasks_alone"`
		Bytecode string   `json:"bytecode"`
	}{c.Path, c.MemoryMax, c.DataMax, c.FileMax, c.tasks(), c.TasksAlone, c.Bytecode})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.Python, "-I", "-X", "utf8",
		filepath.Join(c.RuntimeDir, "ordain_worker", "__main__.py"), c.Role, string(options))
	cmd.Dir, cmd.Env = c.Dir, c.environ()
	cmd.ExtraFiles = []*os.File{other[0], other[1]}
	if c.Handover != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.Handover)
	}
	cmd.Stdout, cmd.Stderr = other[2], other[3]
	cmd.SysProcAttr = ownGroup(c.Role)
	return cmd, nil
}

func (c Config) environ() []string {
	env := c.Env
	if len(env) == 0 {
		env = MinimalEnv()
	}
	if c.Mark != "" {
		env = append(slices.Clone(env), markVariable+"="+c.Mark)
	}
	return env
}

// tasks returns the kernel's limit of processes and threads. It counts all of a user,
// including those that run already, and does not apply to root.
func (c Config) tasks() int {
	if c.TasksAlone {
		return c.Tasks
	}
	if c.Tasks == 0 || os.Geteuid() == 0 {
		return 0
	}
	return tasksOfUser() + c.Tasks
}

// follow reads the output of a running worker and cleans up after its end.
func (p *process) follow(onOutput func(stream, line string)) {
	var reading sync.WaitGroup
	var serial sync.Mutex // onOutput is called for one line at a time
	for stream, file := range map[string]*os.File{"stdout": p.stdout, "stderr": p.stderr} {
		reading.Go(func() {
			readLines(file, func(line string) {
				serial.Lock()
				defer serial.Unlock()
				if ownFrame(line, p.runtime) {
					return
				}
				p.words.add(line)
				if onOutput != nil {
					onOutput(stream, line)
				}
			})
		})
	}
	go func() {
		err := p.wait()
		p.killGroup() // processes that it left in its group
		if p.mark != "" {
			KillMarked(p.mark) // and those that left the group
		}
		if !p.keep {
			p.space.End()
		}
		p.space.Close()
		if p.onEnd != nil {
			p.onEnd()
		}
		limit := time.Now().Add(drain)
		_ = p.stdout.SetReadDeadline(limit)
		_ = p.stderr.SetReadDeadline(limit)
		_ = p.out.SetReadDeadline(limit)
		reading.Wait()
		closeAll(p.stdout, p.stderr)
		p.endErr = err
		close(p.ended)
	}()
}

// hello is the first notice of a worker.
type hello struct {
	Protocol int    `json:"protocol"`
	Role     string `json:"role"`
	PID      int    `json:"pid"`
}

func (p *process) awaitHello(ctx context.Context, role string) (hello, error) {
	var said hello
	ctx, cancel := context.WithTimeout(ctx, helloDeadline)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = p.out.SetReadDeadline(time.Unix(1, 0)) })
	f, err := readFrame(p.frames)
	if !stop() || ctx.Err() != nil {
		return said, fmt.Errorf("the Python worker did not say hello: %w", ctx.Err())
	}
	if err != nil {
		return said, fmt.Errorf("the Python worker ended before it said hello: %w", err)
	}
	if f.Op != "hello" || json.Unmarshal(f.Args, &said) != nil {
		return said, fmt.Errorf("the Python worker began with %q instead of hello", f.Op)
	}
	if said.Protocol != ProtocolVersion || said.Role != role {
		return said, fmt.Errorf("the Python worker speaks protocol %d as %q; wanted %d as %q",
			said.Protocol, said.Role, ProtocolVersion, role)
	}
	return said, nil
}

// write sends packed frames.
func (p *process) write(packet []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.in.Write(packet)
	return err
}

// kill kills the process and its group.
func (p *process) kill() {
	select {
	case <-p.ended: // the id may belong to another process now
	default:
		if p.hangUp != nil {
			p.hangUp()
		}
		p.killGroup()
		if p.pid > 0 {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

func (p *process) killGroup() {
	if p.pid > 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
}

// close asks the worker to end, and kills it after grace.
func (p *process) close(grace time.Duration) {
	if packet, err := packed(notice{Op: "bye", Args: struct{}{}}); err == nil {
		_ = p.in.SetWriteDeadline(time.Now().Add(grace))
		_ = p.write(packet)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		p.kill()
		<-p.ended
	}
	closeAll(p.in, p.out)
}

// rss returns the resident memory in bytes, or 0 if it is unknown.
func (p *process) rss() int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// describeEnd describes how a process ended, for people.
func describeEnd(err error) error {
	if err == nil {
		return errors.New("the Python worker ended")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return fmt.Errorf("the Python worker was ended by signal %d (%s)", int(status.Signal()), status.Signal())
		}
		return fmt.Errorf("the Python worker ended with exit status %d", exit.ExitCode())
	}
	return fmt.Errorf("the Python worker ended: %w", err)
}

// MinimalEnv returns a minimal environment for a worker, with the variables for
// programs, the home folder, language, time zone and temporary files.
func MinimalEnv() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func closeAll(files ...io.Closer) {
	for _, f := range files {
		_ = f.Close()
	}
}
