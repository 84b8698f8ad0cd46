package puppet_test

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/clustertest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/puppet"
	"ordain.dev/ordain/server/cluster/task"
)

// call is a call of the action of a service with a manifest.
func call(t *testing.T, m *clustertest.Machine, manifest string) (plugin.Call, *clustertest.Out) {
	t.Helper()
	c, out := m.Call(t, task.Install)
	c.TimeoutMS = 120_000
	c.Service = &task.Service{Name: "web", Type: "puppet", Fields: task.Fields{
		puppet.ManifestField: clustertest.JSON(t, manifest),
	}}
	c.Config = json.RawMessage(`{"greeting": "it's %{facts.os.name} and $x\n50% é", "big": 12345678901234567890,
		"motd::text": "by lookup", "deep": {"%{a}": ["%{b}"]}}`)
	c.Nodes = map[int]task.Peer{1000: {Hostname: "shop1-1000.local", Services: []string{"web"}}}
	return c, out
}

func run(t *testing.T, c plugin.Call, out *clustertest.Out) string {
	t.Helper()
	if _, err := (puppet.Puppet{}).Run(t.Context(), c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out.String()
}

const writesFile = `
node 'shop1-1000.local' {
  $task = $facts['ordain']
  file { '/etc/greeting':
    mode    => '0600',
    content => join([
      $task['action'], lookup('greeting'), $task['config']['greeting'], lookup('big'), String(lookup('deep')),
      $task['nodes']['1000']['hostname'], $facts['role'], "${task['cluster']['name']}\n"], '|'),
  }
  include motd
}
`

// The story of a machine without Puppet: preparing it installs the package of the distribution, on it and nowhere else,
// and nothing the second time. A manifest with a module is applied: the file has the values of the task, as they are.
// Applying it again changes nothing. Failures say what Puppet says. Nothing of the calls is left.
func TestAManifestIsApplied(t *testing.T) {
	t.Parallel()
	tool.Long(t, "installs Puppet")
	clustertest.NeedRoot(t)
	tool.Need(t, "apt-get")
	m := clustertest.Machines(t, 1)[0]
	before, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		tool.Missing(t, "no dpkg: %v", err)
	}
	c, out := m.Call(t, task.Bootstrap)
	c.TimeoutMS = 300_000
	if _, err := (puppet.Puppet{}).Bootstrap(t.Context(), c); err != nil {
		if said, e := m.Command("apt-get", "-y", "install", "puppet").CombinedOutput(); e != nil {
			tool.Missing(t, "no package of Puppet can be installed: %v: %s", e, said)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	after, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil || string(after) != string(before) ||
		!strings.Contains(m.Read("/var/lib/dpkg/status"), "Package: puppet") {
		t.Error("the package was not installed on the machine alone")
	}
	printed := len(out.String())
	if _, err := (puppet.Puppet{}).Bootstrap(t.Context(), c); err != nil || len(out.String()) != printed {
		t.Errorf("the second time: %v\n%s", err, out.String()[printed:])
	}

	c, out = call(t, m, "web.pp")
	c.Service.Fields[puppet.ModulesField] = clustertest.JSON(t, "ordain-motd")
	c.Service.Fields[puppet.FactsField] = clustertest.JSON(t, map[string]string{"role": "front"})
	c.Provider.Fields["password"] = json.RawMessage(`"hush"`)
	clustertest.AddResource(t, &c, "puppet", puppet.ManifestsType, "web.pp", writesFile)
	clustertest.AddResource(t, &c, "puppet", puppet.ModulesType, "ordain-motd", map[string]string{
		"ordain-motd-1.0.0/manifests/init.pp": "class motd(String $text) {\n" +
			"  file { '/etc/motd2': content => $text }\n" +
			"  file { '/etc/motd3': source => 'puppet:///modules/motd/three' }\n}\n",
		"ordain-motd-1.0.0/files/three": "a file of the module",
	})
	run(t, c, out)
	greeting := "it's %{facts.os.name} and $x\n50% é"
	want := "install|" + greeting + "|" + greeting + "|12345678901234567890|{'%{a}' => ['%{b}']}|" +
		"shop1-1000.local|front|shop\n"
	if got := m.Read("/etc/greeting"); got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	if m.Read("/etc/motd2") != "by lookup" || m.Read("/etc/motd3") != "a file of the module" {
		t.Error("the module was not applied")
	}
	if text := run(t, c, out); strings.Count(text, "/etc/motd2") != 1 || strings.Contains(text, "\x1b[") {
		t.Errorf("the second time it printed %s", text)
	}

	var all sync.WaitGroup
	fails := func(manifest string, refused bool, says ...string) {
		all.Go(func() {
			c, out := call(t, m, manifest)
			c.Secrets = []string{"sda1"}
			_, err := (puppet.Puppet{}).Run(t.Context(), c)
			if err == nil || plugin.IsRefused(err) != refused {
				t.Errorf("%s: got %v, refused %v\n%s", manifest, err, plugin.IsRefused(err), out)
				return
			}
			for _, text := range says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %v\ndoes not say %q", manifest, err, text)
				}
			}
		})
	}
	fails("notify { 'x': }\nexec { '/bin/sh -c \"echo sda1 is full; exit 3\"': logoutput => true }", false,
		"install of the service web failed on shop1-1000.local", "returned 3")
	fails("exec { '/bin/false': }", false, "'/bin/false' returned 1")
	fails("file { '/etc/x': ensure => ", true, "cannot use the manifest", "Syntax error")
	fails("include nginx", true, "cannot use the manifest", "nginx")
	all.Wait()

	const list = "ls -A /var/cache/ordain-tasks; ls -dA /root/.puppet* /etc/puppetlabs 2>/dev/null; true"
	left, err := m.Command("sh", "-c", list).CombinedOutput()
	if err != nil || len(left) > 0 {
		t.Errorf("left on the machine: %s %v", left, err)
	}
}

