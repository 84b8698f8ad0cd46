package deploys

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// shelfModule has folders, which can be removed only when they are empty, and files in
// them. A file that is named in the file "stuck" cannot be removed. Handlers write what
// they remove into a journal.
var shelfModule = map[string]string{
	"libs/shelf/module.yml": "name: shelf\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/shelf/model/_init.cf": `entity Item extends std::PurgeableResource:
    string agent
    string path
end
entity Folder extends Item:
end
entity Leaf extends Item:
end
index Item(path)
implement Folder using std::none
implement Leaf using std::none
`,
	"libs/shelf/plugins/__init__.py": `import os

from inmanta.agent.handler import CRUDHandler, ResourcePurged, provider
from inmanta.resources import PurgeableResource, resource


@resource("shelf::Folder", agent="agent", id_attribute="path")
class Folder(PurgeableResource):
    fields = ("agent", "path")


@resource("shelf::Leaf", agent="agent", id_attribute="path")
class Leaf(PurgeableResource):
    fields = ("agent", "path")


class ItemHandler(CRUDHandler):
    def read_resource(self, ctx, resource):
        if not os.path.exists(resource.path):
            raise ResourcePurged()

    def update_resource(self, ctx, changes, resource):
        pass

    def journal(self, ctx, resource):
        home = os.path.dirname(resource.path.rstrip("/"))
        while not os.path.exists(os.path.join(home, "journal")):
            home = os.path.dirname(home)
        stuck = os.path.join(home, "stuck")
        if os.path.exists(stuck) and open(stuck).read() == os.path.basename(resource.path):
            raise RuntimeError("it is stuck")
        with open(os.path.join(home, "journal"), "a") as journal:
            journal.write(os.path.basename(resource.path) + "\n")
        ctx.set_purged()


@provider("shelf::Folder", name="folder")
class FolderHandler(ItemHandler):
    def create_resource(self, ctx, resource):
        os.mkdir(resource.path)
        ctx.set_created()

    def delete_resource(self, ctx, resource):
        os.rmdir(resource.path)
        self.journal(ctx, resource)


@provider("shelf::Leaf", name="leaf")
class LeafHandler(ItemHandler):
    def create_resource(self, ctx, resource):
        open(resource.path, "w").close()
        ctx.set_created()

    def delete_resource(self, ctx, resource):
        self.journal(ctx, resource)
        os.remove(resource.path)
`,
	"requirements.txt": lab.Module["requirements.txt"],
	"project.yml":      lab.Module["project.yml"],
}

