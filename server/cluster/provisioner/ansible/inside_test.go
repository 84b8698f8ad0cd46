package ansible

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// A machine whose host key changes after the provisioner has logged in is refused by Ansible itself, which goes by the
// pinned keys alone: no connection of the play before is left.
func TestAnsibleGoesByThePinnedKeys(t *testing.T) {
	tool.Heavy(t, "installs Ansible and plays on machines")
	t.Parallel()
	machines := clustertest.Machines(t, 2)
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	a, err := New(Config{
		Folder: filepath.Join(cache, "ordain-test", "ansible"), Python: os.Getenv("ORDAIN_TEST_PYTHON"),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, out := machines[0].Call(t, task.Install)
	c.Service = &task.Service{Name: "web", Type: "ansible"}
	python, err := a.environment(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(t.Context(), c, python)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	playbook := filepath.Join(t.TempDir(), "site.yml")
	const text = "- hosts: all\n  gather_facts: false\n  tasks: [ansible.builtin.raw: echo I am in]\n"
	if err := os.WriteFile(playbook, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	extra := json.RawMessage(`{"ansible_ssh_use_tty": false}`)
	if err := p.play(t.Context(), playbook, extra); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if command, err := os.ReadFile(file); err == nil && strings.Contains(string(command), p.sockets) {
			t.Errorf("still runs: %s", command)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	p.call.Work, p.config.HostKeys = t.TempDir(), machines[1].HostKeys()
	err = p.play(t.Context(), playbook, extra)
	if !plugin.IsRefused(err) || !strings.Contains(err.Error(), "not the pinned one") {
		t.Errorf("got %v\n%s", err, out)
	}
}

// Failures are found in the output in whatever pieces it comes.
func TestReport(t *testing.T) {
	t.Parallel()
	const said = "PLAY [all] ****\n\nTASK [One] ****\nfatal: [a]: FAILED! => {\"msg\": \"no\"}\n...ignoring\n\n" +
		"RUNNING HANDLER [Restart [nginx]] ****\n" +
		"failed: [a] (item=x) => {\"msg\": [\"bad\", 1], \"stderr\": \"full\\n\"}\n" +
		"PLAY RECAP ****\n"
	for size := 1; size <= len(said); size++ {
		r := &report{out: output(plugin.Call{})}
		for at := 0; at < len(said); at += size {
			if n, err := r.Write([]byte(said[at:min(at+size, len(said))])); n == 0 || err != nil {
				t.Fatal(n, err)
			}
		}
		r.flush()
		want := failure{task: "Restart [nginx]", message: "[bad 1]: full"}
		if r.failed == nil || *r.failed != want || r.plays != 1 || r.tasks != 2 {
			t.Fatalf("in pieces of %d: %+v, %+v", size, r, r.failed)
		}
	}
	r := &report{out: output(plugin.Call{})}
	if n, err := r.Write(make([]byte, 2*maxLine)); n != 2*maxLine || err != nil || len(r.line) > maxLine {
		t.Error("a line without an end is kept", n, err, len(r.line))
	}
}

// What JSON has stays what it is in YAML.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := document(object{"a": []any{"10", "é\x7f\u2028😀", 1e30, 5, -2.5, true, nil, object{}}, "k": ""})
	want := `!unsafe {? "a" : ["10", "\U000000e9\U0000007f\U00002028\U0001f600", 1.0e+30, 5, -2.5, true, null, {}], ` +
		"? \"k\" : \"\"}\n"
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}
