package build_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/build"
)

const diary = `
-- project.yml --
name: test
modulepath: libs
downloadpath: libs
-- libs/std/module.yml --
name: std
version: 1.0.0
license: none
-- libs/std/model/_init.cf --
-- libs/diary/module.yml --
name: diary
version: 1.0.0
license: none
-- libs/diary/model/_init.cf --
-- libs/diary/plugins/__init__.py --
import os
import sys

from inmanta.plugins import plugin

pages = []

@plugin
def write(text: "string") -> "string":
    pages.append(text)
    how = "warm" if "ordain_worker.template_role" in sys.modules else "cold"
    where = os.getcwd() == sys.path and 0 or os.path.basename(os.getcwd())
    return f"{how} {'+'.join(pages)} {os.environ.get('COLOUR', '-')} {where}"

@plugin
def process() -> "string":
    return f"{os.getpid()} {os.getpgrp()} {os.getppid()}"

@plugin
def wait() -> None:
    import time
    print("waiting", os.getpid(), file=sys.stderr, flush=True)
    time.sleep(300)
-- main.cf --
import diary
std::print(diary::write("one"))
`

var printing = strings.Replace(diary, "-- libs/std/model/_init.cf --\n", `-- libs/std/model/_init.cf --
-- libs/std/plugins/__init__.py --
from inmanta.plugins import plugin

@plugin("print")
def printf(message: "any") -> None:
    print(message)
`, 1)

// The second compile of an environment begins with a copy of a worker that has
// imported everything, and knows nothing of what the first one did: neither do
// two that follow each other from the same template. Variables, folder and
// model are those of each compile.
func TestCompilesBeginWarmAndShareNothing(t *testing.T) {
	s := openShop(t, printing)
	if got, want := s.compile(), "cold one - compiler"; got != want {
		t.Fatalf("the first compile: %q, want %q", got, want)
	}
	s.ready()
	if got, want := s.compile(), "warm one - compiler"; got != want {
		t.Errorf("the second compile: %q, want %q", got, want)
	}
	s.job.Compile.Variables = map[string]string{"COLOUR": "blue"}
	s.write("-- main.cf --\nimport diary\nstd::print(diary::write(\"two\"))\n")
	if got, want := s.compile(), "warm two blue compiler"; got != want {
		t.Errorf("the third compile: %q, want %q", got, want)
	}
}

// A plug-in that was edited is what runs: the worker of the old one is of no use.
func TestAChangedPluginBeginsCold(t *testing.T) {
	s := openShop(t, printing)
	s.compile()
	s.ready()
	s.write(strings.ReplaceAll(printing, "{how}", "edited {how}"))
	if got, want := s.compile(), "edited cold one - compiler"; got != want {
		t.Fatalf("the compile after the edit: %q, want %q", got, want)
	}
	if c := s.next(); c.ready {
		t.Error("the old worker was said to be ready again")
	}
	s.ready()
	if got, want := s.compile(), "edited warm one - compiler"; got != want {
		t.Errorf("the next one: %q, want %q", got, want)
	}
}

// Without its template a compile merely takes longer, also when the template
// was killed or hangs.
func TestALostTemplateIsNoTrouble(t *testing.T) {
	tool.Heavy(t, "compiles many times")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(signal.String(), func(t *testing.T) {
			s := openShop(t, printing)
			s.compile()
			s.ready()
			template := only(t, childrenOf(os.Getpid(), "template"))
			if err := syscall.Kill(template, signal); err != nil {
				t.Fatal(err)
			}
			if got, want := s.compile(), "cold one - compiler"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
			for c := s.next(); !c.ready; c = s.next() {
			}
			gone(t, template)
			if got, want := s.compile(), "warm one - compiler"; got != want {
				t.Errorf("with a new template: %q, want %q", got, want)
			}
		})
	}
}

