package api

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/server/servertest"
)

// A client that openapi-python-client generates from the document works as it is: it lists projects, makes an
// environment, reads resources, and reads errors. The generator stops at anything in
// the document that it would have to leave out. ORDAIN_TEST_PYTHON_CLIENT=1 installs the generator from PyPI into a
// virtual environment of the test (about 60 MB).
func TestAGeneratedPythonClient(t *testing.T) {
	if os.Getenv("ORDAIN_TEST_PYTHON_CLIENT") != "1" {
		t.Skip("set ORDAIN_TEST_PYTHON_CLIENT=1 to install openapi-python-client from PyPI and use what it generates")
	}
	bin := pythonVenv(t, "openapi-python-client==0.29.1")
	dir := t.TempDir()
	generate := exec.Command(filepath.Join(bin, "openapi-python-client"), "generate", "--path", "openapi.json",
		"--meta", "none", "--fail-on-warning", "--output-path", filepath.Join(dir, "ordain_client"))
	generate.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")) // where it finds its formatter
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("openapi-python-client: %v\n%s", err, out)
	}
	r := servertest.NewRich(t)
	server := httptest.NewServer(newClient(t, r.Server).handler)
	defer server.Close()
	script := filepath.Join(dir, "smoke.py")
	if err := os.WriteFile(script, []byte(pythonSmoke), 0o600); err != nil {
		t.Fatal(err)
	}
	smoke := exec.Command(filepath.Join(bin, "python"), script, server.URL, r.Production.ID.String())
	smoke.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := smoke.CombinedOutput()
	if err != nil {
		t.Fatalf("the generated client: %v\n%s", err, out)
	}
	total, err := r.Store.VersionResources(t.Context(), r.Production.ID, 7)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(total) {
		t.Errorf("the client read %d resources, and the version has %d", len(lines), len(total))
	}
	if e, err := r.Store.Environments(t.Context()); err != nil || len(e) != 4 {
		t.Errorf("the server has %d environments, %v", len(e), err)
	}
}

// pythonSmoke prints the ids of all resources of an environment.
const pythonSmoke = `
import sys

from ordain_client import Client
from ordain_client.api.environments import create_environment, get_environment
from ordain_client.api.projects import create_project, list_projects
from ordain_client.api.resources import get_resource, list_resources
from ordain_client.models import CreateEnvironmentBody, CreateProjectBody, ErrorAnswer

url, production = sys.argv[1], sys.argv[2]
client = Client(base_url=url, raise_on_unexpected_status=True)

assert [p.name for p in list_projects.sync(client=client).data] == ["infra"]
project = create_project.sync(client=client, body=CreateProjectBody(name="shop")).data
assert sorted(p.name for p in list_projects.sync(client=client).data) == ["infra", "shop"]

body = CreateEnvironmentBody(
    name="live", project_id=project.id, repository="https://git.example.com/shop.git", branch="main"
)
made = create_environment.sync(client=client, body=body).data
read = get_environment.sync(made.id, client=client).data
assert (read.id, read.name, read.repo_branch, read.halted) == (made.id, "live", "main", False), read
again = create_environment.sync_detailed(client=client, body=body)
assert again.status_code == 400 and isinstance(again.parsed, ErrorAnswer), again
assert "already" in again.parsed.message, again.parsed

assert list_resources.sync(client=client, x_inmanta_tid=str(made.id)).data == []
page = list_resources.sync(client=client, x_inmanta_tid=production, limit=1000)
seen = [r.resource_id for r in page.data]
assert len(seen) == len(set(seen)) == page.metadata.total, (len(seen), page.metadata)
one = get_resource.sync(seen[0], client=client, x_inmanta_tid=production).data
assert one.resource_id == seen[0] and one.attributes.to_dict(), one
missing = get_resource.sync_detailed("std::Nothing[a,b=c]", client=client, x_inmanta_tid=production)
assert missing.status_code == 404 and isinstance(missing.parsed, ErrorAnswer), missing
print("\n".join(seen))
`
