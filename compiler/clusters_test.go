package compiler_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/compiler/plugin/plugintest"
	"ordain.dev/ordain/internal/intent"
)

// webCluster is what a server knows of a cluster with three machines, of which the last is being made.
const webCluster = `{"in_place": true, "name": "web", "template": "lamp", "size": 3, "owner": "anna", "provider": "lab",
	"services": ["db", "web"], "config": {"port": 80, "deep": {"on": true}}, "nodes": [
	{"number": 1000, "hostname": "web-1000.local", "addresses": {"access_v4": "192.0.2.1", "bind_v4": "10.0.0.1"},
		"services": ["db"], "state": "ready", "facts": {"flavor": "s"}},
	{"number": 1001, "hostname": "web-1001.local", "addresses": {"access_v4": "192.0.2.2", "bind_v4": "10.0.0.2"},
		"services": ["web"], "state": "ready", "facts": {}},
	{"number": 1002, "hostname": "web-1002.local", "addresses": {}, "services": ["web"], "state": "planned",
		"facts": {}}]}`

// siteFiles is a project with resources for the machines of a cluster.
var siteFiles = map[string]string{
	"project.yml":          "name: site\nmodulepath: libs\n",
	"libs/site/module.yml": "name: site\nversion: 1.0\nlicense: x\n",
	"libs/site/model/_init.cf": `entity Host:
    string name
    string address
    string agent = "internal"
end
implement Host using none
implementation none for Host:
end
`,
	"libs/site/plugins/__init__.py": `from inmanta.resources import Resource, resource

@resource("site::Host", agent="agent", id_attribute="name")
class Host(Resource):
    fields = ("name", "address")
`,
}

// project writes files into a new folder.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// site compiles the project with what a server knows, and returns its resources as "name address", with ? for what is
// unknown.
func site(t *testing.T, main string, cache string, clusters plugin.Clusters) ([]string, *compiler.Outcome) {
	t.Helper()
	files := map[string]string{}
	for name, content := range siteFiles {
		files[name] = content
	}
	files["main.cf"] = main
	out := compiler.Run(t.Context(), compiler.Options{
		Project: project(t, files), NoStd: true, Export: true, Python: plugintest.Python(t),
		CacheDir: cache, Clusters: clusters,
	})
	if !out.Document.Success {
		t.Fatal(out.Text)
	}
	var found []string
	for _, r := range out.Document.Resources {
		var fields map[string]any
		if err := json.Unmarshal(r.Attributes, &fields); err != nil {
			t.Fatal(err)
		}
		address, _ := fields["address"].(string)
		if len(r.Undefined) > 0 {
			address = "?"
		}
		found = append(found, r.ID.Value+" = "+address)
	}
	slices.Sort(found)
	return found, out
}

// TestModelConfiguresTheMachinesOfItsClusters compiles a model that imports ordain, which nobody installed, and makes
// resources of the machines of a cluster.
func TestModelConfiguresTheMachinesOfItsClusters(t *testing.T) {
	const main = `import ordain
import site

for node in ordain::nodes("web"):
    site::Host(name=node["hostname"], address=node["addresses"]["access_v4"])
end
for node in ordain::nodes("web", every=true):
    host = node["hostname"]
    site::Host(name="every {{ host }}", address=node["addresses"]["bind_v4"])
end
for node in ordain::nodes_with("web", "web"):
    number = node["number"]
    site::Host(name="web {{ number }}", address=node["addresses"]["access_v4"])
end
for name in ordain::clusters():
    found = ordain::cluster(name)
    site::Host(name="cluster {{ name }}", address=found["template"])
end
`
	clusters := plugin.Clusters{
		"web": json.RawMessage(webCluster), "next": json.RawMessage(`{"in_place": false, "name": "next", "nodes": []}`),
	}
	cache := t.TempDir()
	want := []string{
		"cluster next = ?", "cluster web = lamp",
		"every web-1000.local = 10.0.0.1", "every web-1001.local = 10.0.0.2", "every web-1002.local = ?",
		"web 1001 = 192.0.2.2", "web-1000.local = 192.0.2.1", "web-1001.local = 192.0.2.2",
	}
	for range 2 { // the second compile remembers the load
		got, out := site(t, main, cache, clusters)
		if !slices.Equal(got, want) {
			t.Errorf("resources:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if out.Document.Modules["ordain"] == "" {
			t.Error("the document does not say that the model used ordain:", out.Document.Modules)
		}
		if len(out.Document.Unknowns) != 2 || out.Document.Unknowns[0].Parameter != "cluster next" {
			t.Error("unknowns:", out.Document.Unknowns)
		}
		for _, code := range out.Document.Code {
			ours := func(f intent.SourceFile) bool { return strings.Contains(f.Path, "ordain") }
			if slices.ContainsFunc(code.Sources, ours) {
				t.Error("handlers would get the module:", code)
			}
		}
	}
}

// TestClusterThatIsNotInPlaceIsUnknown compiles a model before its cluster is there, and without a server: resources
// that need it are undefined, so nothing is done, and nothing is removed.
func TestClusterThatIsNotInPlaceIsUnknown(t *testing.T) {
	const main = `import ordain
import site

nodes = ordain::nodes("web")
site::Host(name="balancer", address="{{ nodes }}")
web = ordain::cluster("web")
site::Host(name="template", address=web["template"])
site::Host(name="other", address="x")
for node in nodes:
    site::Host(name=node["hostname"], address="x")
end
for name in ordain::clusters():
    site::Host(name="cluster {{ name }}", address="x")
end
`
	cache := t.TempDir()
	want := []string{"balancer = ?", "other = x", "template = ?"}
	if got, _ := site(t, main, cache, nil); !slices.Equal(got, want) {
		t.Errorf("resources: %q, want %q", got, want)
	}
	being := plugin.Clusters{"web": json.RawMessage(strings.Replace(webCluster, "true", "false", 1))}
	want = slices.Insert(want, 1, "cluster web = x")
	if got, _ := site(t, main, cache, being); !slices.Equal(got, want) {
		t.Errorf("while it is made: resources: %q, want %q", got, want)
	}
}

// TestOwnModuleOfTheSameNameWins has a project with a module that is called ordain.
func TestOwnModuleOfTheSameNameWins(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml":                "name: own\nmodulepath: libs\n",
		"main.cf":                    "import ordain\nx = ordain::mine\n",
		"libs/ordain/module.yml":     "name: ordain\nversion: 7.0\nlicense: x\n",
		"libs/ordain/model/_init.cf": "mine = 1\n",
	})
	out := compiler.Run(t.Context(), compiler.Options{Project: dir, NoStd: true, CacheDir: t.TempDir()})
	if !out.Document.Success || out.Document.Modules["ordain"] != "7.0" {
		t.Errorf("%v %s", out.Document.Modules, out.Text)
	}
}

// TestCheckFindsTheModule checks a model without Python.
func TestCheckFindsTheModule(t *testing.T) {
	dir := project(t, map[string]string{
		"project.yml": "name: own\n", "main.cf": "import ordain\nx = ordain::nodes(\"web\")\n",
	})
	out := compiler.Run(t.Context(), compiler.Options{
		Project: dir, NoStd: true, CacheDir: t.TempDir(), Check: true, NoPlugins: true,
	})
	if !out.Document.Success {
		t.Error(out.Text)
	}
}