// What cannot be copied is not: the reason is told, and every compile begins cold.
func TestWhatIsNeverWarm(t *testing.T) {
	tool.Heavy(t, "compiles many times")
	for name, code := range map[string]string{
		"a thread runs": "import threading\nthreading.Thread(target=threading.Event().wait, " +
			"daemon=True).start()\n",
		"files or connections are open":  "ends = os.pipe()\n",
		"calls time when it is imported": "import time\nbegan = time.time()\n",
		"calls urandom when it":          "import uuid\nsession = str(uuid.uuid4())\n",
		"calls now when it":              "import datetime\ntoday = datetime.datetime.now()\n",
		"calls stat when it":             "extra = os.path.exists('/etc/ordain-extra')\n",
		"too much memory": "ballast = bytearray(600 << 20)\nballast[::4096] = b'x' * " +
			"len(ballast[::4096])\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, strings.Replace(printing, "pages = []\n", "pages = []\n"+code, 1))
			s.compile()
			if c := s.next(); c.ready || !strings.Contains(c.why, name) {
				t.Errorf("told %+v", c)
			}
			if got, want := s.compile(), "cold one - compiler"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// A template that nobody uses ends, and so do those of a builder that is
// closed and of an environment that is deleted.
func TestTemplatesEnd(t *testing.T) {
	s := openShop(t, printing)
	s.compile()
	s.ready()
	template := only(t, childrenOf(os.Getpid(), "template"))
	s.builder.Forget(s.job.Environment.ID)
	if c := s.next(); c.ready {
		t.Error("still ready")
	}
	gone(t, template)

	s.compile()
	s.ready()
	template = only(t, childrenOf(os.Getpid(), "template"))
	s.builder.Close()
	gone(t, template)

	idle := openShop(t, printing, func(c *build.Config) { c.Warm.Idle = time.Millisecond })
	idle.compile()
	for c := idle.next(); c.why != "it was idle for too long"; c = idle.next() {
	}
}

// There are no more templates than allowed: the one that was used longest ago
// makes room.
func TestTemplatesAreBounded(t *testing.T) {
	s := openShop(t, printing, func(c *build.Config) { c.Warm.Max = 1 })
	s.compile()
	s.ready()
	first := only(t, childrenOf(os.Getpid(), "template"))
	if err := s.move("9b7b1d8c-0000-4000-8000-000000000002"); err != nil {
		t.Fatal(err)
	}
	s.furnish(printing)
	s.compile()
	if c := s.next(); c.why != "another environment needs its room" {
		t.Errorf("told %+v", c)
	}
	s.ready()
	gone(t, first)
}

// A worker that is copied ends with its compile, even in the midst of a
// plug-in, and everything ends with a server that is killed.
func TestNothingIsLeftOfAKilledServer(t *testing.T) {
	s := openShop(t, printing)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server := exec.CommandContext(ctx, os.Args[0])
	server.Env = append(os.Environ(), "ORDAIN_TEST_BUILDER_DIR="+filepath.Dir(s.layout.StateDir()))
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	told := func(word string) int {
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), word+" "); ok {
				pid, err := strconv.Atoi(rest)
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
		t.Fatalf("the server never said %q", word)
		return 0
	}
	template, worker := told("template"), told("waiting")
	if parent(worker) != template {
		t.Errorf("worker %d is not a copy of template %d", worker, template)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	gone(t, template)
	gone(t, worker)
}

// waitToBeKilled is the server of that story.
func waitToBeKilled() {
	s, err := newShop(os.Getenv("ORDAIN_TEST_BUILDER_DIR"))
	if err != nil {
		panic(err)
	}
	say := func(stdout, stderr string) { fmt.Print(stdout + stderr) }
	if _, _, err := s.builder.Compile(context.Background(), s.job, say); err != nil {
		panic(err)
	}
	<-s.changes
	fmt.Println("template", childrenOf(os.Getpid(), "template")[0])
	main := filepath.Join(s.job.ProjectDir, "main.cf")
	if err := os.WriteFile(main, []byte("import diary\ndiary::wait()\ndiary::write(\"x\")\n"), 0o644); err != nil {
		panic(err)
	}
	_, _, err = s.builder.Compile(context.Background(), s.job, say)
	panic(err)
}

// childrenOf lists children whose command line has a word.
func childrenOf(pid int, word string) []int {
	var found []int
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		text, err := os.ReadFile(dir + "/cmdline")
		child, numErr := strconv.Atoi(filepath.Base(dir))
		if err == nil && numErr == nil && parent(child) == pid &&
			strings.Contains("\x00"+string(text)+"\x00", "\x00"+word+"\x00") {
			found = append(found, child)
		}
	}
	return found
}

func parent(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	number, _ := strconv.Atoi(fields[1])
	return number
}

func only(t *testing.T, all []int) int {
	t.Helper()
	if len(all) != 1 {
		t.Fatalf("processes %v, want one", all)
	}
	return all[0]
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	const pidfdOpen = 434 // on every architecture
	fd, _, errno := syscall.Syscall(pidfdOpen, uintptr(pid), 0, 0)
	if errno == syscall.ESRCH {
		return
	}
	if errno != 0 {
		t.Fatal(errno)
	}
	defer syscall.Close(int(fd))
	limit := syscall.NsecToTimespec(int64(patience))
	ended := struct { // struct pollfd
		fd              int32
		events, revents int16
	}{fd: int32(fd), events: 1}
	n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&ended)), 1,
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if n != 1 {
		t.Errorf("process %d is still there: %v", pid, errno)
	}
}
