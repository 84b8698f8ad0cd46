package main

import (
	"fmt"
	"strings"
)

const (
	wideHubs   = 4
	wideGroups = 3
)

// wide has a few entities with relations to thousands of others: each hub to
// its nodes, and each group to two thirds of all nodes. A loop over the nodes of a
// hub makes a link for each, and lists of nodes are copied and filtered.
var wide = shape{
	name: "wide", label: ", wide relations",
	instances: func(n int) int { return n + wideHubs + wideGroups },
	files: func(n int) map[string]string {
		return map[string]string{
			"libs/wide/module.yml":          "name: wide\nversion: 1.0.0\nlicense: Apache 2.0\n",
			"libs/wide/model/_init.cf":      wideModel,
			"libs/wide/plugins/__init__.py": widePlugins,
			"main.cf":                       wideMain(n),
		}
	},
}

const wideModel = `entity Hub:
    string name
    bool busy = false
end
Hub.nodes [0:] -- Node.hub [1]
Hub.links [0:] -- Link.hub [1]
Hub.watched [0:] -- Node.watchers [0:]
Hub.odd [0:] -- Node
index Hub(name)

entity Group:
    string name
end
Group.members [0:] -- Node.groups [0:]
index Group(name)
implement Group using std::none

entity Node extends std::PurgeableResource:
    string name
    int number
end
index Node(name)
implement Node using std::none

entity Link extends std::PurgeableResource:
    string name
    string target
end
Link.node [1] -- Node.links [0:]
index Link(hub, node)
implement Link using std::none

implementation connect for Hub:
    for node in self.nodes:
        Link(hub=self, node=node, name="{{ self.name }}-{{ node.name }}", target=node.name, requires=node)
    end
    self.watched = self.nodes
    self.odd = [node for node in self.nodes if node.number % 2 == 1]
end
implement Hub using connect
`

const widePlugins = `from inmanta.resources import PurgeableResource, resource


@resource("wide::Node", agent="hub.name", id_attribute="name")
class Node(PurgeableResource):
    fields = ("name", "number")


@resource("wide::Link", agent="hub.name", id_attribute="name")
class Link(PurgeableResource):
    fields = ("name", "target")
`

// wideMain makes as many nodes as links.
func wideMain(resources int) string {
	var b strings.Builder
	b.WriteString("import wide\n\n")
	for n := range wideHubs {
		fmt.Fprintf(&b, "hub%d = wide::Hub(name=\"hub%d\")\n", n, n)
	}
	for n := range wideGroups {
		fmt.Fprintf(&b, "group%d = wide::Group(name=\"group%d\")\n", n, n)
	}
	for n := range resources / 2 {
		fmt.Fprintf(&b, "wide::Node(name=\"node%d\", number=%d, hub=hub%d, groups=[group%d, group%d])\n",
			n, n, n%wideHubs, n%wideGroups, (n+1)%wideGroups)
	}
	return b.String()
}
