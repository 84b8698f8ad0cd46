package target_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
	"ordain.dev/ordain/server/cluster/task"
)

func open(t *testing.T, c plugin.Call) *target.Target {
	t.Helper()
	node, err := target.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// A value goes to the machine by a file that only its owner may read: it is in no command line while the script runs,
// and nothing of the call is left afterwards.
func TestValuesAreSeenByNobodyElse(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c, out := m.Call(t, task.Install)
	node := open(t, c)
	const secret = "pa'ss word $(x)\n"
	if err := node.Write(t.Context(), "deep/values", 0o600, []byte(secret)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- node.Run(t.Context(), target.Script{
			Text: `printf '%s' "$SECRET" >copy; cmp copy deep/values && printf '%s|' "$@"; ` +
				`stat -c %a deep/values .run-1 .; : >ready; while [ ! -e go-on ]; do sleep 0.05; done`,
			Args: []string{"pa'ss word", "", "*"}, Env: map[string]string{"SECRET": secret},
		})
	}()
	for deadline := time.Now().Add(20 * time.Second); !m.Exists(node.Folder() + "/ready"); {
		if time.Now().After(deadline) {
			t.Fatalf("the script does not run: %s", out)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if seen := m.Processes("ss word"); len(seen) > 0 {
		t.Errorf("everybody on the machine can read %q", seen)
	}
	if seen := m.Processes(".run-1"); len(seen) == 0 {
		t.Error("the test sees no command lines at all")
	}
	if err := node.Write(t.Context(), "go-on", 0o600, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := "pa'ss word||*|600\n600\n700\n"; out.String() != want {
		t.Errorf("the script printed %q, want %q", out, want)
	}
	if err := node.Close(); err != nil {
		t.Error(err)
	}
	if m.Exists(node.Folder()) {
		t.Error("the working folder is still there")
	}
}

// A script that fails has its last lines in the error, without the secrets of the task.
func TestTheErrorHasNoSecrets(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c, _ := m.Call(t, task.Install)
	c.Secrets = []string{"hush", "hush-hush"}
	node := open(t, c)
	defer node.Close()
	err := node.Run(t.Context(), target.Script{Text: "echo password: hush-hush; exit 3"})
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.Status != 3 || exit.Last != "password: ********" {
		t.Errorf("got %v", err)
	}
	err = node.Run(t.Context(), target.Script{Text: "echo password: hush; sleep 60", Limit: 200 * time.Millisecond})
	if !fault.Is(err, fault.Exhausted) || strings.Contains(err.Error(), "hush") ||
		!strings.Contains(err.Error(), "password: ****") {
		t.Errorf("got %v", err)
	}
}

// As another user than root, what runs on the node runs as root by sudo; if that is not allowed, Check says so before
// anything is done.
func TestBecomingRoot(t *testing.T) {
	t.Parallel()
	clustertest.NeedRoot(t)
	tool.Need(t, "sudo")
	m := clustertest.Machines(t, 1)[0]
	c, out := m.Call(t, task.Install)
	c.Node.SSHUser = clustertest.Operator
	if err := target.Check(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if m.Exists("/var/cache/ordain-tasks") || m.Exists("/home/operator/.cache") {
		t.Error("the check made something on the machine")
	}
	node := open(t, c)
	defer node.Close()
	if err := node.Write(t.Context(), "file", 0o600, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := node.Run(t.Context(), target.Script{Text: "id -un; stat -c %U file; cat file"}); err != nil ||
		out.String() != "root\nroot\nx" {
		t.Errorf("it printed %q, %v", out, err)
	}
	c.Node.SSHUser = clustertest.Guest
	if err := target.Check(t.Context(), c); !plugin.IsRefused(err) || !strings.Contains(err.Error(), "sudoers") {
		t.Errorf("got %v", err)
	}
	c.Provider.Fields["ssh_sudo"] = clustertest.JSON(t, "never")
	if err := target.Check(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// A machine without a program that is needed is refused by name.
func TestAMachineThatLacksAProgram(t *testing.T) {
	t.Parallel()
	clustertest.NeedRoot(t)
	m := clustertest.Machines(t, 1)[0]
	if out, err := m.Command("rm", "-f", "/usr/bin/setsid", "/bin/setsid").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c, _ := m.Call(t, task.Bootstrap)
	if err := target.Check(t.Context(), c); !plugin.IsRefused(err) || !strings.Contains(err.Error(), "setsid") {
		t.Errorf("got %v", err)
	}
}

// Nothing but the working folder is written to, and a call that lacks something is refused.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c, _ := m.Call(t, task.Install)
	node := open(t, c)
	defer node.Close()
	for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", "a/../../x", "a//b"} {
		if err := node.Write(t.Context(), name, 0o600, nil); !plugin.IsRefused(err) {
			t.Errorf("writing %q: %v", name, err)
		}
	}
	if err := node.Run(t.Context(), target.Script{Env: map[string]string{"A;rm": ""}}); !plugin.IsRefused(err) {
		t.Errorf("got %v", err)
	}
	for what, spoil := range map[string]func(*plugin.Call){
		"no address":     func(c *plugin.Call) { c.Node.Addresses = nil },
		"not known":      func(c *plugin.Call) { delete(c.Node.Facts, target.HostKeysFact) },
		"which SSH key":  func(c *plugin.Call) { delete(c.Provider.Fields, target.KeyField) },
		"is no port":     func(c *plugin.Call) { c.Node.Facts[target.PortFact] = json.RawMessage(`"x"`) },
		"is no list":     func(c *plugin.Call) { c.Node.Facts[target.HostKeysFact] = json.RawMessage(`"x"`) },
		"is no host key": func(c *plugin.Call) { c.Node.Facts[target.HostKeysFact] = json.RawMessage(`["x"]`) },
	} {
		c, _ := m.Call(t, task.Install)
		spoil(&c)
		if _, err := target.Open(t.Context(), c); !plugin.IsRefused(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
}

// The story of a new machine: it is off, then it lets nobody in since its key is not there yet, then it does. Its host
// key is pinned, and from then on another one is refused.
func TestConfirmWaitsForAMachine(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	m.Stop()
	c, out := m.Call(t, task.Confirm)
	c.Node.Facts = nil
	first := target.First{
		Config: ssh.Config{Host: m.Address, Port: m.Port, User: m.User, Key: m.Key()}, KeyLater: true,
		Wait: time.Minute,
	}
	type answer struct {
		result plugin.Result
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		r, err := target.Confirm(t.Context(), c, first)
		got <- answer{r, err}
	}()
	says := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), text); {
			if time.Now().After(deadline) {
				t.Fatalf("it does not say %q but %q", text, out)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	says("refuses the connection")
	m.Refuse()
	m.Restart()
	says("does not let")
	m.Admit()
	a := <-got
	if a.err != nil {
		t.Fatal(a.err)
	}
	var pinned []string
	if err := json.Unmarshal(a.result.Facts[target.HostKeysFact], &pinned); err != nil ||
		!slices.Equal(pinned, m.HostKeys()) {
		t.Errorf("pinned %q, %v", pinned, err)
	}
	if a.result.Addresses["access_v4"] != m.Address || a.result.Addresses["bind_v4"] != m.Address ||
		target.Text(a.result.Facts, "hostname") == "" {
		t.Errorf("learnt %v, %s", a.result.Addresses, a.result.Facts)
	}

	c.Node.Facts, c.Node.Addresses = a.result.Facts, a.result.Addresses
	if err := open(t, c).Close(); err != nil {
		t.Error(err)
	}
	m.ChangeHostKey()
	if _, err := target.Open(t.Context(), c); !plugin.IsRefused(err) || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v", err)
	}
	first.HostKeys = pinned
	if _, err := target.Confirm(t.Context(), c, first); !plugin.IsRefused(err) {
		t.Errorf("confirming another machine: %v", err)
	}
}

// What was wrong is in the error when the time to wait is over.
func TestConfirmGivesUp(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	m.Stop()
	c, _ := m.Call(t, task.Confirm)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := target.Confirm(ctx, c, target.First{
		Config: ssh.Config{Host: m.Address, Port: m.Port, User: m.User, Key: m.Key()},
	})
	if err == nil || plugin.IsRefused(err) || !strings.Contains(err.Error(), "refuses the connection") {
		t.Errorf("got %v", err)
	}
}
