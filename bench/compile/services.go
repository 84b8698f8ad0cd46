package main

import (
	"fmt"
	"strings"
)

// perService is how many resources one service is refined into.
const perService = 10

// servicesPerHost is how many services share a host.
const servicesPerHost = 10

const projectFile = "name: bench\nmodulepath: libs\npip:\n  use_system_config: true\n"

var shopFiles = map[string]string{
	"libs/shop/module.yml": "name: shop\nversion: 1.0.0\nlicense: Apache 2.0\n",
	"libs/shop/model/_init.cf": `entity Host:
    string name
    int number
end
index Host(name)
implement Host using std::none

entity Service:
    string name
    int port
    bool secure = false
    string tier = "web"
    string[] labels = []
    string note
end
Service.host [1] -- Host.services [0:]
Service.needs [0:] -- Service.needed_by [0:]
index Service(name)

entity Part extends std::PurgeableResource:
    string name
    string note = ""
end
Part.service [1] -- Service.parts [0:]
Part.host [1] -- Host.parts [0:]
index Part(host, name)
implement Part using std::none

entity Directory extends Part:
    int mode = 755
end
entity Account extends Part:
    string shell = "/bin/false"
    bool system = true
end
entity Text extends Part:
    string content
    int mode = 644
    string owner = "root"
    string group = "root"
end
entity File extends Text:
end
entity ConfigFile extends Text:
    string format = "ini"
end
entity Unit extends Part:
    string state = "running"
    bool enabled = true
    dict settings = {}
end
entity Rule extends Part:
    int port
    string action
end
implement Directory using std::none
implement Account using std::none
implement File using std::none
implement ConfigFile using std::none
implement Unit using std::none
implement Rule using std::none

implementation parts for Service:
    account = Account(host=self.host, service=self, name="account-{{ self.name }}")
    top = Directory(host=self.host, service=self, name="/srv/{{ self.name }}", requires=account)
    for area in ["log", "data", "run"]:
        Directory(
            host=self.host, service=self, name="/srv/{{ self.name }}/{{ area }}",
            mode=area == "run" ? 700 : 750, requires=top,
        )
    end
    config = ConfigFile(host=self.host, service=self, name="/etc/{{ self.name }}.ini", content=content, requires=top)
    content = CONTENT
    for label in self.labels:
        File(
            host=self.host, service=self, name="/etc/{{ self.name }}.d/{{ label }}",
            content=f"label={label} of {self.name} on {self.host.name}", owner=account.name, requires=[top, config],
        )
    end
    unit = Unit(
        host=self.host, service=self, name="{{ self.name }}.service",
        settings={"port": self.port, "tier": self.tier, "after": self.needs is defined},
    )
    unit.requires = config
    unit.requires += account
    if self.needs is defined:
        self.note = "after others"
    else:
        self.note = "alone"
    end
end
implementation open for Service:
    rule = Rule(host=self.host, service=self, name="rule-{{ self.port }}", port=self.port, action="accept")
end
implementation secured for Service:
    rule = Rule(
        host=self.host, service=self, name="rule-{{ self.port }}", port=self.port + 10000, action="encrypt",
        requires=Part[host=self.host, name="account-{{ self.name }}"],
    )
end
implement Service using parts
implement Service using open when not self.secure
implement Service using secured when self.secure and self.port > 0
`,
	"libs/shop/plugins/__init__.py": `from inmanta.plugins import plugin
from inmanta.resources import PurgeableResource, resource


@plugin
def render(name: "string", port: "int", labels: "string[]") -> "string":
    """The text of a configuration file."""
    lines = [f"[{name}]", f"port = {port}"]
    lines += [f"label = {label}" for label in labels]
    return "\n".join(lines)


class Part(PurgeableResource):
    fields = ("name", "note")


@resource("shop::Directory", agent="host.name", id_attribute="name")
class Directory(Part):
    fields = ("mode",)


@resource("shop::Account", agent="host.name", id_attribute="name")
class Account(Part):
    fields = ("shell", "system")


class Text(Part):
    fields = ("content", "mode", "owner", "group")


@resource("shop::File", agent="host.name", id_attribute="name")
class File(Text):
    pass


@resource("shop::ConfigFile", agent="host.name", id_attribute="name")
class ConfigFile(Text):
    fields = ("format",)


@resource("shop::Unit", agent="host.name", id_attribute="name")
class Unit(Part):
    fields = ("state", "enabled", "settings")


@resource("shop::Rule", agent="host.name", id_attribute="name")
class Rule(Part):
    fields = ("port", "action")
`,
}

// servicesWith is the shape of services that implementations refine into ten
// resources each. content is the expression for a configuration file.
func servicesWith(name, label, content string) shape {
	return shape{
		name: name, label: label,
		instances: func(n int) int {
			services := n / perService
			return (services+servicesPerHost-1)/servicesPerHost + services + services*perService
		},
		files: func(n int) map[string]string {
			files := map[string]string{"main.cf": servicesMain(n)}
			for file, text := range shopFiles {
				files[file] = strings.Replace(text, "CONTENT", content, 1)
			}
			return files
		},
	}
}

// servicesMain makes hosts and services; a service needs the one before it,
// found by its index, and every fourth is secured.
func servicesMain(resources int) string {
	var b strings.Builder
	b.WriteString("import shop\n\n")
	for n := range resources / perService {
		if n%servicesPerHost == 0 {
			fmt.Fprintf(&b, "shop::Host(name=\"host%d\", number=%d)\n", n/servicesPerHost, n/servicesPerHost)
		}
		fmt.Fprintf(
			&b,
			"shop::Service(\n    name=\"service%d\", port=%d, host=shop::Host[name=\"host%d\"],\n"+
				"    labels=[\"one\", \"two\"], secure=%t,",
			n,
			1000+n%servicesPerHost,
			n/servicesPerHost,
			n%4 == 3,
		)
		if n%servicesPerHost > 0 {
			fmt.Fprintf(&b, " needs=shop::Service[name=\"service%d\"],", n-1)
		}
		b.WriteString("\n)\n")
	}
	return b.String()
}
