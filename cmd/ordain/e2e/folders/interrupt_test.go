package folders

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/testing/tool"
)

// While a handler hangs, a second run in the same folder is refused, and none of the processes of the first listens on
// the network. Then it is interrupted. It ends with everything that it started, and what had been deployed is on
// record: the next run does the rest.
func TestInterruptedRunGoesOn(t *testing.T) {
	tool.Heavy(t, "starts the program many times")
	t.Parallel()
	f := notes(t, [3]string{"good", "a", "calm"}, [3]string{"stuck", "b", "hang"})
	main := filepath.Join(f.dir, "main.cf")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	// The one that hangs is of another agent, so that it delays nobody.
	stuck := strings.Replace(string(text), `mood="hang"`, `mood="hang", agent="other"`, 1)
	f.write(map[string]string{"main.cf": stuck})
	r := f.start()
	r.says("created   lab::Note[desk,path=" + f.site + "/good]")
	r.says("now lab::Note[other,path=" + f.site + "/stuck]")

	f.deploy(4).contains("another `ordain deploy` is running in this folder")
	family := descendants(t, r.cmd.Process.Pid)
	names := strings.Join(slices.Collect(maps.Values(family)), " ")
	if !strings.Contains(names, "postgres") || !strings.Contains(names, "python") {
		t.Errorf("the processes of the run are %s", names)
	}
	for _, pid := range slices.Sorted(maps.Keys(family)) {
		if open := listening(t, pid); len(open) > 0 {
			t.Errorf("process %d (%s) listens on the network: %v", pid, family[pid], open)
		}
	}

	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.wait(130).contains("interrupted", "1 of 2 resources as intended")
	late := time.Now().Add(lab.Patience)
	for pid, name := range family {
		for alive(pid, name) {
			if time.Now().After(late) {
				t.Fatalf("process %d (%s) outlives the run", pid, name)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	f.write(map[string]string{"main.cf": strings.Replace(stuck, `mood="hang"`, `mood="calm"`, 1)})
	f.deploy(0).contains("1 deployed now, 1 of them changed", "2 of 2 resources as intended")
	f.has("stuck", "b")
}

// A handler that hangs is given up after its time, and named; the rest is deployed.
func TestHandlerThatHangs(t *testing.T) {
	t.Parallel()
	tool.Long(t, "waits for a handler that hangs")
	f := notes(t, [3]string{"stuck", "b", "hang"}, [3]string{"good", "a", "calm"})
	f.deploy(1, "--handler-timeout", "3s").contains("/stuck]: failed", "1 of 2 resources as intended")
	f.has("good", "a")
}

// A run that is killed leaves no process behind, and the next one goes on.
func TestKilledRun(t *testing.T) {
	tool.Heavy(t, "starts the program many times")
	t.Parallel()
	f := notes(t, [3]string{"stuck", "b", "hang"})
	r := f.start()
	r.says("now lab::Note[desk,path=" + f.site + "/stuck]")
	family := descendants(t, r.cmd.Process.Pid)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait(-1)
	late := time.Now().Add(lab.Patience)
	for pid, name := range family {
		for alive(pid, name) {
			if time.Now().After(late) {
				t.Fatalf("process %d (%s) outlives the run", pid, name)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	f.notes([3]string{"stuck", "b", "calm"})
	f.deploy(0)
	f.has("stuck", "b")
}

// descendants returns the names of the processes that a process has started, and of their descendants, by id.
func descendants(t *testing.T, root int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		tool.Missing(t, "this needs /proc: %v", err)
	}
	parents, names := map[int]int{}, map[int]string{}
	for _, path := range stats {
		pid, parent, name, ok := stat(path)
		if ok {
			parents[pid], names[pid] = parent, name
		}
	}
	family := map[int]string{}
	for pid := range parents {
		for up := pid; up > 1; up = parents[up] {
			if up == root {
				family[pid] = names[pid]
				break
			}
		}
	}
	return family
}

// stat reads the id, the parent and the name of a process; ok is false for one that has ended.
func stat(path string) (pid, parent int, name string, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, "", false
	}
	head, tail, _ := strings.Cut(string(text), " (")
	end := strings.LastIndex(tail, ") ")
	fields := strings.Fields(tail[end+2:])
	pid, _ = strconv.Atoi(head)
	parent, _ = strconv.Atoi(fields[1])
	return pid, parent, tail[:end], fields[0] != "Z"
}

func alive(pid int, name string) bool {
	_, _, now, ok := stat("/proc/" + strconv.Itoa(pid) + "/stat")
	return ok && now == name
}

// listening returns the network sockets of a process that accept connections or datagrams.
func listening(t *testing.T, pid int) (open []string) {
	t.Helper()
	base := "/proc/" + strconv.Itoa(pid)
	owned := map[string]bool{}
	links, err := filepath.Glob(base + "/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:[") {
			owned[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for table, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
		text, err := os.ReadFile(base + "/net/" + table)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n")[1:] {
			if fields := strings.Fields(line); len(fields) > 9 && fields[3] == state && owned[fields[9]] {
				open = append(open, table+" "+fields[1])
			}
		}
	}
	return open
}

// The disk that holds the state is full, in the first run or in a later one: the run says so, with what to do, and
// ends. With room again, the next run goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	tool.Long(t, "fills a disk")
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	f := notes(t, [3]string{"good", "a", "calm"})
	tiny, small := smallDisk(t, "8m"), smallDisk(t, "400m")
	f.deploy(4, "--state-dir", filepath.Join(tiny, "state")).contains("is full", "free some space", "--state-dir")
	state := []string{"--state-dir", filepath.Join(small, "state")}
	f.deploy(0, state...)
	ballast, err := os.Create(filepath.Join(small, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = ballast.Write(make([]byte, 4096))
	}
	_ = ballast.Close()
	f.notes([3]string{"good", "b", "calm"})
	f.deploy(4, state...).contains("free some space")
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	f.deploy(0, state...)
	f.has("good", "b")
}

// smallDisk is a folder on a file system of its own.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "mode=755,size="+size); err != nil {
		tool.Missing(t, "a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// An ordinary user deploys: PostgreSQL and handlers run as that user.
func TestOrdinaryUser(t *testing.T) {
	tool.Heavy(t, "builds folders for another user")
	t.Parallel()
	f := notes(t, [3]string{"good", "a", "calm"})
	if os.Geteuid() != 0 {
		f.deploy(0)
		return
	}
	const nobody = 65534
	python := "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import venv, ensurepip").Run(); err != nil {
		tool.Missing(t, "the interpreters of this machine belong to root: %v", err)
	}
	home := t.TempDir()
	f.user = &syscall.Credential{Uid: nobody, Gid: nobody}
	f.env = []string{"HOME=" + home, "USER=nobody", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp"}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_CONFIG_FILE",
		"UV_INDEX_URL", "UV_DEFAULT_INDEX", "SSL_CERT_FILE", "PIP_CERT"} {
		if value, ok := os.LookupEnv(name); ok {
			f.env = append(f.env, name+"="+value)
		}
	}
	for _, dir := range []string{f.dir, f.site, home} {
		if err := exec.Command("chown", "-R", "65534:65534", dir).Run(); err != nil {
			t.Fatal(err)
		}
	}
	// The program itself has to be where that user can run it.
	program := filepath.Join(filepath.Dir(f.dir), "program")
	if err := exec.Command("cp", os.Args[0], program).Run(); err != nil {
		t.Fatal(err)
	}
	f.program = program
	f.deploy(0)
	f.has("good", "a")
	info, err := os.Stat(filepath.Join(f.site, "good"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("the file does not belong to the user: %v %v", info, err)
	}
}
