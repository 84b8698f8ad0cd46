package api

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/servertest"
)

// fields are those of a JSON object.
type fields = map[string]any

// pusher sends versions to the environment sandbox, which has none and accepts those that are not from a commit.
type pusher struct {
	*client
	rich *servertest.Rich
}

func newPusher(t *testing.T) *pusher {
	t.Helper()
	c, r := rich(t)
	c.tid = r.Sandbox.ID.String()
	c.call("POST", "/api/v2/environment_settings/"+intent.AllowPushed, `{"value":true}`, 200)
	c.call("POST", "/api/v2/environment_settings/auto_deploy", `{"value":false}`, 200)
	return &pusher{c, r}
}

// reserve returns a new version number.
func (p *pusher) reserve() int {
	p.t.Helper()
	return int(p.call("POST", "/api/v2/reserve_version", "", 200).at("data").(float64))
}

// stored lists the numbers of all versions.
func (p *pusher) stored() (numbers []int) {
	p.t.Helper()
	for i := range p.get("/api/v2/desiredstate").list("data") {
		numbers = append(numbers, int(p.get("/api/v2/desiredstate").at("data", i, "version").(float64)))
	}
	slices.Sort(numbers)
	return numbers
}

// note is a resource of an export as inmanta writes it.
func note(name string, version int, requires ...string) fields {
	id := "lab::Note[desk,path=/" + name + "]"
	if version > 0 {
		id += ",v=" + strconv.Itoa(version)
	}
	return fields{"id": id, "path": "/" + name, "agent": "desk", "requires": append([]string{}, requires...)}
}

