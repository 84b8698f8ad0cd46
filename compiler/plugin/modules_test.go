package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/python/runtime"
)

// installed finds a module in site-packages, for a model that loads the namespaces of all
// its Python files.
func installed(t testing.TB, interpreter, name string) eval.ModuleCode {
	t.Helper()
	dir := filepath.Join(plugintest.Site(t, interpreter), "inmanta_plugins", name)
	m := eval.ModuleCode{Name: name, Root: dir, Dir: dir}
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".py") {
			m.Files = append(m.Files, path)
			below := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(path, dir), ".py"), "/__init__")
			m.Namespaces = append(m.Namespaces, name+strings.ReplaceAll(below, "/", "::"))
		}
		return err
	})
	return m
}

// openPublished loads published modules.
func openPublished(t testing.TB, interpreter string, names []string, change ...func(*Config)) *project {
	t.Helper()
	unpacked, err := runtime.Unpack(filepath.Join(os.TempDir(), "ordain-plugin-test"))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Python:      interpreter,
		RuntimeDir:  unpacked,
		ProjectDir:  t.TempDir(),
		ProjectName: "test",
		CallTimeout: time.Minute,
		Settings:    map[string]map[string]any{"config": {"environment": "9b7b1d8c-0000-4000-8000-000000000001"}},
	}
	for _, f := range change {
		f(&c)
	}
	host := Start(t.Context(), c)
	t.Cleanup(func() { host.Close() })
	var code []eval.ModuleCode
	for _, name := range names {
		code = append(code, installed(t, interpreter, name))
	}
	loaded, err := host.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	p := &project{t: t, host: host, heap: newHeap(), plugins: map[string]*eval.Signature{}}
	for _, s := range loaded.Plugins {
		p.plugins[s.Name] = s
	}
	return p
}

// The published modules load without inmanta-core, and their plug-ins work.
func TestPublishedModules(t *testing.T) {
	for _, set := range plugintest.Sets {
		t.Run(set.Python, func(t *testing.T) {
			p := openPublished(t, plugintest.Venv(t, set), set.Modules)
			list := &types.List{Items: []types.Value{types.Str("b"), types.Str("a")}}
			for _, c := range []struct {
				plugin string
				args   []types.Value
				want   types.Value
			}{
				{"std::replace", []types.Value{types.Str("abc"), types.Str("b"), types.Str("x")}, types.Str("axc")},
				{"std::count", []types.Value{list}, types.Int(2)},
				{"std::unique_file", []types.Value{types.Str("p"), types.Str("s"), types.Str("t")},
					types.Str("p03c7c0ace395d80182db07ae2c30f034t")},
				{"std::validate_type", []types.Value{types.Str("pydantic.PositiveInt"), types.Int(-1)},
					types.Bool(false)},
				{"std::validate_type", []types.Value{types.Str("ipaddress.IPv4Address"), types.Str("10.0.0.1")},
					types.Bool(true)},
				{"std::ipindex", []types.Value{types.Str("10.0.0.0/24"), types.Int(5)}, types.Str("10.0.0.5")},
				{"std::environment", nil, types.Str("9b7b1d8c-0000-4000-8000-000000000001")},
			} {
				if got := p.value(c.plugin, c.args...); got != c.want {
					t.Errorf("%s(%v) = %v, want %v", c.plugin, c.args, got, c.want)
				}
			}
			one, ok1 := p.value("std::get_env", types.Str("ORDAIN_SURELY_NOT_SET")).(types.Unknown)
			two, ok2 := p.value("std::get_env", types.Str("ORDAIN_SURELY_NOT_SET")).(types.Unknown)
			if !ok1 || !ok2 || one == two {
				t.Errorf("variables that are not set are unknown, each for itself: %v, %v", one, two)
			}
		})
	}
}

