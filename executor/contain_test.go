package executor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/worker"
	"ordain.dev/ordain/internal/testing/tool"
)

// rough is a module with handlers that harm their own process.
const rough = lab + `
import signal, resource as limits

def trick(do):
    tricks[do.__name__] = do
    return do

@trick
def deaf(self, ctx, resource):
    "hangs, and so does what it started; neither ends when asked to"
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    child = subprocess.Popen([sys.executable, "-c", code])
    ctx.warning("child %(pid)s", pid=child.pid)
    time.sleep(3600)

@trick
def stuck(self, ctx, resource):
    "holds the lock of the interpreter: no other thread runs, not even the heartbeat"
    ctypes.PyDLL(None).sleep(3600)

@trick
def daemon(self, ctx, resource):
    "starts something that leaves session and process group, with its parent gone"
    command = ["sh", "-c", "setsid sleep 3600 >/dev/null 2>&1 & echo $!"]
    text = subprocess.run(command, capture_output=True, text=True).stdout
    ctx.warning("child %(pid)s", pid=int(text))

@trick
def orphan(self, ctx, resource):
    child = os.fork()
    if child == 0:
        time.sleep(3600)
    ctx.warning("child %(pid)s", pid=child)
    os._exit(3)

@trick
def leak(self, ctx, resource):
    held = state.setdefault("leak", [])
    for _ in range(4096): held.append(bytearray(1 << 20))

@trick
def _exit(self, ctx, resource):
    os._exit(7)

@trick
def abort(self, ctx, resource):
    os.abort()

@trick
def raw(self, ctx, resource):
    for n in range(2000): os.write(1, b"straight to the pipe\n"); os.write(2, b"\xff\xfe not even text\n")
    os.write(1, b"y" * (8 << 20))

@trick
def close_replies(self, ctx, resource):
    os.close(4)

@trick
def close_requests(self, ctx, resource):
    os.close(3)

@trick
def other_replies(self, ctx, resource):
    child = os.fork() # which holds the pipe open, so that its end says nothing
    if child == 0: time.sleep(3600)
    ctx.warning("child %(pid)s", pid=child)
    os.dup2(os.open("/dev/null", os.O_WRONLY), 4)

@trick
def close_output(self, ctx, resource):
    sys.stdout.close(); os.close(1); os.close(2)
    open(os.devnull, "w").write("whatever is opened next")
    ctx.info("done")

@trick
def garbage(self, ctx, resource):
    os.write(4, b"\xff\xff\xff\xff and more of it")
    time.sleep(3600)

@trick
def half_a_frame(self, ctx, resource):
    os.write(4, b"\x00\x00\x00\x40{")

@trick
def no_json(self, ctx, resource):
    body = b"this is no JSON"
    os.write(4, len(body).to_bytes(4, "big") + body)
    time.sleep(3600)

@trick
def forged(self, ctx, resource):
    import json
    for status, change in (("splendid", "nochange"),):
        body = json.dumps({"re": self_request(), "ok": {"status": status, "change": change}}).encode()
        os.write(4, len(body).to_bytes(4, "big") + body)
    time.sleep(0.2)

def self_request():
    "the number of the request that this thread works on"
    frame = sys._getframe()
    while frame is not None:
        talk = frame.f_locals.get("talk")
        if talk is not None: return talk._request
        frame = frame.f_back

class Odd:
    def __str__(self): raise RuntimeError("no text")
    __repr__ = __str__

@trick
def nonsense(self, ctx, resource):
    ctx.info("odd %(odd)s", odd=Odd(), more={Odd(): object()})
    ctx.set_fact(Odd(), Odd())
    ctx.set_fact("number", 5)
    ctx.add_change(("a", 1), Odd(), float("nan"))
    return Odd()

@trick
def no_state(self, ctx, resource):
    self.execute = None
    raise GeneratorExit("odd way out")

@trick
def interrupt(self, ctx, resource):
    raise KeyboardInterrupt("as if somebody pressed it")

class Base(BaseException): pass

@trick
def base(self, ctx, resource):
    raise Base("nothing catches this")

@trick
def threads(self, ctx, resource):
    threading.stack_size(1 << 20) # or there were not that many
    for _ in range(250): threading.Thread(target=time.sleep, args=(3600,), daemon=False).start()

@trick
def manners(self, ctx, resource):
    os.chdir("/"); os.umask(0o777)
    try: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except ValueError as refused: ctx.info("signals: %(why)s", why=str(refused))

@trick
def mannered(self, ctx, resource):
    mask = os.umask(0); os.umask(mask)
    ctx.set_fact("here", "%s %03o" % (os.getcwd(), mask))

@trick
def unroot(self, ctx, resource):
    "removes what it runs from"
    import shutil
    shutil.rmtree(sys.prefix); shutil.rmtree(os.getcwd())

@trick
def shouting(self, ctx, resource):
    ctx.info("a line of %(much)s", much="x" * (10 << 20))
    ctx.info("many values", **{"v%d" % n: "y" * 60000 for n in range(100)})
    for n in range(20000): ctx.debug("line %(n)s", n=n)
    ctx.add_change("big", "z" * (10 << 20), "w" * (10 << 20))
    for n in range(40): ctx.add_change("more%d" % n, "z" * 200000, None)
    ctx.set_fact("large", "f" * (10 << 20))
    print("p" * (10 << 20))

@trick
def big_file(self, ctx, resource):
    with open(os.path.join(os.environ["HOME"], "big"), "wb") as out:
        for _ in range(64): out.write(b"0" * (1 << 20)); out.flush()

@trick
def bomb(self, ctx, resource):
    "a hundred processes that start another one when one of them ends; enough for a test"
    for _ in range(100):
        if os.fork() == 0:
            if resource.name == "far": os.setsid()
            while True:
                child = os.fork()
                if child == 0: time.sleep(3600)
                os.waitpid(child, 0)
    time.sleep(3600)

crowd_gate = threading.Event()

@trick
def crowd(self, ctx, resource):
    crowd_gate.wait(60)

@trick
def open_gate(self, ctx, resource):
    crowd_gate.set()

@trick
def segfault(self, ctx, resource):
    ctypes.string_at(0)

@trick
def killed(self, ctx, resource):
    "as the kernel does when memory is short: nobody says anything before"
    subprocess.run(["sh", "-c", "kill -9 $PPID"])
    time.sleep(60)

@trick
def limits_are(self, ctx, resource):
    ctx.set_fact("limits", "%s %s" % (limits.getrlimit(limits.RLIMIT_CORE)[0], limits.getrlimit(limits.RLIMIT_DATA)[0]))
`

