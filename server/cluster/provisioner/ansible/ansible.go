// Package ansible is the automator that plays Ansible playbooks.
//
//	action {"playbook": "web/start.yml", "tags": "nginx", "extra_vars": {"port": 8080}}
//	  └─ start.yml of the archive web, a resource of the type playbooks; "web" alone is web/site.yml
//
//	provisioner's machine                                   node
//	  ansible-playbook, from a virtual environment   ──SSH──▶ python3, a working folder
//	    its own HOME, configuration and known hosts
//
// Ansible runs on the provisioner's machine, for the one node of the task: plays for all
// hosts, for the node's host name, or for the name of one of its services apply. It logs
// in as the provisioner itself does, accepts only the pinned host keys, and becomes root.
// Playbooks know the task by variables; their texts are never taken for templates:
//
//	ordain_action   install, configure, initialize, start, stop or remove
//	ordain_config   the configuration of the cluster
//	ordain_node     the node; ordain_nodes all nodes of the cluster, by number
//	ordain_service, ordain_cluster
//
// The virtual environment is made from PyPI, by whichever task needs it first. Nothing of
// a call outlives it: neither connections and processes, here and on the node, nor files.
// The one exception is what a playbook puts in the background itself.
//
// Playbooks may run commands on the provisioner's machine (delegate_to: localhost), with
// the rights of the provisioner. Who may upload them has these rights.
package ansible

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// Fields and resource types of the automator.
const (
	PlaybookField  = "playbook"
	ExtraVarsField = "extra_vars"
	TagsField      = "tags"

	PlaybooksType = "playbooks"

	firstPlaybook = "site.yml" // of an archive, unless the field names another one
)

// Config configures an Ansible.
type Config struct {
	// Folder is where the virtual environment lies. It is made if need be, and may be removed at any time.
	Folder string
	// Python is the interpreter for it, 3.11 or newer; if empty, one is searched for.
	Python string
	// Logger gets what a person should know of, such as damage. It may be nil.
	Logger *slog.Logger
}

// Ansible is the plug-in.
type Ansible struct {
	config Config
	maker  *venv.Maker
}

var _ plugin.Automator = (*Ansible)(nil)

// New makes the plug-in. It installs nothing yet.
func New(c Config) (*Ansible, error) {
	if c.Folder == "" {
		return nil, fault.New("ansible.New", fault.Invalid, "the automator ansible has no folder")
	}
	maker, err := venv.New(venv.Config{
		Python: c.Python, CacheDir: filepath.Join(c.Folder, "cache"), ToolsDir: filepath.Join(c.Folder, "tools"),
		Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &Ansible{config: c, maker: maker}, nil
}

// Run plays the playbook of an action.
func (a *Ansible) Run(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	if c.Service == nil {
		return plugin.Result{}, plugin.Refuse("the task has no service")
	}
	playbook, err := findPlaybook(c)
	if err != nil {
		return plugin.Result{}, err
	}
	extra, err := extraVars(c)
	if err != nil {
		return plugin.Result{}, err
	}
	if c.TimeoutMS > 0 {
		limit := time.Duration(c.TimeoutMS) * time.Millisecond
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fault.New("ansible.Run", fault.Exhausted,
			fmt.Sprintf("the playbook did not end within its time limit of %s, and was ended", limit)).
			Hint("look at its output; raise the time limit if the playbook really needs longer"))
		defer cancel()
	}
	python, err := a.environment(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	p, err := open(ctx, c, python)
	if err != nil {
		return plugin.Result{}, err
	}
	err = p.play(ctx, playbook, extra)
	if e := p.close(); err == nil && e != nil {
		fmt.Fprintln(output(c), "the playbook succeeded; its working folder could not be removed: "+e.Error())
	}
	return plugin.Result{}, err
}

// findPlaybook returns the path of the playbook of a call.
func findPlaybook(c plugin.Call) (string, error) {
	refuse := func(text, hint string) (string, error) {
		return "", &plugin.Refused{Err: fault.New("ansible.Run", fault.Invalid, text).Hint(hint)}
	}
	field := strings.TrimSpace(target.Text(c.Service.Fields, PlaybookField))
	if field == "" {
		return refuse(fmt.Sprintf("the action %s of the service %s has no playbook", c.Action, c.Service.Name),
			"set its field "+PlaybookField+" to the name of an archive, or to NAME/FILE.yml")
	}
	name, file, _ := strings.Cut(field, "/")
	if file == "" {
		file = firstPlaybook
	}
	if !filepath.IsLocal(file) || path.Clean(file) != file {
		return refuse(fmt.Sprintf("the playbook %q is outside of its archive", field), "write it as NAME/FILE.yml")
	}
	folder, err := c.Files.Path(PlaybooksType, name)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(target.Archive(folder, name))
	if err != nil {
		return "", fault.Wrap("ansible.Run", fault.Internal, err).Say("cannot open the archive " + name)
	}
	defer root.Close()
	if info, err := root.Stat(file); err != nil || !info.Mode().IsRegular() {
		return refuse(fmt.Sprintf("the archive %s has no file %s", name, file),
			"add the file to the archive, or correct the field "+PlaybookField)
	}
	return filepath.Join(root.Name(), file), nil
}

// maxVars is the size of the largest extra_vars.
const maxVars = 1 << 20

// extraVars returns the variables of an action as JSON, or nothing.
func extraVars(c plugin.Call) (json.RawMessage, error) {
	raw := c.Service.Fields[ExtraVarsField]
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(strings.TrimSpace(text))
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || len(raw) > maxVars {
		return nil, &plugin.Refused{Err: fault.New("ansible.Run", fault.Invalid, fmt.Sprintf(
			"the field %s of the service %s is no JSON object of at most 1 MiB", ExtraVarsField, c.Service.Name)).
			Hint(`write it as {"port": 8080}`)}
	}
	return raw, nil
}
