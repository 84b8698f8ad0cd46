package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "ordain.dev/ordain/"

// lattice says which of our packages each package may import. It is written
// from the bottom up; a line may name packages of lines above it only, so
// reading it is reading the architecture.
var lattice = []struct {
	pkg     string
	imports string
}{
	// The ground: values, and helpers that know nothing of Ordain.
	{"internal/intent", ""},
	{"internal/fault", ""},
	{"internal/jsontext", ""},
	{"internal/linediff", ""},
	{"internal/shared", ""},
	{"internal/filestamp", ""},
	{"internal/diskuse", ""},
	{"internal/testing/parallel", ""},
	{"internal/testing/racedetector", ""},
	{"internal/testing/scratch", ""},
	{"internal/testing/tool", ""},
	{"internal/testing/moto", "internal/testing/tool"},
	{"internal/diag", ""},
	{"internal/inifile", ""},
	{"internal/provenance", "internal/diag"},
	{"internal/bus", "internal/intent internal/fault"},
	{"internal/bus/bustest", "internal/bus internal/intent internal/fault"},
	{"internal/bus/natsbus", "internal/bus internal/intent internal/fault"},
	{"internal/bus/natsbus/natstest", ""},
	{"internal/service", ""},
	{"internal/service/servicetest", "internal/service"},
	{"internal/secret", "internal/fault"},
	{"internal/reach", "internal/fault"},
	{"internal/python/pytext", ""},
	{"internal/python/pep440", "internal/python/pytext"},
	{"internal/python/runtime", ""},
	{"internal/isolation", ""},
	{"internal/python/worker", "internal/isolation"},
	{"internal/python/venv", "internal/filestamp internal/fault internal/intent internal/python/pep440"},
	{"docs/errors", ""},

	// The parts. layout is the only package that joins paths below the state directory.
	{"layout", "internal/fault internal/intent"},

	// The compiler: text in, model and diagnostics out. No database, no network.
	{"compiler/pyregex", "internal/python/pytext"},
	{"compiler/syntax", "internal/python/pytext compiler/pyregex"},
	{"compiler/format", "compiler/syntax"},
	{"compiler/types", "internal/python/pytext compiler/pyregex compiler/syntax"},
	{
		"compiler/module",
		"internal/python/pytext internal/inifile internal/python/pep440 internal/python/runtime compiler/syntax " +
			"internal/intent internal/diag internal/fault",
	},
	{"compiler/eval/internal/program", "internal/python/pytext compiler/syntax compiler/types internal/diag"},
	{
		"compiler/eval",
		"compiler/eval/internal/program internal/python/pytext compiler/syntax compiler/types internal/diag",
	},
	{"compiler/lineage", "compiler/syntax compiler/types compiler/eval internal/provenance"},
	{
		"compiler/plugin",
		"internal/python/pytext compiler/syntax compiler/types compiler/module compiler/eval " +
			"internal/python/worker internal/filestamp internal/jsontext internal/diag internal/fault " +
			"internal/intent internal/isolation",
	},
	{"compiler/plugin/plugintest", "internal/testing/tool"},
	{"compiler/job", "compiler/plugin"},
	{
		"compiler/export",
		"internal/python/pytext compiler/syntax compiler/types compiler/module compiler/eval " +
			"compiler/plugin internal/intent internal/diag internal/jsontext internal/python/worker " +
			"internal/fault compiler/lineage internal/provenance",
	},
	{
		"compiler/modeldoc",
		"internal/python/pytext compiler/syntax compiler/types compiler/eval internal/diag internal/jsontext",
	},
	{
		"compiler",
		"compiler/syntax compiler/types compiler/module compiler/eval compiler/plugin " +
			"compiler/export compiler/modeldoc internal/python/runtime internal/intent internal/diag " +
			"internal/fault",
	},
	{"compiler/internal/parity", "compiler"},
	{"compiler/internal/parity/generate", "compiler/internal/parity"},
	{
		"compiler/internal/parity/tool",
		"compiler compiler/internal/parity compiler/internal/parity/generate compiler/plugin/plugintest",
	},

	// Git.
	{"gitsync/signers", ""},
	{"gitsync/objects", ""},
	{
		"gitsync",
		"gitsync/signers gitsync/objects internal/intent internal/fault internal/reach internal/secret " +
			"internal/provenance",
	},

	// Deciding what to deploy, and deploying it.
	{"scheduler", "internal/intent"},
	{
		"executor",
		"internal/intent internal/diskuse internal/fault internal/isolation internal/python/runtime " +
			"internal/python/worker " +
			"internal/python/venv layout",
	},

	// The server. The store is the only importer of the database driver.
	{"server/config", "internal/fault internal/inifile"},
	{"server/logfile", ""},
	{"server/edge", "internal/fault internal/filestamp"},
	{"server/access", "internal/fault internal/intent"},
	{"server/access/audit", "internal/fault internal/intent server/access server/edge"},
	{"server/agent/protocol", ""},
	{"server/agent/ca", ""},
	{"server/agent/trust", "internal/fault server/agent/protocol"},
	{"server/agent/conformance", "internal/python/runtime server/agent/ca server/agent/protocol"},
	{
		"server/agent/target",
		"internal/fault internal/intent internal/isolation internal/python/runtime internal/python/venv executor " +
			"layout " +
			"server/agent/protocol server/agent/trust",
	},
	{"server/replica", "internal/intent internal/fault internal/service"},
	{"server/metrics", "internal/intent internal/fault internal/service"},
	{"server/callback", "internal/intent server/access"},
	{"server/promote", "internal/intent"},
	{"server/store/postgres", "internal/fault"},
	{"server/store/partial", "internal/intent internal/fault"},
	{
		"server/push",
		"internal/fault internal/intent internal/python/pep440 compiler/export server/store/partial",
	},
	{"server/store/locks", "internal/fault"},
	{"server/store/members", "internal/intent"},
	{"server/store/queue", "internal/fault"},
	{
		"server/store",
		"internal/intent internal/fault internal/jsontext internal/shared server/access server/promote " +
			"server/store/partial server/store/locks server/store/members server/store/queue",
	},
	{
		"server/eventbus",
		"internal/bus internal/bus/natsbus internal/intent internal/fault internal/secret internal/service " +
			"server/store server/store/locks",
	},
	{
		"server/store/storetest",
		"server/store server/store/postgres internal/fault internal/intent internal/testing/scratch",
	},
	{
		"server/agent/record",
		"internal/bus internal/fault internal/intent internal/secret server/agent/protocol server/store",
	},
	{"server/agent/jointoken", ""},
	{
		"server/agent/authority",
		"internal/bus internal/fault internal/intent internal/secret server/access server/access/audit " +
			"server/agent/ca server/agent/jointoken server/agent/protocol server/store",
	},
	{
		"server/agent/gateway",
		"internal/bus internal/fault internal/intent internal/service server/agent/authority server/agent/ca " +
			"server/agent/protocol server/agent/record server/store",
	},
	{
		"server/agent/remote",
		"internal/bus internal/fault internal/intent internal/python/runtime internal/python/venv executor layout " +
			"server/agent/protocol server/agent/record",
	},
	{"server/agent/agenttest", "server/agent/ca server/agent/protocol"},
	{"server/access/provider", "internal/fault internal/secret"},
	{"server/access/provider/providertest", ""},
	{
		"server/access/tokens",
		"internal/intent internal/fault internal/reach internal/secret server/access server/access/audit server/store",
	},
	{
		"server/access/people",
		"internal/fault internal/bus server/access server/access/audit server/edge server/store",
	},
	{"server/deployer", "internal/intent internal/fault internal/jsontext scheduler executor"},
	{"server/source", "gitsync internal/intent internal/fault internal/secret server/store"},
	{
		"server/process",
		"internal/intent internal/fault internal/bus internal/service server/store server/store/queue",
	},
	{"server/comparison", "internal/intent"},
	{"server/standing", "internal/intent"},
	{"server/contents", "internal/intent internal/linediff internal/secret server/store"},
	{"server/forge/client", "gitsync internal/intent internal/fault internal/reach"},
	{"server/forge/forgetest", ""},
	{"server/forge/weblink", "internal/intent"},
	{
		"server/forge",
		"gitsync internal/intent internal/fault internal/bus internal/linediff internal/provenance internal/reach " +
			"internal/service server/contents server/store server/source server/forge/client server/process",
	},
	{"server/build/install", "internal/python/pep440 compiler/module gitsync internal/fault internal/python/venv"},
	{"server/build/warm", "compiler/plugin internal/fault internal/isolation"},
	{
		"server/build",
		"server/build/warm server/build/install gitsync compiler/export compiler/job compiler/module " +
			"compiler/plugin internal/intent internal/fault internal/isolation internal/python/venv layout",
	},
	{
		"server/keeper",
		"gitsync gitsync/signers compiler/export internal/intent internal/fault internal/bus " +
			"internal/diskuse internal/provenance internal/secret internal/service layout server/promote " +
			"server/store server/store/locks server/source server/forge server/build",
	},
	{
		"server/control",
		"gitsync internal/intent internal/fault internal/bus internal/diag internal/linediff internal/provenance " +
			"server/comparison server/contents server/access server/access/audit server/promote server/push " +
			"server/standing server/store server/source server/forge server/keeper",
	},

	// Clusters: from a template and a size to running machines.
	{"server/cluster/catalogue", "internal/jsontext"},
	{"server/cluster/macro", ""},
	{"server/cluster/manifest", "server/cluster/catalogue"},
	{"server/cluster/task", ""},
	{"server/cluster/plan", "server/cluster/catalogue server/cluster/task"},
	{"server/cluster/solve", "server/cluster/catalogue"},
	{"server/cluster/view", "internal/intent server/cluster/manifest server/cluster/plan"},
	{
		"server/cluster",
		"internal/bus internal/fault internal/intent internal/secret internal/service server/access " +
			"server/access/audit server/cluster/catalogue server/cluster/macro server/cluster/manifest " +
			"server/cluster/plan server/cluster/solve server/cluster/view server/store",
	},
	{
		"server/cluster/admin",
		"internal/bus internal/fault internal/intent internal/secret server/access server/access/audit " +
			"server/cluster/catalogue server/store",
	},
	{"server/cluster/archive", "internal/fault"},
	{"server/cluster/provisioner/plugin", "server/cluster/task"},
	{"server/cluster/clustertest", "internal/testing/tool server/cluster/provisioner/plugin server/cluster/task"},
	{
		"server/cluster/desk",
		"internal/bus internal/fault internal/intent internal/secret internal/service server/cluster " +
			"server/cluster/catalogue server/cluster/macro server/cluster/manifest server/cluster/plan " +
			"server/cluster/task server/store",
	},
	{"server/cluster/provisioner/ssh", "internal/fault server/cluster/provisioner/plugin"},
	{
		"server/cluster/provisioner/target",
		"internal/fault server/cluster/provisioner/plugin server/cluster/provisioner/ssh " +
			"server/cluster/task",
	},
	{
		"server/cluster/provisioner/ansible",
		"internal/fault internal/isolation internal/python/venv server/cluster/provisioner/plugin " +
			"server/cluster/provisioner/ssh server/cluster/provisioner/target",
	},
	{
		"server/cluster/provisioner/authority",
		"internal/fault internal/intent server/access server/access/audit server/agent/ca " +
			"server/agent/jointoken server/agent/protocol server/cluster/desk server/cluster/task server/store",
	},
	{"server/cluster/provisioner/cloud", "internal/secret server/cluster/provisioner/plugin server/cluster/task"},
	{"server/cluster/provisioner/aws/ec2", ""},
	{"server/cluster/provisioner/aws", "server/cluster/provisioner/aws/ec2 server/cluster/provisioner/cloud " +
		"server/cluster/provisioner/plugin"},
	{"server/cluster/provisioner/client", "internal/fault server/cluster/task"},
	{
		"server/cluster/provisioner/cloudtest",
		"internal/testing/moto server/cluster/provisioner/plugin server/cluster/task",
	},
	{
		"server/cluster/provisioner/program",
		"internal/fault internal/isolation server/cluster/provisioner/plugin server/cluster/task",
	},
	{
		"server/cluster/provisioner/conformance",
		"server/cluster/provisioner/plugin server/cluster/provisioner/program server/cluster/task",
	},
	{
		"server/cluster/provisioner/conformance/conformancetest",
		"server/cluster/provisioner/conformance server/cluster/provisioner/program",
	},
	{"server/cluster/provisioner/link", "internal/fault"},
	{
		"server/cluster/provisioner/member",
		"internal/fault internal/service server/agent/ca server/agent/protocol server/agent/trust " +
			"server/cluster/task",
	},
	{"server/cluster/provisioner/openstack", "server/cluster/provisioner/cloud server/cluster/provisioner/plugin"},
	{
		"server/cluster/provisioner/pool",
		"internal/fault server/cluster/provisioner/plugin server/cluster/provisioner/ssh " +
			"server/cluster/provisioner/target server/cluster/task",
	},
	{
		"server/cluster/provisioner/puppet",
		"internal/fault server/cluster/provisioner/plugin server/cluster/provisioner/ssh " +
			"server/cluster/provisioner/target",
	},
	{
		"server/cluster/provisioner/shell",
		"internal/fault server/cluster/provisioner/plugin server/cluster/provisioner/ssh " +
			"server/cluster/provisioner/target",
	},
	{"server/cluster/provisioner/resources", "internal/fault server/cluster/archive server/cluster/task"},
	{
		"server/cluster/provisioner/worker",
		"internal/fault internal/secret internal/service server/cluster/provisioner/client " +
			"server/cluster/provisioner/plugin server/cluster/provisioner/resources server/cluster/task",
	},
	{
		"server/cluster/provisioner/plugins",
		"internal/fault internal/isolation server/cluster/provisioner/ansible " +
			"server/cluster/provisioner/aws server/cluster/provisioner/openstack " +
			"server/cluster/provisioner/plugin server/cluster/provisioner/pool " +
			"server/cluster/provisioner/program server/cluster/provisioner/puppet " +
			"server/cluster/provisioner/shell server/cluster/provisioner/target " +
			"server/cluster/provisioner/worker",
	},
	{"server/cluster/repository", "gitsync internal/intent server/access server/cluster server/forge server/source"},
	{"server/cluster/resources/blob", "internal/fault internal/secret"},
	{
		"server/cluster/resources",
		"internal/bus internal/fault internal/intent internal/service server/access " +
			"server/cluster/archive server/cluster/catalogue server/cluster/resources/blob " +
			"server/cluster/task server/store",
	},
	{
		"server/cluster/workers",
		"internal/bus internal/fault internal/intent internal/isolation internal/service layout " +
			"server/cluster/desk server/cluster/provisioner/link server/cluster/task server/store",
	},
	{
		"server/servertest",
		"gitsync compiler/export internal/intent internal/bus internal/diag internal/provenance " +
			"internal/secret internal/service layout server/access server/access/people server/access/tokens " +
			"server/agent/authority server/build server/control server/forge server/forge/client " +
			"server/keeper server/process server/source server/store server/store/storetest server/cluster " +
			"server/cluster/admin server/cluster/desk server/cluster/repository server/cluster/resources " +
			"server/cluster/resources/blob",
	},

	// The doors.
	{"server/graph", "internal/intent internal/fault"},
	{"server/console/graphview", ""},
	{"webhooks", "internal/intent internal/fault internal/jsontext server/edge"},
	{"api/graphql/schema", ""},
	{"api/graphql", "api/graphql/schema internal/fault internal/intent server/access server/store"},
	{
		"api",
		"api/graphql server/access server/access/audit server/access/people server/access/tokens " +
			"server/agent/authority server/control server/edge server/promote server/push server/store " +
			"internal/intent internal/fault internal/diag internal/jsontext internal/provenance internal/shared " +
			"server/cluster server/cluster/admin server/cluster/resources server/cluster/catalogue " +
			"server/cluster/manifest server/cluster/plan server/cluster/solve server/cluster/task " +
			"server/cluster/provisioner/authority server/graph",
	},
	{"api/client", "internal/fault"},
	{"server/console/svgchart", ""},
	{
		"server/console",
		"server/access server/access/audit server/access/people server/access/provider " +
			"server/access/tokens server/agent/authority server/control server/edge server/promote " +
			"server/source server/store server/store/members internal/intent internal/fault internal/bus " +
			"internal/diag internal/provenance internal/shared server/cluster server/cluster/admin " +
			"server/cluster/resources server/cluster/provisioner/authority server/cluster/catalogue " +
			"server/cluster/manifest " +
			"server/cluster/plan server/cluster/solve server/cluster/task server/comparison internal/linediff " +
			"server/graph server/console/graphview server/console/svgchart server/forge server/forge/weblink",
	},

	{"server/webconsole", "internal/fault"},

	// The wiring, and the program.
	{
		"server",
		"* api executor gitsync internal/bus internal/fault internal/intent internal/isolation " +
			"internal/provenance internal/python/venv internal/reach internal/secret internal/service layout " +
			"scheduler server/access server/access/audit server/access/people server/access/provider " +
			"server/access/tokens server/agent/authority server/agent/gateway server/agent/record " +
			"server/agent/remote server/build server/callback server/config server/console server/control " +
			"server/deployer server/edge server/eventbus server/forge server/keeper server/logfile " +
			"server/process server/replica server/source server/store server/store/postgres webhooks " +
			"server/cluster server/cluster/admin server/cluster/desk server/cluster/provisioner/authority " +
			"server/cluster/repository server/cluster/resources server/cluster/resources/blob " +
			"server/cluster/workers server/webconsole",
	},
	{
		"server/embedded",
		"api compiler/export compiler/plugin executor gitsync internal/bus internal/fault internal/intent " +
			"internal/python/venv internal/secret layout scheduler server/access/people server/access/tokens " +
			"server/build server/callback server/control server/deployer server/forge server/keeper server/logfile " +
			"server/source server/store server/store/postgres",
	},
	{
		"cmd/ordain/demo",
		"* internal/bus internal/diag internal/fault internal/intent server server/config server/control " +
			"server/source",
	},
	{
		"cmd/ordain/cli",
		"* api/client cmd/ordain/demo compiler compiler/eval compiler/export compiler/format compiler/job " +
			"compiler/lineage compiler/module compiler/plugin compiler/syntax compiler/types docs/errors " +
			"gitsync internal/diag internal/fault internal/inifile internal/intent internal/isolation " +
			"internal/provenance internal/python/venv layout server server/agent/conformance " +
			"server/agent/target server/embedded server/build/install server/build/warm " +
			"server/cluster/provisioner/client " +
			"server/cluster/provisioner/conformance server/cluster/provisioner/link " +
			"server/cluster/provisioner/plugins server/cluster/provisioner/program " +
			"server/cluster/provisioner/worker server/cluster/task server/config webhooks " +
			"server/cluster/provisioner/member",
	},
	{"cmd/ordain", "cmd/ordain/cli"},

	// The world of the end-to-end tests; the packages of stories beside it hold tests only.
	{
		"cmd/ordain/e2e/lab",
		"cmd/ordain/cli server server/config server/control server/forge/forgetest server/promote server/source " +
			"server/store webhooks api/client internal/bus internal/intent internal/python/venv " +
			"internal/testing/parallel internal/testing/racedetector internal/testing/scratch internal/testing/tool",
	},
	{"cmd/ordain/e2e/clusters", ""},
	{"cmd/ordain/e2e/deploys", ""},
	{"cmd/ordain/e2e/faults", ""},
	{"cmd/ordain/e2e/folders", ""},
	{"cmd/ordain/e2e/forges", ""},
}

