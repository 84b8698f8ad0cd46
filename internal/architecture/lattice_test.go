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
	// Words.
	{"internal/intent", ""},
	{"internal/fault", ""},
	{"internal/plaintext", ""},
	{"internal/racedetector", ""},
	{"internal/peertest", ""},
	{"internal/diag", "internal/plaintext"},
	{"internal/provenance", "internal/plaintext"},
	{"internal/jsontext", ""},
	{"internal/lean", ""},
	{"internal/prefetch", ""},
	{"internal/filestamp", ""},
	{"docs/errors", ""},
	{"layout", "internal/fault internal/intent"},
	{"internal/bus", "internal/intent"},

	// Python, as processes and as virtual environments.
	{"internal/pyworker", "internal/jsontext internal/fault"},
	{"internal/pyenv", "internal/filestamp internal/fault internal/intent layout"},

	// The compiler: text in, model and diagnostics out. No database, no network.
	{"compiler/pytext", ""},
	{"internal/pep440", "compiler/pytext"},
	{"compiler/inifile", "compiler/pytext"},
	{"compiler/pyregex", "compiler/pytext"},
	{"compiler/pyyaml", "compiler/pytext"},
	{"compiler/syntax", "compiler/pytext compiler/pyregex"},
	{"compiler/format", "compiler/syntax"},
	{"compiler/types", "compiler/pytext compiler/pyregex compiler/syntax"},
	{"compiler/module/pydantic", "compiler/pytext"},
	{"compiler/module/mailaddress", "compiler/pytext"},
	{"compiler/module", "compiler/module/pydantic compiler/module/mailaddress compiler/pytext compiler/pyyaml compiler/inifile internal/pep440 compiler/syntax internal/intent internal/diag internal/fault"},
	{"compiler/eval", "compiler/pytext compiler/syntax compiler/types internal/diag internal/prefetch"},
	{"compiler/lineage", "compiler/syntax compiler/types compiler/eval internal/provenance"},
	{"compiler/plugin", "compiler/pytext compiler/syntax compiler/types compiler/module compiler/eval internal/pyworker internal/filestamp internal/jsontext internal/diag internal/fault internal/intent"},
	{"compiler/plugin/plugintest", ""},
	{"compiler/pyyaml/yamltest", "compiler/plugin/plugintest"},
	{"compiler/export", "compiler/pytext compiler/syntax compiler/types compiler/module compiler/eval compiler/plugin internal/intent internal/diag internal/jsontext internal/pyworker internal/fault compiler/lineage internal/provenance"},
	{"compiler/modeldoc", "compiler/pytext compiler/syntax compiler/types compiler/eval internal/diag internal/jsontext"},
	{"compiler", "compiler/syntax compiler/types compiler/module compiler/eval compiler/plugin compiler/export compiler/modeldoc internal/pyworker internal/intent internal/diag internal/fault"},
	{"compiler/internal/parity", "compiler"},
	{"compiler/internal/parity/generate", "compiler/internal/parity"},
	{"compiler/internal/parity/oracle", "compiler compiler/internal/parity"},
	{"compiler/internal/parity/record", "compiler compiler/internal/parity compiler/internal/parity/oracle"},
	{"compiler/internal/parity/differ", "compiler compiler/internal/parity compiler/internal/parity/generate compiler/internal/parity/oracle"},

	// Git.
	{"internal/secret", "internal/fault"},
	{"gitsync/signers", ""},
	{"gitsync/objects", ""},
	{"gitsync", "gitsync/signers gitsync/objects internal/intent internal/fault internal/secret internal/provenance"},
	{"webhooks", "internal/intent internal/fault"},
	{"webhooks/forge", "internal/intent internal/fault"},
	{"webhooks/forge/forgetest", ""},

	// Deciding and doing.
	{"scheduler", "internal/intent"},
	{"executor", "internal/intent internal/fault internal/jsontext internal/pyworker internal/pyenv layout"},
	{"internal/deployer", "internal/intent internal/fault internal/jsontext scheduler executor"},

	// The place of record.
	{"internal/postgres", "internal/fault"},
	{"internal/partial", "internal/intent internal/fault"},
	{"internal/store", "internal/intent internal/fault internal/partial internal/jsontext"},
	{"internal/store/storetest", "internal/store internal/postgres internal/fault internal/intent"},

	// The verbs, and the doors to them.
	{"internal/control", "internal/intent internal/fault internal/bus compiler/export internal/diag internal/provenance webhooks/forge"},
	{"api", "internal/control internal/intent internal/fault internal/bus internal/diag internal/provenance"},
	{"api/apitest", "api internal/control internal/intent internal/fault internal/bus internal/diag internal/provenance webhooks/forge"},
	{"internal/callback", "internal/intent"},
	{"internal/console", "internal/control internal/intent internal/fault internal/bus internal/diag internal/provenance webhooks/forge"},

	// Wiring.
	{"internal/projectwatch", ""},
	{"internal/logfile", ""},
	{"internal/client", "internal/fault"},
	{"internal/config", "internal/fault"},
	{"internal/install", "internal/pep440 compiler/module gitsync internal/fault internal/pyenv"},
	{"internal/warm", "compiler/plugin internal/fault"},
	{"internal/builder", "internal/warm internal/install gitsync compiler/export compiler/module compiler/plugin internal/control internal/intent internal/fault internal/diag internal/pyenv internal/pyworker layout"},
	{"internal/server", "*"},
	{"internal/demo", "*"},
	{"internal/cli", "*"},
	{"cmd/ordain", "internal/cli"},
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
	cmd := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Doc,Imports,TestImports,XTestImports", module+"...")
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
		if strings.HasPrefix(name, "bench/") || name == "internal/architecture" || strings.HasPrefix(name, "internal/e2e") {
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

// Only the store speaks to PostgreSQL, and only gitsync to Git: whoever else
// needs them asks.
func TestOneImporterPerDriver(t *testing.T) {
	drivers := map[string][]string{
		"github.com/jackc/pgx/":     {"internal/store", "internal/store/storetest", "bench/ordeal"}, // the last holds the record against what happened
		"github.com/go-git/go-git/": {"gitsync", "gitsync/objects"},
		"github.com/go-chi/":        {"api"},
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
