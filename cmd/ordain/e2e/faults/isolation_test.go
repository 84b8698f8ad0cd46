package faults

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/config"
)

// firstUser is the default of isolation.first-user.
const firstUser = 2_000_000_000

//go:embed testdata/attack.py
var attackSource string

// attackModule has a plug-in and a handler that run the attacks of testdata/attack.py.
var attackModule = map[string]string{
	"libs/attack/module.yml": "name: attack\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/attack/model/_init.cf": `entity Try extends std::PurgeableResource:
    string agent = "desk"
    string name
    string targets
end
index Try(name)
implement Try using std::none
`,
	"libs/attack/plugins/attacks.py": attackSource,
	"libs/attack/plugins/__init__.py": `import os
import subprocess
import sys

from inmanta.agent.handler import CRUDHandler, ResourcePurged, provider
from inmanta.plugins import plugin
from inmanta.resources import PurgeableResource, resource

from inmanta_plugins.attack import attacks


@plugin
def attempt(targets: "string") -> "string":
    print("PLUGIN", attacks.run(targets), flush=True)
    return "done"


@plugin
def live() -> "string":
    print("LIFE", attacks.life(), flush=True)
    return "done"


@plugin
def detach() -> "string":
    "starts a process that has left everything by which it could be found"
    program = "import os, time; print(os.getpid(), flush=True)\nif os.fork() == 0: os.setsid(); time.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", program], env={}, stdout=sys.stderr, start_new_session=True).wait()
    return "done"


@resource("attack::Try", agent="agent", id_attribute="name")
class Try(PurgeableResource):
    fields = ("agent", "name", "targets")


def fork_bomb():
    children = []
    try:
        for _ in range(400):
            pid = os.fork()
            if pid == 0:
                import time
                time.sleep(3600)
                os._exit(0)
            children.append(pid)
    finally:
        print("FORKED", len(children), flush=True)


def memory_bomb():
    held = []
    for _ in range(1 << 16):
        held.append(bytearray(1 << 20))


def disk_bomb():
    with open(os.path.join(os.path.expanduser("~"), "large"), "wb") as out:
        for _ in range(1 << 10):
            out.write(b"0" * (1 << 20))
            out.flush()


def file_bomb():
    held = [open(os.devnull) for _ in range(1 << 20)]


@provider("attack::Try", name="try")
class TryHandler(CRUDHandler[Try]):
    def read_resource(self, ctx, resource):
        if resource.name.endswith("_bomb"):
            globals()[resource.name]()
        elif resource.name == "life":
            ctx.info("HANDLER %(text)s", text=attacks.life())
        else:
            ctx.info("HANDLER %(text)s", text=attacks.run(resource.targets))
        raise ResourcePurged()

    def create_resource(self, ctx, resource):
        ctx.set_created()
`,
	"requirements.txt": lab.Module["requirements.txt"],
	"project.yml":      "name: attack\nmodulepath: libs\npip:\n  use_system_config: true\n",
}

// targets is what the attacks go for.
type targets struct {
	Secret        string `json:"secret"`
	Log           string `json:"log"`
	State         string `json:"state"`
	Mirrors       string `json:"mirrors"`
	Stranger      string `json:"stranger"` // a file of somebody else in /tmp
	OtherCode     string `json:"other_code"`
	OtherCheckout string `json:"other_checkout"`
	OtherVenv     string `json:"other_venv"`
	OtherCache    string `json:"other_cache"`
	OwnCheckout   string `json:"own_checkout"`
	OwnVenv       string `json:"own_venv"`
	Server        int    `json:"server"`
	OtherProcess  int    `json:"other_process"`
	Database      string `json:"database"`
	Abstract      string `json:"abstract"`
	SetUID        string `json:"setuid"`
	UID           int    `json:"uid"`
}

// targetsOf returns the targets of an environment that attacks another one.
func targetsOf(t *testing.T, own, other *lab.Place) targets {
	t.Helper()
	l := own.Server.Layout()
	first := func(pattern string) string {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("nothing is at %s: %v", pattern, err)
		}
		return found[0]
	}
	processes := executorsOf(t, other)
	stranger := filepath.Join(t.TempDir(), "stranger")
	if err := os.WriteFile(stranger, []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	abstract := fmt.Sprintf("ordain-test-%d", os.Getpid())
	listener, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	theirs, ours := l.Environment(other.Env), l.Environment(own.Env)
	return targets{
		Secret: filepath.Join(l.Server(), ".secret.key"), Log: l.ServerLog(), State: l.Server(),
		Mirrors: l.Mirrors(), Stranger: stranger,
		OtherCode: first(filepath.Join(theirs.Codes(), "*")), OtherCheckout: theirs.Compiler(),
		OtherVenv: first(filepath.Join(theirs.Venvs(), "*")), OtherCache: theirs.Cache(),
		OwnCheckout: ours.Compiler(),
		OwnVenv:     first(filepath.Join(ours.Compiler(), ".env-py*", "lib", "*", "site-packages")),
		Server:      os.Getpid(), OtherProcess: processes[0],
		Database: first(filepath.Join(l.Postgres(), "socket", ".s.PGSQL.*[0-9]")),
		Abstract: abstract, SetUID: rootID(t), UID: os.Geteuid(),
	}
}

