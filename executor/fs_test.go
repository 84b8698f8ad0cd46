package executor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/testing/tool"
)

// published installs modules from the package index and returns a blueprint with
// their unmodified plug-in sources.
func (b *bench) published(python string, requirements []string, modules ...string) intent.Blueprint {
	b.t.Helper()
	venv, err := b.c.Maker.Ensure(b.t.Context(),
		venv.Spec{Dir: filepath.Join(b.t.TempDir(), "venv"), Python: python, Requirements: requirements})
	if fault.Is(err, fault.Unavailable) {
		tool.Missing(b.t, "cannot reach a package index: %v", err)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	blue := intent.Blueprint{
		Environment:   b.env,
		Requirements:  requirements,
		PythonVersion: venv.Interpreter.Minor,
		Libc:          venv.Interpreter.Libc,
	}
	for _, module := range modules {
		files, err := filepath.Glob(filepath.Join(venv.SitePackages, "inmanta_plugins", module, "*.py"))
		if err != nil || len(files) == 0 {
			b.t.Fatalf("module %s has no sources: %v", module, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				b.t.Fatal(err)
			}
			hash, err := b.files.PutFile(b.t.Context(), content)
			if err != nil {
				b.t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".py")
			dotted := "inmanta_plugins." + module
			if name != "__init__" {
				dotted += "." + name
			}
			blue.Sources = append(
				blue.Sources,
				intent.SourceFile{
					Module: dotted,
					Path:   "inmanta_plugins/" + module + "/" + filepath.Base(file),
					Hash:   hash,
				},
			)
		}
	}
	return blue
}

// fsTask makes a task for a resource of module fs, with the attributes that the
// exporter writes for a host that a local mitogen context reaches.
func fsTask(blue intent.Blueprint, kind, attribute, value string, attributes map[string]any) Task {
	full := map[string]any{
		"send_event": true, "receive_events": true, "references": []any{}, "mutators": []any{}, "report_only": false,
		"via": map[string]any{
			"method_name": "local",
			"name":        "",
		}, "purged": false, "purge_on_delete": false, attribute: value,
	}
	for name, v := range attributes {
		full[name] = v
	}
	text, err := json.Marshal(full)
	if err != nil {
		panic(err)
	}
	return Task{ID: uuid.New(), Action: Deploy, Blueprint: blue, Reason: "new version 1", Resource: intent.Resource{
		ID: intent.ResourceID{
			Type:      kind,
			Agent:     "localhost",
			Attribute: attribute,
			Value:     value,
		}, Version: 1, Attributes: text,
	}}
}

// On every Python version of this machine, the published module fs deploys a
// file, finds it unchanged, reports and repairs damage, and removes it.
func TestPublishedFileModule(t *testing.T) {
	for _, python := range interpreters(t) {
		t.Run(python.Minor, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, python.Path)
			std := "inmanta-module-std==8.7.5"
			if python.Minor < "3.12" {
				std = "inmanta-module-std==7.0.0"
			}
			blue := b.published(python.Path, []string{"inmanta-module-fs==1.2.0", std}, "fs", "mitogen", "std")
			hash, err := b.files.PutFile(t.Context(), []byte("hello\n"))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "made")
			path := filepath.Join(dir, "greeting.txt")
			me, err := user.Current()
			if err != nil {
				t.Fatal(err)
			}
			file := func(change map[string]any) Task {
				attributes := map[string]any{
					"hash":        hash,
					"content":     nil,
					"owner":       me.Username,
					"group":       nil,
					"permissions": 640,
				}
				for name, v := range change {
					attributes[name] = v
				}
				return fsTask(blue, "fs::File", "path", path, attributes)
			}
			made := b.Run(
				t.Context(),
				fsTask(blue, "fs::Directory", "path", dir,
					map[string]any{"owner": nil, "group": nil, "permissions": 755}),
			)
			expect(t, made, intent.StatusDeployed, "Calling create_resource")

			dry := file(nil)
			dry.Action = DryRun
			r := b.Run(t.Context(), dry)
			expect(t, r, intent.StatusDry)
			if _, err := os.Stat(path); !os.IsNotExist(err) || r.Changes["purged"].Desired != false {
				t.Errorf("after the dry run: %v, %v", err, r.Changes)
			}

			r = b.Run(t.Context(), file(nil))
			if expect(t, r, intent.StatusDeployed, "Calling create_resource"); r.Change != intent.Created {
				t.Errorf("change %s", r.Change)
			}
			content, err := os.ReadFile(path)
			info, statErr := os.Stat(path)
			if err != nil || statErr != nil || string(content) != "hello\n" || info.Mode().Perm() != 0o640 {
				t.Fatalf("%q, %v, %v, %v", content, info, err, statErr)
			}
			r = b.Run(t.Context(), file(nil))
			if expect(t, r, intent.StatusDeployed); r.Change != intent.NoChange || len(r.Changes) != 0 {
				t.Errorf("nothing to do: %s %v", r.Change, r.Changes)
			}
			t.Logf("a check of a file: %s", r.Finished.Sub(r.Started))

			if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
			r = b.Run(t.Context(), file(nil))
			if expect(t, r, intent.StatusDeployed, "Calling update_resource"); r.Change != intent.Updated ||
				r.Changes["hash"].Desired != hash {
				t.Errorf("repair: %s %v", r.Change, r.Changes)
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != "hello\n" {
				t.Errorf("repaired to %q, %v", content, err)
			}

			if log := b.log.String(); strings.Contains(log, "cannot be imported") {
				t.Error("a published module cannot be imported")
			}
			missing := file(map[string]any{"hash": strings.Repeat("0", 40)})
			expect(t, b.Run(t.Context(), missing), intent.StatusFailed, "is not available")

			r = b.Run(t.Context(), file(map[string]any{"purged": true}))
			if expect(t, r, intent.StatusDeployed, "Calling delete_resource"); r.Change != intent.Purged {
				t.Errorf("purge: %s", r.Change)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("after the purge: %v", err)
			}
		})
	}
}