// A push removes most resources, perhaps by mistake. The version is held and everything
// stays until a person confirms, which is impossible while a file is protected. Files
// are then removed before their folder; when one is stuck, the folder waits for it. A
// file that is kept keeps its folder.
func TestAShelfIsEmptied(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	p := lab.SharedWorld(t).NewPlace(t)
	shelf := filepath.Join(p.Site, "shelf")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.Site, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("journal", "")
	const leaves = 12
	model := func(purged bool) map[string]string {
		var b strings.Builder
		fmt.Fprintf(&b, "import shelf\nkept = shelf::Folder(agent=\"desk\", path=%q)\n", filepath.Join(p.Site, "kept"))
		fmt.Fprintf(&b, "shelf::Leaf(agent=\"desk\", path=%q, requires=[kept])\n",
			filepath.Join(p.Site, "kept", "note"))
		fmt.Fprintf(&b, "folder = shelf::Folder(agent=\"desk\", path=%q, purged=%t, requires=[kept])\n", shelf, purged)
		for i := range leaves {
			// On two agents, so that the order holds between them.
			fmt.Fprintf(&b, "shelf::Leaf(agent=\"desk%d\", path=%q, purged=%t, requires=[folder])\n", i%2,
				filepath.Join(shelf, fmt.Sprintf("f%02d", i)), purged)
		}
		return map[string]string{"main.cf": b.String()}
	}
	there := func() (n int) {
		entries, _ := os.ReadDir(shelf)
		return len(entries)
	}
	p.Push("a shelf", lab.MergeFiles(shelfModule, model(false)))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	if there() != leaves {
		t.Fatalf("%d leaves are there\n%s", there(), p.Story())
	}

	p.Push("an empty shelf", model(true))
	c, stages := p.Compiled()
	if c.Success == nil || !*c.Success ||
		!strings.Contains(lab.Report(stages), "held: version 2 is not released: it takes away 13 of 15 resources") {
		t.Fatalf("the report does not say that the version is held\n%s", lab.Report(stages))
	}
	if err := p.Control.Release(t.Context(), p.Env, 2); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "ordain version confirm") {
		t.Fatalf("a plain release: %v", err)
	}
	if there() != leaves || !strings.Contains(p.DeployedState(), "version 1") {
		t.Fatalf("something of a held version was deployed: %s", p.DeployedState())
	}
	p.Until("the notification", func() bool {
		page, err := p.Store.Notifications(t.Context(), p.Env,
			intent.ListQuery{Filters: map[string][]string{"read": {"false"}}})
		return err == nil && len(page.Items) == 1 && page.Items[0].Title == "Version 2 is held" &&
			page.Items[0].Times == 2 &&
			*page.Items[0].Compile == c.ID
	})

	name := p.T.Name() // of the environment
	lab.Mentions(t, p.Must(t, "version", "list", name), "held: it takes away 13 of 15 resources")
	lab.Mentions(
		t,
		p.Must(t, "version", "show", name, "2"),
		"candidate",
		"13 of 15",
		"f11] (purged)",
		"/shelf] (purged)",
	)
	lab.Mentions(t, p.Must(t, "notification", "list", name), "Version 2 is held", "warning")
	if code, _, errs := p.Ordain(t, "", "version", "release", name, "2"); code == 0 ||
		!strings.Contains(errs, "ordain version confirm") {
		t.Errorf("a release on the command line: %d %s", code, errs)
	}
	if code, _, errs := p.Ordain(t, "", "version", "confirm", name, "2"); code == 0 ||
		!strings.Contains(errs, "--reason") {
		t.Errorf("a confirmation without a reason: %d %s", code, errs)
	}

	set := func(value string) {
		t.Helper()
		if err := p.Control.SetSetting(t.Context(), p.Env, "protected_resources", value); err != nil {
			t.Fatal(err)
		}
	}
	set("shelf::Leaf[*/f05]")
	if err := p.Control.Confirm(t.Context(), p.Env, 2, "ida", "spring cleaning"); !fault.Is(err, fault.Conflict) ||
		there() != leaves {
		t.Fatalf("a version that removes a protected resource was confirmed: %v", err)
	}
	set("")
	write("stuck", "f03")
	p.Must(t, "version", "confirm", name, "2", "--by", "ida", "--reason", "spring cleaning")
	lab.Mentions(t, p.Must(t, "version", "show", name, "2"), "active", "by ida at", "spring cleaning")
	rows := p.Settled()
	if rows["f03"].State.Status() != intent.StatusFailed || rows["shelf"].State.Status() != intent.StatusSkipped ||
		there() != 1 {
		t.Fatalf("f03 is %s, the shelf %s, %d leaves are there", rows["f03"].State.Status(),
			rows["shelf"].State.Status(), there())
	}
	lab.Mentions(t, p.LogOf("shelf"), "requires shelf::Leaf[desk1", "f03")

	write("stuck", "")
	if _, err := p.Control.Deploy(t.Context(), p.Env, false, nil); err != nil {
		t.Fatal(err)
	}
	p.Until("the shelf to go", func() bool { _, err := os.Stat(shelf); return os.IsNotExist(err) })
	for name, row := range p.Settled() {
		if row.State.Status() != intent.StatusDeployed {
			t.Errorf("%s is %s", name, row.State.Status())
		}
	}
	text, err := os.ReadFile(filepath.Join(p.Site, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	gone := strings.Fields(string(text))
	if len(gone) != leaves+1 || !slices.Equal(gone[leaves-1:], []string{"f03", "shelf"}) {
		t.Errorf("it went in this order: %v", gone)
	}
	if _, err := os.Stat(filepath.Join(p.Site, "kept", "note")); err != nil {
		t.Error(err)
	}
}

// A resource becomes protected after the version that purges it was released. It is not
// purged, its log says why, and what depends on it waits. Without the protection, it is
// purged.
func TestProtectedResourcesAreNotPurged(t *testing.T) {
	tool.Heavy(t, "runs a server, and executors with modules of their own")
	t.Parallel()
	p := lab.SharedWorld(t).NewPlace(t)
	if err := os.WriteFile(filepath.Join(p.Site, "journal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	model := func(purged bool) map[string]string {
		return map[string]string{"main.cf": fmt.Sprintf(`import shelf
folder = shelf::Folder(agent="desk", path=%q, purged=%t)
shelf::Leaf(agent="desk", path=%q, purged=%t, requires=[folder])
`, filepath.Join(p.Site, "shelf"), purged, filepath.Join(p.Site, "shelf", "leaf"), purged)}
	}
	p.Push("a shelf", lab.MergeFiles(shelfModule, model(false)))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	p.Settled()
	pause := func(paused bool) {
		t.Helper()
		if err := p.Control.PauseAgent(t.Context(), p.Env, "desk", paused); err != nil {
			t.Fatal(err)
		}
	}
	pause(true)
	p.Push("without it", model(true)) // two are few: it is released
	p.CompiledWell()
	if err := p.Control.SetSetting(t.Context(), p.Env, "protected_resources", "*/leaf]"); err != nil {
		t.Fatal(err)
	}
	pause(false)
	rows := p.Settled()
	if rows["leaf"].State.Status() != intent.StatusSkipped || rows["shelf"].State.Status() != intent.StatusSkipped {
		t.Fatalf("the leaf is %s, the shelf %s", rows["leaf"].State.Status(), rows["shelf"].State.Status())
	}
	lab.Mentions(t, p.LogOf("leaf"), "protected_resources protects it")
	lab.Mentions(t, p.LogOf("shelf"), "it requires shelf::Leaf")
	if _, err := os.Stat(filepath.Join(p.Site, "shelf", "leaf")); err != nil {
		t.Fatal(err)
	}
	if err := p.Control.SetSetting(t.Context(), p.Env, "protected_resources", ""); err != nil {
		t.Fatal(err)
	}
	p.Until("the shelf to go",
		func() bool { _, err := os.Stat(filepath.Join(p.Site, "shelf")); return os.IsNotExist(err) })
}

// A large resource breaks the server somewhere on its way. A note of ten megabytes is
// compiled, stored and deployed; the API shows all of it, and the console a part. A
// note that is too large fails its compile, which names it, and nothing changes.
func TestAVeryLargeNote(t *testing.T) {
	t.Parallel()
	tool.Long(t, "compiles and deploys megabytes")
	p := lab.SharedWorld(t).NewPlace(t)
	model := func(size int) map[string]string {
		return map[string]string{
			"main.cf": fmt.Sprintf("import lab\nimport pad\nlab::Note(path=%q, text=pad::fill(%d))\n",
				filepath.Join(p.Site, "a"), size),
		}
	}
	padding := map[string]string{
		"libs/pad/module.yml":     "name: pad\nversion: 1.0.0\nlicense: Apache 2.0\n",
		"libs/pad/model/_init.cf": "",
		"libs/pad/plugins/__init__.py": "from inmanta.plugins import plugin\n\n\n@plugin\ndef fill(size: " +
			"\"int\") -> \"string\":\n    return \"0123456789abcde\\n\" * (size // 16)\n",
	}
	const size = 10 << 20
	p.Push("a very large note", lab.MergeFiles(lab.Module, padding, model(size)))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	p.CompiledWell()
	if rows := p.Settled(); rows["a"].State.Status() != intent.StatusDeployed || len(p.Note("a")) != size {
		t.Fatalf("it is %s with %d bytes\n%s", rows["a"].State.Status(), len(p.Note("a")), p.LogOf("a"))
	}
	id := url.PathEscape(fmt.Sprintf("lab::Note[desk,path=%s]", filepath.Join(p.Site, "a")))
	if body := p.Fetch("/api/v2/resource/" + id); len(body) < size {
		t.Errorf("the API returns %d bytes of it", len(body))
	}
	page := p.Fetch("/e/" + p.Env.String() + "/resource?id=" + id)
	if len(page) > 1<<20 || !strings.Contains(page, "KiB more") {
		t.Errorf("the page has %d bytes", len(page))
	}
	before := p.DeployedState()
	p.Push("too large a note", model(17<<20))
	text := p.FailsIn(intent.StageExport)
	lab.Mentions(t, text, "lab::Note[desk", "more than 16 MiB")
	if after := p.DeployedState(); after != before {
		t.Errorf("something changed: %s, before %s", after, before)
	}
}