// rootID returns a copy of the program id that runs as root, if this test may make one.
func rootID(t *testing.T) string {
	if path := os.Getenv("ORDAIN_TEST_ROOT_ID"); path != "" {
		return path
	}
	return "/usr/bin/id"
}

// executorsOf returns the executor processes of an environment.
func executorsOf(t *testing.T, p *lab.Place) (pids []int) {
	t.Helper()
	p.Until("an executor", func() bool {
		report, err := p.Control.Executors(t.Context(), p.Env)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range report.Processes {
			pids = append(pids, each.PID)
		}
		return len(pids) > 0
	})
	return pids
}

// aims is a model with a plug-in and a handler that attack.
func aims(plugins, name string, t targets) map[string]string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return map[string]string{"main.cf": fmt.Sprintf(`import attack
targets = %q
%s
attack::Try(name=%q, targets=targets)
`, text, plugins, name)}
}

// outcomes reads what the attacks of a plug-in or a handler came to.
func outcomes(t *testing.T, who, text string) map[string]string {
	t.Helper()
	_, after, found := strings.Cut(text, who+" {")
	var out map[string]string
	if !found || json.NewDecoder(strings.NewReader("{"+after)).Decode(&out) != nil {
		t.Fatalf("there are no outcomes of %s in:\n%s", who, text)
	}
	return out
}