// floors are the folders from the ground up: a package imports packages of its
// own floor and of those below. The longest folder that matches decides.
var floors = []struct {
	name    string
	folders string
}{
	{"the ground", "internal docs"},
	{"the parts", "compiler gitsync scheduler executor layout"},
	{
		"the server",
		"server/access server/config server/logfile server/edge server/callback server/promote server/push " +
			"server/store server/source server/deployer server/forge " +
			"server/build server/keeper server/control server/agent " +
			"server/process server/replica server/eventbus server/cluster server/comparison server/contents " +
			"server/graph server/standing",
	},
	{"the doors", "webhooks api server/console server/webconsole"},
	// The packages server and server/embedded start parts and doors; nothing else in their folder may.
	{"the wiring", "server server/embedded cmd"},
}

// floor returns the height of a package, or -1 for one that lies in no known folder.
func floor(pkg string) int {
	height, longest := -1, 0
	for i, f := range floors {
		for folder := range strings.FieldsSeq(f.folders) {
			if (pkg == folder || strings.HasPrefix(pkg, folder+"/")) && len(folder) > longest {
				height, longest = i, len(folder)
			}
		}
	}
	return height
}

// No folder imports from a floor above its own.
func TestNothingImportsUpward(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "bench/") {
			continue
		}
		here := floor(name)
		if here < 0 {
			t.Errorf("%s lies in no folder of a known floor", name)
			continue
		}
		for _, imported := range p.Imports {
			ours, is := strings.CutPrefix(imported, module)
			if is && floor(ours) > here {
				t.Errorf("%s, of %s, imports %s, of %s", name, floors[here].name, ours, floors[floor(ours)].name)
			}
		}
	}
}

