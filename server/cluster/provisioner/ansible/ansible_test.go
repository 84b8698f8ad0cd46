package ansible_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/ansible"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// automator returns the plug-in. Its virtual environment is made once per machine.
func automator(t *testing.T) *ansible.Ansible {
	t.Helper()
	tool.Need(t, "python3")
	tool.Need(t, "ssh")
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	a, err := ansible.New(ansible.Config{
		Folder: filepath.Join(cache, "ordain-test", "ansible"), Python: os.Getenv("ORDAIN_TEST_PYTHON"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// call is a call of the action of a service whose playbook is site.yml of the archive web.
func call(t *testing.T, m *clustertest.Machine, playbook string) (plugin.Call, *clustertest.Out) {
	t.Helper()
	c, out := m.Call(t, task.Install)
	c.Node.Services = []string{"web-server", "base"}
	c.Service = &task.Service{Name: "web-server", Type: "ansible", Fields: task.Fields{
		ansible.PlaybookField: clustertest.JSON(t, "web"),
	}}
	c.Config = json.RawMessage(`{"greeting": "it's {{ 6 * 7 }}\n50% é\u0007", "big": 12345678901234567890, "few": 1e3}`)
	c.Nodes = map[int]task.Peer{1000: {Hostname: "shop1-1000.local", Services: []string{"web-server"}}}
	withVars(t, c, map[string]any{})
	clustertest.AddResource(t, &c, "ansible", ansible.PlaybooksType, "web", map[string]string{"site.yml": playbook})
	return c, out
}

// withVars sets the extra variables of a call. Machines of an ordinary user have no terminals.
func withVars(t *testing.T, c plugin.Call, vars map[string]any) {
	t.Helper()
	if os.Geteuid() != 0 {
		vars["ansible_ssh_use_tty"] = false
	}
	text := string(clustertest.JSON(t, vars))
	c.Service.Fields[ansible.ExtraVarsField] = clustertest.JSON(t, text)
}

func run(t *testing.T, c plugin.Call, out *clustertest.Out) string {
	t.Helper()
	if _, err := automator(t).Run(t.Context(), c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out.String()
}

// nextAttempt returns the call as the next attempt makes it, with an empty folder.
func nextAttempt(t *testing.T, c plugin.Call) (plugin.Call, *clustertest.Out) {
	out := &clustertest.Out{}
	c.Work, c.Out = t.TempDir(), out
	return c, out
}

const writesFile = `
- hosts: web-server
  tasks:
    - name: Write the greeting
      ansible.builtin.copy:
        dest: "{{ dest }}"
        mode: "0600"
        content: "{{ [ordain_action, ordain_config.greeting, ordain_config.big, ordain_config.few,
          ordain_nodes['1000'].hostname, ordain_service.name, extra, ansible_facts.hostname] | join('|') }}\n"
      tags: greet
    - name: Fail
      ansible.builtin.fail:
      tags: other
    - name: Look
      ansible.builtin.command: stat -c %U "{{ dest }}"
      changed_when: false
      tags: greet
`

// The story of a service: the playbook of its archive is played on two machines at once, and each has the file with the
// values of the task, as they are. Playing it again changes nothing. Start is another action of the same playbook.
// Nothing of the calls is left on the machines.
func TestAPlaybookOnTwoMachines(t *testing.T) {
	tool.Heavy(t, "installs Ansible and plays on machines")
	t.Parallel()
	machines := clustertest.Machines(t, 2)
	a := automator(t)
	type answer struct {
		c   plugin.Call
		out *clustertest.Out
		err error
	}
	answers := make(chan answer)
	for _, m := range machines {
		c, out := call(t, m, writesFile)
		c.Service.Fields[ansible.TagsField] = clustertest.JSON(t, "greet")
		dest := "/etc/greeting"
		if os.Geteuid() != 0 {
			dest = filepath.Join(t.TempDir(), "greeting")
		}
		withVars(t, c, map[string]any{"dest": dest, "extra": "{{ x }}"})
		c.Secrets = []string{"hush"}
		c.Provider.Fields["password"] = json.RawMessage(`"hush"`)
		c.Node.Facts["root_password"] = json.RawMessage(`"hush"`)
		go func() {
			_, err := a.Run(t.Context(), c)
			answers <- answer{c, out, err}
		}()
	}
	for range machines {
		if got := <-answers; got.err != nil {
			t.Errorf("%v\n%s", got.err, got.out)
		} else if text := got.out.String(); !strings.Contains(text, "changed=1") || strings.Contains(text, "\x1b[") ||
			strings.Contains(text, "WARNING") {
			t.Errorf("it printed %s", text)
		}
	}
	if t.Failed() {
		return
	}
	for _, m := range machines {
		c, out := call(t, m, writesFile)
		dest := "/etc/greeting"
		if os.Geteuid() != 0 {
			dest = filepath.Join(t.TempDir(), "greeting")
		}
		c.Service.Fields[ansible.TagsField] = clustertest.JSON(t, "greet")
		withVars(t, c, map[string]any{"dest": dest, "extra": "{{ x }}"})
		if os.Geteuid() == 0 {
			want := "install|it's {{ 6 * 7 }}\n50% é\a|12345678901234567890|1000.0|shop1-1000.local|web-server|" +
				"{{ x }}|" + m.Hostname + "\n"
			if got := m.Read(dest); got != want {
				t.Errorf("the file is %q, want %q", got, want)
			}
			if text := run(t, c, out); !strings.Contains(text, "changed=0") {
				t.Errorf("the second time it printed %s", text)
			}
			c, out = nextAttempt(t, c)
		}
		c.Action = task.Start
		if text := run(t, c, out); !strings.Contains(text, "changed=1") || !strings.HasPrefix(m.Read(dest), "start|") {
			t.Errorf("start printed %s", text)
		}
		clean(t, m)
	}
}

// clean fails the test if something of a call is left on a machine.
func clean(t *testing.T, m *clustertest.Machine) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const list = "ls -A /var/cache/ordain-tasks 2>/dev/null; ls -dA /root/.ansible* /tmp/* 2>/dev/null; true"
	left, err := m.Command("sh", "-c", list).CombinedOutput()
	if err != nil || len(left) > 0 {
		t.Errorf("left on the machine: %s %v", left, err)
	}
}

// As another user, Ansible becomes root by sudo, and a playbook may say otherwise.
func TestBecomingRoot(t *testing.T) {
	t.Parallel()
	clustertest.NeedRoot(t)
	tool.Need(t, "sudo")
	m := clustertest.Machines(t, 1)[0]
	c, out := call(t, m, `
- hosts: all
  gather_facts: false
  tasks:
    - {ansible.builtin.command: id -un, register: one}
    - {ansible.builtin.command: id -un, register: two, become: false}
    - {ansible.builtin.debug: {msg: "{{ one.stdout }} and {{ two.stdout }}"}}
`)
	c.Node.SSHUser = clustertest.Operator
	if text := run(t, c, out); !strings.Contains(text, "root and operator") {
		t.Errorf("it printed %s", text)
	}
	c, out = call(t, m, `
- hosts: all
  gather_facts: false
  become: true
  become_user: guest
  tasks:
    - {ansible.builtin.command: id -un, register: one}
    - {ansible.builtin.debug: {msg: "I am {{ one.stdout }}"}}
`)
	if text := run(t, c, out); !strings.Contains(text, "I am guest") {
		t.Errorf("it printed %s", text)
	}
}

// Roles, collections and variables lie beside the playbook. A configuration there is not read, and neither is the
// user's.
func TestWhatLiesBesideThePlaybook(t *testing.T) {
	tool.Heavy(t, "installs Ansible and plays on machines")
	t.Setenv("ANSIBLE_STDOUT_CALLBACK", "no.such.callback")
	m := clustertest.Machines(t, 1)[0]
	c, out := call(t, m, "")
	clustertest.AddResource(t, &c, "ansible", ansible.PlaybooksType, "shop", map[string]string{
		"shop/ansible.cfg":                      "[defaults]\nstdout_callback = no.such.callback\n",
		"shop/plays/start.yml":                  "- {hosts: all, gather_facts: false, roles: [greet]}\n",
		"shop/plays/group_vars/all.yml":         "loudly: true\n",
		"shop/plays/roles/greet/tasks/main.yml": greet,
		collection + "plugins/modules/hello.py": hello,
		collection + "plugins/filter/loud.py":   loud,
		collection + "galaxy.yml":               "namespace: acme\nname: tools\nversion: 1.0.0\n",
		"shop/plays/roles/greet/meta/main.yml":  "dependencies: []\n",
	})
	c.Service.Fields[ansible.PlaybookField] = clustertest.JSON(t, "shop/plays/start.yml")
	c.Service.Fields[ansible.ExtraVarsField] = json.RawMessage(`{"ansible_ssh_use_tty": false, "whom": "world"}`)
	if text := run(t, c, out); !strings.Contains(text, "changed=1") || strings.Contains(text, "no.such") {
		t.Errorf("it printed %s", text)
	}
}

const (
	collection = "shop/plays/collections/ansible_collections/acme/tools/"
	greet      = "- acme.tools.hello: {whom: '{{ whom | acme.tools.loud }}'}\n  when: loudly\n"
	hello      = `
from ansible.module_utils.basic import AnsibleModule
m = AnsibleModule(argument_spec={"whom": {"type": "str"}})
m.exit_json(changed=m.params["whom"] == "WORLD")
`
	loud = `
class FilterModule:
    def filters(self):
        return {"loud": str.upper}
`
)

// Failures, and which of them may succeed when they are tried again.
func TestFailures(t *testing.T) {
	tool.Heavy(t, "installs Ansible and plays on machines")
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	a := automator(t)
	fails := func(c plugin.Call, refused bool, says ...string) {
		t.Helper()
		_, err := a.Run(t.Context(), c)
		if err == nil || plugin.IsRefused(err) != refused {
			t.Errorf("got %v, refused %v\n%s", err, plugin.IsRefused(err), c.Out)
			return
		}
		for _, text := range says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v\ndoes not say %q\n%s", err, text, c.Out)
			}
		}
	}
	play := func(tasks string) string { return "- hosts: all\n  gather_facts: false\n  tasks:\n" + tasks }

	c, _ := call(t, m, play(`    - name: Not bad
      ansible.builtin.command: /bin/false
      ignore_errors: true
    - name: Fill the disk
      ansible.builtin.shell: echo hush; echo the disk sda1 is full >&2; exit 3
    - name: Go on
      ansible.builtin.debug:
`))
	c.Secrets = []string{"sda1"}
	fails(c, false, "install of the service web-server failed on shop1-1000.local", `the task "Fill the disk"`,
		"non-zero return code", "the disk ******** is full")

	c, _ = call(t, m, play(`    - name: Loop
      ansible.builtin.command: test {{ item }} = a
      loop: [a, b]
`))
	fails(c, false, `the task "Loop"`, "non-zero return code")

	c, _ = call(t, m, play("    - name: Twisted\n      ansible.builtin.debug: {msg: '{{ none.such }}'}\n"))
	fails(c, false, `the task "Twisted"`, "such")

	c, _ = call(t, m, "- hosts: all\n  tasks: [\n")
	fails(c, true, "cannot use the playbook", "YAML")
	c, _ = call(t, m, play("    - no_such_module:\n"))
	fails(c, true, "cannot use the playbook", "no_such_module")
	c, _ = call(t, m, "- hosts: all\n  roles: [nginx]\n")
	fails(c, true, "cannot use the playbook", "nginx")
	c, _ = call(t, m, "- hosts: database\n  tasks: []\n")
	fails(c, true, "no play of the playbook is for the machine shop1-1000.local")

	c, _ = call(t, m, "")
	c.Service.Fields[ansible.PlaybookField] = clustertest.JSON(t, "web/deep/start.yml")
	fails(c, true, "the archive web has no file deep/start.yml")
	c.Service.Fields[ansible.PlaybookField] = clustertest.JSON(t, "web/../../x")
	fails(c, true, "outside of its archive")
	c.Service.Fields[ansible.PlaybookField] = clustertest.JSON(t, " ")
	fails(c, true, "has no playbook")
	c.Service.Fields[ansible.PlaybookField] = clustertest.JSON(t, "wbe")
	fails(c, false, "there is no playbooks wbe")
	c.Service.Fields[ansible.PlaybookField] = clustertest.JSON(t, "web")
	c.Service.Fields[ansible.ExtraVarsField] = clustertest.JSON(t, "port=8080")
	fails(c, true, "no JSON object")
	delete(c.Service.Fields, ansible.ExtraVarsField)
	c.Service = nil
	fails(c, true, "no service")

	clean(t, m)
	c, _ = call(t, m, writesFile)
	m.ChangeHostKey()
	fails(c, true, "has changed", "nothing was sent")
	m.Stop()
	fails(c, false, "refuses the connection")
}

// A playbook that is stopped half-way leaves no process, here or on the machine, no connection, no file.
func TestAPlaybookIsStopped(t *testing.T) {
	tool.Heavy(t, "installs Ansible and plays on machines")
	t.Parallel()
	clustertest.NeedRoot(t)
	m := clustertest.Machines(t, 1)[0]
	for user, limit := range map[string]bool{"root": false, clustertest.Operator: true} {
		c, out := call(t, m, `
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.shell: "trap '' HUP TERM; sleep 9292 & sleep 9292; wait"
`)
		c.Node.SSHUser = user
		ctx, cancel := context.WithCancel(t.Context())
		if limit {
			c.TimeoutMS = 15_000
		}
		got := make(chan error, 1)
		go func() {
			_, err := automator(t).Run(ctx, c)
			got <- err
		}()
		for deadline := time.Now().Add(30 * time.Second); len(m.Processes("sleep 9292")) < 3; {
			if time.Now().After(deadline) {
				t.Fatalf("the command does not run: %s", out)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if len(here(c.Work)) == 0 {
			t.Error("the test sees no process of Ansible")
		}
		if !limit {
			cancel()
		}
		err := <-got
		cancel()
		if err == nil || plugin.IsRefused(err) || limit != strings.Contains(err.Error(), "time limit of 15s") {
			t.Errorf("as %s: %v\n%s", user, err, out)
		}
		if left := here(c.Work); len(left) > 0 {
			t.Errorf("as %s, still runs here: %q", user, left)
		}
		// The kernel may need a moment for what was killed.
		for deadline := time.Now().Add(5 * time.Second); len(m.Processes("sleep 9292")) > 0; {
			if time.Now().After(deadline) {
				t.Errorf("as %s, still runs on the machine: %q", user, m.Processes("sleep 9292"))
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		clean(t, m)
	}
}

// here returns the command lines of processes of this machine that name a folder.
func here(folder string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), folder) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// Values of the task are in no command line, here or on the machine, and in files for their owner only.
func TestValuesAreSeenByNobodyElse(t *testing.T) {
	tool.Heavy(t, "installs Ansible and plays on machines")
	t.Parallel()
	clustertest.NeedRoot(t)
	m := clustertest.Machines(t, 1)[0]
	c, out := call(t, m, `
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.shell: echo ready >/root/ready; while [ ! -e /root/go-on ]; do sleep 0.05; done
`)
	c.Config = json.RawMessage(`{"password": "open-sesame"}`)
	got := make(chan error, 1)
	go func() {
		_, err := automator(t).Run(t.Context(), c)
		got <- err
	}()
	for deadline := time.Now().Add(30 * time.Second); !m.Exists("ready"); {
		if time.Now().After(deadline) {
			t.Fatalf("the command does not run: %s", out)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if seen := append(here("sesame"), m.Processes("sesame")...); len(seen) > 0 {
		t.Errorf("everybody can read %q", seen)
	}
	entries, err := os.ReadDir(c.Work)
	if err != nil || len(entries) < 7 {
		t.Errorf("the folder of the call has %v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if err := m.Command("touch", "/root/go-on").Run(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Bootstrap finds Python, or says what is in the way of it; it changes nothing.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	a := automator(t)
	c, out := m.Call(t, task.Bootstrap)
	for range 2 {
		if _, err := a.Bootstrap(t.Context(), c); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	clustertest.NeedRoot(t)
	clean(t, m)
	hide := `for p in python3 apt-get dnf microdnf yum zypper apk pacman; do ` +
		`for d in /usr/local/bin /usr/bin /bin /usr/sbin /sbin; do rm -f $d/$p; done; done`
	if out, err := m.Command("sh", "-c", "cp /usr/bin/apt-get /root/apt-get; "+hide).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err := a.Bootstrap(t.Context(), c)
	if !plugin.IsRefused(err) || !strings.Contains(err.Error(), "package manager") {
		t.Errorf("without anything: %v\n%s", err, out)
	}
	old := "printf '#!/bin/sh\\n[ \"$1\" = --version ] && echo Python 3.5.3; exit 1\\n' >/usr/bin/python3; " +
		"chmod 755 /usr/bin/python3"
	if out, err := m.Command("sh", "-c", old).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := a.Bootstrap(t.Context(), c); !plugin.IsRefused(err) || !strings.Contains(err.Error(), "too old") ||
		!strings.Contains(err.Error(), "Python 3.5.3") {
		t.Errorf("with an old one: %v\n%s", err, out)
	}
}

// Python is installed on a machine that lacks it, and a playbook is played there.
func TestPythonIsInstalled(t *testing.T) {
	t.Parallel()
	tool.Long(t, "removes Python and installs it again")
	clustertest.NeedRoot(t)
	tool.Need(t, "apt-get")
	tool.Need(t, "dpkg")
	m := clustertest.Machines(t, 1)[0]
	remove := "apt-get -y -q purge python3 python3-minimal libpython3-stdlib && ! command -v python3"
	if out, err := m.Command("sh", "-c", remove).CombinedOutput(); err != nil {
		t.Skipf("the machine's Python is not Debian's: %v: %s", err, out)
	}
	c, out := m.Call(t, task.Bootstrap)
	c.TimeoutMS = 120_000
	if _, err := automator(t).Bootstrap(t.Context(), c); err != nil {
		if said, e := m.Command("apt-get", "-y", "install", "python3").CombinedOutput(); e != nil {
			tool.Missing(t, "no package of Python can be installed: %v: %s", e, said)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "installing python3 with apt-get") {
		t.Errorf("it printed %s", out)
	}
	c, out = call(t, m, "- hosts: all\n  tasks: []\n")
	if text := run(t, c, out); !strings.Contains(text, "ok=1") {
		t.Errorf("it printed %s", text)
	}
}
