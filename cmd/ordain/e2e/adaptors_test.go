package e2e

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

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/control"
)

// newPython finds an interpreter that is new enough for the newest published modules.
func newPython(t *testing.T) string {
	t.Helper()
	names := []string{"python3", "python3.12", "python3.13", "python3.14"}
	if home, err := os.UserHomeDir(); err == nil { // pyenv keeps inactive versions here
		found, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.1[2-9]*/bin/python3"))
		names = append(names, found...)
	}
	for _, name := range names {
		if i, err := venv.Find(t.Context(), name); err == nil && i.HasVenv && i.Minor >= "3.12" {
			return i.Path
		}
	}
	tool.Missing(t, "the published modules need Python 3.12")
	return ""
}

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
	t.Parallel()
	python := newPython(t)
	w := ownWorld(t, func(o *config.Config) { o.Python, o.HandlerTimeout = python, patience })
	service := newCounter(t)
	p := w.newPlace(t)
	if err := os.Chmod(p.site, 0o755); err != nil {
		t.Fatal(err)
	}
	model := func(text string, purged bool) map[string]string {
		return map[string]string{
			"main.cf": strings.NewReplacer("SITE", p.site, "TEXT", text, "URL", service.URL, "PURGED",
				fmt.Sprint(purged)).
				Replace(adaptorsModel),
		}
	}
	p.push("a site", mergeFiles(siteModule, model("welcome", false), map[string]string{
		"git_ops/active/greetings/hello@v1.yaml": "place: " + p.site + "/hello\ntext: hello from a slice\n",
	}))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	deployedSite := func(text string) map[string]string {
		return map[string]string{
			"conf": "drwxr-x---", "conf/motd": "-rw-r----- " + text, "link": "-> " + p.site + "/conf/motd",
			"old": "-rw------- fs: " + text,
			"ran": "-rw-r--r-- once\n", "hello": "-rw------- hello from a slice",
		}
	}
	p.allDeployed()
	p.wantOnDisk(deployedSite("welcome"))
	if calls := service.take(); !slices.Equal(calls, []string{"PUT /level 3 welcome"}) {
		t.Errorf("the service was called %q", calls)
	}
	created := p.action("files::TextFile", "/conf/motd")
	if created.Change != intent.Created {
		t.Errorf("the text was %s: %s", created.Change, logText(created))
	}
	mentions(t, logText(created), "Calling read_resource", "Calling create_resource")
	mentions(t, logText(p.action("rest::RESTCall", "/level")), "Calling REST api", "Call returned")
	mentions(t, logText(p.action("exec::Run", "groupadd")), "Unless cmd", "returncode: 0")

	ran, err := p.control.Executors(t.Context(), p.env)
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
			os.WriteFile(filepath.Join(p.site, "conf/motd"), []byte("graffiti"),
				0o640), os.Chmod(filepath.Join(p.site, "old"), 0o644),
			os.Remove(filepath.Join(p.site, "link")), os.Remove(filepath.Join(p.site, "hello")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	damage()
	diffs := p.dryRun()
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
	if text := p.note("conf/motd"); text != "graffiti" {
		t.Fatalf("the dry run wrote %q", text)
	}
	service.take()

	before := p.action("files::TextFile", "/conf/motd").ID
	if _, err := p.control.Deploy(t.Context(), p.env, true, nil); err != nil {
		t.Fatal(err)
	}
	p.until("the repair", func() bool { return p.action("files::TextFile", "/conf/motd").ID != before })
	p.allDeployed()
	p.wantOnDisk(deployedSite("welcome"))
	repaired := p.action("files::TextFile", "/conf/motd")
	if repaired.Change != intent.Updated ||
		repaired.Changes["content"] != (intent.AttributeChange{Current: "graffiti", Desired: "welcome"}) {
		t.Errorf("the repair is recorded as %s %v", repaired.Change, repaired.Changes)
	}

	p.push("another text", model("goodbye", false))
	p.compiledWell()
	p.allDeployed()
	p.wantOnDisk(deployedSite("goodbye"))

	p.push("it is over", model("goodbye", true))
	p.compiledWell()
	p.allDeployed()
	p.wantOnDisk(map[string]string{"ran": "-rw-r--r-- once\n"}) // nothing undoes what a command did
	for kind, part := range map[string]string{
		"files::Symlink": "/link", "fs::File": "/old", "files::TextFile": "/hello",
	} {
		if purged := p.action(kind, part); purged.Change != intent.Purged {
			t.Errorf("%s was %s: %s", part, purged.Change, logText(purged))
		}
	}
	p.wantLogged(repaired)
	log, err := os.ReadFile(w.server.Layout().ServerLog())
	if err != nil || strings.Contains(string(log), "virtual environment was damaged") {
		t.Errorf("compiles and handlers change files of their virtual environments: %v\n%s", err, log)
	}
}

