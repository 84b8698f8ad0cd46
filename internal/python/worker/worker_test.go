package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/internal/python/runtime"
	"ordain.dev/ordain/internal/testing/tool"
)

// python returns the path of an interpreter rather than a wrapper script, so that
// the process that we start is the interpreter itself.
func python(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(tool.Need(t, "python3"), "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		tool.Missing(t, "python3 does not run on this machine: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// worker unpacks the runtime and adds a role for the test.
func worker(t *testing.T, role, source string) Config {
	t.Helper()
	unpacked, err := runtime.Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(unpacked, "ordain_worker", role+"_role.py")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return Config{Python: python(t), Role: role, RuntimeDir: unpacked, Dir: t.TempDir()}
}

const counting = `
import sys, os, time
from ordain_worker.frames import Dialogue, Failure

def main(channel):
    def answer(op, args):
        if op == "factorial":
            return 1 if args == 0 else args * talk.ask("factorial", args - 1)
        if op == "raise":
            raise ValueError("no such luck")
        if op == "relay":
            return talk.ask("refuse", None)
        if op == "path":
            return sys.path[:2]
        if op == "env":
            return dict(os.environ)
        if op == "print":
            for i in range(args):
                print("line", i)
            sys.stderr.write("x" * 1_000_000 + "\n")
            return None
        if op == "die":
            print("goodbye, cruel world")
            os._exit(3)
        if op == "exit":
            sys.exit("a plug-in called exit")
        if op == "sleep":
            time.sleep(600)
        if op == "grow":
            return len(bytearray(args))
        if op == "surrogate":
            return "\ud800"
        if op == "unjson":
            return object()
        raise Failure("unknown " + op, kind="protocol")
    talk = Dialogue(channel, answer)
    talk.serve()
`

func dial(t *testing.T, c Config) Dialogue {
	t.Helper()
	d, err := StartDialogue(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close(time.Second) })
	return d
}

// Go asks Python, which asks Go, which asks Python, and so on. Each question is
// answered while the one above it waits.
func TestDialogueNests(t *testing.T) {
	d := dial(t, worker(t, "compile", counting))
	var answer Handler
	answer = func(op string, args json.RawMessage) (any, error) {
		var n int
		if err := json.Unmarshal(args, &n); err != nil {
			return nil, err
		}
		var below int
		if n == 0 {
			return 1, nil
		}
		if err := d.Ask(t.Context(), op, n-1, &below, answer); err != nil {
			return nil, err
		}
		return n * below, nil
	}
	var got int
	if err := d.Ask(t.Context(), "factorial", 10, &got, answer); err != nil {
		t.Fatal(err)
	}
	if got != 3628800 {
		t.Errorf("10! = %d", got)
	}
}

// An exception of Python arrives with class, message, place and trace, and the
// conversation goes on. An error of Go passes through Python and back.
func TestFailuresTravel(t *testing.T) {
	d := dial(t, worker(t, "compile", counting))
	var f *Failure
	if err := d.Ask(t.Context(), "raise", nil, nil, nil); !errors.As(err, &f) {
		t.Fatalf("got %v, want a *Failure", err)
	}
	if f.Class != "ValueError" || f.Message != "no such luck" || f.Line == 0 ||
		!strings.HasSuffix(f.File, "compile_role.py") ||
		!strings.Contains(f.Trace, "Traceback") {
		t.Errorf("failure %+v", f)
	}
	refuse := func(op string, _ json.RawMessage) (any, error) {
		return nil, &Failure{Kind: "unset", Message: "not yet", Class: "mod.Unset"}
	}
	if err := d.Ask(t.Context(), "relay", nil, nil, refuse); !errors.As(err, &f) || f.Kind != "unset" ||
		f.Class != "mod.Unset" {
		t.Errorf("relayed %v", err)
	}
	for _, op := range []string{"exit", "unjson", "nonsense"} {
		if err := d.Ask(t.Context(), op, nil, nil, nil); !errors.As(err, &f) {
			t.Errorf("%s: got %v, want a *Failure", op, err)
		}
	}
	var text string
	if err := d.Ask(t.Context(), "surrogate", nil, &text, nil); err != nil {
		t.Errorf("a lone surrogate broke the conversation: %v", err)
	}
}

// Python finds the runtime first and then the folders of the configuration. The
// worker sees nothing of the server's environment.
func TestWorkerIsIsolated(t *testing.T) {
	t.Setenv("ORDAIN_DATABASE_PASSWORD", "hunter2")
	t.Setenv("PYTHONPATH", "/nowhere")
	c := worker(t, "compile", counting)
	extra := t.TempDir()
	c.Path = []string{extra}
	d := dial(t, c)
	var path []string
	if err := d.Ask(t.Context(), "path", nil, &path, nil); err != nil {
		t.Fatal(err)
	}
	if path[0] != c.RuntimeDir || path[1] != extra {
		t.Errorf("sys.path begins with %v", path)
	}
	var env map[string]string
	if err := d.Ask(t.Context(), "env", nil, &env, nil); err != nil {
		t.Fatal(err)
	}
	for name := range env {
		if strings.HasPrefix(name, "ORDAIN") {
			t.Errorf("the worker sees %s", name)
		}
	}
	if env["PYTHONPATH"] != extra { // for the programs that modules start
		t.Errorf("PYTHONPATH is %q, want the folder of packages, %s", env["PYTHONPATH"], extra)
	}
}

// A flood of output neither blocks the worker nor takes memory, and a line without
// an end is cut.
func TestOutputIsCapturedAndCapped(t *testing.T) {
	c := worker(t, "compile", counting)
	var mu sync.Mutex
	lines, longest := 0, 0
	last := make(chan struct{})
	c.OnOutput = func(stream, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines++
		longest = max(longest, len(line))
		if stream == "stderr" {
			close(last)
		}
	}
	d := dial(t, c)
	if err := d.Ask(t.Context(), "print", 100_000, nil, nil); err != nil {
		t.Fatal(err)
	}
	<-last
	d.Close(time.Second)
	mu.Lock()
	defer mu.Unlock()
	if lines != 100_001 || longest > maxLine+len(cut) {
		t.Errorf("%d lines, the longest of %d bytes", lines, longest)
	}
	if n := len(d.LastWords()); n > maxWords {
		t.Errorf("last words of %d bytes", n)
	}
}

// The error has the last words of a worker that died. Later requests get the same
// error at once.
func TestDialogueDies(t *testing.T) {
	d := dial(t, worker(t, "compile", counting))
	err := d.Ask(t.Context(), "die", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") ||
		!strings.Contains(err.Error(), "goodbye, cruel world") {
		t.Fatalf("got %v", err)
	}
	if again := d.Ask(t.Context(), "path", nil, nil, nil); again != err {
		t.Errorf("afterwards: %v", again)
	}
}

func TestDialogueDeadlineKills(t *testing.T) {
	d := dial(t, worker(t, "compile", counting))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.Ask(ctx, "sleep", nil, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestMemoryLimit(t *testing.T) {
	c := worker(t, "compile", counting)
	c.MemoryMax = 512 << 20
	d := dial(t, c)
	var f *Failure
	if err := d.Ask(t.Context(), "grow", 1<<30, nil, nil); !errors.As(err, &f) || f.Class != "MemoryError" {
		t.Errorf("got %v, want MemoryError", err)
	}
}

// Whenever a worker fails to start, the error names the reason.
func TestStartFails(t *testing.T) {
	for _, tc := range []struct{ name, source, want string }{
		{"import error", "import no_such_module", "no_such_module"},
		{"other first frame", "def main(channel): pass", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := worker(t, "handler", tc.source)
			s, err := StartSession(t.Context(), c)
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want something with %q", err, tc.want)
			}
			if err == nil {
				<-s.Done()
				if s.Err() == nil {
					t.Error("the worker ended without an error")
				}
			}
		})
	}
	c := worker(t, "handler", "")
	c.Python = filepath.Join(t.TempDir(), "python3")
	if _, err := StartSession(t.Context(), c); err == nil {
		t.Error("an interpreter started that does not exist")
	}
	c.Role = "cook"
	if _, err := StartSession(t.Context(), c); err == nil || !strings.Contains(err.Error(), "cook") {
		t.Errorf("a wrong role: %v", err)
	}
}

const threads = `
import os, threading, time, subprocess
from ordain_worker.switchboard import Switchboard

gate = threading.Barrier(3)
told, said, over = threading.Event(), threading.Event(), threading.Event()

def main(channel):
    def answer(talk, op, args):
        if op == "meet":
            gate.wait(20)
            for i in range(args):
                talk.notify("step", i)
            return talk.ask("who", None)
        if op == "tell":
            for i in range(args):
                talk.notify("step", i)
            told.wait(20)
            talk.notify("step", "one more")
            said.set()
            over.wait(20)
            who = talk.ask("who", None)
            talk.notify("step", who)
            return who
        if op == "more":
            told.set()
            said.wait(20)
        if op == "over":
            over.set()
        if op == "echo":
            return args
        if op == "sleep":
            time.sleep(600)
        if op == "segfault":
            import ctypes
            print("about to read address 0")
            ctypes.string_at(0)
        if op == "child":
            return subprocess.Popen(["sleep", "600"]).pid
        if op == "fork":
            pid = os.fork()
            if pid == 0:
                time.sleep(600)
            return pid
    Switchboard(channel, answer).serve(beat=0.05)
`

func open(t *testing.T, source string) Session {
	t.Helper()
	s, err := StartSession(t.Context(), worker(t, "handler", source))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(time.Second) })
	return s
}

