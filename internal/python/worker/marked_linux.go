package worker

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// markVariable is set for a worker and inherited by all processes that it starts.
const markVariable = "ORDAIN_EXECUTOR"

// KillMarked kills every process whose mark begins with prefix, even if it left the
// process group of its worker, as daemons do. It returns their number. It does not
// find processes that were started with another environment.
func KillMarked(prefix string) int {
	killed := map[int]bool{}
	for range 20 { // the next pass finds processes that were forked meanwhile
		var fresh int
		for _, pid := range killMarkedOnce(prefix) {
			if !killed[pid] {
				fresh++
			}
			killed[pid] = true
		}
		if fresh == 0 {
			break
		}
	}
	return len(killed)
}

// killMarkedOnce kills the processes that have the mark now and returns their ids.
func killMarkedOnce(prefix string) []int {
	wanted := []byte(markVariable + "=" + prefix)
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	var out []int
	for _, path := range found {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, err := os.FindProcess(pid) // a handle, because the id may soon belong to another process
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(path)
		if err == nil && hasVariable(environ, wanted) && p.Signal(syscall.SIGKILL) == nil {
			out = append(out, pid)
		}
		_ = p.Release()
	}
	return out
}

// hasVariable reports whether an environment has a variable with this beginning.
func hasVariable(environ, wanted []byte) bool {
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.HasPrefix(variable, wanted) {
			return true
		}
	}
	return false
}

// tasksOfUser returns the number of processes and threads of this user.
func tasksOfUser() int {
	var n int
	uid := uint32(os.Geteuid())
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		var s syscall.Stat_t
		if syscall.Stat(dir, &s) == nil && s.Uid == uid {
			n += threadsOf(dir)
		}
	}
	return n
}

func threadsOf(dir string) int {
	entries, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return 0
	}
	return len(entries)
}

// Descendants returns the processes that a worker has started, directly or not,
// including those of its process group whose parent has ended.
func Descendants(worker int) []int {
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]int{}
	grouped := map[int]bool{}
	for _, path := range found {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		after := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name before it may contain anything
		if len(after) < 3 {
			continue
		}
		parent, _ := strconv.Atoi(string(after[1]))
		children[parent] = append(children[parent], pid)
		if group, _ := strconv.Atoi(string(after[2])); group == worker {
			grouped[pid] = true
		}
	}
	next := []int{worker}
	for len(next) > 0 {
		at := next[0]
		next = append(next[1:], children[at]...)
		delete(children, at)
		grouped[at] = true
	}
	delete(grouped, worker)
	out := make([]int, 0, len(grouped))
	for pid := range grouped {
		out = append(out, pid)
	}
	return out
}

// SystemTasks returns the number of processes and threads on the machine. That is
// cheap, in contrast to Descendants.
func SystemTasks() int {
	text, err := os.ReadFile("/proc/loadavg") // 0.20 0.18 0.12 1/80 11206
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 4 {
		return 0
	}
	_, total, _ := bytes.Cut(fields[3], []byte("/"))
	n, _ := strconv.Atoi(string(total))
	return n
}
