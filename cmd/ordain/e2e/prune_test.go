package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
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
	"requirements.txt": labModule["requirements.txt"],
	"project.yml":      labModule["project.yml"],
}

// A push removes most resources, perhaps by mistake. The version is held and everything
// stays until a person confirms, which is impossible while a file is protected. Files
// are then removed before their folder; when one is stuck, the folder waits for it. A
// file that is kept keeps its folder.
func TestAShelfIsEmptied(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).newPlace(t)
	shelf := filepath.Join(p.site, "shelf")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.site, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("journal", "")
	const leaves = 12
	model := func(purged bool) map[string]string {
		var b strings.Builder
		fmt.Fprintf(&b, "import shelf\nkept = shelf::Folder(agent=\"desk\", path=%q)\n", filepath.Join(p.site, "kept"))
		fmt.Fprintf(&b, "shelf::Leaf(agent=\"desk\", path=%q, requires=[kept])\n",
			filepath.Join(p.site, "kept", "note"))
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
	p.push("a shelf", mergeFiles(shelfModule, model(false)))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	if there() != leaves {
		t.Fatalf("%d leaves are there\n%s", there(), p.story())
	}

	p.push("an empty shelf", model(true))
	c, stages := p.compiled()
	if c.Success == nil || !*c.Success ||
		!strings.Contains(report(stages), "held: version 2 is not released: it takes away 13 of 15 resources") {
		t.Fatalf("the report does not say that the version is held\n%s", report(stages))
	}
	if err := p.control.Release(t.Context(), p.env, 2); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "ordain version confirm") {
		t.Fatalf("a plain release: %v", err)
	}
	if there() != leaves || !strings.Contains(p.deployedState(), "version 1") {
		t.Fatalf("something of a held version was deployed: %s", p.deployedState())
	}
	p.until("the notification", func() bool {
		page, err := p.store.Notifications(t.Context(), p.env,
			intent.ListQuery{Filters: map[string][]string{"read": {"false"}}})
		return err == nil && len(page.Items) == 1 && page.Items[0].Title == "Version 2 is held" &&
			page.Items[0].Times == 2 &&
			*page.Items[0].Compile == c.ID
	})

	name := p.t.Name() // of the environment
	mentions(t, p.must(t, "version", "list", name), "held: it takes away 13 of 15 resources")
	mentions(t, p.must(t, "version", "show", name, "2"), "candidate", "13 of 15", "f11] (purged)", "/shelf] (purged)")
	mentions(t, p.must(t, "notification", "list", name), "Version 2 is held", "warning")
	if code, _, errs := p.ordain(t, "", "version", "release", name, "2"); code == 0 ||
		!strings.Contains(errs, "ordain version confirm") {
		t.Errorf("a release on the command line: %d %s", code, errs)
	}
	if code, _, errs := p.ordain(t, "", "version", "confirm", name, "2"); code == 0 ||
		!strings.Contains(errs, "--reason") {
		t.Errorf("a confirmation without a reason: %d %s", code, errs)
	}

	set := func(value string) {
		t.Helper()
		if err := p.control.SetSetting(t.Context(), p.env, "protected_resources", value); err != nil {
			t.Fatal(err)
		}
	}
	set("shelf::Leaf[*/f05]")
	if err := p.control.Confirm(t.Context(), p.env, 2, "ida", "spring cleaning"); !fault.Is(err, fault.Conflict) ||
		there() != leaves {
		t.Fatalf("a version that removes a protected resource was confirmed: %v", err)
	}
	set("")
	write("stuck", "f03")
	p.must(t, "version", "confirm", name, "2", "--by", "ida", "--reason", "spring cleaning")
	mentions(t, p.must(t, "version", "show", name, "2"), "active", "by ida at", "spring cleaning")
	rows := p.settled()
	if rows["f03"].State.Status() != intent.StatusFailed || rows["shelf"].State.Status() != intent.StatusSkipped ||
		there() != 1 {
		t.Fatalf("f03 is %s, the shelf %s, %d leaves are there", rows["f03"].State.Status(),
			rows["shelf"].State.Status(), there())
	}
	mentions(t, p.logOf("shelf"), "requires shelf::Leaf[desk1", "f03")

	write("stuck", "")
	if _, err := p.control.Deploy(t.Context(), p.env, false, nil); err != nil {
		t.Fatal(err)
	}
	p.until("the shelf to go", func() bool { _, err := os.Stat(shelf); return os.IsNotExist(err) })
	for name, row := range p.settled() {
		if row.State.Status() != intent.StatusDeployed {
			t.Errorf("%s is %s", name, row.State.Status())
		}
	}
	text, err := os.ReadFile(filepath.Join(p.site, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	gone := strings.Fields(string(text))
	if len(gone) != leaves+1 || !slices.Equal(gone[leaves-1:], []string{"f03", "shelf"}) {
		t.Errorf("it went in this order: %v", gone)
	}
	if _, err := os.Stat(filepath.Join(p.site, "kept", "note")); err != nil {
		t.Error(err)
	}
}

// A resource becomes protected after the version that purges it was released. It is not
// purged, its log says why, and what depends on it waits. Without the protection, it is
// purged.
func TestProtectedResourcesAreNotPurged(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).newPlace(t)
	if err := os.WriteFile(filepath.Join(p.site, "journal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	model := func(purged bool) map[string]string {
		return map[string]string{"main.cf": fmt.Sprintf(`import shelf
folder = shelf::Folder(agent="desk", path=%q, purged=%t)
shelf::Leaf(agent="desk", path=%q, purged=%t, requires=[folder])
`, filepath.Join(p.site, "shelf"), purged, filepath.Join(p.site, "shelf", "leaf"), purged)}
	}
	p.push("a shelf", mergeFiles(shelfModule, model(false)))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	p.settled()
	pause := func(paused bool) {
		t.Helper()
		if err := p.control.PauseAgent(t.Context(), p.env, "desk", paused); err != nil {
			t.Fatal(err)
		}
	}
	pause(true)
	p.push("without it", model(true)) // two are few: it is released
	p.compiledWell()
	if err := p.control.SetSetting(t.Context(), p.env, "protected_resources", "*/leaf]"); err != nil {
		t.Fatal(err)
	}
	pause(false)
	rows := p.settled()
	if rows["leaf"].State.Status() != intent.StatusSkipped || rows["shelf"].State.Status() != intent.StatusSkipped {
		t.Fatalf("the leaf is %s, the shelf %s", rows["leaf"].State.Status(), rows["shelf"].State.Status())
	}
	mentions(t, p.logOf("leaf"), "protected_resources protects it")
	mentions(t, p.logOf("shelf"), "it requires shelf::Leaf")
	if _, err := os.Stat(filepath.Join(p.site, "shelf", "leaf")); err != nil {
		t.Fatal(err)
	}
	if err := p.control.SetSetting(t.Context(), p.env, "protected_resources", ""); err != nil {
		t.Fatal(err)
	}
	p.until("the shelf to go",
		func() bool { _, err := os.Stat(filepath.Join(p.site, "shelf")); return os.IsNotExist(err) })
}

// A large resource breaks the server somewhere on its way. A note of ten megabytes is
// compiled, stored and deployed; the API shows all of it, and the console a part. A
// note that is too large fails its compile, which names it, and nothing changes.
func TestAVeryLargeNote(t *testing.T) {
	t.Parallel()
	p := sharedWorld(t).newPlace(t)
	model := func(size int) map[string]string {
		return map[string]string{
			"main.cf": fmt.Sprintf("import lab\nimport pad\nlab::Note(path=%q, text=pad::fill(%d))\n",
				filepath.Join(p.site, "a"), size),
		}
	}
	padding := map[string]string{
		"libs/pad/module.yml":     "name: pad\nversion: 1.0.0\nlicense: Apache 2.0\n",
		"libs/pad/model/_init.cf": "",
		"libs/pad/plugins/__init__.py": "from inmanta.plugins import plugin\n\n\n@plugin\ndef fill(size: " +
			"\"int\") -> \"string\":\n    return \"0123456789abcde\\n\" * (size // 16)\n",
	}
	const size = 10 << 20
	p.push("a very large note", mergeFiles(labModule, padding, model(size)))
	p.bind(intent.Source{URL: "file://" + p.bare, Branch: "main"}, nil)
	p.compiledWell()
	if rows := p.settled(); rows["a"].State.Status() != intent.StatusDeployed || len(p.note("a")) != size {
		t.Fatalf("it is %s with %d bytes\n%s", rows["a"].State.Status(), len(p.note("a")), p.logOf("a"))
	}
	id := url.PathEscape(fmt.Sprintf("lab::Note[desk,path=%s]", filepath.Join(p.site, "a")))
	if body := p.fetch("/api/v2/resource/" + id); len(body) < size {
		t.Errorf("the API returns %d bytes of it", len(body))
	}
	page := p.fetch("/e/" + p.env.String() + "/resource?id=" + id)
	if len(page) > 1<<20 || !strings.Contains(page, "KiB more") {
		t.Errorf("the page has %d bytes", len(page))
	}
	before := p.deployedState()
	p.push("too large a note", model(17<<20))
	text := p.failsIn(intent.StageExport)
	mentions(t, text, "lab::Note[desk", "more than 16 MiB")
	if after := p.deployedState(); after != before {
		t.Errorf("something changed: %s, before %s", after, before)
	}
}
