package postgres

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/parallel"
	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/internal/testing/tool"
)

// childEnv turns the test program into a server that starts a database in a directory, reports that, and waits to be
// killed.
const childEnv = "ORDAIN_POSTGRES_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		s, err := Start(context.Background(), configIn(dir))
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("ready", s.current.pid)
		select {}
	}
	os.Exit(racedetector.Main(parallel.Wide(m, 3)))
}

func configIn(dir string) Config {
	return Config{
		DataDir: filepath.Join(dir,
			"data"), SocketDir: filepath.Join(dir, "socket"), CacheDir: filepath.Join(dir, "cache"),
		Throwaway: true, Logger: slog.New(slog.DiscardHandler),
	}
}

// openDirectory returns a temporary directory that the database's account may enter.
func openDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ordain-pg-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o711))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func startIn(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop(context.Background())) })
	return s
}

// answers reports whether something listens on the server's socket.
func answers(t *testing.T, s *Server) bool {
	t.Helper()
	u, err := url.Parse(s.URL())
	must(t, err)
	c, err := net.Dial("unix", socketIn(u.Query().Get("host")))
	if err != nil {
		return false
	}
	must(t, c.Close())
	return true
}

// A cluster is made, used, stopped, and found again; only its account may enter its directories; a second server is
// refused meanwhile.
func TestLifeOfADatabase(t *testing.T) {
	t.Parallel()
	dir := openDirectory(t)
	cfg := configIn(dir)
	s := startIn(t, cfg)
	if !answers(t, s) || s.Version() < oldest {
		t.Fatal("nothing listens")
	}
	for _, d := range []string{cfg.DataDir, cfg.SocketDir} {
		info, err := os.Stat(d)
		must(t, err)
		if info.Mode().Perm() != 0o700 || ownerOf(info) == 0 {
			t.Errorf("%s has mode %v and belongs to %d", d, info.Mode(), ownerOf(info))
		}
	}
	if _, err := Start(t.Context(), cfg); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server: %v", err)
	}
	done := s.Done()
	must(t, s.Stop(t.Context()))
	<-done
	must(t, s.Stop(t.Context()))
	if answers(t, s) {
		t.Error("something still listens")
	}
	if err := s.Restart(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("restart of a stopped one: %v", err)
	}
	if again := startIn(t, cfg); !answers(t, again) {
		t.Error("nothing listens after the second start")
	}
}

// PostgreSQL is killed: Done reports it, and Restart brings it back although its children may still be about to end.
func TestACrashIsReportedAndRestartRecovers(t *testing.T) {
	tool.Heavy(t, "starts databases")
	t.Parallel()
	s := startIn(t, configIn(openDirectory(t)))
	for range 2 {
		done := s.Done()
		must(t, syscall.Kill(s.current.pid, syscall.SIGKILL))
		<-done
		must(t, s.Restart(t.Context()))
		if !answers(t, s) {
			t.Fatal("nothing listens")
		}
	}
}

// The server is killed: its database stops by itself, and the next server starts on the same directory at once.
func TestTheDatabaseOfAKilledServerStops(t *testing.T) {
	t.Parallel()
	dir := openDirectory(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	var pid int
	if _, scanErr := fmt.Sscanf(line, "ready %d", &pid); err != nil || scanErr != nil {
		t.Fatalf("the child says %q: %v, %v", line, err, scanErr)
	}
	must(t, child.Process.Kill())
	_ = child.Wait() // killed
	s := startIn(t, configIn(dir))
	if !answers(t, s) || s.current.pid == pid {
		t.Fatal("the new database does not listen")
	}
	if p := (pidFile{pid: pid, dataDir: s.cfg.DataDir}); isOurs(p, s.cfg.DataDir) {
		t.Error("the database of the killed server still runs")
	}
}

// No signal reached the database of a dead server: the next start stops it.
func TestADatabaseLeftRunningIsStopped(t *testing.T) {
	t.Parallel()
	cfg := configIn(openDirectory(t))
	orphan := startIn(t, cfg)
	must(t, unlock(orphan.lock)) // as if its server were dead
	s, err := Start(t.Context(), cfg)
	must(t, err)
	<-orphan.Done()
	if !answers(t, s) {
		t.Error("nothing listens")
	}
	must(t, s.Stop(t.Context()))
	orphan.lock = nil
}

// watcher is a log handler that reports one message.
type watcher struct {
	text string
	seen func()
}

func (watcher) Enabled(context.Context, slog.Level) bool { return true }

func (w watcher) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, w.text) {
		w.seen()
	}
	return nil
}

func (w watcher) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w watcher) WithGroup(string) slog.Handler { return w }

