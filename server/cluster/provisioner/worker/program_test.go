package worker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/racedetector"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/program"
	"ordain.dev/ordain/server/cluster/provisioner/worker"
	"ordain.dev/ordain/server/cluster/task"
)

// script makes a plug-in of a shell script.
func script(t *testing.T, text string) worker.Plugins {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"main.sh":            "#!/bin/sh\n" + text,
		program.ManifestName: `{"name":"test","protocol":1,"program":"main.sh","providertypes":["test"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p, err := program.Open(program.Config{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return worker.Plugins{Providers: map[string]plugin.Provider{"test": p}}
}

// A script prints a gigabyte, and then what matters. The record has the end of it, and what was streamed stays small.
func TestTalkativeScript(t *testing.T) {
	size := 1 << 30
	if racedetector.On || testing.Short() {
		size = 1 << 26
	}
	d := newDesk(t, time.Minute)
	d.start(script(t, fmt.Sprintf(`yes | head -c %d; echo the end; echo '{"status":"done"}' >&3`, size)), 1, nil)
	one := newTask(task.Create)
	d.add(one)
	r := d.result(one.ID)
	if r.Status != task.Done || len(r.Output) != task.MaxOutput || !strings.HasSuffix(r.Output, "y\nthe end\n") {
		t.Errorf("%s %s: %d bytes of output", r.Status, r.Problem, len(r.Output))
	}
	if n := len(d.output[one.ID]); n == 0 || n > 200*task.MaxOutput {
		t.Errorf("%d bytes were streamed", n)
	}
}

// The lease of a task is gone while its script waits for a program that it has started. Both are killed, and what they
// would have done does not happen.
func TestScriptOfALostLease(t *testing.T) {
	d := newDesk(t, 600*time.Millisecond)
	dir := t.TempDir()
	d.start(script(t, fmt.Sprintf(`
(echo $$ > %[1]s/started.new; mv %[1]s/started.new %[1]s/started; sleep 1000; touch %[1]s/done) &
wait
echo '{"status":"done"}' >&3
`, dir)), 1, nil)
	one := newTask(task.Create)
	d.add(one)
	poll(t, "the script has started", func() bool { return exists(filepath.Join(dir, "started")) })
	pid, err := os.ReadFile(filepath.Join(dir, "started"))
	if err != nil {
		t.Fatal(err)
	}
	d.takeAway(one.ID, false)
	poll(t, "the script has ended", func() bool { return !exists("/proc/" + strings.TrimSpace(string(pid))) })
	if exists(filepath.Join(dir, "done")) || len(d.results) != 0 {
		t.Error("it went on")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func poll(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
