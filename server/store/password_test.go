package store_test

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/postgres"
	"ordain.dev/ordain/server/store/storetest"
)

// A plug-in runs under the account of the server, has found the socket of the private
// database and knows the name of the role. Without the file with the password, which it may
// not read, it cannot connect; neither can another account, nor can anybody guess.
func TestThePrivateDatabaseWantsAPassword(t *testing.T) {
	tool.Heavy(t, "starts a database of its own")
	t.Parallel()
	pg, data := ownCluster(t)
	s, err := store.Open(t.Context(), store.Config{URL: pg.URL(), Logger: storetest.Logger(t)})
	must(t, err)
	s.Close()

	u, err := url.Parse(pg.URL())
	must(t, err)
	q := u.Query()
	file := q.Get("passfile")
	info, err := os.Stat(file)
	must(t, err)
	text, err := os.ReadFile(file)
	must(t, err)
	_, password, _ := strings.Cut(string(text), "*:*:*:ordain:")
	if password = strings.TrimSpace(password); info.Mode().Perm() != 0o600 || len(password) < 32 {
		t.Fatalf("%s has mode %v and %d characters of a password", file, info.Mode(), len(password))
	}
	if strings.Contains(pg.URL(), password) {
		t.Error("the connection string holds the password")
	}
	q.Del("passfile")
	for what, guess := range map[string]string{"no password": "", "a guess": "ordain", "the role": "postgres"} {
		q.Set("password", guess)
		if what == "the role" {
			q.Set("user", guess)
		}
		u.RawQuery = q.Encode()
		if conn, err := pgx.Connect(t.Context(), u.String()); err == nil {
			must(t, conn.Close(t.Context()))
			t.Errorf("%s: connected", what)
		}
	}
	for _, name := range []string{"pg_hba.conf", "pg_ident.conf"} {
		rules, err := os.ReadFile(filepath.Join(data, name))
		must(t, err)
		for line := range strings.Lines(string(rules)) {
			if !strings.HasPrefix(line, "#") && (strings.Contains(line, "peer") || strings.Contains(line, "trust")) {
				t.Errorf("%s admits clients without a password: %s", name, line)
			}
		}
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, command := range commands {
		if line, err := os.ReadFile(command); err == nil && strings.Contains(string(line), password) {
			t.Errorf("the password is in the arguments of a process: %q", line)
		}
	}

	psql, err := exec.LookPath("psql")
	if err != nil {
		return
	}
	// psql finds the password by itself, as the documentation says; without the file it does not get in.
	for address, ok := range map[string]bool{
		pg.URL(): true, strings.ReplaceAll(pg.URL(), "passfile=", "application_name="): false,
	} {
		cmd := exec.Command(psql, "--no-password", "--no-psqlrc", "-Atc", "SELECT 1", address)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nowhere"}
		if out, err := cmd.CombinedOutput(); (err == nil) != ok {
			t.Errorf("psql: connected %v, want %v: %s", err == nil, ok, out)
		}
	}
}

// A cluster of an earlier version has no password; neither has one whose file was removed
// because strangers saw it. The next start makes one.
func TestAnEarlierClusterGetsAPassword(t *testing.T) {
	tool.Heavy(t, "starts a database of its own")
	t.Parallel()
	dir, err := os.MkdirTemp("", "ordain-password-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o711))
	cfg := postgres.Config{
		DataDir: filepath.Join(dir, "data"), SocketDir: filepath.Join(dir, "s"), CacheDir: filepath.Join(dir, "cache"),
		Throwaway: true, Logger: slog.New(slog.DiscardHandler),
	}
	file := cfg.DataDir + ".password"
	var before string
	for range 2 {
		pg, err := postgres.Start(t.Context(), cfg)
		must(t, err)
		conn, err := pgx.Connect(t.Context(), pg.URL())
		must(t, err)
		must(t, conn.Close(t.Context()))
		text, err := os.ReadFile(file)
		must(t, err)
		if before != "" {
			must(t, os.WriteFile(filepath.Join(dir, "old"), []byte(before), 0o600))
			old := strings.ReplaceAll(pg.URL(), url.QueryEscape(file), url.QueryEscape(filepath.Join(dir, "old")))
			if conn, err := pgx.Connect(t.Context(), old); err == nil {
				must(t, conn.Close(t.Context()))
				t.Error("the old password is still valid")
			}
		}
		if before == string(text) {
			t.Error("the password is the same")
		}
		before = string(text)
		must(t, pg.Stop(context.Background()))
		must(t, os.Remove(file))
	}
	pg, err := postgres.Start(t.Context(), cfg)
	must(t, err)
	must(t, pg.Stop(context.Background()))
	must(t, os.Chmod(file, 0o644))
	if _, err := postgres.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("with a file that others may read: %v", err)
	}
}
