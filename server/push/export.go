package push

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// pluginsPackage is the Python package that holds the packages of all modules.
const pluginsPackage = "inmanta_plugins"

// Export is what inmanta's exporter sends with put_version and put_partial. The fields are JSON as it was sent.
type Export struct {
	// Version is the reserved number; 0 for a partial export, which gets its number when it is stored.
	Version       int
	Resources     json.RawMessage // list of objects
	Modules       json.RawMessage // module_version_info
	ResourceState json.RawMessage // state by resource id: available or undefined
	ResourceSets  json.RawMessage // set or null by resource id
	Unknowns      json.RawMessage
	Info          json.RawMessage // version_info
	Pip           json.RawMessage
	Constraints   string
	// Partial, RemovedSets and AllowCode are of partial exports.
	Partial     bool
	RemovedSets []string
	AllowCode   bool
}

// exportInfo is version_info: what the exporter says of itself.
type exportInfo struct {
	Metadata map[string]any `json:"export_metadata"`
}

type moduleFile struct {
	Path string `json:"path"`
	Hash string `json:"hash_value"`
}

// exportedModule is a module in module_version_info. A module that was installed as a package has no files: executors
// install it as a package too.
type exportedModule struct {
	Name         string       `json:"name"`
	Version      string       `json:"version"`
	Files        []moduleFile `json:"files_in_module"`
	Requirements []string     `json:"requirements"`
	Editable     bool         `json:"editable_install"`
}

// brought are the packages that come with inmanta-core, and that modules import without asking for them.
var brought = []string{
	"email-validator", "jinja2", "more-itertools", "packaging", "pydantic", "python-dateutil", "pyyaml", "ruamel-yaml",
	"typing-inspect",
}

// decode reads an optional JSON value.
func decode(what string, raw json.RawMessage, into any) error {
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalid("%s cannot be read: %v", what, err)
	}
	return nil
}

// Read checks an export. pushed is what the server knows of the sender.
func (e Export) Read(env intent.EnvironmentID, pushed intent.Pushed) (Version, map[string]any, error) {
	v := Version{NewVersion: intent.NewVersion{Environment: env, Number: e.Version}}
	var info exportInfo
	if err := decode("version_info", e.Info, &info); err != nil {
		return v, nil, err
	}
	text := func(name string) string { s, _ := info.Metadata[name].(string); return s }
	pushed.User, pushed.Host, pushed.Message = text("cli-user"), text("hostname"), text("message")
	pushed.Client, pushed.Constraints = "inmanta export", e.Constraints
	var err error
	if pushed, err = checkPushed(pushed); err != nil {
		return v, nil, err
	}
	if e.Partial {
		v.Partial = &intent.PartialChange{Removed: e.RemovedSets, AllowCode: e.AllowCode}
	} else if e.Version <= 0 {
		return v, nil, invalid("The version number used (%d) is not positive", e.Version)
	}
	if err := e.resources(&v); err != nil {
		return v, nil, err
	}
	if v.Pip, err = readPip(e.Pip); err != nil {
		return v, nil, err
	}
	modules, err := e.code(&v, pushed.ConstraintLines())
	if err != nil {
		return v, nil, err
	}
	if err := e.unknowns(&v); err != nil {
		return v, nil, err
	}
	v.Provenance.Pushed, v.Provenance.Modules = &pushed, modules
	if err := checkPip(v.Pip); err != nil {
		return v, nil, err
	}
	return v, info.Metadata, checkClosed(v.NewVersion)
}

// readPip reads pip_config, whose names the exporter writes as project.yml does, with hyphens.
func readPip(raw json.RawMessage) (p intent.PipConfig, err error) {
	var given map[string]json.RawMessage
	if err := decode("pip_config", raw, &given); err != nil {
		return p, err
	}
	plain := make(map[string]json.RawMessage, len(given))
	for name, value := range given {
		plain[strings.ReplaceAll(name, "-", "_")] = value
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return p, err
	}
	err = decode("pip_config", text, &p)
	return p, err
}

func (e Export) resources(v *Version) error {
	var list []json.RawMessage
	if err := decode("resources", e.Resources, &list); err != nil {
		return err
	}
	states, sets := map[string]string{}, map[string]*string{}
	if err := decode("resource_state", e.ResourceState, &states); err != nil {
		return err
	}
	if err := decode("resource_sets", e.ResourceSets, &sets); err != nil {
		return err
	}
	v.Resources = make([]intent.Resource, 0, len(list))
	known := make(map[intent.ResourceID]bool, len(list))
	for _, raw := range list {
		r, err := parseResource(raw, e.Version)
		if err != nil {
			return err
		}
		if known[r.ID] {
			return invalid("the version has the resource %s twice", r.ID)
		}
		known[r.ID] = true
		name := r.ID.String()
		if set := sets[name]; set != nil {
			r.ResourceSet = *set
		}
		switch state := states[name]; state {
		case "undefined":
			if len(r.Undefined) == 0 {
				r.Undefined = []string{"an attribute"} // the exporter did not say which one
			}
		case "", "available":
			r.Undefined = nil
		default:
			return invalid("resource_state of %s must be available or undefined, and is %.60q", name, state)
		}
		v.Resources = append(v.Resources, r)
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		id, _, err := parseID(name)
		if err != nil {
			return err
		}
		if !known[id] {
			return invalid("resource_sets names the resource %s, which is not part of the version", name)
		}
		if set := sets[name]; set != nil {
			if err := checkSet(*set); err != nil {
				return err
			}
		}
	}
	for _, set := range e.RemovedSets {
		if err := checkSet(set); err != nil {
			return err
		}
	}
	return nil
}

