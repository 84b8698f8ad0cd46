package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/python/venv"
	"ordain.dev/ordain/internal/testing/tool"
)

// Module is a module with one resource type, the note: a file with a text. Its
// mood makes the handler misbehave.
var Module = map[string]string{
	"libs/lab/module.yml": "name: lab\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/lab/model/_init.cf": `entity Note extends std::PurgeableResource:
    string agent = "desk"
    string path
    string text
    string mood = "calm"
end
index Note(path)
implement Note using std::none
`,
	"libs/lab/plugins/__init__.py": `import ctypes
import os
import signal
import time

from inmanta.agent.handler import CRUDHandler, ResourcePurged, SkipResource, provider
from inmanta.plugins import plugin
from inmanta.resources import PurgeableResource, resource


@plugin
def shout(text: "string") -> "string":
    if text == "quiet":
        raise ValueError("this plug-in cannot shout quietly")
    return text.upper()


@resource("lab::Note", agent="agent", id_attribute="path")
class Note(PurgeableResource):
    fields = ("agent", "path", "text", "mood")


@provider("lab::Note", name="note")
class NoteHandler(CRUDHandler[Note]):
    def read_resource(self, ctx, resource):
        if resource.mood == "hang":
            time.sleep(3600)
        if resource.mood == "raise":
            raise RuntimeError("the pencil broke")
        if resource.mood == "away":
            raise ConnectionRefusedError("no route to desk")
        if resource.mood == "babble":
            for _ in range(16384):
                print("x" * 63)
        if resource.mood == "die":
            print("goodbye, cruel world", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if resource.mood == "crash":
            ctypes.string_at(0)
        if resource.mood == "skip":
            raise SkipResource("not today")
        if not os.path.exists(resource.path):
            raise ResourcePurged()
        with open(resource.path) as note:
            resource.text = note.read()

    def _write(self, resource):
        with open(resource.path, "w") as note:
            note.write(resource.text)

    def create_resource(self, ctx, resource):
        self._write(resource)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self._write(resource)
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        os.remove(resource.path)
        ctx.set_purged()
`,
	"requirements.txt": "inmanta-module-std; python_version >= \"3.12\"\ninmanta-module-std<8; python_version < " +
		"\"3.12\"\n",
	"project.yml": "name: lab\nmodulepath: libs\npip:\n  use_system_config: true\n",
}

// NewPython finds an interpreter that is new enough for the newest published modules.
func NewPython(t *testing.T) string {
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

// Model returns a main.cf with these notes; each has a name, a text and a mood.
func (p *Place) Model(notes ...[3]string) map[string]string {
	var b strings.Builder
	b.WriteString("import lab\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "lab::Note(path=%q, text=%q, mood=%q)\n", filepath.Join(p.Site, n[0]), n[1], n[2])
	}
	return map[string]string{"main.cf": b.String()}
}

// Named returns a main.cf whose notes have the environment in their names, so that two
// environments of one commit write different files.
func (p *Place) Named(notes ...[3]string) map[string]string {
	var b strings.Builder
	b.WriteString("import std\nimport lab\nwhere = std::environment_name()\n")
	for _, n := range notes {
		fmt.Fprintf(&b, "lab::Note(path=\"%s/{{where}}-%s\", text=%q, mood=%q)\n", p.Site, n[0], n[1], n[2])
	}
	return map[string]string{"main.cf": b.String()}
}

// MergeFiles merges sets of files; a later set wins.
func MergeFiles(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