// Neither the plug-ins nor the handlers of an environment reach anything that belongs to the server or
// to another environment. Without isolation they reach nearly everything, which shows that the attacks
// are real. All this holds for a server of root and for one of an ordinary user.
func TestEnvironmentsCannotTouchEachOther(t *testing.T) {
	tool.Heavy(t, "runs servers")
	for _, mode := range []string{"off", "on"} {
		t.Run(mode, func(t *testing.T) {
			w := lab.OwnWorld(t, func(o *config.Config) { o.Isolation, o.IsolationFirstUser = mode, firstUser })
			victim := lab.NewDeployedPlace(t, w)
			p := w.NewPlace(t)
			p.Suffix = "-attacker"
			p.Push("first", lab.MergeFiles(attackModule, aims("x = attack::live()", "life", targets{})))
			p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
			p.CompiledWell()
			if rows := p.Settled(); rows["life"].State.Status() != intent.StatusDeployed {
				t.Fatalf("code that means well does not work:\n%s", p.LogOf("life"))
			}
			if os.MkdirAll(w.Server.Layout().Environment(victim.Env).Cache(), 0o700) == nil && mode == "off" {
				_ = os.WriteFile(
					filepath.Join(w.Server.Layout().Environment(victim.Env).Cache(), "x"),
					[]byte("x"),
					0o600,
				)
			}
			aim := targetsOf(t, p, victim)
			p.Push("attack", aims("x = attack::attempt(targets)", "attack", aim))
			c := p.CompiledWell()
			p.Settled()
			_, stages, err := p.Store.Compile(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			for who, text := range map[string]string{"PLUGIN": lab.Report(stages), "HANDLER": p.LogOf("attack")} {
				got := outcomes(t, who, text)
				var done []string
				for _, name := range slices.Sorted(maps.Keys(got)) {
					if got[name] == "done" {
						done = append(done, name)
					}
				}
				t.Logf(
					"%s with isolation %s as user %d: %d of %d attacks succeed: %s",
					who,
					mode,
					os.Geteuid(),
					len(done),
					len(got),
					strings.Join(done, ", "),
				)
				switch {
				case mode == "on" && len(done) > 0:
					t.Errorf("%s reaches what it must not: %s", who, strings.Join(done, ", "))
				case mode == "off" && len(done) < len(got)/2:
					t.Errorf(
						"without isolation only %d of %d attacks succeed, so they prove little: %v",
						len(done),
						len(got),
						got,
					)
				}
			}
			if got := victim.Note("a"); got != "one" {
				t.Errorf("the note of the other environment is %q", got)
			}
		})
	}
}

// The same as an ordinary user, who has no other users to give away.
func TestOrdinaryUsersAreIsolatedToo(t *testing.T) {
	tool.Long(t, "repeats the attacks with a server of another user")
	if os.Geteuid() != 0 {
		t.Skip("this is an ordinary user: the other tests have shown it")
	}
	if testing.Short() {
		t.Skip("a scenario of the whole server; not with -short")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/var/lib", "ordain-user-") // inside, /tmp is another folder, in which anybody may write
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, rootProgram := filepath.Join(dir, "test"), filepath.Join(dir, "id")
	copyProgram(t, os.Args[0], program, 0o755)
	copyProgram(t, "/usr/bin/id", rootProgram, 0o4755)
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, each := range []string{dir, home} {
		if err := os.Chmod(each, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(
		program,
		"-test.run",
		"^(TestEnvironmentsCannotTouchEachOther|TestBombs|TestDetached)",
		"-test.v",
	)
	cmd.Dir = home
	cmd.Env = append(
		os.Environ(),
		"HOME="+home,
		"TMPDIR="+home,
		"PATH=/usr/bin:/bin",
		"ORDAIN_TEST_ROOT_ID="+rootProgram,
		"XDG_CACHE_HOME=",
		"GOCOVERDIR=",
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: TestEnvironmentsCannotTouchEachOther/on") {
		t.Errorf("as an ordinary user: %v", err)
	}
}

func copyProgram(t *testing.T, from, to string, mode uint32) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = syscall.Chmod(to, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Handlers that take too much of something fail by themselves, at a limit of the kernel, and say so.
func TestBombs(t *testing.T) {
	tool.Long(t, "waits for limits of memory and processes to strike")
	w := lab.OwnWorld(t, func(o *config.Config) {
		o.IsolationFirstUser = firstUser
		o.ExecutorChildren, o.ExecutorMemory, o.ExecutorFileSize = 50, 256<<20, 16<<20
	})
	p := w.NewPlace(t)
	for n, bomb := range []struct{ name, why string }{
		{"memory_bomb", "MemoryError"}, {"disk_bomb", "File too large"}, {"file_bomb", "Too many open files"},
		{"fork_bomb", "Resource temporarily unavailable"},
	} {
		main := fmt.Sprintf("import attack\nattack::Try(name=%q, targets=\"\")\n", bomb.name)
		p.Push(bomb.name, lab.MergeFiles(attackModule, map[string]string{"main.cf": main}))
		if n == 0 {
			p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
		}
		p.CompiledWell()
		status, log := p.Settled()[bomb.name].State.Status(), p.LogOf(bomb.name)
		if status != intent.StatusFailed || !strings.Contains(log, bomb.why) {
			t.Errorf("%s is %s, and should have failed with %q:\n%s", bomb.name, status, bomb.why, log)
		}
	}
	found := regexp.MustCompile(`FORKED (\d+)`).FindStringSubmatch(p.LogOf("fork_bomb"))
	if found == nil {
		t.Fatalf("the log does not say how many processes there were:\n%s", p.LogOf("fork_bomb"))
	}
	t.Logf("the fork bomb had %s processes", found[1])
	var n int
	if _, err := fmt.Sscan(found[1], &n); err != nil || n > 100 {
		t.Errorf("it had %s processes, with a limit of 50", found[1])
	}
	p.Push("life", map[string]string{"main.cf": "import attack\nattack::Try(name=\"life\", targets=\"\")\n"})
	p.CompiledWell()
	if rows := p.Settled(); rows["life"].State.Status() != intent.StatusDeployed {
		t.Errorf("after the bombs, code that means well does not work:\n%s", p.LogOf("life"))
	}
}

// A process that a plug-in leaves behind ends with the compile, even if nothing about it says where it
// came from: not its environment, its group, its session or its parent. This holds for the first
// compile and for those that begin with a copy of a template.
func TestDetachedProcessesEndWithTheirCompile(t *testing.T) {
	tool.Long(t, "starts a server, and compiles three times")
	w := lab.OwnWorld(t, func(o *config.Config) { o.IsolationFirstUser = firstUser })
	p := w.NewPlace(t)
	p.Push("first", lab.MergeFiles(attackModule, aims("x = attack::detach()", "attack", targets{})))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	for n := range 3 {
		if n > 0 {
			p.Recompile()
		}
		c := p.CompiledWell()
		_, stages, err := p.Store.Compile(t.Context(), c.ID)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^(\d+)$`).FindStringSubmatch(lab.Report(stages))
		if found == nil {
			t.Fatalf("the plug-in started nothing:\n%s", lab.Report(stages))
		}
		if left := processesOfSession(t); len(left) > 0 {
			t.Errorf("after compile %d these are left: %v", n+1, left)
		}
	}
}

// processesOfSession returns the processes that sleep as the plug-in has told them.
func processesOfSession(t *testing.T) (out []string) {
	t.Helper()
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range found {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), "os.setsid(); time.sleep(3600)") {
			out = append(out, filepath.Dir(name))
		}
	}
	return out
}