// While three calls run in the worker at the same time, requests back and notices
// reach their own call, in order.
func TestSessionIsConcurrent(t *testing.T) {
	s := open(t, threads)
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			name := fmt.Sprint("caller ", n)
			var steps []string
			var got string
			err := s.Call(t.Context(), "meet", 50, &got,
				func(op string, _ json.RawMessage) (any, error) { return name, nil },
				func(op string, args json.RawMessage) { steps = append(steps, string(args)) })
			if err != nil || got != name || len(steps) != 50 || steps[49] != "49" {
				t.Errorf("%s: got %q, %d steps, %v", name, got, len(steps), err)
			}
		})
	}
	all.Wait()
	if s.RSS() < 1<<20 {
		t.Errorf("resident memory is %d", s.RSS())
	}
}

// A call that was given up does not disturb the others.
func TestCallGivesUp(t *testing.T) {
	s := open(t, threads)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Call(ctx, "sleep", nil, nil, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := s.Call(t.Context(), "other", nil, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// The notices of a posted request come before its reply, which comes once. Nothing
// comes for a request that was forgotten, and none waits for another one's reply.
func TestPosted(t *testing.T) {
	s := open(t, threads)
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil { // it answers nothing before all are posted
		t.Fatal(err)
	}
	var steps []string
	replies := make(chan string, 3)
	reply := func(name string) func(json.RawMessage, error) {
		return func(raw json.RawMessage, err error) { replies <- fmt.Sprint(name, " ", string(raw), " ", err) }
	}
	post := func(e Errand) int64 {
		t.Helper()
		id, err := s.Post(e)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	asked, answered := make(chan struct{}), make(chan struct{})
	post(Errand{Op: "tell", Args: 5000, Answer: func(string, json.RawMessage) (any, error) {
		close(asked)
		<-answered
		return "me", nil
	}, Notice: func(_ string, args json.RawMessage) { steps = append(steps, string(args)) }, Done: reply("first")})
	post(Errand{Op: "more", Done: reply("more")})
	forgotten := post(Errand{Op: "other", Done: reply("forgotten")})
	post(Errand{Op: "over", Done: reply("over")})
	s.Forget(forgotten)
	if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-asked
	for range 2 {
		if got := <-replies; strings.HasPrefix(got, "f") {
			t.Errorf("it came too early: %s", got)
		}
	}
	close(answered)
	if got := <-replies; got != `first "me" <nil>` || len(steps) != 5002 {
		t.Errorf("%s, %d notices", got, len(steps))
	}
	if _, err := s.Post(Errand{Op: "tell", Args: make(chan int), Done: reply("nonsense")}); err == nil {
		t.Error("a value that has no JSON was posted")
	}
}

// Post does not wait for a worker that does not read. What was posted arrives
// whole and in order when the worker reads again.
func TestPostDoesNotWait(t *testing.T) {
	s := open(t, threads)
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	const many = 300
	replies := make(chan string, many)
	large := strings.Repeat("x", 4<<10) // together more than a pipe takes
	for i := range many {
		text := fmt.Sprint(i, large)
		_, err := s.Post(Errand{Op: "echo", Args: text, Done: func(raw json.RawMessage, err error) {
			if err != nil || string(raw) != `"`+text+`"` {
				t.Errorf("%d: %.20s, %v", i, raw, err)
			}
			replies <- text
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range many {
		<-replies
	}
}

// Every waiting call returns how the worker ended: killed, crashed or closed.
func TestSessionEnds(t *testing.T) {
	t.Run("kill -9", func(t *testing.T) {
		s := open(t, threads)
		go func() { _ = syscall.Kill(s.PID(), syscall.SIGKILL) }()
		err := s.Call(t.Context(), "sleep", nil, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "signal 9") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("segfault", func(t *testing.T) {
		s := open(t, threads)
		err := s.Call(t.Context(), "segfault", nil, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "signal 11") ||
			!strings.Contains(s.LastWords(), "about to read address 0") ||
			!strings.Contains(s.LastWords(), "Segmentation fault") {
			t.Errorf("got %v with last words %q", err, s.LastWords())
		}
	})
	t.Run("close", func(t *testing.T) {
		s := open(t, threads)
		failed := make(chan error)
		go func() { failed <- s.Call(context.Background(), "sleep", nil, nil, nil, nil) }()
		s.Close(5 * time.Second)
		if err := <-failed; err == nil {
			t.Error("a call survived the close")
		}
	})
}

// Children die with the worker, whether it started a program or forked itself, in
// which case they hold its pipes open.
func TestChildrenDieWithTheWorker(t *testing.T) {
	for _, op := range []string{"child", "fork"} {
		t.Run(op, func(t *testing.T) {
			s := open(t, threads)
			var pid int
			if err := s.Call(t.Context(), op, nil, &pid, nil, nil); err != nil {
				t.Fatal(err)
			}
			s.Kill()
			waitGone(t, pid)
		})
	}
}

// waitGone waits until a process that is not our child has ended or is a zombie.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond) // nothing signals the end of a stranger's process
	}
	t.Errorf("process %d still runs", pid)
}

// Packages in a folder that cannot be written, such as another user's, are compiled
// only once, and again when they change.
func TestBytecodeOfAForeignFolder(t *testing.T) {
	c := worker(t, "compile", `
import sys
from ordain_worker.frames import Dialogue

def main(channel):
    def answer(op, args):
        compiled = []
        sys.addaudithook(lambda event, args: event == "compile" and compiled.append(args[1]))
        import foreign
        return [foreign.value, sum(str(each).endswith("foreign.py") for each in compiled)]
    Dialogue(channel, answer).serve()
`)
	dir := t.TempDir()
	c.Path = []string{dir}
	file := filepath.Join(dir, "foreign.py")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	// This keeps root from writing there too.
	if err := os.WriteFile(filepath.Join(dir, "__pycache__"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	imported := func() (got [2]int) {
		t.Helper()
		d := dial(t, c)
		if err := d.Ask(t.Context(), "import", nil, &got, nil); err != nil {
			t.Fatal(err)
		}
		return got
	}
	before := time.Now().Add(-time.Hour)
	write("value = 1\n", before)
	kept := func() string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(filepath.Dir(c.RuntimeDir), "__pycache__", "*-foreign.*.pyc"))
		if err != nil || len(found) != 1 {
			t.Fatalf("kept are %v, %v", found, err)
		}
		return found[0]
	}
	for n, want := range [][2]int{{1, 1}, {1, 0}} {
		if n == 1 { // used long ago, and now
			if err := os.Chtimes(kept(), before, before.Add(-48*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if got := imported(); got != want {
			t.Errorf("import %d: value and compilations %v, want %v", n+1, got, want)
		}
	}
	if info, err := os.Stat(kept()); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("what was used is not marked: %v", err)
	}
	write("value = 2\n", before.Add(time.Minute))
	if got, want := imported(), [2]int{2, 1}; got != want {
		t.Errorf("after a change: %v, want %v", got, want)
	}
}

func FuzzReadFrame(f *testing.F) {
	for _, v := range []any{
		request{ID: 1, Op: "x", Args: 1}, success{Re: 1, OK: "y"}, refusal{Re: 2, Err: &Failure{Message: "z"}},
		map[string]any{"op": "log", "args": map[string]any{"for": 3}, "for": 12}, map[string]any{"re": "7", "ok": 1}, 7,
	} {
		packet, err := packed(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packet)
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, '{'})
	f.Add([]byte{0x03, 0xff, 0xff, 0xff, '{'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			got, err := readFrame(r)
			if err != nil {
				return
			}
			if got.Op == "" && got.Re == 0 {
				t.Error("a frame without an operation was accepted that is no reply")
			}
		}
	})
}