// A machine of another kind is refused, as is what a service has wrong, before anything is done.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	m := clustertest.Machines(t, 1)[0]
	fails := func(c plugin.Call, says string) {
		t.Helper()
		_, err := (puppet.Puppet{}).Run(t.Context(), c)
		if !plugin.IsRefused(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	c, _ := call(t, m, " ")
	fails(c, "has no manifest")
	c, _ = call(t, m, "wbe.pp")
	clustertest.AddResource(t, &c, "puppet", puppet.ManifestsType, "web.pp", "")
	fails(c, `no manifest "wbe.pp" among the automator's resources (web.pp)`)
	for modules, says := range map[string]string{
		"nginx": `no module "nginx" among the automator's resources (motd, a-motd)`, "No Name": "cannot be the name",
		"motd, a-motd": "two archives have the module motd",
	} {
		c, _ = call(t, m, "web.pp")
		clustertest.AddResource(t, &c, "puppet", puppet.ManifestsType, "web.pp", "")
		clustertest.AddResource(t, &c, "puppet", puppet.ModulesType, "motd", map[string]string{"x": ""})
		clustertest.AddResource(t, &c, "puppet", puppet.ModulesType, "a-motd", map[string]string{"x": ""})
		c.Service.Fields[puppet.ModulesField] = clustertest.JSON(t, modules)
		fails(c, says)
	}
	c, _ = call(t, m, "notify { 'x': }")
	c.Service.Fields[puppet.FactsField] = clustertest.JSON(t, "role=web")
	fails(c, "no JSON object")
	c.Service = nil
	fails(c, "no service")

	clustertest.NeedRoot(t)
	remove := m.Command("rm", "-f", "/usr/bin/apt-get", "/bin/apt-get", "/usr/bin/puppet")
	if out, err := remove.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c, _ = m.Call(t, task.Bootstrap)
	_, err := (puppet.Puppet{}).Bootstrap(t.Context(), c)
	if !plugin.IsRefused(err) || !strings.Contains(err.Error(), "apt-get") {
		t.Errorf("got %v", err)
	}
	c, _ = call(t, m, "notify { 'x': }")
	if _, err := (puppet.Puppet{}).Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "has no Puppet") {
		t.Errorf("got %v", err)
	}
}
