package deploys

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"

	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/config"
	"ordain.dev/ordain/server/store/storetest"
)

// spyModule has a handler that writes a secret into a file and leaks it wherever a
// handler can: logs, output, facts, changes, errors. It stores a parameter at the
// server, as the module terraform stores its state, and discovers the files in a folder.
var spyModule = map[string]string{
	"libs/spy/module.yml": "name: spy\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/spy/model/_init.cf": `entity Spy extends std::PurgeableResource:
    string agent = "spy"
    string path
    string text
end
implement Spy using std::none
entity Watch extends std::DiscoveryResource:
    string agent = "spy"
    string folder
end
implement Watch using std::none
`,
	"libs/spy/plugins/__init__.py": `import os
import sys

from inmanta.agent.handler import CRUDHandler, DiscoveryHandler, ResourcePurged, provider
from inmanta.resources import DiscoveryResource, PurgeableResource, resource


@resource("spy::Spy", agent="agent", id_attribute="path")
class Spy(PurgeableResource):
    fields = ("agent", "path", "text")


@resource("spy::Watch", agent="agent", id_attribute="folder")
class Watch(DiscoveryResource):
    fields = ("agent", "folder")


@provider("spy::Spy", name="spy")
class SpyHandler(CRUDHandler[Spy]):
    def read_resource(self, ctx, resource):
        if not os.path.exists(resource.path):
            raise ResourcePurged()
        with open(resource.path) as file:
            resource.text = file.read()

    def _keep(self, resource, name, value=None):
        client, env, rid = self.get_client(), self._agent.environment, resource.id.resource_str()
        if value is not None:
            param = dict(tid=env, id=name, source="fact", value=value, resource_id=rid)
            return self.run_sync(lambda: client.set_param(**param))
        return self.run_sync(lambda: client.get_param(tid=env, id=name, resource_id=rid))

    def create_resource(self, ctx, resource):
        secret = resource.text
        with open(resource.path, "w") as file:
            file.write(secret)
        ctx.info("wrote %(text)s", text=secret, deep={"list": [secret]})
        print("printed", secret)
        print("printed to the other stream", secret, file=sys.stderr)
        os.write(2, b"past the task: " + os.environ["SPY_TOKEN"].encode() + b"\n")
        ctx.set_fact("seen", secret)
        ctx.add_change("extra", desired=secret, current="nothing")
        ctx.info("storing it gave %(code)s", code=self._keep(resource, "state", secret).code)
        ctx.info("storing else gave %(code)s", code=self._keep(resource, "state", "made").code)
        ctx.info("it says %(value)s", value=self._keep(resource, "state").result["parameter"]["value"])
        ctx.info("a missing one gave %(code)s", code=self._keep(resource, "none").code)
        ctx.set_created()
        raise RuntimeError("could not cope with " + secret)


@provider("spy::Watch", name="watch")
class WatchHandler(DiscoveryHandler):
    def discover_resources(self, ctx, resource):
        found = {f"spy::Spy[spy,path={resource.folder}/{name}]": {"name": name} for name in os.listdir(resource.folder)}
        return {**found, "nonsense": {"name": "x"}}
`,
	"requirements.txt": "inmanta-module-std\n",
	"project.yml":      "name: spy\nmodulepath: libs\npip:\n  use_system_config: true\n",
}

// A secret leaks. A handler gets a secret variable of the environment by a reference of
// std and writes it into a file. However hard the handler tries, the secret is in no row
// of any table and in no log file. On the way, the handler stores and reads a parameter
// at the server, where a missing one is answered with 503 and requested as a fact, and a
// discovery resource finds the file, which the API lists as managed.
func TestSecretsStayInTheExecutor(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	const secret = "xyzzy-plugh-4711"
	python := lab.NewPython(t)
	url := storetest.URL(t)
	w := lab.OwnWorld(t, func(o *config.Config) { o.Python, o.DatabaseURL = python, url })
	p := w.NewPlace(t)
	p.Push("nothing", lab.MergeFiles(spyModule, map[string]string{"main.cf": "import spy\n"}))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	if err := p.Control.SetSecret(t.Context(), p.Env, "variable:SPY_TOKEN", secret); err != nil {
		t.Fatal(err)
	}
	p.Push("a spy and who watches", map[string]string{"main.cf": `import spy
import std
spy = spy::Spy(path="` + p.Site + `/secret", text=std::create_environment_reference("SPY_TOKEN"))
spy::Watch(folder="` + p.Site + `")
`})
	p.CompiledWell()
	p.Settled()
	if got := p.Note("secret"); got != secret {
		t.Fatalf("the handler wrote %q: %s", got, lab.LogText(p.Action("spy::Spy", "/secret")))
	}
	logged := lab.LogText(p.Action("spy::Spy", "/secret"))
	lab.Mentions(t, logged, "wrote ***", "printed ***", "other stream ***", "could not cope with ***",
		"storing it gave 403", "storing else gave 200", "it says made", "a missing one gave 503")

	if _, err := p.Control.Deploy(t.Context(), p.Env, true, nil); err != nil {
		t.Fatal(err)
	}
	p.Until("the discovery",
		func() bool {
			return strings.Contains(p.Fetch("/api/v2/discovered"), `"managed_resource_uri":"/api/v2/resource/spy`)
		})
	if found := p.Fetch("/api/v2/discovered"); !strings.Contains(found, `"values":{"name":"secret"}`) ||
		strings.Contains(found, "nonsense") {
		t.Errorf("discovered is %s", found)
	}
	p.Until("what the discovery says of its bad answer", func() bool {
		logged := lab.LogText(p.Action("spy::Watch", p.Site))
		return strings.Contains(logged, "nonsense") && strings.Contains(logged, "left out")
	})

	for _, place := range search(p, url, secret) {
		t.Errorf("the secret is in %s", place)
	}
	if places := search(p, url, "could not cope with ***"); len(
		places) < 2 { // the search finds what is there, in the record and in a log
		t.Errorf("what is masked is in %q only", places)
	}
}

// search returns the log files and tables that contain a text.
func search(p *lab.Place, url, text string) []string {
	p.T.Helper()
	var places []string
	if err := filepath.WalkDir(filepath.Join(p.Dir, "log"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			places = append(places, path)
		}
		return err
	}); err != nil {
		p.T.Fatal(err)
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		p.T.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(
		ctx,
		"SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type "+
			"= 'BASE TABLE'",
	)
	if err != nil {
		p.T.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 10 {
		p.T.Fatal(tables, err)
	}
	for _, table := range tables {
		var found int
		name := pgx.Identifier{table}.Sanitize()
		// PostgreSQL shows bytes in hexadecimal, so search for that form too.
		query := "SELECT count(*) FROM " + name +
			" AS x WHERE position($1 in x::text) > 0 OR position(encode($1::text::bytea, 'hex') in x::text) > 0"
		if err := conn.QueryRow(ctx, query, text).Scan(&found); err != nil {
			p.T.Fatal(table, err)
		}
		if found > 0 {
			places = append(places, "table "+table)
		}
	}
	return places
}
