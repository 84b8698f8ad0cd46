package server

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/layout"
)

// A package that is built while it is installed writes to the folders that the installation gives it, and
// reads nothing else of the server's. What it leaves running ends with it.
func TestInstallersAreConfined(t *testing.T) {
	support := isolation.Detect()
	if !support.Namespaces && support.Landlock == 0 {
		t.Skip("this kernel offers nothing to confine processes with")
	}
	l, err := layout.New(layout.Config{StateDir: t.TempDir(), LogDir: t.TempDir(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{layout: l, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	owner := uuid.New()
	if err := l.Environment(owner).Prepare(); err != nil {
		t.Fatal(err)
	}
	secret, work := filepath.Join(l.Server(), ".secret.key"), t.TempDir()
	if err := os.WriteFile(secret, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `cat "$0"; echo made > "$1/made"; setsid sleep 3600 >/dev/null 2>&1 &`
	cmd := exec.Command("/bin/sh", "-c", script, secret, work)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	started, err := s.installers(&isolation.Config{Support: support})(cmd, venv.Sandbox{
		Owner: owner.String(), Python: "/usr/bin/python3", Write: []string{work},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end, err := started()
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	end()
	if text, err := os.ReadFile(filepath.Join(work, "made")); err != nil || string(text) != "made\n" {
		t.Errorf("what it made is %q, %v\n%s", text, err, out.String())
	}
	if strings.Contains(out.String(), "a secret") {
		t.Error("it reads the server's secret key")
	}
	if left, _ := os.ReadDir(l.Environment(owner).Runs()); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
