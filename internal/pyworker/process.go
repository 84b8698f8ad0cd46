package pyworker

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
	"strconv"
	"sync"
	"syscall"
	"time"
)

// helloDeadline is how long a worker may take to import itself and say hello.
const helloDeadline = 30 * time.Second

// drain is how long output is still read after the process has ended, in case
// that a child of it holds the pipe open.
const drain = 250 * time.Millisecond

// process is a started worker: the pipes, the output, and its end.
type process struct {
	cmd    *exec.Cmd
	in     *os.File // our end of fd 3
	out    *os.File // our end of fd 4
	frames *bufio.Reader
	words  *lastWords

	writing sync.Mutex
	ended   chan struct{} // closed when the process is gone and its output read
	endErr  error         // how it ended; valid after ended
}

func (c Config) validate() error {
	switch {
	case c.Python == "":
		return errors.New("pyworker: Config.Python is empty: name an interpreter")
	case c.RuntimeDir == "":
		return errors.New("pyworker: Config.RuntimeDir is empty: it comes from UnpackRuntime")
	case c.Role != "compile" && c.Role != "handler":
		return fmt.Errorf("pyworker: Config.Role is %q: want compile or handler", c.Role)
	}
	return nil
}

// start runs the worker and waits for its hello.
func start(ctx context.Context, c Config) (*process, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	p := &process{words: &lastWords{}, ended: make(chan struct{})}
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a Python worker: %w", err)
	}
	ourOut, theirOut, err := os.Pipe()
	if err != nil {
		closeAll(theirIn, ourIn)
		return nil, fmt.Errorf("start a Python worker: %w", err)
	}
	stdout, theirStdout, err := os.Pipe()
	if err != nil {
		closeAll(theirIn, ourIn, ourOut, theirOut)
		return nil, fmt.Errorf("start a Python worker: %w", err)
	}
	stderr, theirStderr, err := os.Pipe()
	if err != nil {
		closeAll(theirIn, ourIn, ourOut, theirOut, stdout, theirStdout)
		return nil, fmt.Errorf("start a Python worker: %w", err)
	}
	p.in, p.out, p.frames = ourIn, ourOut, bufio.NewReaderSize(ourOut, 64<<10)

	options, err := json.Marshal(struct {
		Path   []string `json:"path"`
		Memory uint64   `json:"memory"`
	}{c.Path, c.MemoryMax})
	if err != nil {
		closeAll(theirIn, ourIn, ourOut, theirOut, stdout, theirStdout, stderr, theirStderr)
		return nil, fmt.Errorf("start a Python worker: %w", err)
	}
	p.cmd = exec.Command(c.Python, "-I", "-X", "utf8",
		filepath.Join(c.RuntimeDir, "ordain_worker", "__main__.py"), c.Role, string(options))
	p.cmd.Dir = c.Dir
	p.cmd.Env = c.Env
	if len(c.Env) == 0 {
		p.cmd.Env = MinimalEnv()
	}
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	p.cmd.Stdout, p.cmd.Stderr = theirStdout, theirStderr
	p.cmd.SysProcAttr = ownGroup(c.Role)
	err = startOnLastingThread(p.cmd)
	closeAll(theirIn, theirOut, theirStdout, theirStderr)
	if err != nil {
		closeAll(ourIn, ourOut, stdout, stderr)
		return nil, fmt.Errorf("start a Python worker with %s: %w", c.Python, err)
	}

	var reading sync.WaitGroup
	var serial sync.Mutex // OnOutput is called for one line at a time
	for stream, file := range map[string]*os.File{"stdout": stdout, "stderr": stderr} {
		reading.Go(func() {
			readLines(file, func(line string) {
				serial.Lock()
				defer serial.Unlock()
				p.words.add(line)
				if c.OnOutput != nil {
					c.OnOutput(stream, line)
				}
			})
		})
	}
	go func() {
		err := p.cmd.Wait()
		p.killGroup() // what it forked and left behind in its group
		limit := time.Now().Add(drain)
		_ = stdout.SetReadDeadline(limit)
		_ = stderr.SetReadDeadline(limit)
		_ = p.out.SetReadDeadline(limit)
		reading.Wait()
		closeAll(stdout, stderr)
		p.endErr = describeEnd(err)
		close(p.ended)
	}()

	if err := p.awaitHello(ctx, c.Role); err != nil {
		p.kill()
		<-p.ended
		closeAll(p.in, p.out)
		if words := p.words.String(); words != "" {
			err = fmt.Errorf("%w; it printed:\n%s", err, words)
		}
		return nil, err
	}
	return p, nil
}

func (p *process) awaitHello(ctx context.Context, role string) error {
	ctx, cancel := context.WithTimeout(ctx, helloDeadline)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = p.out.SetReadDeadline(time.Unix(1, 0)) })
	f, err := readFrame(p.frames)
	if !stop() || ctx.Err() != nil {
		return fmt.Errorf("the Python worker did not say hello: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("the Python worker ended before it said hello: %w", err)
	}
	var hello struct {
		Protocol int    `json:"protocol"`
		Role     string `json:"role"`
	}
	if f.Op != "hello" || json.Unmarshal(f.Args, &hello) != nil {
		return fmt.Errorf("the Python worker began with %q instead of hello", f.Op)
	}
	if hello.Protocol != ProtocolVersion || hello.Role != role {
		return fmt.Errorf("the Python worker speaks protocol %d as %q; wanted %d as %q", hello.Protocol, hello.Role, ProtocolVersion, role)
	}
	return nil
}

// write sends one packed frame whole.
func (p *process) write(packet []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.in.Write(packet)
	return err
}

// kill ends the process and everything in its group, now.
func (p *process) kill() {
	p.killGroup()
	_ = p.cmd.Process.Kill()
}

func (p *process) killGroup() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
}

// close asks for an orderly end and enforces it after grace.
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

// rss reads the resident memory from the kernel.
func (p *process) rss() int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// describeEnd turns how a process ended into words for a person.
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

// MinimalEnv is the environment of a worker: enough to find programs and a
// home, nothing of what this process was given.
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
