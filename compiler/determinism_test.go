package compiler_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/internal/testing/tool"
)

// fleet is a model in which much could come in any order: relations both ways,
// loops, plug-ins, index lookups, resources with references to one another, a
// dependency manager, resource sets.
var fleet = map[string]string{
	"project.yml":         "name: fleet\nmodulepath: libs\n",
	"libs/m/module.yml":   "name: m\nversion: 1.0.0\nlicense: ASL\n",
	"libs/std/module.yml": "name: std\nversion: 1.0.0\nlicense: ASL\n",
	"libs/std/model/_init.cf": `entity ResourceSet:
    string? name = null
end
ResourceSet.resources [0:] -- std::Entity
implementation none for std::Entity:
end
implement ResourceSet using none
`,
	"libs/m/model/_init.cf": `entity Host:
    string name
end
index Host(name)
entity File extends std::Entity:
    string path
    string content
    dict options = {}
end
index File(host, path)
Host.files [0:] -- File.host [1]
Host.peers [0:] -- Host.peers [0:]
implementation none for std::Entity:
end
implementation motd for Host:
    for n in [1, 2, 3, 4, 5]:
        text = m::shout("{{ self.name }} {{ n }}")
        self.files += File(path="/etc/{{ n }}", content=text, options={"z": n, "a": [n, self.name]})
    end
    for f in self.files:
        if f.path != "/etc/1":
            f.requires += File[host=self, path="/etc/1"]
        end
    end
end
implement Host using motd
implement File using none
`,
	"libs/m/plugins/__init__.py": `from inmanta.plugins import plugin
from inmanta.resources import Resource, resource
from inmanta.export import dependency_manager


@plugin
def shout(text: "string") -> "string":
    return text.upper()


@resource("m::File", agent="host.name", id_attribute="path")
class File(Resource):
    fields = ("path", "content", "options", "size")

    @staticmethod
    def get_size(exporter, entity):
        return len(entity.content)


@dependency_manager
def hosts_in_a_row(model, resources):
    first = [r for r in resources.values() if r.path == "/etc/1"]
    for a, b in zip(first, first[1:]):
        b.requires.add(a)
`,
	"main.cf": `import m
import std
for i in [1, 2, 3, 4, 5, 6, 7, 8]:
    h = m::Host(name="h{{ i }}")
    h.peers += m::Host[name="h1"]
end
two = m::Host[name="h2"]
one = std::ResourceSet(name="one", resources=two.files)
`,
}

// exported compiles the fleet and writes the export without its times.
func exported(dir, cache string) ([]byte, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, err
	}
	out := compiler.Run(
		context.Background(),
		compiler.Options{
			Project:      dir,
			NoStd:        true,
			Export:       true,
			Python:       python,
			SitePackages: []string{},
			CacheDir:     cache,
		},
	)
	if !out.Document.Success {
		return nil, fmt.Errorf("%s", out.Text)
	}
	out.Document.Stages = nil
	var b bytes.Buffer
	if err := out.Document.Write(&b); err != nil {
		return nil, err
	}
	err = out.ModelDocument().Write(&b)
	return b.Bytes(), err
}

// The same input gives the same export, byte by byte: in twenty runs of one
// process, with cold and warm caches, and in another process, whose maps and
// hashes are seeded otherwise.
func TestSameInputSameExport(t *testing.T) {
	tool.Heavy(t, "compiles the same in many processes")
	if dir := os.Getenv("ORDAIN_TEST_FLEET"); dir != "" { // this is the other process
		b, err := exported(dir, os.Getenv("ORDAIN_TEST_CACHE"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(os.Getenv("ORDAIN_TEST_OUT"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if _, err := exec.LookPath("python3"); err != nil {
		tool.Missing(t, "there is no python3")
	}
	dir, cache := t.TempDir(), t.TempDir()
	for name, text := range fleet {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first, err := exported(dir, cache)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(first, []byte(`"m::File[`)); n < 40 {
		t.Fatalf("only %d mentions of resources in %s", n, first)
	}
	for n := range 19 {
		again, err := exported(dir, cache)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatalf("run %d differs: %s", n+2, difference(first, again))
		}
	}
	for n := range 2 {
		file := filepath.Join(t.TempDir(), "out")
		other := exec.Command(os.Args[0], "-test.run", "^TestSameInputSameExport$")
		other.Env = append(os.Environ(), "ORDAIN_TEST_FLEET="+dir, "ORDAIN_TEST_CACHE="+t.TempDir(),
			"ORDAIN_TEST_OUT="+file, fmt.Sprintf("PYTHONHASHSEED=%d", n+1))
		if text, err := other.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		again, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatalf("another process gives another export: %s", difference(first, again))
		}
	}
}

// difference shows where two texts part.
func difference(a, b []byte) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	from := max(0, n-80)
	cut := func(s []byte) string { return strings.ToValidUTF8(string(s[min(from, len(s)):min(n+80, len(s))]), "?") }
	return fmt.Sprintf("at byte %d\n%s\n%s", n, cut(a), cut(b))
}
