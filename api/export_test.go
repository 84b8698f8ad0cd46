package api

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/servertest"
)

// exporter is inmanta's own program with a project that needs std alone.
type exporter struct {
	t       *testing.T
	path    string
	dir     string
	options []string
}

// newExporter returns an exporter to a server, installed as for inmantaCLI.
func newExporter(t *testing.T, r *servertest.Rich, c *client) *exporter {
	t.Helper()
	path := filepath.Join(filepath.Dir(inmantaCLI(t)), "inmanta")
	python := filepath.Join(filepath.Dir(path), "python")
	if err := exec.Command(python, "-c", "import inmanta_plugins.std").Run(); err != nil {
		out, err := exec.Command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"inmanta-module-std=="+stdVersion).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Header.Del("Accept-Encoding") // so that a refusal can be read
		out := httptest.NewRecorder()
		c.handler.ServeHTTP(out, q)
		if out.Code != http.StatusOK {
			t.Logf("%s %s: %d %s", q.Method, q.URL, out.Code, out.Body)
		}
		for name, values := range out.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(out.Code)
		_, _ = w.Write(out.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	e := &exporter{t: t, path: path, dir: t.TempDir(), options: []string{
		"-e", r.Staging.ID.String(), "--server_address", host, "--server_port", port,
	}}
	e.write("project.yml", "name: shop\nmodulepath: libs\ndownloadpath: libs\npip:\n  use_system_config: true\n"+
		"environment_settings:\n  deploy_concurrency: 7\n")
	e.write("libs/.keep", "")
	return e
}

// stdVersion is the version of the module std that the test installs.
const stdVersion = "8.7.5"

func (e *exporter) write(name, text string) {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

// run exports, and returns what the program printed.
func (e *exporter) run(well bool, options ...string) string {
	e.t.Helper()
	cmd := exec.Command(e.path, append(append([]string{"-vv", "export"}, e.options...), options...)...)
	cmd.Dir = e.dir
	cmd.Env = append(os.Environ(), "HOME="+e.dir, "VIRTUAL_ENV="+filepath.Dir(filepath.Dir(e.path)))
	out, err := cmd.CombinedOutput()
	if (err == nil) != well {
		e.t.Fatalf("inmanta export %v: %v\n%s", options, err, out)
	}
	return string(out)
}

var committedLine = regexp.MustCompile(`Committed resources with version (\d+)`)

func (e *exporter) version(out string) int {
	e.t.Helper()
	m := committedLine.FindStringSubmatch(out)
	if m == nil {
		e.t.Fatalf("no version in\n%s", out)
	}
	n, _ := strconv.Atoi(m[1]) // the pattern has digits alone
	return n
}

// Inmanta's own exporter sends whole versions and parts of them. They are refused until a person allows them, and say
// everywhere that they are not from a commit.
func TestInmantasOwnExporter(t *testing.T) {
	r := servertest.NewRich(t)
	c := newClient(t, r.Server)
	e := newExporter(t, r, c)
	env := r.Staging.ID
	c.tid = env.String()
	model := `import std
import std::testing
a = std::testing::NullResource(name="a", agentname="here")
b = std::testing::NullResource(name="b", agentname="here", requires=a)
`
	e.write("main.cf", model+`
std::ResourceSet(name="left", resources=[b])
`)
	refused := e.run(false)
	if !strings.Contains(refused, intent.AllowPushed) {
		t.Errorf("the refusal does not name the setting:\n%s", refused)
	}
	c.call("POST", "/api/v2/environment_settings/"+intent.AllowPushed, `{"value":true}`, 200)
	c.call("POST", "/api/v2/environment_settings/prune_share", `{"value":100}`, 200)

	first := e.version(e.run(true))
	v, err := r.Store.Version(t.Context(), env, first)
	if err != nil {
		t.Fatal(err)
	}
	if p := v.Provenance.Pushed; p == nil || v.Provenance.Commit != "" || p.Host == "" || v.Total != 2 ||
		v.Released == nil || v.Provenance.Compile == uuid.Nil {
		t.Fatalf("%+v, pushed %+v", v, p)
	}
	resources, err := r.Store.VersionResources(t.Context(), env, first)
	if err != nil || len(resources) != 2 || len(resources[1].Requires) != 1 || resources[1].ResourceSet != "left" {
		t.Errorf("%+v, %v", resources, err)
	}
	code, _, err := r.Store.VersionCode(t.Context(), env, first)
	if err != nil || len(code) != 1 || len(code[0].Modules) != 1 || code[0].Modules[0] != "inmanta_plugins.std" {
		t.Errorf("%+v, %v", code, err)
	}
	c.get("/api/v2/compilereport/"+v.Provenance.Compile.String()).part("data").is(float64(first), "version")
	pip := c.get("/api/v2/pip/config/" + strconv.Itoa(first)).part("data")
	pip.is(true, "use-system-config")
	if e, _ := r.Store.Environment(t.Context(), env); e.Int("deploy_concurrency") != 7 {
		t.Error("the settings of project.yml were not taken over")
	}

	e.write("main.cf", strings.Replace(model, "b = ", "# ", 1)+`
c = std::testing::NullResource(name="c", agentname="here", requires=a)
std::ResourceSet(name="right", resources=[c])
`)
	second := e.version(e.run(true, "--partial"))
	v, err = r.Store.Version(t.Context(), env, second)
	if err != nil || v.Total != 3 || v.Provenance.PartialBase != first || v.Provenance.Pushed == nil {
		t.Errorf("%+v, %v", v, err)
	}
	third := e.version(e.run(true, "--partial", "--delete-resource-set", "left"))
	if v, err = r.Store.Version(t.Context(), env, third); err != nil || v.Total != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}