// exportBody is the body of put_version, or of put_partial for version 0, with changes to it.
func exportBody(t *testing.T, version int, resources []fields, changes fields) string {
	t.Helper()
	body := fields{"resources": resources, "module_version_info": fields{}, "version_info": fields{}}
	if version > 0 {
		body["version"] = version
	}
	for name, value := range changes {
		body[name] = value
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	noteA = "lab::Note[desk,path=/a]"
	noteB = "lab::Note[desk,path=/b]"
	noteC = "lab::Note[desk,path=/c]"
)

// A whole export that is wrong in any way is refused with words that say what is wrong, and nothing of it is stored:
// its number can be used for one that is right.
func TestHostileExports(t *testing.T) {
	p := newPusher(t)
	n := p.reserve()
	code := func(path, hash string) fields {
		return fields{"module_version_info": fields{"lab": fields{
			"name": "lab", "version": "1", "editable_install": true, "requirements": []string{},
			"files_in_module": []fields{{"path": path, "hash_value": hash}},
		}}}
	}
	absent := strings.Repeat("a", 40)
	one := []fields{note("a", n)}
	for _, c := range []struct {
		what      string
		version   int
		resources []fields
		changes   fields
		status    int
		says      string
	}{
		{"no id", n, []fields{{"id": 7}}, nil, 400, "no id"},
		{"an id that is none", n, []fields{{"id": "nonsense"}}, nil, 400, "nonsense"},
		{"an id without an agent", n, []fields{{"id": "lab::Note[,path=/a],v=1"}}, nil, 400, "lab::Note"},
		{"an id with NUL", n, []fields{{"id": "lab::Note[desk,path=/\x00],v=1"}}, nil, 400, "control characters"},
		{"an id that is too long", n, []fields{note(strings.Repeat("x", 5000), n)}, nil, 400, "too long"},
		{"another version", n, []fields{note("a", n+1)}, nil, 400, "another version"},
		{"an id twice", n, []fields{note("a", n), note("a", n)}, nil, 400, "twice"},
		{"an unknown requirement", n, []fields{note("a", n, noteB)}, nil, 400, noteB},
		{"a requirement that is no id", n, []fields{note("a", n, "b")}, nil, 400, "b"},
		{"a circle", n, []fields{note("a", n, noteB), note("b", n, noteA)}, nil, 400, "circle"},
		{"a resource that requires itself", n, []fields{note("a", n, noteA)}, nil, 400, "circle"},
		{"an attribute with NUL", n, []fields{{"id": noteA, "text": "\x00"}}, nil, 400, "NUL"},
		{"a state of nobody's invention", n, one,
			fields{"resource_state": fields{noteA: "excellent"}}, 400, "excellent"},
		{"a set of a resource that is not there", n, one, fields{"resource_sets": fields{noteB: "x"}}, 400, noteB},
		{"a set without a name", n, one, fields{"resource_sets": fields{noteA: ""}}, 400, "set"},
		{"a number that nobody reserved", n + 1, []fields{note("a", n+1)}, nil, 400, "reservation"},
		{"a number below one", -3, one, fields{"version": -3}, 400, "positive"},
		{"code outside of its folder", n, one, code("inmanta_plugins/lab/../../x.py", absent), 400, "path"},
		{"code that was not uploaded", n, one, code("inmanta_plugins/lab/__init__.py", absent), 400, absent},
		{"code without a hash", n, one, code("inmanta_plugins/lab/__init__.py", "../../etc/passwd"), 400, "SHA-1"},
		{"a module with a path for a name", n, one,
			fields{"module_version_info": fields{"../x": fields{"name": "../x"}}}, 400, "module"},
		{"an index that is a file", n, one, fields{"pip_config": fields{"index-url": "file:///etc"}}, 400, "index"},
		{"a constraint that reads a file", n, one, fields{"project_constraints": "-r /etc/passwd"}, 400, "constraint"},
		{"an unknown of a resource that is none", n, one,
			fields{"unknowns": []fields{{"parameter": "p", "resource": "nonsense", "source": "s"}}}, 400, "nonsense"},
		{"resources that are an object", n, nil, fields{"resources": fields{}}, 400, "resources"},
	} {
		p.call("PUT", "/api/v1/version", exportBody(t, max(c.version, 1), c.resources, merged(c.version, c.changes)),
			c.status).says(c.says)
	}
	if got := p.stored(); len(got) != 0 {
		t.Fatalf("versions %v were stored", got)
	}
	p.call("PUT", "/api/v1/version", exportBody(t, n, one, nil), 200)
	p.call("PUT", "/api/v1/version", exportBody(t, n, one, nil), 409).says("stored already")
	if got := p.stored(); !slices.Equal(got, []int{n}) {
		t.Errorf("the versions are %v, want %d alone", got, n)
	}
}

// A number means one version for ever: it is not accepted for another one when the first was deleted, by a person or by
// clearing the environment, and neither is that of a version that the server stored itself. A number that was reserved
// before is as good as it was.
func TestANumberMeansOneVersion(t *testing.T) {
	p := newPusher(t)
	put := func(number, status int) answer {
		t.Helper()
		return p.call("PUT", "/api/v1/version", exportBody(t, number, []fields{note("a", number)}, nil), status)
	}
	first, second, third, waits := p.reserve(), p.reserve(), p.reserve(), p.reserve()
	put(first, 200)
	p.call("DELETE", "/api/v1/version/"+strconv.Itoa(first), "", 200)
	put(first, 409).says("not reserved")
	put(second, 200)
	merged := int(p.call("PUT", "/api/v2/version/partial", exportBody(t, 0, []fields{note("b", 0)}, nil), 200).
		at("data").(float64))
	p.call("DELETE", "/api/v1/version/"+strconv.Itoa(merged), "", 200)
	put(merged, 409).says("not reserved")
	put(third, 200)
	if err := p.rich.Store.ClearEnvironment(t.Context(), p.rich.Sandbox.ID); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{first, second, third, merged} {
		put(n, 409).says("not reserved")
	}
	put(waits, 200)
	if got := p.stored(); !slices.Equal(got, []int{waits}) {
		t.Errorf("the versions are %v, want %d alone", got, waits)
	}
}

// merged sets the version in changes, unless they do already.
func merged(version int, changes fields) fields {
	all := fields{"version": version}
	for name, value := range changes {
		all[name] = value
	}
	return all
}

// A partial export is held to the same rules, against the version that it is merged with.
func TestHostilePartialExports(t *testing.T) {
	p := newPusher(t)
	const path = "/api/v2/version/partial"
	p.call("PUT", path, exportBody(t, 0, []fields{note("a", 0)}, fields{"resource_sets": fields{noteA: "left"}}),
		400).says("build on")
	n := p.reserve()
	p.call("PUT", "/api/v1/version", exportBody(t, n, []fields{note("a", n), note("c", n)},
		fields{"resource_sets": fields{noteA: "left"}}), 200)
	left := fields{"resource_sets": fields{noteB: "left"}}
	for _, c := range []struct {
		resources []fields
		changes   fields
		says      string
	}{
		{[]fields{note("b", 3)}, left, "version information"},
		{[]fields{note("b", 0, "lab::Note[desk,path=/nowhere]")}, left, "/nowhere"},
		{[]fields{note("b", 0, noteA)}, left, noteA}, // a is in the set that this export replaces
		{[]fields{note("b", 0, noteC)}, left, noteC}, // c is shared, but not in this export
		{[]fields{note("d", 0, noteC)}, nil, noteC},
		{[]fields{note("d", 0, "lab::Note[desk,path=/nowhere]")}, nil, "/nowhere"},
		{[]fields{note("b", 0, noteB)}, left, "circle"},
		{nil, fields{"removed_resource_sets": []string{""}}, "set"},
		{nil, fields{"removed_resource_sets": []string{"x\x00"}}, ""},
		{[]fields{note("b", 0)}, fields{"resource_sets": fields{noteB: "left"},
			"removed_resource_sets": []string{"left"}}, "left"},
	} {
		if c.resources == nil {
			c.resources = []fields{}
		}
		p.call("PUT", path, exportBody(t, 0, c.resources, c.changes), 400).says(c.says)
	}
	if got := p.stored(); !slices.Equal(got, []int{n}) {
		t.Fatalf("the versions are %v, want %d alone", got, n)
	}
	// What sets share comes along with every part.
	p.call("PUT", path, exportBody(t, 0, []fields{note("b", 0, noteC), note("c", 0)}, left), 200).
		is(n+1, "data")
}

// The document of ordain export is held to the same rules.
func TestHostileDocuments(t *testing.T) {
	p := newPusher(t)
	const path = "/api/v2/version/document"
	document := func(changes fields, resources ...fields) string {
		d := fields{"format": export.DocumentFormat, "success": true, "resources": append([]fields{}, resources...)}
		for name, value := range changes {
			d[name] = value
		}
		text, err := json.Marshal(fields{"document": d})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	resource := func(name string, requires ...string) fields {
		return fields{"id": "lab::Note[desk,path=/" + name + "]", "attributes": fields{"path": "/" + name},
			"requires": append([]string{}, requires...)}
	}
	for _, c := range []struct{ body, says string }{
		{`{"document": []}`, "document"},
		{`{"document": {}}`, "format"},
		{document(fields{"format": 99}), "format"},
		{document(fields{"success": false}), "did not compile"},
		{document(nil, fields{"id": "nonsense", "attributes": fields{}}), "nonsense"},
		{document(nil, resource("a"), resource("a")), "twice"},
		{document(nil, resource("a", noteB)), noteB},
		{document(nil, resource("a", noteB), resource("b", noteA)), "circle"},
		{document(nil, fields{"id": noteA, "attributes": []int{1}}), "attributes"},
		{document(fields{"files": fields{strings.Repeat("a", 40): "eA=="}}), "files"},
		{document(fields{"provenance": 7}), "document"},
	} {
		p.call("PUT", path, c.body, 400).says(c.says)
	}
	if got := p.stored(); len(got) != 0 {
		t.Fatalf("versions %v were stored", got)
	}
	p.call("PUT", path, document(nil, resource("a"), resource("b", noteA)), 200).is(1, "data", "version")
}

// Two clients that export at once get numbers of their own; of several that use one number, one wins.
func TestTwoClientsExportAtOnce(t *testing.T) {
	p := newPusher(t)
	const clients = 8
	send := func(version func() int) (codes map[int]int) {
		bodies := make([]string, clients)
		for i := range bodies {
			n := version()
			bodies[i] = exportBody(t, n, []fields{note("a", n), note(fmt.Sprintf("client-%d", i), n)}, nil)
		}
		var group sync.WaitGroup
		statuses := make([]int, clients)
		for i, body := range bodies {
			group.Go(func() { statuses[i] = p.send("PUT", "/api/v1/version", body).Code })
		}
		group.Wait()
		codes = map[int]int{}
		for _, status := range statuses {
			codes[status]++
		}
		return codes
	}
	seen := map[int]bool{}
	if codes := send(func() int { n := p.reserve(); seen[n] = true; return n }); codes[200] != clients {
		t.Errorf("clients with numbers of their own were answered %v", codes)
	}
	if len(seen) != clients {
		t.Errorf("of %d reservations, only %d numbers differ", clients, len(seen))
	}
	same := p.reserve()
	if codes := send(func() int { return same }); codes[200] != 1 || codes[409] != clients-1 {
		t.Errorf("clients with one number were answered %v", codes)
	}
	if got := p.stored(); len(got) != clients+1 {
		t.Errorf("the versions are %v", got)
	}
}

// A version cannot bring code that belongs to another project: an export that names its hash is told the same as one
// that names a file that does not exist.
func TestAnExportCannotUseFilesOfAnotherProject(t *testing.T) {
	c, r := withPeople(t)
	admin := c.as("ada")
	other := admin.call("PUT", "/api/v2/project", `{"name": "theirs"}`, 200).text("data", "id")
	env := admin.call("PUT", "/api/v2/environment", `{"name": "theirs", "project_id": "`+other+`",
		"repository": "https://git.example.com/theirs.git", "branch": "main"}`, 200).text("data", "id")
	maintains := func(name string, project uuid.UUID, env string) *pusher {
		r.AddPerson(t, name, access.Binding{Role: access.Maintainer, Scope: access.Scope{Project: project}})
		p := &pusher{c.as(name), r}
		p.tid, admin.tid = env, env
		admin.call("POST", "/api/v2/environment_settings/"+intent.AllowPushed, `{"value":true}`, 200)
		return p
	}
	theirs := maintains("olga", uuid.MustParse(other), env)
	ours := maintains("max", r.Project.ID, r.Sandbox.ID.String())
	const source = "password = 'swordfish'\n"
	sum := sha1.Sum([]byte(source))
	hash := hex.EncodeToString(sum[:])
	upload := func(p *pusher) {
		t.Helper()
		p.call("PUT", "/api/v1/file/"+hash, `{"content": "`+base64.StdEncoding.EncodeToString([]byte(source))+`"}`, 200)
	}
	body := func(version int) string {
		return exportBody(t, version, []fields{note("a", version)}, fields{"module_version_info": fields{
			"lab": fields{
				"name": "lab", "version": "1", "editable_install": true, "requirements": []string{},
				"files_in_module": []fields{{"path": "inmanta_plugins/lab/__init__.py", "hash_value": hash}},
			},
		}})
	}
	ours.call("PUT", "/api/v1/version", body(ours.reserve()), 400).says("not uploaded")
	upload(theirs)
	theirs.call("PUT", "/api/v1/version", body(theirs.reserve()), 200)
	ours.call("PUT", "/api/v1/version", body(ours.reserve()), 400).says("not uploaded")
	ours.call("GET", "/api/v1/file/"+hash, "", 404)
	theirs.tid = ours.tid
	theirs.call("POST", "/api/v2/reserve_version", "", 404) // they do not learn that it exists
	upload(ours)                                            // someone who has the content may use it
	ours.call("PUT", "/api/v1/version", body(ours.reserve()), 200)
}