// allDeployed waits until the deployment has ended, and fails unless every resource is deployed.
func (p *place) allDeployed() {
	p.t.Helper()
	for _, r := range p.settled() {
		if r.State.Status() != intent.StatusDeployed {
			actions, err := p.store.Actions(p.t.Context(), p.env, r.State.ID, intent.ActionDeploy, 1)
			if err != nil || len(actions) == 0 {
				p.t.Fatalf("%s is %s: %v", r.State.ID, r.State.Status(), err)
			}
			p.t.Fatalf("%s is %s:\n%s", r.State.ID, r.State.Status(), logText(actions[0]))
		}
	}
}

// action returns the last deployment of the resource of this type whose id contains part.
func (p *place) action(kind, part string) intent.Action {
	p.t.Helper()
	page, err := p.store.Resources(p.t.Context(), p.env, intent.ListQuery{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range page.Items {
		if r.State.ID.Type == kind && strings.Contains(r.State.ID.Value, part) {
			actions, err := p.store.Actions(p.t.Context(), p.env, r.State.ID, intent.ActionDeploy, 1)
			if err != nil || len(actions) != 1 {
				p.t.Fatalf("%s: %d actions, %v", r.State.ID, len(actions), err)
			}
			return actions[0]
		}
	}
	p.t.Fatalf("there is no %s with %s", kind, part)
	return intent.Action{}
}

func logText(a intent.Action) string {
	var b strings.Builder
	for _, m := range a.Messages {
		fmt.Fprintf(&b, "%s %s %s\n", m.Level, m.Message, m.Arguments)
	}
	return b.String()
}

// wantOnDisk compares the modes and contents of everything below the site.
func (p *place) wantOnDisk(want map[string]string) {
	p.t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(p.site, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == p.site {
			return err
		}
		name := strings.TrimPrefix(path, p.site+"/")
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
			got[name] = info.Mode().String() + " " + p.note(name)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("on disk is\n%q\nwant\n%q", got, want)
	}
}

// dryRun makes a dry run of the active version. It returns the changes by the end of
// the resource's path, as "attribute: current -> desired".
func (p *place) dryRun() map[string]string {
	p.t.Helper()
	v, err := p.store.ActiveVersion(p.t.Context(), p.env)
	if err != nil || v == nil {
		p.t.Fatal(v, err)
	}
	id, err := p.control.StartDryRun(p.t.Context(), p.env, control.DryRunRequest{Version: v.Number})
	if err != nil {
		p.t.Fatal(err)
	}
	var diffs []intent.ResourceDiff
	p.until("the dry run", func() bool {
		run, found, err := p.store.DryRun(p.t.Context(), p.env, id)
		if err != nil {
			p.t.Fatal(err)
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
		out[strings.TrimPrefix(d.ID.Value, p.site)] = strings.Join(parts, ", ")
	}
	return out
}

// wantLogged checks that the resource action log has all lines of an action, in order.
func (p *place) wantLogged(a intent.Action) {
	p.t.Helper()
	text, err := os.ReadFile(p.server.Layout().ResourceActionsLog(p.env))
	if err != nil {
		p.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " deploy "+a.ID.String()+": ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != len(a.Messages) {
		p.t.Fatalf("%d lines of the repair are in the log, the record has %d:\n%s\n%s", len(lines),
			len(a.Messages), strings.Join(lines, ""), logText(a))
	}
	for i, m := range a.Messages {
		first, _, _ := strings.Cut(m.Message, "\n")
		if !strings.Contains(lines[i], m.Level) || !strings.Contains(lines[i], first) {
			p.t.Errorf("line %d is %q, the record says %s %s", i, lines[i], m.Level, m.Message)
		}
	}
	if out, err := exec.Command("grep", "-c", "executor",
		p.server.Layout().AgentLog(p.env)).CombinedOutput(); err != nil {
		p.t.Errorf("the agent log does not mention executors: %s %v", out, err)
	}
}