type listed struct {
	ImportPath   string
	Doc          string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,TestImports,XTestImports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// Every package is in the lattice and imports only what its line allows: a
// compiler that reaches for the database fails here, and so does a package
// that nobody found a place for.
func TestImportsFollowTheLattice(t *testing.T) {
	allowed := map[string][]string{}
	for _, line := range lattice {
		for name := range strings.FieldsSeq(line.imports) {
			if _, above := allowed[name]; !above && name != "*" {
				t.Errorf("the line of %s names %s, which is not above it", line.pkg, name)
			}
		}
		allowed[line.pkg] = strings.Fields(line.imports)
	}
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "bench/") || name == "internal/testing/architecture" {
			continue
		}
		may, known := allowed[name]
		if !known {
			t.Errorf("%s has no line in the lattice: give it one", name)
			continue
		}
		for _, imported := range p.Imports {
			ours, is := strings.CutPrefix(imported, module)
			if is && !slices.Contains(may, ours) && !slices.Contains(may, "*") {
				t.Errorf("%s imports %s, which its line does not allow", name, ours)
			}
		}
	}
}

// Only the store speaks to PostgreSQL, only gitsync to Git, and only the API
// imports the web framework. NATS has one client and one server.
func TestOneImporterPerDriver(t *testing.T) {
	drivers := map[string][]string{
		"github.com/jackc/pgx/": {
			"server/store",
			"server/store/locks",
			"server/store/queue",
			"server/store/storetest",
			"bench/soak",
			"bench/peer",
		}, // the last two hold the record against what happened
		"github.com/riverqueue/river":     {"server/store/queue"},
		"github.com/go-git/go-git/":       {"gitsync", "gitsync/objects"},
		"github.com/gin-gonic/":           {"api"},
		"github.com/nats-io/nats.go":      {"internal/bus/natsbus"},
		"github.com/aws/":                 {"server/cluster/provisioner/aws", "server/cluster/provisioner/aws/ec2"},
		"github.com/minio/":               {"server/cluster/resources/blob"},
		"github.com/gophercloud/":         {"server/cluster/provisioner/openstack"},
		"github.com/nats-io/nats-server/": {"server/eventbus", "bench/replicas", "internal/bus/natsbus/natstest"},
	}
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range p.Imports {
			for driver, importers := range drivers {
				if strings.HasPrefix(imported, driver) && !slices.Contains(importers, name) {
					t.Errorf("%s imports %s; only %v may", name, imported, importers)
				}
			}
		}
	}
}

// A stranger reads package comments first, so every package has one.
func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range listPackages(t) {
		if p.Doc == "" && len(p.Imports) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