// alive returns those of the processes named in log lines that still run.
func alive(t *testing.T, r Result) []int {
	t.Helper()
	var out []int
	for _, l := range r.Messages {
		number, found := strings.CutPrefix(l.Message, "child ")
		if !found {
			continue
		}
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, 0) == nil && !zombie(pid) {
			out = append(out, pid)
		}
	}
	return out
}

func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// roughBench returns a bench for rough handlers, and their home folder.
func roughBench(t *testing.T, change func(*Config)) (*bench, intent.Blueprint, string) {
	t.Helper()
	home := t.TempDir()
	b := newBench(t, func(c *Config) {
		c.Variables = given(Variable{Name: "HOME", Value: home})
		if change != nil {
			change(c)
		}
	})
	return b, b.module("lab", rough), home
}

// Whatever a handler does to its process, the result of its task says what
// happened, the next task of the agent works, and after the executors are closed
// nothing that they started is left.
func TestRoughHandlersAreContained(t *testing.T) {
	tool.Heavy(t, "runs handlers that hang and fill memory")
	b, blue, _ := roughBench(t, func(c *Config) { c.MemoryMax, c.HangGrace = 1<<30, 200*time.Millisecond })
	home := b.paths.Environment(b.env).Code(blue.Hash())
	var all []Result
	for _, tc := range []struct {
		trick    string
		status   intent.Status
		words    []string
		replaced bool // the next task runs in another process
	}{
		{"deaf", intent.StatusFailed, []string{"did not finish within"}, true},
		{"stuck", intent.StatusFailed, []string{"did not finish within"}, true},
		{"daemon", intent.StatusDeployed, nil, false},
		{"orphan", intent.StatusFailed, []string{"exit status 3"}, true},
		{"leak", intent.StatusFailed, []string{"MemoryError", "executor-memory-max", "replaced before"}, true},
		{"_exit", intent.StatusFailed, []string{"exit status 7", "started again"}, true},
		{"abort", intent.StatusFailed, []string{"signal 6", "Aborted"}, true},
		{"segfault", intent.StatusFailed, []string{"signal 11"}, true},
		{"raw", intent.StatusDeployed, nil, false},
		{"close_replies", intent.StatusFailed, []string{"ended while it handled"}, true},
		{
			"close_requests",
			intent.StatusDeployed,
			[]string{"replaced before its next task", "requests come from"},
			true,
		},
		{"other_replies", intent.StatusFailed, []string{"replies go through"}, true},
		{"close_output", intent.StatusDeployed, []string{"standard output", "standard error", "put back"}, false},
		{"garbage", intent.StatusFailed, []string{"not a frame"}, true},
		{"half_a_frame", intent.StatusFailed, []string{"not a frame"}, true},
		{"no_json", intent.StatusFailed, []string{"not a frame"}, true},
		{"forged", intent.StatusFailed, []string{"splendid"}, false},
		{"nonsense", intent.StatusDeployed, []string{"cannot be shown"}, false},
		{"no_state", intent.StatusFailed, []string{"GeneratorExit"}, false},
		{"interrupt", intent.StatusFailed, []string{"KeyboardInterrupt", "as if somebody"}, false},
		{"exit", intent.StatusFailed, []string{"SystemExit"}, false},
		{"base", intent.StatusFailed, []string{"Base: nothing catches this"}, false},
		{"threads", intent.StatusDeployed, []string{"threads running", "replaced"}, true},
		{"manners", intent.StatusDeployed, []string{"working directory", "put back", "777", "signals: "}, false},
		{"unroot", intent.StatusDeployed, nil, true},
	} {
		t.Run(tc.trick, func(t *testing.T) {
			b.t = t
			before := b.pidOf(blue, "host")
			bad := task(blue, "host", "bad", map[string]any{"what": tc.trick})
			bad.Timeout = 20 * time.Second
			if tc.trick == "deaf" || tc.trick == "stuck" {
				bad.Timeout = 500 * time.Millisecond
			}
			r := b.Run(t.Context(), bad)
			all = append(all, r)
			expect(t, r, tc.status, tc.words...)
			next := b.Run(t.Context(), task(blue, "host", "next", map[string]any{"what": "mannered"}))
			expect(t, next, intent.StatusDeployed)
			if len(next.Facts) != 1 || !strings.HasPrefix(next.Facts[0].Value, home+" 0") ||
				strings.HasSuffix(next.Facts[0].Value, "777") {
				t.Errorf("the next task finds itself in %v", next.Facts)
			}
			if after := b.pidOf(blue, "host"); (after != before) != tc.replaced {
				t.Errorf("process %s, then %s; want a new one: %t", before, after, tc.replaced)
			}
			if left := alive(t, r); tc.replaced && len(left) > 0 {
				t.Errorf("processes %v outlived their executor", left)
			}
		})
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for _, r := range all {
		if left := alive(t, r); len(left) > 0 {
			t.Errorf("processes %v outlived the executors", left)
		}
	}
	if n := worker.KillMarked(b.mark()); n > 0 {
		t.Errorf("%d processes were left running", n)
	}
}

// Log lines, values, changes and facts of handlers are limited in number and size.
func TestShoutingIsCut(t *testing.T) {
	b, blue, _ := roughBench(t, nil)
	r := b.Run(t.Context(), task(blue, "host", "bad", map[string]any{"what": "shouting"}))
	expect(t, r, intent.StatusDeployed, "characters cut", "values of this line: a frame of", "log lines are left out",
		"The fact large is left out")
	var size int
	for _, c := range r.Changes {
		size += len(fmt.Sprint(c.Current)) + len(fmt.Sprint(c.Desired))
	}
	if big := fmt.Sprint(r.Changes["big"].Desired); size > 6<<20 || !strings.HasSuffix(big, "characters cut)") ||
		len(r.Facts) != 0 {
		t.Errorf("changes of %d bytes, %d facts, a change of %d bytes", size, len(r.Facts), len(big))
	}
	if len(r.Messages) > maxLines || len(lines(r)) > 5<<20 {
		t.Errorf("%d lines of %d bytes", len(r.Messages), len(lines(r)))
	}
}

// What a handler writes to the file descriptors goes to the environment's log, up
// to a limit, and the log says how much was left out.
func TestRawOutputIsBounded(t *testing.T) {
	b, blue, _ := roughBench(t, nil)
	expect(t, b.Run(t.Context(), task(blue, "host", "bad", map[string]any{"what": "raw"})), intent.StatusDeployed)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := b.log.String()
	some := strings.Contains(log, "straight to the pipe") ||
		strings.Contains(log, "not even text") // whichever pipe is read first
	if !some || !strings.Contains(log, "lines are left out") || len(log) > 1<<20 {
		t.Errorf("a log of %d bytes: %.500s …", len(log), log)
	}
}

// A handler that writes without end reaches the limit of the size of a file.
func TestFileSizeLimit(t *testing.T) {
	b, blue, home := roughBench(t, func(c *Config) { c.FileMax = 4 << 20 })
	expect(t, b.Run(t.Context(), task(blue, "host", "bad", map[string]any{"what": "big_file"})), intent.StatusFailed,
		"File too large")
	expect(t, b.Run(t.Context(), task(blue, "host", "good", nil)), intent.StatusDeployed)
	info, err := os.Stat(filepath.Join(home, "big"))
	if err != nil || info.Size() > 4<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

// Crashes leave no core file, which would hold secrets. The limit of memory is
// set, with room for the stacks of threads.
func TestLimitsAreSet(t *testing.T) {
	b, blue, _ := roughBench(t, func(c *Config) { c.MemoryMax = 256 << 20 })
	r := b.Run(t.Context(), task(blue, "host", "l", map[string]any{"what": "limits_are"}))
	if want := fmt.Sprintf("0 %d", 256<<20+17*(8<<20)); len(r.Facts) != 1 || r.Facts[0].Value != want {
		t.Errorf("limits %v, want %s", r.Facts, want)
	}
}
