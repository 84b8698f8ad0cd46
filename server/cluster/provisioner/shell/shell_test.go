package shell_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/shell"
	"ordain.dev/ordain/server/cluster/task"
)

// call is a call of the action of a service.
func call(t *testing.T, m *clustertest.Machine, script, args string) (plugin.Call, *clustertest.Out) {
	t.Helper()
	c, out := m.Call(t, task.Install)
	c.Service = &task.Service{Name: "web", Type: "shell", Fields: task.Fields{
		shell.ScriptField: clustertest.JSON(t, script), shell.ArgsField: clustertest.JSON(t, args),
	}}
	c.Config = json.RawMessage(`{"greeting": "it's\n50% \\o/", "big": 12345678901234567890, "hosts": ["a", "b"]}`)
	c.Nodes = map[int]task.Peer{1000: {Hostname: "shop1-1000.local", Services: []string{"web"}}}
	return c, out
}

func run(t *testing.T, c plugin.Call, out *clustertest.Out) string {
	t.Helper()
	if _, err := (shell.Shell{}).Run(t.Context(), c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out.String()
}

// Bootstrap finds a usable machine usable.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c, _ := m.Call(t, task.Bootstrap)
	for range 2 {
		if _, err := (shell.Shell{}).Bootstrap(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// A script of the resources runs with its arguments, as the shell splits them, and finds other scripts and the content
// of archives beside it.
func TestAScriptWithResources(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c, out := call(t, m, "setup.sh", `one "two words" $ORDAIN_ACTION`)
	clustertest.AddResource(t, &c, "shell", shell.ScriptsType, "setup.sh",
		"#!/bin/sh\nprintf '%s|' \"$@\"; helper.sh; cat www/index.html tools/deep/x; exit 0\n")
	clustertest.AddResource(t, &c, "shell", shell.ScriptsType, "helper.sh", "#!/bin/sh\necho help\n")
	clustertest.AddResource(t, &c, "shell", shell.ArchivesType, "www", map[string]string{"www/index.html": "welcome\n"})
	clustertest.AddResource(t, &c, "shell", shell.ArchivesType, "tools", map[string]string{"deep/x": "x\n", "y": ""})
	clustertest.AddResource(t, &c, "chef-solo", "cookbooks", "other", "not for this automator")
	if got, want := run(t, c, out), "one|two words|install|help\nwelcome\nx\n"; got != want {
		t.Errorf("it printed %q, want %q", got, want)
	}
}

// A script that is no resource is a command. It can read the task: in our form, in Coopr's, and value by value. What
// only the provider needs is not in it.
func TestACommandReadsTheTask(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	c, out := call(t, m, `cat "$ORDAIN_TASK"; echo; echo =====; cat "$COOPR_CONFIG"; echo; echo =====; `+
		`for k in config/cluster/greeting config/cluster/big config/cluster/hosts config/nodes/1000/hostname nodeId; `+
		`do coopr_lookup_key $k; done; coopr_lookup_key config/none || stat -c %a "$ORDAIN_TASK" >&2;`, "")
	c.Provider.Fields["password"] = json.RawMessage(`"hush"`)
	c.Node.Facts["root_password"] = json.RawMessage(`"hush"`)
	parts := strings.Split(run(t, c, out), "=====\n")
	if len(parts) != 3 || strings.Contains(out.String(), "hush") {
		t.Fatalf("it printed %s", out)
	}
	var ours struct {
		Action  string
		Cluster struct{ Name string }
		Config  struct{ Greeting string }
		Service struct{ Name string }
		Node    struct{ Number int }
		Nodes   map[string]struct{ Hostname string }
	}
	if err := json.Unmarshal([]byte(parts[0]), &ours); err != nil || ours.Action != "install" ||
		ours.Cluster.Name != "shop" || ours.Config.Greeting != "it's\n50% \\o/" || ours.Service.Name != "web" ||
		ours.Node.Number != 1000 || ours.Nodes["1000"].Hostname != "shop1-1000.local" {
		t.Errorf("the task is %+v, %v", ours, err)
	}
	var theirs struct {
		TaskID string `json:"taskId"`
		Config struct {
			Cluster struct{ Hosts []string }
			Service struct{ Action struct{ Type string } }
			IPs     map[string]string `json:"ipaddresses"`
		}
	}
	if err := json.Unmarshal([]byte(parts[1]), &theirs); err != nil || theirs.TaskID != c.ID.String() ||
		len(theirs.Config.Cluster.Hosts) != 2 || theirs.Config.Service.Action.Type != "shell" ||
		theirs.Config.IPs["access_v4"] != m.Address {
		t.Errorf("Coopr's task is %+v, %v", theirs, err)
	}
	want := "it's\n50% \\o/\n12345678901234567890\na b\nshop1-1000.local\n1000\n" +
		"coopr_lookup_key: the task has no config/none\n600\n"
	if parts[2] != want {
		t.Errorf("the values are %q, want %q", parts[2], want)
	}
}

// Failures: a status other than 0, with the last lines; a script that is not there, with those that are; one that never
// ends; a provisioner that stops; an action without a script.
func TestFailures(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	fails := func(ctx context.Context, c plugin.Call, refused bool, says ...string) {
		t.Helper()
		_, err := (shell.Shell{}).Run(ctx, c)
		if err == nil || plugin.IsRefused(err) != refused {
			t.Errorf("got %v, refused %v", err, plugin.IsRefused(err))
			return
		}
		for _, text := range says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v\ndoes not say %q", err, text)
			}
		}
	}
	c, _ := call(t, m, "echo disk full; exit 4;", "")
	fails(t.Context(), c, false, "install of the service web failed on shop1-1000.local", "exit status 4", "disk full")

	c, _ = call(t, m, "stup.sh", "x")
	clustertest.AddResource(t, &c, "shell", shell.ScriptsType, "setup.sh", "exit 0")
	fails(t.Context(), c, false, "exit status 127", `no script "stup.sh"`, "(setup.sh)")

	c, _ = call(t, m, "echo wait; sleep 9191", "")
	c.TimeoutMS = 300
	fails(t.Context(), c, false, "time limit of 300ms", "wait")

	c, _ = call(t, m, "sleep", "9191")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for deadline := time.Now().Add(20 * time.Second); len(m.Processes("sleep 9191")) == 0; {
			if time.Now().After(deadline) {
				t.Error("the command does not run")
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}()
	fails(ctx, c, false, "was ended")
	if left := m.Processes("sleep 9191"); len(left) > 0 {
		t.Errorf("still runs: %q", left)
	}

	c, _ = call(t, m, " ", "")
	fails(t.Context(), c, true, "has no script")

	m.Stop()
	c, _ = call(t, m, "true", "")
	_, err := (shell.Shell{}).Run(t.Context(), c)
	if !fault.Is(err, fault.Unavailable) || plugin.IsRefused(err) {
		t.Errorf("a machine that is off: %v", err)
	}
}