// A killed database has not been reaped yet: the next one starts once it has been.
func TestADeadDatabaseIsNotReapedYet(t *testing.T) {
	tool.Heavy(t, "starts databases")
	t.Parallel()
	cfg := configIn(openDirectory(t))
	s, err := Start(t.Context(), cfg)
	must(t, err)
	must(t, s.Stop(t.Context()))
	dead := exec.Command("true")
	dead.Dir = "/"
	dead.SysProcAttr = attributes(s.account, 0)
	must(t, dead.Start())
	file := filepath.Join(cfg.DataDir, "postmaster.pid")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "%d\n%s\n1700000000\n5432\n", dead.Process.Pid, cfg.DataDir), 0o600))
	must(t, os.Chown(file, s.account.uid, s.account.gid))
	var once sync.Once
	cfg.Logger = slog.New(watcher{"already exists", func() { once.Do(func() { _ = dead.Wait() }) }})
	if s := startIn(t, cfg); !answers(t, s) {
		t.Error("nothing listens")
	}
	if dead.ProcessState == nil {
		t.Error("it started beside the dead one")
	}
}

func TestUnusableDirectoriesAreExplained(t *testing.T) {
	t.Parallel()
	t.Run("other files", func(t *testing.T) {
		cfg := configIn(openDirectory(t))
		must(t, os.Mkdir(cfg.DataDir, 0o700))
		must(t, os.WriteFile(filepath.Join(cfg.DataDir, "thesis.txt"), nil, 0o600))
		_, err := Start(t.Context(), cfg)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), cfg.DataDir) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("bad local.conf", func(t *testing.T) {
		cfg := configIn(openDirectory(t))
		s := startIn(t, cfg)
		must(t, s.Stop(t.Context()))
		must(t, os.WriteFile(filepath.Join(cfg.DataDir, "local.conf"), []byte("wibble = 1\n"), 0o644))
		if _, err := Start(t.Context(), cfg); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), "wibble") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("relative path", func(t *testing.T) {
		cfg := configIn(openDirectory(t))
		cfg.DataDir = "data"
		if _, err := Start(t.Context(), cfg); !fault.Is(err, fault.Internal) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("programs that are none", func(t *testing.T) {
		cfg := configIn(openDirectory(t))
		cfg.BinDir = t.TempDir()
		if _, err := Start(t.Context(), cfg); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), cfg.BinDir) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("closed way", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root runs the database as somebody else")
		}
		dir := openDirectory(t)
		closed := filepath.Join(dir, "closed")
		must(t, os.Mkdir(closed, 0o700))
		_, err := Start(t.Context(), configIn(filepath.Join(closed, "deeper")))
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "chmod o+x "+closed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no permission", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may do everything")
		}
		dir := openDirectory(t)
		must(t, os.Chmod(dir, 0o500))
		if _, err := Start(t.Context(), configIn(dir)); !fault.Is(err, fault.Forbidden) {
			t.Errorf("got %v", err)
		}
	})
}

// The path of a socket may have 107 bytes: for a deeper state directory a short one is used.
func TestDeepStateDirectory(t *testing.T) {
	tool.Heavy(t, "starts databases")
	t.Parallel()
	dir := filepath.Join(openDirectory(t), strings.Repeat("deep/", 24))
	must(t, os.MkdirAll(dir, 0o755))
	s := startIn(t, configIn(dir))
	if !strings.HasPrefix(s.socketDir, "/tmp/ordain-") || !answers(t, s) {
		t.Errorf("the socket is in %s", s.socketDir)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(s.socketDir)) })
}

func TestLastOutputBecomesAdvice(t *testing.T) {
	for words, kind := range map[string]fault.Kind{
		"FATAL:  could not write lock file: No space left on device": fault.Exhausted,
		"FATAL:  could not open file: Permission denied":             fault.Forbidden,
		"something else": fault.Internal,
	} {
		if err := failure("op", "it does not start", words); err.Kind != kind ||
			!strings.Contains(err.Error(), words) ||
			err.Advice == "" {
			t.Errorf("%q: %v (%s)", words, err, err.Kind)
		}
	}
	if err := inWords("op", &os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}); !fault.Is(
		err,
		fault.Exhausted,
	) {
		t.Errorf("a full disk: %v", err)
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	var l tail
	l.logger = slog.New(slog.DiscardHandler)
	for i := range 50 {
		fmt.Fprintf(&l, "line %d\nhalf", i)
	}
	fmt.Fprintf(&l, "%s\n", strings.Repeat("x", 10*longestLine))
	lines := strings.Split(l.String(), "\n")
	if len(lines) != tailLines || lines[tailLines-2] != "halfline 49" || len(lines[tailLines-1]) != longestLine {
		t.Errorf("%d lines: %.80q", len(lines), lines)
	}
}

func FuzzParsePidFile(f *testing.F) {
	f.Add("123\n/data\n1\n5432\n/s\n\n 1 2\nready   \n")
	f.Add("-1\n/\n")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := parsePidFile(text); ok && (p.pid <= 1 || strings.Contains(p.dataDir, "\n")) {
			t.Fatalf("%q is %+v", text, p)
		}
	})
}
