package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unicode/utf8"
)

// adoptDeadline is how long a template may take to make a copy of itself.
const adoptDeadline = 3 * time.Second

// HandoverPair returns the two ends of the socket of a template: the template's
// end, for Config.Handover, and our end, for Adopt.
func HandoverPair() (template, ours *os.File, err error) {
	fds, err := socketPair()
	if err != nil {
		return nil, nil, fmt.Errorf("start a template: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "handover"), os.NewFile(uintptr(fds[1]), "handover"), nil
}

func socketPair() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	return fds, err
}

// Adopt asks a template for a copy of itself, which becomes a worker of the compile
// role. It uses only Dir, Env, MemoryMax, OnOutput and OnNotice of the
// configuration. The copy is killed when this process ends.
func Adopt(ctx context.Context, handover *os.File, c Config) (Dialogue, error) {
	env := c.environ()
	for _, each := range env {
		if !utf8.ValidString(each) {
			return nil, errors.New("start a Python worker: a variable of its environment is not valid UTF-8")
		}
	}
	p, other, err := newProcess(c)
	if err != nil {
		return nil, err
	}
	line, err := handOver(handover, other)
	other.close()
	if err != nil {
		p.closePipes()
		return nil, fmt.Errorf("hand over to a template: %w", err)
	}
	p.hangUp = func() { _ = line.Close() }
	p.wait = func() error { // the kernel closes the copy's end of the line when it ends
		_, _ = io.Copy(io.Discard, line)
		_ = line.Close()
		return errors.New("the Python worker ended")
	}
	ctx, cancel := context.WithTimeout(ctx, adoptDeadline)
	defer cancel()
	said, err := p.begin(ctx, map[string]any{"dir": c.Dir, "env": env, "memory": c.MemoryMax})
	if err != nil {
		_ = line.Close() // which ends the copy, if there is one
		p.closePipes()
		return nil, err
	}
	p.pid = said.PID
	p.follow(c.OnOutput)
	return &dialogue{p: p, notice: c.OnNotice}, nil
}

// begin sends the copy its settings and waits for its hello.
func (p *process) begin(ctx context.Context, settings any) (hello, error) {
	packet, err := packed(notice{Op: "begin", Args: settings})
	if err != nil {
		return hello{}, err
	}
	deadline, _ := ctx.Deadline()
	_ = p.in.SetWriteDeadline(deadline)
	if err := p.write(packet); err != nil {
		return hello{}, fmt.Errorf("the template made no copy: %w", err)
	}
	_ = p.in.SetWriteDeadline(time.Time{})
	return p.awaitHello(ctx, "compile")
}

// handOver sends a template the copy's ends of the pipes, and one end of a socket,
// the line. It returns the other end. When the copy or this process ends, the
// kernel closes its end, and the other side notices.
func handOver(handover *os.File, other theirs) (*os.File, error) {
	fds, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fds[0])
	if err := syscall.SetNonblock(fds[1], true); err != nil {
		_ = syscall.Close(fds[1])
		return nil, err
	}
	line := os.NewFile(uintptr(fds[1]), "line")
	rights := syscall.UnixRights(int(other[0].Fd()), int(other[1].Fd()), int(other[2].Fd()), int(other[3].Fd()), fds[0])
	conn, err := net.FileConn(handover)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(adoptDeadline))
		_, _, err = conn.(*net.UnixConn).WriteMsgUnix([]byte{1}, rights, nil)
	}
	if err != nil {
		_ = line.Close()
		return nil, err
	}
	return line, nil
}