// The published module files, whose handler base many modules share, writes and
// changes a text.
func TestPublishedTextModule(t *testing.T) {
	tool.Heavy(t, "imports published modules")
	python := slices.MaxFunc(interpreters(t), func(a, b venv.Interpreter) int { return cmp.Compare(a.Minor, b.Minor) })
	b := newBench(t, nil, python.Path)
	requirements := []string{ // the newest release of files needs Python 3.12
		`inmanta-module-files==2.11.1; python_version >= "3.12"`,
		`inmanta-module-files==2.5.0; python_version < "3.12"`,
		`inmanta-module-std==7.0.0; python_version < "3.12"`,
	}
	modules := []string{"files", "mitogen", "std"}
	if python.Minor >= "3.12" {
		modules = append(modules, "config")
	}
	blue := b.published(python.Path, requirements, modules...)
	path := filepath.Join(t.TempDir(), "text.txt")
	text := func(content string) Task {
		return fsTask(blue, "files::TextFile", "path", path, map[string]any{
			"content": content, "owner": nil, "group": nil, "permissions": 640, "managed": true,
		})
	}
	r := b.Run(t.Context(), text("hi\n"))
	if expect(t, r, intent.StatusDeployed, "Calling create_resource"); r.Change != intent.Created {
		t.Errorf("change %s", r.Change)
	}
	r = b.Run(t.Context(), text("there\n"))
	expect(t, r, intent.StatusDeployed)
	if r.Changes["content"] != (intent.AttributeChange{Current: "hi\n", Desired: "there\n"}) {
		t.Errorf("changes %v", r.Changes)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "there\n" {
		t.Errorf("%q, %v", content, err)
	}
	if strings.Contains(b.log.String(), "cannot be imported") {
		t.Error("a published module cannot be imported")
	}

	if python.Minor < "3.12" {
		return // the older release of files has no references
	}
	// A long text is exported as a reference to a stored file, which the handler
	// fetches with a client of the server.
	var written strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&written, "line %d of a long text\n", n)
	}
	long := written.String()
	hash, err := b.files.PutFile(t.Context(), []byte(long))
	if err != nil {
		t.Fatal(err)
	}
	referred := func(hash string) Task {
		id := uuid.New().String()
		return fsTask(blue, "files::TextFile", "path", path, map[string]any{
			"content": nil, "owner": nil, "group": nil, "permissions": 640, "managed": true,
			"references": []any{map[string]any{"id": id, "type": "files::TextReference", "args": []any{
				map[string]any{"type": "literal", "name": "hash", "value": hash},
			}}},
			"mutators": []any{map[string]any{"type": "core::Replace", "args": []any{
				map[string]any{
					"type": "resource",
					"name": "resource",
					"id":   "files::TextFile[localhost,path=" + path + "]",
				},
				map[string]any{"type": "reference", "name": "value", "id": id},
				map[string]any{"type": "literal", "name": "destination", "value": "content"},
			}}},
		})
	}
	r = b.Run(t.Context(), referred(hash))
	expect(t, r, intent.StatusDeployed, "Calling update_resource")
	t.Logf("a long text by reference: %s", r.Finished.Sub(r.Started))
	if content, err := os.ReadFile(path); err != nil || string(content) != long {
		t.Errorf("%d bytes of %d, %v", len(content), len(long), err)
	}
	expect(t, b.Run(t.Context(), referred(strings.Repeat("0", 40))), intent.StatusFailed, "could not be resolved",
		"404", "there is no file 000")
}