// Jinja reads variables of the model and attributes of instances, waits for unset ones, and
// calls plug-ins as filters.
func TestTemplate(t *testing.T) {
	for _, set := range plugintest.Sets {
		t.Run(set.Python, func(t *testing.T) {
			var dir string
			p := openPublished(t, plugintest.Venv(t, set), set.Modules, func(c *Config) { dir = c.ProjectDir })
			if err := os.MkdirAll(filepath.Join(dir, "templates"), 0o755); err != nil {
				t.Fatal(err)
			}
			text := "{{ greeting | std.upper }} {% for h in hosts %}{{ h.name }}={{ h.maybe if h.maybe is defined " +
				"else '-' }} {% endfor %}{{ missing is defined }}"
			if err := os.WriteFile(filepath.Join(dir, "templates", "x.j2"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			one, two := p.heap.add("t::Host", "name", types.Str("one"), "maybe",
				types.Int(1)), p.heap.add("t::Host", "name", nil)
			two.empty["maybe"] = true
			p.heap.variables["greeting"] = types.Str("hello")
			p.heap.variables["hosts"] = &types.List{Items: []types.Value{one, two}}
			if o := p.call("std::template", types.Str("/x.j2")); len(o.Unset) != 1 ||
				o.Unset[0].(fakeSlot).name != "t::Host#2.name" {
				t.Fatalf("outcome %+v %v", o, o.Err)
			}
			two.values["name"] = types.Str("two")
			if got := p.value("std::template", types.Str("/x.j2")); got != types.Str("HELLO one=1 two=- False") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Facts that the server knows reach std::getfact; others are unknown.
func TestFacts(t *testing.T) {
	for _, set := range plugintest.Sets {
		t.Run(set.Python, func(t *testing.T) {
			p := openPublished(t, plugintest.Venv(t, set), set.Modules, func(c *Config) {
				c.Known = &Known{
					Facts: map[string]map[string]string{
						"std::testing::NullResource[a,name=n]": {"ip": "10.0.0.1"},
					},
					Environment: Environment{Name: "here"},
				}
			})
			i := p.heap.add("std::testing::NullResource", "name", types.Str("n"), "agentname", types.Str("a"))
			if got := p.value("std::getfact", i, types.Str("ip")); got != types.Str("10.0.0.1") {
				t.Errorf("got %v", got)
			}
			got := p.value("std::getfact", i, types.Str("mac"))
			if _, unknown := got.(types.Unknown); !unknown {
				t.Errorf("a fact that nobody knows is %v", got)
			}
			if got := p.value("std::environment_name"); got != types.Str("here") {
				t.Errorf("the environment is called %v", got)
			}
		})
	}
}

// Plug-ins inspect types: files::json finds the relation that leads to an
// instance from its parent, and writes a path of index attributes.
func TestTypesFromPython(t *testing.T) {
	set := plugintest.Sets[2]
	p := openPublished(t, plugintest.Venv(t, set), set.Modules)
	base := &types.Entity{Name: "files::json::SerializableEntity"}
	base.Attributes = []*types.Attribute{{Name: "mapping_overwrite", Type: types.DictT, Entity: base}}
	parent := &types.Entity{Name: "t::Parent", Parents: []*types.Entity{base}}
	child := &types.Entity{
		Name:    "t::Child",
		Parents: []*types.Entity{base},
		Indexes: []*types.Index{{Attributes: []string{"parent", "key"}}},
	}
	up := &types.Attribute{Name: "parent", Entity: child, End: &types.End{Target: parent, Low: 1, High: 1}}
	down := &types.Attribute{Name: "children", Entity: parent, End: &types.End{Target: child, High: -1}}
	up.End.Inverse, down.End.Inverse = down, up
	child.Attributes = []*types.Attribute{up, {Name: "key", Type: types.String, Entity: child}}
	parent.Attributes = []*types.Attribute{down}
	for _, e := range []*types.Entity{base, parent, child} {
		p.heap.types[e.Name] = e
	}
	empty := &types.Dict{Values: map[string]types.Value{}}
	top := p.heap.add("t::Parent", "mapping_overwrite", empty)
	i := p.heap.add("t::Child", "mapping_overwrite", empty, "parent", top, "key", types.Str("k.1"))
	if got := p.value("files::json::get_relation_from_parent", i); got != types.Str("children") {
		t.Errorf("relation: %v", got)
	}
	if got := p.value("files::json::get_relative_path", i); got != types.Str(`children[key=k\.1]`) {
		t.Errorf("path: %v", got)
	}
}
