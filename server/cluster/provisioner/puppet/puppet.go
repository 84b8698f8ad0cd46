// Package puppet is the automator that applies Puppet manifests, on the machine itself and
// without a Puppet server.
//
//	action {"manifest": "web.pp", "modules": "nginx, puppetlabs-stdlib", "facts": {"role": "web"}}
//	  └─ web.pp is a resource of the type manifests; otherwise manifest is the code itself
//	     nginx and puppetlabs-stdlib (as stdlib) are archives of the type modules
//
//	working folder on the machine: manifest, modules, facts, Hiera data ── puppet apply ──▶ output, exit status
//
// Manifests know the task in two ways:
//
//	$facts['ordain']  with action, cluster, node, nodes, service and config
//	lookup('KEY')     a key of the cluster's configuration, so that NAME::PARAMETER is that of a class
//
// The certificate name is the host name of the node, for which node definitions go by. Puppet's
// own state lies in the working folder too, and is removed with it.
package puppet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/ssh"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// Fields and resource types of the automator.
const (
	ManifestField = "manifest"
	ModulesField  = "modules"
	FactsField    = "facts"

	ManifestsType = "manifests"
	ModulesType   = "modules"
)

// Puppet is the plug-in.
type Puppet struct{}

var _ plugin.Automator = Puppet{}

// Run applies the manifest of an action.
func (Puppet) Run(ctx context.Context, c plugin.Call) (plugin.Result, error) {
	if c.Service == nil {
		return plugin.Result{}, plugin.Refuse("the task has no service")
	}
	files, err := filesOf(c)
	if err != nil {
		return plugin.Result{}, err
	}
	t, err := target.Open(ctx, c)
	if err != nil {
		return plugin.Result{}, err
	}
	err = apply(ctx, c, t, files)
	if e := t.Close(); err == nil && e != nil && c.Out != nil {
		fmt.Fprintln(c.Out, "the manifest was applied; its working folder could not be removed: "+e.Error())
	}
	return plugin.Result{}, err
}

// find is shell text that sets puppet to the program, or to nothing.
const find = `puppet=$(command -v puppet) || puppet=
if [ -z "$puppet" ] && [ -x /opt/puppetlabs/bin/puppet ]; then puppet=/opt/puppetlabs/bin/puppet; fi
`

// Exit statuses of our own, beside those of puppet apply: 0 nothing to do, 1 no catalogue, 2 changes, 4 failures,
// 6 changes and failures.
const noPuppet = 64

// applyScript needs the name of the node as $1. Modules of the system's packages may be used, too.
const applyScript = find + `if [ -z "$puppet" ]; then exit 64; fi
exec "$puppet" apply --detailed-exitcodes --color=false --certname="$1" \
	--confdir="$PWD/conf" --codedir="$PWD/conf/code" \
	--vardir="$PWD/var" --rundir="$PWD/var/run" --logdir="$PWD/var/log" \
	--hiera_config="$PWD/hiera.yaml" --pluginfactdest="$PWD/facts.d" \
	--modulepath="$PWD/modules:/etc/puppet/code/modules:/usr/share/puppet/modules:/opt/puppetlabs/puppet/modules" \
	-- "$PWD/manifest.pp"`

func apply(ctx context.Context, c plugin.Call, t *target.Target, f *files) error {
	for name, content := range f.written {
		if err := t.Write(ctx, name, 0o600, content); err != nil {
			return err
		}
	}
	for name, local := range f.copied {
		if err := t.Put(ctx, name, local); err != nil {
			return err
		}
	}
	log := &log{out: c.Out}
	err := t.Run(ctx, target.Script{
		Text: applyScript, Args: []string{strings.ToLower(c.Node.Hostname)},
		Limit: time.Duration(c.TimeoutMS) * time.Millisecond, Out: log,
	})
	log.flush()
	return judge(c, log.errors, err)
}

// judge returns the error of a run that ended.
func judge(c plugin.Call, said []string, err error) error {
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.Status == 2 && exit.Signal == "" {
		if exit != nil {
			return nil
		}
		return err
	}
	where := fmt.Sprintf("%s of the service %s failed on %s", c.Action, c.Service.Name, c.Node.Hostname)
	lines := target.Mask(c, strings.Join(said, "\n"))
	switch {
	case exit.Status == noPuppet:
		return fault.New("puppet.Run", fault.Unavailable, where+": the machine has no Puppet").
			Hint("it had when the machine was prepared; install it again, or create the node again")
	case exit.Status == 1 && notCode.MatchString(lines):
		return refuse(where+": Puppet cannot use the manifest: "+lines,
			"correct the manifest or its modules, and upload them again")
	case lines != "":
		return fault.New("puppet.Run", fault.Unavailable, where+": "+lines)
	}
	return fault.Wrap("puppet.Run", fault.Unavailable, err).Say(where)
}

// notCode recognizes errors in the code, which is the same the next time.
var notCode = regexp.MustCompile(`Could not parse|Syntax error|Evaluation Error`)

// files are the content of the working folder.
type files struct {
	written map[string][]byte
	copied  map[string]string // paths here
}

const hieraConfig = `---
version: 5
hierarchy:
  - name: ordain
    data_hash: json_data
    datadir: data
    path: config.json
`

