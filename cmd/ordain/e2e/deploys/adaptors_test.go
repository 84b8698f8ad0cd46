package deploys

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/control"
)

// siteModule is a module with a store of git-ops for greetings.
var siteModule = map[string]string{
	"libs/site/module.yml":     "name: site\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/site/model/_init.cf": "import git_ops\n",
	"libs/site/plugins/__init__.py": `from inmanta_plugins.git_ops import slice, store


class Greeting(slice.SliceObjectABC):
    keys = ["place"]
    place: str
    text: str


STORE = store.SliceStore(name="greetings", folder="inmanta:///greetings/", schema=Greeting)
`,
	"requirements.txt": "inmanta-module-std\ninmanta-module-mitogen\ninmanta-module-files\ninmanta-module-fs\n" +
		"inmanta-module-exec\ninmanta-module-rest\ninmanta-module-user\ninmanta-module-git-ops\n",
	"project.yml": "name: site\nmodulepath: libs\npip:\n  use_system_config: true\n",
}

// counter is a service that the model configures over HTTP. It records the calls.
type counter struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string
	down  bool
}

func newCounter(t *testing.T) *counter {
	c := &counter{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls = append(c.calls,
			fmt.Sprintf("%s %s %v %s", r.Method, r.URL.Path, body["level"], r.Header.Get("X-Site")))
		w.Header().Set("Content-Type", "application/json")
		if c.down {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintf(w, `{"level": %v}`, body["level"])
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *counter) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.calls
	c.calls = nil
	return taken
}

// adaptorsModel deploys a site on this machine with published modules.
const adaptorsModel = `import std
import mitogen
import files
import fs
import exec
import rest
import user
import git_ops
import site

host = std::Host(name="desk", os=std::linux, via=mitogen::Local())
files::Directory(host=host, path="SITE/conf", permissions=750, purged=PURGED)
text = files::TextFile(host=host, path="SITE/conf/motd", content="TEXT", permissions=640, purged=PURGED)
files::Symlink(host=host, path="SITE/link", target="SITE/conf/motd", purged=PURGED)
fs::File(host=host, path="SITE/old", content="fs: TEXT", mode=600, purged=PURGED)
exec::Run(host=host, command=exec::in_shell("echo once >> SITE/ran"), creates="SITE/ran", requires=text)
rest::RESTCall(
    agent="desk", url="URL/level", method="PUT", body={"level": 3}, headers={"X-Site": "TEXT"},
    validate_return=".level == 3",
)
user::Group(host=host, name="root")
for greeting in git_ops::unroll_slices("greetings"):
    files::TextFile(
        host=host, path=greeting["attributes"]["place"], content=greeting["attributes"]["text"],
        permissions=600, purged=PURGED,
    )
end
`

// Published modules fail in Ordain although they work in Inmanta. A site uses files,
// fs, exec, mitogen, rest, user and git-ops, none of them changed. A push deploys it.
// A dry run finds damage and repairs nothing; a repair repairs it. A push with another
// text changes only what has that text, and a push that purges removes what handlers
// can remove.
func TestPublishedAdaptors(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	python := lab.NewPython(t)
	w := lab.OwnWorld(t, func(o *config.Config) { o.Python, o.HandlerTimeout = python, lab.Patience })
	service := newCounter(t)
	p := w.NewPlace(t)
	if err := os.Chmod(p.Site, 0o755); err != nil {
		t.Fatal(err)
	}
	model := func(text string, purged bool) map[string]string {
		return map[string]string{
			"main.cf": strings.NewReplacer("SITE", p.Site, "TEXT", text, "URL", service.URL, "PURGED",
				fmt.Sprint(purged)).
				Replace(adaptorsModel),
		}
	}
	p.Push("a site", lab.MergeFiles(siteModule, model("welcome", false), map[string]string{
		"git_ops/active/greetings/hello@v1.yaml": "place: " + p.Site + "/hello\ntext: hello from a slice\n",
	}))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	deployedSite := func(text string) map[string]string {
		return map[string]string{
			"conf": "drwxr-x---", "conf/motd": "-rw-r----- " + text, "link": "-> " + p.Site + "/conf/motd",
			"old": "-rw------- fs: " + text,
			"ran": "-rw-r--r-- once\n", "hello": "-rw------- hello from a slice",
		}
	}
	allDeployed(p)
	wantOnDisk(p, deployedSite("welcome"))
	if calls := service.take(); !slices.Equal(calls, []string{"PUT /level 3 welcome"}) {
		t.Errorf("the service was called %q", calls)
	}
	created := p.Action("files::TextFile", "/conf/motd")
	if created.Change != intent.Created {
		t.Errorf("the text was %s: %s", created.Change, lab.LogText(created))
	}
	lab.Mentions(t, lab.LogText(created), "Calling read_resource", "Calling create_resource")
	lab.Mentions(t, lab.LogText(p.Action("rest::RESTCall", "/level")), "Calling REST api", "Call returned")
	lab.Mentions(t, lab.LogText(p.Action("exec::Run", "groupadd")), "Unless cmd", "returncode: 0")

	ran, err := p.Control.Executors(t.Context(), p.Env)
	if err != nil || !ran.Here || len(ran.Processes) != 1 || ran.Processes[0].Agents != 1 ||
		!slices.Contains(ran.Processes[0].Modules, "files") {
		t.Errorf("the executors: %+v, %v", ran, err)
	}
	if len(ran.Folders) != 2 || !ran.Folders[0].InUse || !ran.Folders[1].InUse || ran.Disk < 1<<20 {
		t.Errorf("on disk: %+v", ran)
	}

	damage := func() {
		t.Helper()
		for _, err := range []error{
			os.WriteFile(filepath.Join(p.Site, "conf/motd"), []byte("graffiti"),
				0o640), os.Chmod(filepath.Join(p.Site, "old"), 0o644),
			os.Remove(filepath.Join(p.Site, "link")), os.Remove(filepath.Join(p.Site, "hello")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	damage()
	diffs := dryRun(p)
	for name, want := range map[string]string{
		"/conf/motd": "content: graffiti -> welcome", "/old": "permissions: 644 -> 600",
		"/link": "purged: true -> false", "/hello": "purged: true -> false",
	} {
		if got := diffs[name]; got != want {
			t.Errorf("the dry run reports %[2]q for %[1]s, want %[3]q", name, got, want)
		}
	}
	if got := diffs["/conf"]; got != "" {
		t.Errorf("the dry run reports %q for the folder, which is unchanged", got)
	}
	if text := p.Note("conf/motd"); text != "graffiti" {
		t.Fatalf("the dry run wrote %q", text)
	}
	service.take()

	// A resource stays deployed until its repair begins, so each of them is waited for.
	damaged := [][2]string{
		{"files::TextFile", "/conf/motd"}, {"fs::File", "/old"},
		{"files::Symlink", "/link"}, {"files::TextFile", "/hello"},
	}
	newest := func() (ids []intent.ActionID) {
		for _, d := range damaged {
			ids = append(ids, p.Action(d[0], d[1]).ID)
		}
		return ids
	}
	before := newest()
	if _, err := p.Control.Deploy(t.Context(), p.Env, true, nil); err != nil {
		t.Fatal(err)
	}
	p.Until("the repair", func() bool {
		return !slices.ContainsFunc(newest(), func(id intent.ActionID) bool { return slices.Contains(before, id) })
	})
	allDeployed(p)
	wantOnDisk(p, deployedSite("welcome"))
	repaired := p.Action("files::TextFile", "/conf/motd")
	if repaired.Change != intent.Updated ||
		repaired.Changes["content"] != (intent.AttributeChange{Current: "graffiti", Desired: "welcome"}) {
		t.Errorf("the repair is recorded as %s %v", repaired.Change, repaired.Changes)
	}

	p.Push("another text", model("goodbye", false))
	p.CompiledWell()
	allDeployed(p)
	wantOnDisk(p, deployedSite("goodbye"))

	p.Push("it is over", model("goodbye", true))
	p.CompiledWell()
	allDeployed(p)
	wantOnDisk(p, map[string]string{"ran": "-rw-r--r-- once\n"}) // nothing undoes what a command did
	for kind, part := range map[string]string{
		"files::Symlink": "/link", "fs::File": "/old", "files::TextFile": "/hello",
	} {
		if purged := p.Action(kind, part); purged.Change != intent.Purged {
			t.Errorf("%s was %s: %s", part, purged.Change, lab.LogText(purged))
		}
	}
	wantLogged(p, repaired)
	log, err := os.ReadFile(w.Server.Layout().ServerLog())
	if err != nil || strings.Contains(string(log), "virtual environment was damaged") {
		t.Errorf("compiles and handlers change files of their virtual environments: %v\n%s", err, log)
	}
}

// allDeployed waits until the deployment has ended, and fails unless every resource is deployed.
func allDeployed(p *lab.Place) {
	p.T.Helper()
	for _, r := range p.Settled() {
		if r.State.Status() != intent.StatusDeployed {
			actions, err := p.Store.Actions(p.T.Context(), p.Env, r.State.ID, intent.ActionDeploy, 1)
			if err != nil || len(actions) == 0 {
				p.T.Fatalf("%s is %s: %v", r.State.ID, r.State.Status(), err)
			}
			p.T.Fatalf("%s is %s:\n%s", r.State.ID, r.State.Status(), lab.LogText(actions[0]))
		}
	}
}

// wantOnDisk compares the modes and contents of everything below the site.
func wantOnDisk(p *lab.Place, want map[string]string) {
	p.T.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(p.Site, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == p.Site {
			return err
		}
		name := strings.TrimPrefix(path, p.Site+"/")
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			got[name] = "-> " + target
			return err
		case d.IsDir():
			got[name] = info.Mode().String()
		default:
			got[name] = info.Mode().String() + " " + p.Note(name)
		}
		return nil
	})
	if err != nil {
		p.T.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.T.Errorf("on disk is\n%q\nwant\n%q", got, want)
	}
}

// dryRun makes a dry run of the active version. It returns the changes by the end of
// the resource's path, as "attribute: current -> desired".
func dryRun(p *lab.Place) map[string]string {
	p.T.Helper()
	v, err := p.Store.ActiveVersion(p.T.Context(), p.Env)
	if err != nil || v == nil {
		p.T.Fatal(v, err)
	}
	id, err := p.Control.StartDryRun(p.T.Context(), p.Env, control.DryRunRequest{Version: v.Number})
	if err != nil {
		p.T.Fatal(err)
	}
	var diffs []intent.ResourceDiff
	p.Until("the dry run", func() bool {
		run, found, err := p.Store.DryRun(p.T.Context(), p.Env, id)
		if err != nil {
			p.T.Fatal(err)
		}
		diffs = found
		return run.Todo == 0
	})
	out := map[string]string{}
	for _, d := range diffs {
		var parts []string
		for name, a := range d.Attributes {
			parts = append(parts, fmt.Sprintf("%s: %v -> %v", name, a.Current, a.Desired))
		}
		slices.Sort(parts)
		out[strings.TrimPrefix(d.ID.Value, p.Site)] = strings.Join(parts, ", ")
	}
	return out
}

// wantLogged checks that the resource action log has all lines of an action, in order.
func wantLogged(p *lab.Place, a intent.Action) {
	p.T.Helper()
	text, err := os.ReadFile(p.Server.Layout().ResourceActionsLog(p.Env))
	if err != nil {
		p.T.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " deploy "+a.ID.String()+": ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != len(a.Messages) {
		p.T.Fatalf("%d lines of the repair are in the log, the record has %d:\n%s\n%s", len(lines),
			len(a.Messages), strings.Join(lines, ""), lab.LogText(a))
	}
	for i, m := range a.Messages {
		first, _, _ := strings.Cut(m.Message, "\n")
		if !strings.Contains(lines[i], m.Level) || !strings.Contains(lines[i], first) {
			p.T.Errorf("line %d is %q, the record says %s %s", i, lines[i], m.Level, m.Message)
		}
	}
	if out, err := exec.Command("grep", "-c", "executor",
		p.Server.Layout().AgentLog(p.Env)).CombinedOutput(); err != nil {
		p.T.Errorf("the agent log does not mention executors: %s %v", out, err)
	}
}
