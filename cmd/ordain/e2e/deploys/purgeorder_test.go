package deploys

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ordain.dev/ordain/cmd/ordain/e2e/lab"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/config"
)

// shelfModel has files in folders, of published modules. A module adds requirements
// between its own types: a file requires its folder or, if both are purged, the folder
// its file. For a folder of fs with a file of files in it, the model has to add the
// requirement, and it is the same in both cases.
const shelfModel = `import std
import mitogen
import files
import fs

host = std::Host(name="desk", os=std::linux, via=mitogen::Local())

files::Directory(host=host, path="SITE/said", permissions=755, purged=PURGED)
files::TextFile(host=host, path="SITE/said/text", content="c", permissions=600, purged=PURGED)
files::Directory(host=host, path="SITE/said/inner", permissions=755, purged=PURGED)
files::TextFile(host=host, path="SITE/said/inner/file", content="d", permissions=600, purged=PURGED)

plain = fs::Directory(host=host, path="SITE/plain", mode=755, purged=PURGED)
files::TextFile(host=host, path="SITE/plain/text", content="a", permissions=600, purged=PURGED, requires=plain)

fs::Directory(host=host, path="SITE/fs", mode=755, purged=PURGED)
fs::Directory(host=host, path="SITE/fs/inner", mode=755, purged=PURGED)
fs::File(host=host, path="SITE/fs/inner/file", content="b", mode=600, purged=PURGED)
`

// A model removes folders together with the files in them. Each file must be
// removed by its own handler before its folder goes, whether the module has
// already reversed the requirements or the server has to; and again when the
// folders are wanted again and removed a second time.
func TestFoldersGoAfterTheirFiles(t *testing.T) {
	t.Parallel()
	tool.Long(t, "starts a server, and deploys with a published module")
	python := lab.NewPython(t)
	w := lab.OwnWorld(t, func(o *config.Config) { o.Python, o.HandlerTimeout = python, lab.Patience })
	p := w.NewPlace(t)
	if err := os.Chmod(p.Site, 0o755); err != nil {
		t.Fatal(err)
	}
	model := func(purged bool) map[string]string {
		return map[string]string{
			"requirements.txt": "inmanta-module-std\ninmanta-module-mitogen\ninmanta-module-files\ninmanta-module-fs\n",
			"project.yml":      "name: shelf\npip:\n  use_system_config: true\n",
			"main.cf":          strings.NewReplacer("SITE", p.Site, "PURGED", fmt.Sprint(purged)).Replace(shelfModel),
		}
	}
	deployedFiles := map[string]string{
		"plain": "drwxr-xr-x", "plain/text": "-rw------- a", "fs": "drwxr-xr-x", "fs/inner": "drwxr-xr-x",
		"fs/inner/file": "-rw------- b",
		"said":          "drwxr-xr-x", "said/text": "-rw------- c", "said/inner": "drwxr-xr-x",
		"said/inner/file": "-rw------- d",
	}
	p.Push("folders", model(false))
	p.Bind(intent.Source{URL: "file://" + p.Bare, Branch: "main"}, nil)
	for round := range 2 {
		p.CompiledWell()
		allDeployed(p)
		wantOnDisk(p, deployedFiles)
		p.Push("they go", model(true))
		p.CompiledWell()
		allDeployed(p)
		wantOnDisk(p, map[string]string{})
		for part, kind := range map[string]string{
			"/plain": "fs::Directory", "/fs": "fs::Directory", "/fs/inner": "fs::Directory",
			"/said": "files::Directory", "/said/inner": "files::Directory",
		} {
			if gone := p.Action(kind, part); gone.Change != intent.Purged {
				t.Errorf("%s %s was %s: %s", kind, part, gone.Change, lab.LogText(gone))
			}
		}
		if round == 0 {
			p.Push("they are wanted again", model(false))
		}
	}
}
