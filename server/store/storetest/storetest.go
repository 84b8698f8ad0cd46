// Package storetest gives every test a database of its own.
//
//	one cluster per test process ─▶ one template, migrated once ─▶ a copy per test
//
// The cluster is a private PostgreSQL in a temporary directory, in memory where there is room. It ends, and its
// directory is removed, when the test process ends, however that ends. When ORDAIN_TEST_DATABASE holds the connection
// string of a role that may create databases, that server is used instead.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ordain.dev/ordain/internal/testing/scratch"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
)

// Open returns a store on a database of the test's own. Both are removed with the test.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: URL(t), Logger: Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// URL returns the address of a database of the test's own, which holds the schema and nothing else and is removed
// with the test.
func URL(t testing.TB) string {
	t.Helper()
	template, err := cluster()
	if err != nil {
		t.Fatal("a database for tests: ", err)
	}
	return clone(t, template.name)
}

// clone copies a database for one test and returns the address of the copy.
func clone(t testing.TB, from string) string {
	t.Helper()
	template, err := cluster()
	if err != nil {
		t.Fatal("a database for tests: ", err)
	}
	name := "t_" + uuid.NewString()
	if err := template.copy(from, name); err != nil {
		t.Fatal("a database for the test: ", err)
	}
	t.Cleanup(func() {
		if err := template.admin(`DROP DATABASE "` + name + `" WITH (FORCE)`); err != nil {
			t.Error("dropping the database of the test: ", err)
		}
	})
	return template.address(name)
}

// A Template is a database that is filled once per test process; every test gets a copy of what is in it.
type Template struct {
	// Fill writes what every copy begins with.
	Fill func(ctx context.Context, s *store.Store) error

	once sync.Once
	name string
	err  error
}

// Open returns a store on a copy of the template. Both go with the test.
func (x *Template) Open(t testing.TB) *store.Store {
	t.Helper()
	x.once.Do(x.fill)
	if x.err != nil {
		t.Fatal("filling the template of a database: ", x.err)
	}
	s, err := store.Open(t.Context(), store.Config{URL: clone(t, x.name), Logger: Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (x *Template) fill() {
	from, err := cluster()
	if err != nil {
		x.err = err
		return
	}
	x.name = "template_" + uuid.NewString()
	if x.err = from.copy(from.name, x.name); x.err != nil {
		return
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := store.Open(context.Background(), store.Config{URL: from.address(x.name), Logger: quiet})
	if err != nil {
		x.err = err
		return
	}
	defer s.Close() // a database that somebody is connected to cannot be copied
	x.err = x.Fill(context.Background(), s)
}

// Logger writes to the test's log until the test ends.
func Logger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.stop)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type testWriter struct {
	mu sync.Mutex
	t  testing.TB // nil once the test has ended
}

func (w *testWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t != nil {
		w.t.Logf("%s", b)
	}
	return len(b), nil
}

func (w *testWriter) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t = nil
}

// source is the database that the databases of tests are copies of.
type source struct {
	server *url.URL
	name   string
}

// cluster is started by the first test that needs it.
var cluster = sync.OnceValues(func() (*source, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	address := os.Getenv("ORDAIN_TEST_DATABASE")
	if address == "" {
		var err error
		if address, err = start(ctx); err != nil {
			return nil, err
		}
	}
	server, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	s := &source{server: server, name: "template_" + uuid.NewString()}
	if err := s.admin(`CREATE DATABASE "` + s.name + `"`); err != nil {
		return nil, err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	st, err := store.Open(ctx, store.Config{URL: s.address(s.name), Logger: quiet})
	if err != nil {
		return nil, err
	}
	st.Close()
	return s, nil
})

func (s *source) address(database string) string {
	u := *s.server
	u.Path = "/" + database
	return u.String()
}

// copy makes a database like another one. PostgreSQL copies files in half the time that it takes to log the pages,
// which versions before 15 never do.
func (s *source) copy(from, name string) error {
	statement := `CREATE DATABASE "` + name + `" TEMPLATE "` + from + `"`
	err := s.admin(statement + ` STRATEGY FILE_COPY`)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "42601" { // a syntax error
		return s.admin(statement)
	}
	return err
}

// admin runs one statement on the server's own database.
func (s *source) admin(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.server.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // nothing depends on it
	_, err = conn.Exec(ctx, sql)
	return err
}

// start runs a throw-away cluster, and a janitor that outlives this process just long enough to remove what is left
// of the cluster.
func start(ctx context.Context) (string, error) {
	// Each test copies the seven hundred files of a database.
	dir, err := os.MkdirTemp(scratch.Parent(), "ordain-storetest-")
	if err != nil { // that folder is not for everybody
		dir, err = os.MkdirTemp("", "ordain-storetest-")
	}
	if err != nil {
		return "", err
	}
	// The account that runs the database must be able to pass through; tests that run as root need that.
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", err
	}
	if err := janitor(dir); err != nil {
		return "", fmt.Errorf("the janitor of %s: %w", dir, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = dir
	}
	if os.Geteuid() == 0 {
		cache = filepath.Join(os.TempDir(), "ordain-postgres-cache")
	}
	server, err := postgres.Start(ctx, postgres.Config{
		DataDir:   filepath.Join(dir, "data"),
		SocketDir: filepath.Join(dir, "socket"),
		CacheDir:  filepath.Join(cache, "ordain-postgres"),
		Throwaway: true,
		Settings:  map[string]string{"max_connections": "200", "autovacuum": "off"},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return "", err
	}
	return server.URL(), nil
}

// janitor starts a process that waits for the end of its input, which comes with the end of this process, then stops
// the database should it still be running, and removes the directory.
func janitor(dir string) error {
	const script = `cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ] && [ "$(sed -n 2p "$1/data/postmaster.pid")" = "$1/data" ]; then
	kill -QUIT "$pid" 2>/dev/null
	for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
fi
rm -rf -- "$1"`
	input, held, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", script, "sh", dir)
	cmd.Dir = "/"
	cmd.Stdin = input
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	heldOpen = append(heldOpen, held)
	return input.Close()
}

// heldOpen holds the open end of the janitor's input. Nobody writes to it; it closes with the process.
var heldOpen []*os.File
