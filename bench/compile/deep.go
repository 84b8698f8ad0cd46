package main

import (
	"fmt"
	"strings"
)

// deepLevels is the length of the chain of parents. At every tenth a leaf hangs,
// which has the instances.
const deepLevels = 30

// deep has a chain of thirty parents: each level has attributes of its own, some
// set the default of a common attribute anew, and every third has an
// implementation, which descendants inherit.
var deep = shape{
	name: "deep", label: ", deep inheritance",
	instances: func(n int) int { return n },
	files: func(n int) map[string]string {
		return map[string]string{
			"libs/deep/module.yml":          "name: deep\nversion: 1.0.0\nlicense: Apache 2.0\n",
			"libs/deep/model/_init.cf":      deepModel(),
			"libs/deep/plugins/__init__.py": deepPlugins(),
			"main.cf":                       deepMain(n),
		}
	},
}

func deepModel() string {
	var b strings.Builder
	b.WriteString(`entity Level0 extends std::PurgeableResource:
    string name
    int number
    string state = "new"
    string note0
end
index Level0(name)
Level0.next [0:1] -- Level0.previous [0:1]
implementation at0 for Level0:
    self.note0 = "{{ self.name }} is {{ self.state }}"
end
implement Level0 using at0
`)
	for level := 1; level < deepLevels; level++ {
		fmt.Fprintf(&b, "entity Level%d extends Level%d:\n    int size%d = %d\n", level, level-1, level, level)
		if level%5 == 0 {
			fmt.Fprintf(&b, "    string state = \"level%d\"\n", level)
		}
		using := "parents"
		if level%3 == 0 {
			using += fmt.Sprintf(", at%d", level)
			fmt.Fprintf(&b, "    string note%d\nend\nimplementation at%d for Level%d:\n", level, level, level)
			fmt.Fprintf(&b, "    self.note%d = \"{{ self.name }} has {{ self.size%d }}\"\n", level, level)
		}
		fmt.Fprintf(&b, "end\nimplement Level%d using %s\n", level, using)
		if level%10 == 4 {
			fmt.Fprintf(&b, `implementation chained%d for Level%d:
    if self.next is defined:
        self.next.requires += self
    end
end
implement Level%d using chained%d when self.number > 0
`, level, level, level, level)
		}
		if level%10 == 9 {
			fmt.Fprintf(&b, "entity Leaf%[1]d extends Level%[1]d:\nend\nimplement Leaf%[1]d using parents\n", level)
		}
	}
	return b.String()
}

func deepPlugins() string {
	var b strings.Builder
	b.WriteString("from inmanta.resources import PurgeableResource, resource\n")
	for level := 9; level < deepLevels; level += 10 {
		fmt.Fprintf(&b, `

@resource("deep::Leaf%d", agent="state", id_attribute="name")
class Leaf%d(PurgeableResource):
    fields = ("name", "number", "note0", "note3", "note9", "size1", "size%d")
`, level, level, level)
	}
	return b.String()
}

// deepMain makes instances of the leaves in turn; each is chained to the one
// before it, in pieces of ten.
func deepMain(resources int) string {
	var b strings.Builder
	b.WriteString("import deep\n\n")
	for n := range resources {
		fmt.Fprintf(&b, "deep::Leaf%d(name=\"thing%d\", number=%d", 9+10*(n%(deepLevels/10)), n, n)
		if n%10 > 0 {
			fmt.Fprintf(&b, ", previous=deep::Level0[name=\"thing%d\"]", n-1)
		}
		b.WriteString(")\n")
	}
	return b.String()
}