// filesOf collects the files of a call.
func filesOf(c plugin.Call) (*files, error) {
	f := &files{written: map[string][]byte{"hiera.yaml": []byte(hieraConfig)}, copied: map[string]string{}}
	if err := f.manifest(c); err != nil {
		return nil, err
	}
	if err := f.modules(c); err != nil {
		return nil, err
	}
	return f, f.values(c)
}

func refuse(text, hint string) error {
	return &plugin.Refused{Err: fault.New("puppet.Run", fault.Invalid, text).Hint(hint)}
}

// fileName is a text that looks like the name of a file and not like code.
var fileName = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

func (f *files) manifest(c plugin.Call) error {
	text := strings.TrimSpace(target.Text(c.Service.Fields, ManifestField))
	if text == "" {
		return refuse(fmt.Sprintf("the action %s of the service %s has no manifest", c.Action, c.Service.Name),
			"set its field "+ManifestField+" to the name of a manifest or to code")
	}
	names := namesOf(c, ManifestsType)
	if slices.Contains(names, text) || fileName.MatchString(text) {
		local, err := c.Files.Path(ManifestsType, text)
		if err != nil && !slices.Contains(names, text) {
			return refuse(
				fmt.Sprintf("there is no manifest %q among the automator's resources (%s)", text, listed(names)),
				"upload and stage it, or correct the service")
		}
		f.copied["manifest.pp"] = local
		return err
	}
	f.written["manifest.pp"] = []byte(text + "\n")
	return nil
}

func namesOf(c plugin.Call, resourceType string) (names []string) {
	for _, r := range c.Resources {
		if r.Kind == "automatortypes" && r.Plugin == c.Service.Type && r.Type == resourceType {
			names = append(names, r.Name)
		}
	}
	return names
}

func listed(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	return strings.Join(names, ", ")
}

// moduleName is the name of a module, after that of its author and before a version, as the Forge names archives.
var moduleName = regexp.MustCompile(`^(?:[A-Za-z0-9]+-)?([a-z][a-z0-9_]*)(?:-[0-9][0-9A-Za-z.-]*)?$`)

func (f *files) modules(c plugin.Call) error {
	names, err := modulesField(c)
	if err != nil {
		return err
	}
	have := namesOf(c, ModulesType)
	for _, name := range names {
		match := moduleName.FindStringSubmatch(name)
		if match == nil {
			return refuse(fmt.Sprintf("%q cannot be the name of a module", name),
				"name the archive as the module, or as AUTHOR-MODULE: small letters, digits and _")
		}
		if !slices.Contains(have, name) {
			return refuse(
				fmt.Sprintf("there is no module %q among the automator's resources (%s)", name, listed(have)),
				"upload and stage it, or correct the service")
		}
		local, err := c.Files.Path(ModulesType, name)
		if err != nil {
			return err
		}
		at := path.Join("modules", match[1])
		if f.copied[at] != "" {
			return refuse("two archives have the module "+match[1], "leave one of them out")
		}
		f.copied[at] = moduleFolder(local, name, match[1])
	}
	return nil
}

// modulesField returns the names of the modules: a list, or a text with commas.
func modulesField(c plugin.Call) ([]string, error) {
	raw := c.Service.Fields[ModulesField]
	var list []string
	var text string
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, refuse("the field "+ModulesField+" is neither a text nor a list of texts",
			"write names with commas")
	}
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \n\t", r) }), nil
}

func (f *files) values(c plugin.Call) error {
	facts := map[string]any{}
	raw := c.Service.Fields[FactsField]
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(strings.TrimSpace(text))
	}
	if len(raw) > 0 {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(raw, &given); err != nil {
			return refuse("the field "+FactsField+" of the service "+c.Service.Name+" is no JSON object",
				`write it as {"role": "web"}`)
		}
		for name, value := range given {
			facts[name] = value
		}
	}
	// What the provider knows stays here: its fields have credentials of other machines, and facts may be sealed.
	node := c.Node
	node.Facts = nil
	config := c.Config
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	facts["ordain"] = map[string]any{
		"action": c.Action, "cluster": c.Cluster, "node": node, "nodes": c.Nodes, "config": config,
		"service": map[string]any{"name": c.Service.Name, "type": c.Service.Type},
	}
	var err error
	if f.written["facts.d/ordain.json"], err = json.Marshal(facts); err != nil {
		return fault.Wrap("puppet.Run", fault.Invalid, err).Say("the task is no JSON")
	}
	if f.written["data/config.json"], err = literal(config); err != nil {
		return fault.Wrap("puppet.Run", fault.Invalid, err).Say("the configuration of the cluster is no JSON object")
	}
	return nil
}

// literal returns JSON for Hiera, which takes %{…} in keys and texts for something to insert.
func literal(config json.RawMessage) ([]byte, error) {
	var tree map[string]any
	d := json.NewDecoder(strings.NewReader(string(config)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	return json.Marshal(escape(tree))
}

func escape(value any) any {
	const start = "%{"
	text := func(s string) string { return strings.ReplaceAll(s, start, "%{literal('%')}{") }
	switch v := value.(type) {
	case string:
		return text(v)
	case []any:
		for i := range v {
			v[i] = escape(v[i])
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := escape(v[key])
			delete(v, key)
			v[text(key)] = below
		}
	}
	return value
}
