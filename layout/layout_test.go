package layout

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
)

var env = uuid.MustParse("6c66ca44-da58-4924-ad17-151abc2f3726")

func fresh(t *testing.T) *Layout {
	t.Helper()
	dir := t.TempDir()
	l, err := New(
		Config{
			StateDir: filepath.Join(dir, "state"),
			LogDir:   filepath.Join(dir, "log"),
			CacheDir: filepath.Join(dir, "cache"),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The folders and files are exactly those of the document on the on-disk layout.
func TestLayoutIsTheOneOfTheDocument(t *testing.T) {
	l := fresh(t)
	e := l.Environment(env)
	if err := e.Prepare(); err != nil {
		t.Fatal(err)
	}
	mirror := filepath.Join(l.Mirrors(), "cc.git")
	for _, dir := range []string{e.CompilerVenv("3.12"), e.Venv("aa"), e.Code("bb"), mirror} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.SwitchVenv("3.12"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.SchedulerConfig(), nil, 0o640); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(l.StateDir(), func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(l.StateDir(), path)
		got = append(got, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	id := env.String()
	want := []string{
		".", "server", "server/.inmanta_use_new_disk_layout", "server/.mirrors", "server/.mirrors/cc.git",
		"server/" + id, "server/" + id + "/compiler",
		"server/" + id + "/compiler/.env", "server/" + id + "/compiler/.env-py3.12",
		"server/" + id + "/executors", "server/" + id + "/executors/code", "server/" + id + "/executors/code/bb",
		"server/" + id + "/executors/venvs", "server/" + id + "/executors/venvs/aa", "server/" + id + "/scheduler.cfg",
	}
	if !slices.Equal(got, want) {
		t.Errorf("on disk:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var logs []string
	for _, path := range append(l.Logs(env), l.ServerLog()) {
		logs = append(logs, filepath.Base(path))
	}
	want = []string{
		"resource-actions-" + id + ".log", "agent-" + id + ".log", "agent-" + id + ".out", "agent-" + id + ".err",
		"server.log",
	}
	if !slices.Equal(logs, want) {
		t.Errorf("logs %v, want %v", logs, want)
	}
	if ids, err := l.Environments(); err != nil || len(ids) != 1 || ids[0] != env {
		t.Errorf("environments %v, %v", ids, err)
	}
}

// .env moves from one Python version to the next, and replaces a folder in its place.
func TestSwitchVenv(t *testing.T) {
	e := fresh(t).Environment(env)
	if err := os.MkdirAll(filepath.Join(e.CompilerVenvLink(), "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"3.11", "3.13", "3.13"} {
		if err := e.SwitchVenv(version); err != nil {
			t.Fatal(err)
		}
		if target, err := os.Readlink(e.CompilerVenvLink()); err != nil || target != ".env-py"+version {
			t.Errorf(".env → %s, %v", target, err)
		}
	}
}

func TestRemoveEnvironment(t *testing.T) {
	l := fresh(t)
	if err := l.Environment(env).Prepare(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call finds nothing and succeeds too
		if err := l.RemoveEnvironment(env); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(l.Server())
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// TestHolder is not a test but the first server of TestSecondServer.
func TestHolder(t *testing.T) {
	state := os.Getenv("LAYOUT_TEST_HOLD")
	if state == "" {
		t.Skip("only for TestSecondServer")
	}
	l, err := New(Config{StateDir: state, CacheDir: filepath.Join(state, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lock(); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("held\n")
	select {}
}

// A second server is refused with the number of the process to stop. When the
// first one dies, however that happens, the directory is free at once.
func TestSecondServer(t *testing.T) {
	l := fresh(t)
	first := exec.Command(os.Args[0], "-test.run=^TestHolder$")
	first.Env = append(os.Environ(), "LAYOUT_TEST_HOLD="+l.StateDir())
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, err = l.Lock()
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), strconv.Itoa(first.Process.Pid)) {
		t.Errorf("got %v", err)
	}
	_ = first.Process.Signal(syscall.SIGKILL)
	_ = first.Wait()
	lock, err := l.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

// Every error of the file system comes with advice.
func TestTroubleIsExplained(t *testing.T) {
	for _, tc := range []struct {
		err  error
		kind fault.Kind
		want string
	}{
		{&fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, fault.Exhausted, "free space"},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.EROFS}, fault.Unavailable, "read-only"},
		{&fs.PathError{Op: "mkdir", Path: "/x", Err: syscall.EACCES}, fault.Forbidden, "no permission"},
		{&fs.PathError{Op: "mkdir", Path: "/x", Err: syscall.EIO}, fault.Internal, "trouble with"},
	} {
		got := fault.Disk("test", "/x", tc.err)
		if !fault.Is(got, tc.kind) || !strings.Contains(got.Error(), tc.want) {
			t.Errorf("%v: %v", tc.err, got)
		}
		if again := fault.Disk("test", "/y", got); again != got {
			t.Errorf("explained twice: %v", again)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{StateDir: file}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a file as the state directory: %v", err)
	}
}

// The next start removes what a killed server left: results of compiles, and
// environments that were being deleted. Environments stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	l, err := New(Config{StateDir: t.TempDir(), LogDir: t.TempDir(), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(l.Server(), "6a2f41a3-c54c-4f0c-8b6a-3f8a2e9a0001", "compiler")
	doomed := []string{
		filepath.Join(l.Environment(uuid.New()).Runs(), "compile-1"), filepath.Join(l.Server(), ".removed-1", "x"),
	}
	for _, dir := range append(doomed, kept) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sweep(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range doomed {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

// Programs are run from the cache. A folder that others can write to is not used,
// and one in the folder of temporary files that belongs to somebody else is refused.
func TestACacheThatOthersCouldFillIsNotUsed(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root's cache is the machine's: /var/cache/ordain")
	}
	common, temporary := filepath.Join(t.TempDir(), "ordain"), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Dir(common))
	t.Setenv("TMPDIR", temporary)
	wanted := func(want string) {
		t.Helper()
		if got, err := DefaultCacheDir(); err != nil || got != want {
			t.Errorf("the cache is %q (%v), want %q", got, err, want)
		}
	}
	wanted(common)
	if err := os.Chmod(common, 0o777); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(temporary, "ordain-cache-"+strconv.Itoa(os.Geteuid()))
	wanted(mine)
	if got := defaultCache(temporary); got != filepath.Join(temporary, "cache") {
		t.Errorf("the server would use %s", got)
	}
	if err := os.RemoveAll(mine); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(common, mine); err != nil { // as an attacker would who came first
		t.Fatal(err)
	}
	if got, err := DefaultCacheDir(); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a link to elsewhere is used: %q, %v", got, err)
	}
}

// A folder of another user is not ours, whatever its mode.
func TestIsOurs(t *testing.T) {
	dir := t.TempDir()
	if !isOurs(os.Stat(dir)) || isOurs(os.Stat(filepath.Join(dir, "none"))) {
		t.Error("want true for our own folder, and false for one that does not exist")
	}
	if os.Geteuid() != 0 {
		dir = "/"
	} else if err := os.Chown(dir, 65534, -1); err != nil {
		t.Fatal(err)
	}
	if isOurs(os.Stat(dir)) {
		t.Errorf("%s belongs to somebody else", dir)
	}
}
