package ansible

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

type object = map[string]any

// Files of a call, in its folder.
const (
	configFile    = "ansible.cfg"
	inventoryFile = "inventory.yml"
	extraFile     = "extra.yml"
	taskFile      = "task.yml"
	keyFile       = "key"
	hostsFile     = "known_hosts"
	sshFile       = "ssh_config"
	homeFolder    = "home"
)

// settings of Ansible that are the same for all calls. Files are sent by the very programs that a target needs anyway.
// With a terminal on the node, what runs there ends when the connection does.
const settings = `[defaults]
host_key_checking = True
retry_files_enabled = False
nocows = True
nocolor = True
deprecation_warnings = False
stdout_callback = ansible.builtin.default
callback_result_format = json
interpreter_python = auto_silent
[inventory]
enable_plugins = ansible.builtin.yaml
[connection]
pipelining = False
[ssh_connection]
transfer_method = piped
usetty = True
`

// sshSettings are for the SSH client; its own files and the user's are not read.
const sshSettings = `Host *
	IdentitiesOnly yes
	IdentityAgent none
	PasswordAuthentication no
	KbdInteractiveAuthentication no
	BatchMode yes
	StrictHostKeyChecking yes
	UpdateHostKeys no
	GlobalKnownHostsFile /dev/null
	CheckHostIP no
	ForwardAgent no
	ForwardX11 no
	ServerAliveInterval 15
	ServerAliveCountMax 4
	ConnectTimeout 20
`

// writeFiles writes the files of a call, for their owner only.
func writeFiles(c plugin.Call, config ssh.Config, extra json.RawMessage) error {
	inventory, err := document(inventoryOf(c, config))
	if err != nil {
		return fault.Wrap("ansible.Run", fault.Internal, err)
	}
	task, err := document(variables(c))
	if err != nil {
		return fault.Wrap("ansible.Run", fault.Invalid, err).Say("the task is no JSON")
	}
	known, err := knownHosts(config)
	if err != nil {
		return &plugin.Refused{Err: err}
	}
	if len(extra) == 0 {
		extra = json.RawMessage("{}")
	}
	given, err := document(extra) // its macros may have inserted texts of anybody's
	if err != nil {
		return fault.Wrap("ansible.Run", fault.Internal, err)
	}
	become := ""
	if target.BecomesRoot(c, config) {
		become = "[privilege_escalation]\nbecome = True\n" // a playbook may still say otherwise
	}
	if err := os.Mkdir(filepath.Join(c.Work, homeFolder), 0o700); err != nil {
		return fault.Disk("ansible.Run", c.Work, err)
	}
	for name, content := range map[string][]byte{
		configFile: []byte(settings + become), inventoryFile: inventory, taskFile: task, extraFile: given,
		keyFile: config.Key, hostsFile: known,
		sshFile: []byte(sshSettings + "\tUserKnownHostsFile " + sshQuote(filepath.Join(c.Work, hostsFile)) + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(c.Work, name), content, 0o600); err != nil {
			return fault.Disk("ansible.Run", c.Work, err)
		}
	}
	return nil
}

// sshQuote quotes a path for the configuration of the SSH client, which expands % in it.
func sshQuote(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

// inventoryOf is the inventory: the node, in a group for each of its services.
func inventoryOf(c plugin.Call, config ssh.Config) object {
	port := config.Port
	if port == 0 {
		port = 22
	}
	all := object{"hosts": object{c.Node.Hostname: object{
		"ansible_connection": "ssh", "ansible_host": config.Host, "ansible_port": port, "ansible_user": config.User,
		"ansible_ssh_private_key_file": filepath.Join(c.Work, keyFile),
	}}}
	groups := object{}
	for _, name := range append([]string{c.Service.Name}, c.Node.Services...) {
		if name != "all" && name != "ungrouped" && name != c.Node.Hostname {
			groups[name] = object{"hosts": object{c.Node.Hostname: nil}}
		}
	}
	all["children"] = groups
	return object{"all": all}
}

// variables are what a playbook knows of the task. What the provider knows stays here: its fields have credentials of
// other machines, and facts may be sealed.
func variables(c plugin.Call) object {
	node := c.Node
	node.Facts = nil
	config := c.Config
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	return object{
		"ordain_action": c.Action, "ordain_config": config, "ordain_node": node, "ordain_nodes": c.Nodes,
		"ordain_cluster": c.Cluster, "ordain_service": object{"name": c.Service.Name, "type": c.Service.Type},
	}
}

// knownHosts has the pinned keys in the form that the SSH client reads.
func knownHosts(config ssh.Config) ([]byte, error) {
	keys, err := ssh.HostKeys(config.HostKeys)
	host := config.Host
	if config.Port != 0 && config.Port != 22 {
		host = "[" + strings.Trim(host, "[]") + "]:" + strconv.Itoa(config.Port)
	}
	if net.ParseIP(config.Host) == nil && strings.ContainsAny(config.Host, " \t\r\n,*?!|#") {
		return nil, fault.New("ansible.Run", fault.Invalid, "the address of the node is neither an address nor a name")
	}
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(host + " " + key + "\n")
	}
	return []byte(text.String()), err
}
