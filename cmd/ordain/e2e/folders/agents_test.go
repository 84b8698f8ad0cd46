package folders

import (
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// Resources of an agent that the model wants elsewhere would be deployed onto this machine by mistake: they are left
// alone and named, unless the person maps the agent to this machine. Only the agents that are named are deployed.
func TestAgents(t *testing.T) {
	t.Parallel()
	tool.Long(t, "five deployments of a folder")
	f := notes(t)
	f.write(map[string]string{"main.cf": `import std
import lab
lab::Note(path="SITE/desk", text="d")
lab::Note(path="SITE/web", text="w", agent="web")
lab::Note(path="SITE/far", text="f", agent="far")
std::AgentConfig(agentname="far", autostart=false)
`})
	r := f.deploy(0, "--agent", "web")
	r.contains("1 of 1 resource as intended", "resources of other agents left alone")
	f.has("web", "w")
	f.has("desk", "")
	r = f.deploy(1)
	r.contains("the agent far is not on this machine", "--map far=local")
	f.has("desk", "d")
	f.has("far", "")
	f.deploy(0, "--dry-run").contains("1 resource of other agents not looked at")
	f.deploy(0, "--map", "far=local").contains("1 deployed now, 1 of them changed")
	f.has("far", "f")
}

// A fact that a handler reports is known to the next compile of the same run, so that one run is enough.
// The handler may call the server, which has no socket.
func TestFactsInOneRun(t *testing.T) {
	t.Parallel()
	tool.Long(t, "three deployments of a folder")
	f := notes(t)
	f.write(map[string]string{
		"libs/asker/module.yml":          "name: asker\nversion: 1.0.0\nlicense: Apache 2.0\n",
		"libs/asker/model/_init.cf":      askerModel,
		"libs/asker/plugins/__init__.py": askerPlugin,
		"main.cf": `import std
import asker
import lab
source = asker::Source(name="s")
lab::Note(path="SITE/told", text=std::getfact(source, "colour"))
`,
	})
	f.deploy(0).contains("compiling again")
	f.has("told", "blue")
}

const askerModel = `entity Source extends std::Resource:
    string agent = "desk"
    string name
end
index Source(name)
implement Source using std::none
`

const askerPlugin = `from inmanta.agent.handler import CRUDHandler, provider
from inmanta.resources import Resource, resource


@resource("asker::Source", agent="agent", id_attribute="name")
class Source(Resource):
    fields = ("agent", "name")


@provider("asker::Source", name="source")
class SourceHandler(CRUDHandler[Source]):
    def read_resource(self, ctx, resource):
        answer = self.run_sync(lambda: self.get_client().get_environment(id=self._agent.environment))
        ctx.info("the server says %(code)s", code=answer.code)
        assert answer.code == 200, answer.result

    def facts(self, ctx, resource):
        return {"colour": "blue"}
`
