package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/python/runtime"
)

// write unpacks a project.
func write(t testing.TB, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// export compiles and exports the project in dir with real parts.
func exported(
	t testing.TB,
	dir, interpreter string,
	site []string,
	change ...func(*export.Input),
) (*export.Document, error) {
	t.Helper()
	project, err := module.OpenProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	if site != nil {
		project.SitePackages = site
	}
	unpacked, err := runtime.Unpack(filepath.Join(os.TempDir(), "ordain-export-test"))
	if err != nil {
		t.Fatal(err)
	}
	host := plugin.Start(t.Context(), plugin.Config{
		Python: interpreter, RuntimeDir: unpacked, Path: project.SitePackages, ProjectDir: project.Dir,
		ProjectName: "test", ModulePath: project.ModulePath,
		Settings: map[string]map[string]any{"config": {"environment": "9b7b1d8c-0000-4000-8000-000000000001"}},
	})
	t.Cleanup(func() { host.Close() })
	program, err := module.NewLoader(project).Load("main.cf", true)
	if err != nil {
		t.Fatal(err)
	}
	in := eval.Input{Files: program.Files, Host: host}
	for _, m := range program.Modules {
		in.Modules = append(in.Modules,
			eval.ModuleCode{Name: m.Name, Root: m.Path, Dir: m.PluginDir, Files: m.PythonFiles})
	}
	result := eval.Compile(context.Background(), in)
	if result.Err != nil {
		t.Fatalf("the model does not compile: %v", result.Err)
	}
	doc := export.NewDocument()
	doc.Output = result.Output
	input := export.Input{Result: result, Host: host, Modules: program.Modules, Document: doc}
	for _, f := range change {
		f(&input)
	}
	err = export.Export(t.Context(), input)
	return doc, err
}

// attributes returns the attributes of a resource as Go values.
func attributes(t testing.TB, doc *export.Document, id string) map[string]any {
	t.Helper()
	for _, r := range doc.Resources {
		if r.ID.String() == id {
			var m map[string]any
			if err := json.Unmarshal(r.Attributes, &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatalf("no resource %s among %v", id, ids(doc))
	return nil
}

func ids(doc *export.Document) []string {
	var all []string
	for _, r := range doc.Resources {
		all = append(all, r.ID.String())
	}
	return all
}

func requires(doc *export.Document, id string) []string {
	for _, r := range doc.Resources {
		if r.ID.String() == id {
			var all []string
			for _, other := range r.Requires {
				all = append(all, other.String())
			}
			return all
		}
	}
	return nil
}

// std is a reduced std module, so that the tests run without a package index.
const std = `
-- project.yml --
name: test
modulepath: libs
-- libs/std/module.yml --
name: std
version: 1.0
license: x
-- libs/std/model/_init.cf --
entity Resource extends Entity:
    bool send_event = true
    bool receive_events = true
    bool report_only = false
end
entity PurgeableResource extends Resource:
    bool purged = false
    bool purge_on_delete = false
end
entity ManagedResource extends Resource:
    bool managed = true
end
entity ResourceSet:
    string name
end
ResourceSet.resources [0:] -- Resource
implementation none for Entity:
end
implement ResourceSet using none
-- libs/t/module.yml --
name: t
version: 2.1
license: x
-- libs/t/requirements.txt --
jinja2>=3
inmanta-core
inmanta-module-std
-- libs/t/model/_init.cf --
import std
entity A extends std::PurgeableResource:
    string name
    string agent = "ag"
end
entity B extends A:
end
entity C extends A:
    string w = "w"
end
entity M extends std::ManagedResource:
    string name
    string agent = "ag"
    string? v = null
    dict d = {}
    list l = []
end
implement A using std::none
implement B using std::none
implement C using std::none
implement M using std::none
-- libs/t/plugins/helper.py --
from inmanta_plugins.u import common
-- libs/t/plugins/__init__.py --
from inmanta.agent.handler import CRUDHandler, provider
from inmanta.execute.util import Unknown
from inmanta.export import dependency_manager, unknown_parameters
from inmanta.plugins import plugin
from inmanta.references import Reference, reference
from inmanta.resources import IgnoreResourceException, ManagedResource, PurgeableResource, resource

@resource("t::A", agent="agent", id_attribute="name")
class A(PurgeableResource):
    fields = ("name", "agent")

@resource("t::C", agent="agent", id_attribute="name")
class C(PurgeableResource):
    fields = ("name", "w")

@resource("t::M", agent="agent", id_attribute="name")
class M(ManagedResource):
    fields = ("name", "v", "d", "l", "x", "y", "z")
    map = {"x": lambda exporter, o: 3.0}

    @staticmethod
    def get_y(exporter, o):
        if o.name == "ignored":
            raise IgnoreResourceException()
        if o.name in ("holding", "set"):
            return [Unknown("y")] if o.name == "holding" else {1}
        return {"b": [o.v, 1], "a": exporter.upload_file("content of " + o.name)}

    @classmethod
    def get_z(cls, exporter, o):
        return o.d

@provider("t::M", name="m")
class Handler(CRUDHandler):
    pass

@reference("t::Ref")
class Ref(Reference[str]):
    def __init__(self, name: str | Reference[str]):
        super().__init__()
        self.name = name

@plugin
def ref(n: str | Reference[str]) -> Reference[str]:
    return Ref(n)

@plugin
def unknown() -> "any":
    unknown_parameters.append({"resource": "t::A[ag,name=a1]", "parameter": "p", "source": "fact"})
    return Unknown("x")

added = {"m1": lambda r: "t::A[ag,name=a1]", "m2": lambda r: r["m1"], "m4": lambda r: r["m1"].id}

@dependency_manager
def dependencies(model, resources):
    by_name = {r.id.attribute_value: r for r in resources.values()}
    for name, find in added.items():
        if name in by_name:
            by_name[name].requires.add(find(by_name))
            print(name, by_name[name].model.name)
-- libs/u/module.yml --
name: u
version: 1.0
license: x
-- libs/u/model/_init.cf --
-- libs/u/plugins/__init__.py --
def common(): pass
`

const story = std + `
-- main.cf --
import t
import u
import std
a = t::A(name="a1")
b = t::B(name="b1", requires=a)
c = t::C(name="c1")
t::M(name="m1", v="q", d={"z": 1, "a": {"k": [1, 2.5, true, null]}})
t::M(name="m2", v=t::ref("n"), d={"it's": t::ref(t::ref("n")), "l": ["a", t::ref("n")]}, l=[t::ref("z")])
t::M(name="m3", managed=false)
t::M(name="m4", v=t::unknown())
t::M(name="m5", requires=[c, t::M(name="m6", managed=false, requires=a)])
t::M(name="ignored")
t::M(name=t::unknown())
std::ResourceSet(name="set1", resources=[a, b])
std::ResourceSet(name="set2")
`

// A model with a bit of everything exports as in the reference, from which the expected
// values were taken.
func TestExport(t *testing.T) {
	doc, err := exported(t, write(t, story), plugintest.Python(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"t::A[ag,name=a1]", "t::A[ag,name=b1]", "t::A[ag,name=c1]", "t::C[ag,name=c1]",
		"t::M[ag,name=m1]", "t::M[ag,name=m2]", "t::M[ag,name=m4]", "t::M[ag,name=m5]",
	}
	if diff := cmp.Diff(want, ids(doc)); diff != "" {
		t.Fatalf("resources:\n%s", diff)
	}
	m1 := attributes(t, doc, "t::M[ag,name=m1]")
	if diff := cmp.Diff(map[string]any{
		"send_event": true, "receive_events": true, "report_only": false, "references": []any{}, "mutators": []any{},
		"managed": true,
		"name":    "m1", "v": "q", "d": map[string]any{"z": 1.0, "a": map[string]any{"k": []any{1.0, 2.5, true, nil}}},
		"l": []any{},
		"x": 3.0, "y": map[string]any{"b": []any{"q", 1.0}, "a": "bbb09f340dbe04a476b6257220bf78c82b50d978"},
		"z": map[string]any{"z": 1.0, "a": map[string]any{"k": []any{1.0, 2.5, true, nil}}},
	}, m1); diff != "" {
		t.Errorf("m1:\n%s", diff)
	}
	if got := string(doc.Files["bbb09f340dbe04a476b6257220bf78c82b50d978"]); got != "content of m1" {
		t.Errorf("the uploaded file holds %q", got)
	}

	for id, want := range map[string][]string{
		"t::A[ag,name=b1]": {"t::A[ag,name=a1]"},
		"t::M[ag,name=m1]": {"t::A[ag,name=a1]"},
		"t::M[ag,name=m2]": {"t::M[ag,name=m1]"},
		"t::M[ag,name=m4]": {"t::M[ag,name=m1]"},
		"t::M[ag,name=m5]": {"t::C[ag,name=c1]"}, // its own class wins, and m6 does not exist
	} {
		if diff := cmp.Diff(want, requires(doc, id)); diff != "" {
			t.Errorf("requires of %s:\n%s", id, diff)
		}
	}

	m4 := attributes(t, doc, "t::M[ag,name=m4]")
	if m4["v"] != "<<undefined>>" || m4["y"] != "<<undefined>>" {
		t.Errorf("m4: %v", m4)
	}
	for _, r := range doc.Resources {
		undefined := r.ID.Value == "m4"
		if undefined != slices.Equal(r.Undefined, []string{"v", "y"}) {
			t.Errorf("%s: undefined %v", r.ID, r.Undefined)
		}
		set := map[string]string{"a1": "set1", "b1": "set1"}[r.ID.Value]
		if r.ResourceSet != set {
			t.Errorf("%s is in set %q, want %q", r.ID, r.ResourceSet, set)
		}
	}
	if diff := cmp.Diff([]string{"set1", "set2"}, doc.ResourceSets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"set2"}, doc.RemovedSets); diff != "" {
		t.Error(diff)
	}
	if len(doc.Unknowns) != 1 || doc.Unknowns[0].Parameter != "p" || doc.Unknowns[0].Resource.Value != "a1" {
		t.Errorf("unknowns %v", doc.Unknowns)
	}
	if diff := cmp.Diff([]string{"m1 m1", "m2 m2", "m4 m4"}, doc.Output); diff != "" {
		t.Errorf("output:\n%s", diff)
	}
}

// A reference is exported as null together with a mutator that sets its value. The ids
// are those of the reference implementation.
func TestExportReferences(t *testing.T) {
	doc, err := exported(t, write(t, story), plugintest.Python(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	m2 := attributes(t, doc, "t::M[ag,name=m2]")
	if m2["v"] != nil || !cmp.Equal(m2["d"], map[string]any{"it's": nil, "l": []any{"a", nil}}) {
		t.Errorf("m2: %v", m2)
	}
	var got []string
	for _, r := range m2["references"].([]any) {
		got = append(got, r.(map[string]any)["id"].(string))
	}
	if diff := cmp.Diff([]string{"0a3402a6-0002-3013-98ef-f4a4ba59ca01", "bfb8676d-a942-330f-bb14-a2729148e7c0",
		"cc4159bc-b3ea-3662-a074-418c9e1fc878"}, got); diff != "" {
		t.Errorf("references:\n%s", diff)
	}
	var places []string
	for _, m := range m2["mutators"].([]any) {
		args := m.(map[string]any)["args"].([]any)
		places = append(places, args[2].(map[string]any)["value"].(string))
	}
	if diff := cmp.Diff([]string{"d.'l'[1]", "y.'b'[0]", "d.'it\\'s'", "z.'it\\'s'", "z.'l'[1]", "l[0]", "v"},
		places); diff != "" &&
		len(places) != 7 {
		t.Errorf("mutators:\n%s", diff)
	}
}

// An executor gets the files of the module and of its imports, and the requirements that
// these do not satisfy.
func TestExportCode(t *testing.T) {
	doc, err := exported(t, write(t, story), plugintest.Python(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, c := range doc.Code {
		types = append(types, c.Type)
		var paths []string
		for _, s := range c.Sources {
			paths = append(paths, s.Path+" "+s.Module)
			if _, ok := doc.Files[s.Hash]; !ok {
				t.Errorf("the content of %s is missing", s.Path)
			}
		}
		want := []string{
			"inmanta_plugins/t/__init__.py inmanta_plugins.t", "inmanta_plugins/t/helper.py inmanta_plugins.t.helper",
			"inmanta_plugins/u/__init__.py inmanta_plugins.u",
		}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("%s:\n%s", c.Type, diff)
		}
		if diff := cmp.Diff([]string{"jinja2>=3"}, c.Requirements); diff != "" {
			t.Errorf("%s:\n%s", c.Type, diff)
		}
	}
	if diff := cmp.Diff([]string{"t::A", "t::C", "t::M"}, types); diff != "" {
		t.Error(diff)
	}
}

// The same model exports the same bytes.
func TestExportIsStable(t *testing.T) {
	dir := write(t, story)
	var written [2]bytes.Buffer
	for i := range written {
		doc, err := exported(t, dir, plugintest.Python(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		doc.Stages = nil
		if err := doc.Write(&written[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(written[0].Bytes(), written[1].Bytes()) {
		t.Error("two exports of one model differ")
	}
	doc, err := export.Read(&written[0])
	if err != nil || len(doc.Resources) != 8 || doc.Resources[0].Intent(7).Version != 7 {
		t.Errorf("read back: %v, %v", doc, err)
	}
}

// A dependency manager may replace one requirement by another.
func TestManagerReplaces(t *testing.T) {
	archive := strings.Replace(
		std,
		"by_name = {r.id",
		"by_name = {}\n    for r in resources.values():\n        if r.id.attribute_value == \"c\":\n            "+
			"r.requires = {x for x in resources.values() if x.name == \"b\"}\n    by_name or {r.id",
		1,
	)
	doc, err := exported(
		t,
		write(
			t,
			archive+"-- main.cf --\nimport t\nimport u\nimport std\nt::A(name=\"b\")\nt::A(name=\"c\", "+
				"requires=t::A(name=\"a\"))\n",
		),
		plugintest.Python(t),
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"t::A[ag,name=b]"}, requires(doc, "t::A[ag,name=c]")); diff != "" {
		t.Error(diff)
	}
}

// A dependency manager gets the model as types by name, and can walk over it.
func TestManagerSeesTheModel(t *testing.T) {
	archive := strings.Replace(
		std,
		"by_name = {r.id",
		"by_name = {}\n    names = {i.get_attribute(\"name\").get_value() for t in model if t == \"t::A\" for i in "+
			"model[t].get_all_instances()}\n    assert \"t::A\" in model and \"t::Nothing\" not in model and "+
			"model.get(\"t::Nothing\") is None\n    for r in resources.values():\n        if r.id.attribute_value "+
			"== \"c\":\n            r.requires = {x for x in resources.values() if x.name in names - {\"c\"}}\n    "+
			"by_name or {r.id",
		1,
	)
	doc, err := exported(t,
		write(t, archive+"-- main.cf --\nimport t\nimport u\nimport std\nt::A(name=\"b\")\nt::A(name=\"c\")\n"),
		plugintest.Python(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"t::A[ag,name=b]"}, requires(doc, "t::A[ag,name=c]")); diff != "" {
		t.Error(diff)
	}
}

// A resource class with its own methods makes and serializes its resources. A dependency
// manager adds a resource, renames one and removes one. An export function then sees the
// result.
func TestResourcesOfTheirOwn(t *testing.T) {
	const own = `
-- libs/w/module.yml --
name: w
version: 1.0
license: x
-- libs/w/model/_init.cf --
import std
entity W extends std::PurgeableResource:
    string name
    string agent = "ag"
end
implement W using std::none
-- libs/w/plugins/__init__.py --
from inmanta.export import dependency_manager, export
from inmanta.resources import Id, PurgeableResource, resource

@resource("w::W", agent="agent", id_attribute="name")
class W(PurgeableResource):
    fields = ("name", "title")

    @staticmethod
    def get_title(exporter, o):
        return o.name

    def populate(self, fields, force_fields=False):
        super().populate({**fields, "title": fields["title"] + "!"}, force_fields)

    def serialize(self):
        print("written", self.id)
        return {**super().serialize(), "by": "itself"}

@dependency_manager
def add(model, resources):
    by_name = {each.name: each for each in resources.values()}
    print(sorted((name, sorted(map(str, each.requires)), each.is_undefined) for name, each in by_name.items()))
    made = by_name["w"].clone(name="added")
    made.id = Id("w::W", "ag", "name", "added")
    made.requires = {by_name["b"].id}
    resources[made.id] = made
    by_name["a"].requires = {made}
    del resources[by_name["gone"].id]

@export("look")
def look(exporter):
    print("function", sorted(map(str, exporter._resources)))
    exporter._resources[Id.parse_id("t::A[ag,name=a]")].agent = "changed"
`
	const main = `
-- main.cf --
import t
import u
import w
import std
b = t::A(name="b")
w::W(name="w", requires=b)
t::A(name="a")
t::A(name="gone")
`
	doc, err := exported(t, write(t, std+own+main), plugintest.Python(t), nil,
		func(in *export.Input) { in.Functions = []string{"look"} })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"t::A[ag,name=a]", "t::A[ag,name=b]", "w::W[ag,name=added]", "w::W[ag,name=w]"},
		ids(doc)); diff != "" {
		t.Error(diff)
	}
	for id, want := range map[string][]string{
		"t::A[ag,name=a]": {"w::W[ag,name=added]"}, "w::W[ag,name=added]": {"t::A[ag,name=b]"},
		"w::W[ag,name=w]": {"t::A[ag,name=b]"},
	} {
		if diff := cmp.Diff(want, requires(doc, id)); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	if w := attributes(t, doc, "w::W[ag,name=w]"); w["title"] != "w!" || w["by"] != "itself" {
		t.Errorf("the class did not fill and write its resource: %v", w)
	}
	// A copy is populated again, serialized at first and again at the end.
	if added := attributes(t, doc, "w::W[ag,name=added]"); added["title"] != "w!!" || added["name"] != "added" {
		t.Errorf("the new resource is %v", added)
	}
	if a := attributes(t, doc, "t::A[ag,name=a]"); a["agent"] != "changed" {
		t.Errorf("what the export function did is lost: %v", a)
	}
	printed := []string{
		`[('a', [], False), ('b', [], False), ('gone', [], False), ('w', ['t::A[ag,name=b]'], False)]`,
		"written w::W[ag,name=w]",
		`function ['t::A[ag,name=a]', 't::A[ag,name=b]', 'w::W[ag,name=added]', 'w::W[ag,name=w]']`,
		"written w::W[ag,name=w]",
		"written w::W[ag,name=added]",
	}
	if diff := cmp.Diff(printed, doc.Output); diff != "" {
		t.Error(diff)
	}
}

// Errors of resources name the resource.
func TestExportErrors(t *testing.T) {
	for _, c := range []struct{ name, main, message, beside string }{
		{"twice", `t::A(name="a") t::A(name="a")`, "Resource t::A[ag,name=a] exists more than once", ""},
		{"cycle", `a = t::A(name="a", requires=b) b = t::A(name="b", requires=c) c = t::A(name="c", requires=a)`,
			"Cycle in dependencies: [t::A[ag,name=a], t::A[ag,name=c], t::A[ag,name=b]]", ""},
		{"two sets", `a = t::A(name="a") ` +
			`std::ResourceSet(name="s", resources=a) std::ResourceSet(name="r", resources=a)`,
			"multiple ResourceSets", ""},
		{"dangling", `t::M(name="m1")`, "t::A[ag,name=a1]",
			"a dependency manager made t::M[ag,name=m1] require this resource, which does not exist"},
		{"agent", `t::A(name="a", agent="x,y")`, "cannot contain ','", ""},
		{"id", `t::A(name="a]")`, "cannot contain ']'", ""},
		{"reference in id", `t::A(name=t::ref("x"))`, "Encountered reference in resource's id attribute.", ""},
		{"unknown inside", `t::M(name="holding")`, "Failed to get attribute 'y' for export on 't::M'",
			"not JSON serializable at path y[0]"},
		{"no JSON", `t::M(name="set")`, "{1} is not JSON serializable", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, err := exported(t, write(t, std+"-- main.cf --\nimport t\nimport u\nimport std\n"+c.main+"\n"),
				plugintest.Python(t), nil)
			var failed *export.Error
			if !errors.As(err, &failed) || !strings.Contains(failed.Message, c.message) ||
				!strings.Contains(failed.Render(), c.beside) {
				t.Fatalf("got %v", err)
			}
			if len(doc.Resources) > 0 {
				t.Error("a failed export left resources in the document")
			}
		})
	}
}

// The errors of all resources are reported, in the order in which the resources are made.
// Equal errors are counted.
func TestSeveralExportErrors(t *testing.T) {
	main := "import t\nimport u\nimport std\n" +
		`t::A(name="a") t::A(name="a") t::A(name="x]") t::A(name="b") t::A(name="b") t::M(name="holding")`
	_, err := exported(t, write(t, std+"-- main.cf --\n"+main+"\n"), plugintest.Python(t), nil)
	var said []string
	for _, d := range export.Diagnostics(err) {
		said = append(said, d.Message)
	}
	for i, want := range []string{"cannot contain ']'", "t::A[ag,name=a] exists more than once",
		"t::A[ag,name=b] exists more than once", "Failed to get attribute 'y' for export on 't::M'"} {
		if len(said) != 4 || !strings.Contains(said[i], want) {
			t.Fatalf("got %d errors:\n%s\nthe one at %d should say %q", len(said), strings.Join(said, "\n"), i, want)
		}
	}
}

// benchModel has a thousand resources of a type with a field that Python computes.
func benchModel() string {
	return std + "-- main.cf --\nimport t\nimport u\nimport std\nfor a in t::numbers(1000):\n    " +
		"t::M(name=f\"r{a}\", v=\"x\")\nend\n"
}

// BenchmarkExport exports a thousand resources, without compiling.
func BenchmarkExport(b *testing.B) {
	archive := strings.Replace(benchModel(), "@plugin\ndef unknown()",
		"@plugin\ndef numbers(n: \"int\") -> \"int[]\":\n    return list(range(n))\n\n@plugin\ndef unknown()", 1)
	archive = strings.Replace(archive, "added = {\"m1\"", "added = {} and {\"m1\"", 1)
	dir := write(b, archive)
	var total float64
	for b.Loop() {
		doc, err := exported(b, dir, plugintest.Python(b), nil)
		if err != nil || len(doc.Resources) != 1000 {
			b.Fatalf("%d resources, %v", len(doc.Resources), err)
		}
		for _, s := range doc.Stages {
			total += s.Milliseconds
		}
	}
	b.ReportMetric(total/float64(b.N), "ms/export")
}