func checkSet(name string) error {
	if name == "" || len(name) > maxName || plain(name) != strings.TrimSpace(name) {
		return invalid("%.100q is no name of a resource set", name)
	}
	return nil
}

// code gives every type the same code: that of all modules of the export. The exporter says on which agents a module
// is loaded, not for which types; and if it were less for some, a partial export, which has fewer agents, would seem to
// change the code of the rest.
func (e Export) code(v *Version, constraints []string) (versions map[string]string, err error) {
	var modules map[string]exportedModule
	if err := decode("module_version_info", e.Modules, &modules); err != nil {
		return nil, err
	}
	if len(modules) > 10_000 {
		return nil, invalid("there are more than 10000 modules")
	}
	all := intent.ResourceCode{Sources: []intent.SourceFile{}, Requirements: []string{}, Constraints: constraints}
	versions = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		if err := checkModule(name); err != nil {
			return nil, err
		}
		if m.Name != name || len(m.Version) > maxName {
			return nil, invalid("the module %s is listed under another name, or has too long a version", name)
		}
		versions[name] = plain(m.Version)
		if !m.Editable {
			if m.Files != nil {
				return nil, invalid("The package installed inmanta module %s can not carry files", name)
			}
			all.Requirements = append(all.Requirements, distributionOf(name)+"=="+m.Version)
			all.Modules = append(all.Modules, pluginsPackage+"."+name)
			continue
		}
		for _, f := range m.Files {
			if source, ok := sourceOf(name, f); ok {
				all.Sources = append(all.Sources, source)
			}
		}
		all.Requirements = append(all.Requirements, brought...)
		for _, r := range m.Requirements {
			if !providedBy(modules, r) {
				all.Requirements = append(all.Requirements, r)
			}
		}
	}
	slices.SortFunc(all.Sources, func(a, b intent.SourceFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(all.Requirements)
	all.Requirements = slices.Compact(all.Requirements)
	types := map[string]bool{}
	for i := range v.Resources {
		types[v.Resources[i].ID.Type] = true
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		one := all
		one.Type = name
		v.Code = append(v.Code, one)
	}
	all.Type = "std::All" // to check code that no resource needs
	v.Files, err = checkCode([]intent.ResourceCode{all})
	return versions, err
}

// sourceOf returns a file of an editable module as executors load it; ok is false for files that describe the package.
func sourceOf(module string, f moduleFile) (s intent.SourceFile, ok bool) {
	inside := strings.HasPrefix(f.Path, pluginsPackage+"/"+module+"/")
	if ending := path.Ext(f.Path); !inside || ending != ".py" && ending != ".pyc" {
		return s, path.Clean(f.Path) != f.Path // a path with .. is refused later and not passed over
	}
	dotted := strings.TrimSuffix(strings.TrimSuffix(f.Path, path.Ext(f.Path)), "/__init__")
	return intent.SourceFile{Module: strings.ReplaceAll(dotted, "/", "."), Path: f.Path, Hash: f.Hash}, true
}

func checkModule(name string) error {
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return invalid("%.100q is no name of a module", name)
	}
	return nil
}

// distributionOf returns the name of the package that a module is installed with.
func distributionOf(module string) string {
	return "inmanta-module-" + strings.ReplaceAll(module, "_", "-")
}

// providedBy reports whether a requirement is met without installing anything: by the server's own runtime, or by a
// module whose code is sent along.
func providedBy(modules map[string]exportedModule, requirement string) bool {
	name := requirement
	if end := strings.IndexFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}); end >= 0 {
		name = name[:end]
	}
	name = strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
	if name == "inmanta-core" || name == "inmanta" {
		return true
	}
	module, ok := strings.CutPrefix(name, "inmanta-module-")
	_, along := modules[strings.ReplaceAll(module, "-", "_")]
	return ok && along
}

func (e Export) unknowns(v *Version) error {
	var list []struct {
		Parameter string `json:"parameter"`
		Resource  string `json:"resource"`
		Source    string `json:"source"`
	}
	if err := decode("unknowns", e.Unknowns, &list); err != nil {
		return err
	}
	v.Unknowns = []intent.Unknown{}
	for _, u := range list {
		if len(u.Parameter) > maxWords || len(u.Source) > maxWords {
			return invalid("the name of an unknown parameter is longer than %d bytes", maxWords)
		}
		unknown := intent.Unknown{Parameter: plain(u.Parameter), Source: plain(u.Source)}
		if u.Resource != "" {
			id, _, err := parseID(u.Resource)
			if err != nil {
				return err
			}
			unknown.Resource = id
		}
		v.Unknowns = append(v.Unknowns, unknown)
	}
	return nil
}
