package ansible

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// A machine whose host key changes after the provisioner has logged in is refused by Ansible itself, which goes by the
// pinned keys alone.
func TestAnsibleGoesByThePinnedKeys(t *testing.T) {
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
	p.config.HostKeys = machines[1].HostKeys()
	playbook := filepath.Join(t.TempDir(), "site.yml")
	if err := os.WriteFile(playbook, []byte("- hosts: all\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err = p.play(t.Context(), playbook, nil)
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
