package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ordain.dev/ordain/internal/fault"
)

const (
	port = 5432 // only a part of the socket's name; there is no such TCP port
	// longestSocket is how long the path of a socket may be.
	longestSocket = 107
	// startTime is how long PostgreSQL may take to become ready: after a crash it replays what was written since its
	// last checkpoint.
	startTime = 2 * time.Minute
)

// Server is a running PostgreSQL. It is safe for concurrent use.
type Server struct {
	cfg       Config
	account   account
	programs  programs
	socketDir string

	mu      sync.Mutex
	lock    *os.File
	current *process
}

// process is one run of the database process.
type process struct {
	pid  int
	done chan struct{} // closed when it ended
	log  *tail
}

// Start makes the cluster if needed, runs it and waits until it is ready.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	held, err := lock(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, lock: held}
	if err := s.start(ctx); err != nil {
		_ = unlock(held) // nothing was written
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	major, err := clusterMajor(s.cfg.DataDir)
	if err != nil {
		return err
	}
	if s.programs, err = findPrograms(ctx, s.cfg, major); err != nil {
		return err
	}
	if s.account, err = chooseAccount(s.cfg.DataDir); err != nil {
		return err
	}
	if err := s.account.checkWay(s.programs.path("postgres")); err != nil {
		return err
	}
	if err := endOrphan(ctx, s.cfg); err != nil {
		return err
	}
	if major == 0 {
		s.cfg.Logger.Info("making a database", "dir", s.cfg.DataDir, "postgresql", s.programs.major, "user",
			s.account.name)
		if err := create(ctx, s.cfg, s.programs, s.account); err != nil {
			return err
		}
	} else if err := s.account.checkWay(s.cfg.DataDir); err != nil {
		return err
	}
	if err := ensurePassword(ctx, s.cfg, s.programs, s.account); err != nil {
		return err
	}
	s.socketDir = socketDir(s.cfg)
	if err := s.account.privateDir(s.socketDir); err != nil {
		return err
	}
	if err := s.account.checkWay(filepath.Join(s.socketDir, "socket")); err != nil {
		return err
	}
	if err := configure(s.cfg, s.account, s.socketDir); err != nil {
		return err
	}
	return s.launch(ctx)
}

// socketDir returns the directory of the socket: the configured one or, when that is too long, /tmp/ordain-<user
// id>-<hash of the data directory>.
func socketDir(cfg Config) string {
	if len(socketIn(cfg.SocketDir)) <= longestSocket {
		return cfg.SocketDir
	}
	sum := sha256.Sum256([]byte(cfg.DataDir))
	return "/tmp/ordain-" + strconv.Itoa(os.Geteuid()) + "-" + hex.EncodeToString(sum[:6])
}

func socketIn(dir string) string { return filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(port)) }

// launch runs the process. It tries again while children of a crashed server are about to end, or while that server
// has not been reaped.
func (s *Server) launch(ctx context.Context) error {
	deadline := time.Now().Add(15 * time.Second)
	for {
		err := s.launchOnce(ctx)
		if err == nil || !s.isPassing(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isPassing reports whether what kept the process from starting is about to be over.
func (s *Server) isPassing(err error) bool {
	if strings.Contains(err.Error(), inUse) {
		return true
	}
	p, ok := readPidFile(s.cfg.DataDir)
	return ok && strings.Contains(err.Error(), lockFile) && !isOurs(p, s.cfg.DataDir)
}

func (s *Server) launchOnce(ctx context.Context) error {
	cmd := exec.Command(s.programs.path("postgres"), "-D", s.cfg.DataDir)
	cmd.Dir = "/"
	cmd.Env = environment()
	atDeath := syscall.SIGINT // a fast, clean shutdown
	if s.cfg.Throwaway {
		atDeath = syscall.SIGQUIT
	}
	cmd.SysProcAttr = attributes(s.account, atDeath)
	cmd.WaitDelay = 2 * time.Second
	r := &process{done: make(chan struct{}), log: &tail{logger: s.cfg.Logger}}
	cmd.Stderr = r.log
	started := make(chan error, 1)
	go func() {
		// The kernel sends its signal when the thread that started the process ends, so this goroutine keeps its
		// thread to itself.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // its last output says how it ended
		close(r.done)
	}()
	if err := <-started; err != nil {
		return inWords("postgres.launch", err)
	}
	r.pid = cmd.Process.Pid
	if err := s.waitReady(ctx, r); err != nil {
		kill(r, syscall.SIGQUIT)
		<-r.done
		return err
	}
	s.current = r
	s.cfg.Logger.Debug("PostgreSQL is ready", "pid", r.pid, "version", s.programs.major)
	return nil
}

func (s *Server) waitReady(ctx context.Context, r *process) error {
	deadline := time.NewTimer(startTime)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.done:
			return failure("postgres.launch", "PostgreSQL does not start in "+s.cfg.DataDir, r.log.String())
		case <-deadline.C:
			return failure("postgres.launch", "PostgreSQL was not ready after "+startTime.String(), r.log.String())
		case <-tick.C:
			if p, ok := readPidFile(s.cfg.DataDir); ok && p.pid == r.pid && p.status == "ready" {
				return nil
			}
		}
	}
}

// URL returns the connection string. It holds no secret: it names the file with the password.
func (s *Server) URL() string {
	q := url.Values{
		"host": {s.socketDir}, "port": {strconv.Itoa(port)}, "user": {role}, "passfile": {passwordFile(s.cfg.DataDir)},
	}
	return "postgres:///" + role + "?" + q.Encode()
}

// Password returns the password that clients need, for a redactor.
func (s *Server) Password() (string, error) {
	text, err := os.ReadFile(passwordFile(s.cfg.DataDir))
	if err != nil {
		return "", inWords("postgres.Password", err)
	}
	_, password, _ := strings.Cut(string(text), "*:*:*:"+role+":")
	return strings.TrimSpace(password), nil
}

// Version returns the major version of the database.
func (s *Server) Version() int { return s.programs.major }

// Done returns a channel that is closed when the database process has ended, whether asked to or not. After a Restart
// there is a new one.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.done
}

// LastWords returns the last lines that the database process wrote.
func (s *Server) LastWords() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.log.String()
}

// Restart runs the database again after it ended; it stops one that is still running.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return fault.New("postgres.Restart", fault.Conflict, "the database was stopped")
	}
	s.halt(ctx)
	if err := configure(s.cfg, s.account, s.socketDir); err != nil {
		return err
	}
	return s.launch(ctx)
}

// Stop stops the database and waits for its end: first politely and, when ctx ends or that takes long, by force. It
// may be called more than once.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	s.halt(ctx)
	err := unlock(s.lock)
	s.lock = nil
	return inWordsOrNil("postgres.Stop", err)
}

func (s *Server) halt(ctx context.Context) {
	for _, step := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGINT, 30 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		kill(s.current, step.signal)
		timer := time.NewTimer(step.patience)
		polite := ctx.Done()
		if step.signal != syscall.SIGINT {
			polite = nil
		}
		select {
		case <-s.current.done:
			timer.Stop()
			return
		case <-polite:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// kill signals the process unless it has been reaped.
func kill(r *process, signal syscall.Signal) {
	select {
	case <-r.done:
	default:
		_ = syscall.Kill(r.pid, signal) // it may be ending right now
	}
}
