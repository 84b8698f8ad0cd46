package clustertest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// below returns the processes that descend from a process.
func below(root int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PARENT …; the name may have anything in it
		end := strings.LastIndexByte(string(text), ')')
		fields := strings.Fields(string(text)[end+1:])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	var out []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		out = append(out, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return out
}

// killBelow ends the processes that descend from a process that this test has started. Those that have left it, as
// daemons do, are not found: only machines with processes of their own end whole.
func killBelow(root int) {
	for _, pid := range below(root) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
