package solve

import (
	"slices"
	"strings"
	"testing"
)

// Each mistake that a person can make in a file is named.
func TestCheckNamesEachMistake(t *testing.T) {
	c := published(t)
	r := Request{Template: c.Templates["hadoop-distributed"], Catalogue: c, Size: 3}
	good, _ := layout(t, r)
	const unusable = " may not be used with the template and the provider"
	for want, spoil := range map[string]func(nodes []Node) []Node{
		"the cluster has 4 nodes, and is to have 3": func(n []Node) []Node { return append(n, n[2]) },
		"two nodes have the number 1000":            func(n []Node) []Node { n[1].Number = 1000; return n },
		`node 1001: the hardware type "tiny"` + unusable: func(n []Node) []Node {
			n[1].HardwareType = "tiny"
			return n
		},
		`node 1001: the image type "ubuntu14"` + unusable: func(n []Node) []Node {
			n[1].ImageType = "ubuntu14"
			return n
		},
		"node 1001: base has to be on every node": func(n []Node) []Node {
			n[1].Services = n[1].Services[1:]
			return n
		},
		"node 1001: nginx is not a service of the cluster": func(n []Node) []Node {
			n[1].Services = append(n[1].Services, "nginx")
			return n
		},
		"node 1000: hadoop-hdfs-namenode and hadoop-hdfs-datanode may not be on the same node": func(n []Node) []Node {
			n[0].Services = append(n[0].Services, "hadoop-hdfs-datanode")
			return n
		},
		"hadoop-hdfs-datanode is on 1 node, and has to be on 2 at least": func(n []Node) []Node {
			n[1].Services = []string{"base"}
			return n
		},
		"hadoop-hdfs-namenode is on 2 nodes, and may be on 1 at most": func(n []Node) []Node {
			n[1].Services = n[0].Services
			return n
		},
		"node 1002: it has no service": func(n []Node) []Node { n[2].Services = nil; return n },
	} {
		nodes := slices.Clone(good)
		for i := range nodes {
			nodes[i].Services = slices.Clone(nodes[i].Services)
		}
		got := strings.Join(Check(r, spoil(nodes)), "\n")
		if !slices.ContainsFunc(strings.Split(got, "\n"), func(line string) bool { return sameWords(line, want) }) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}

	r.Existing = good
	for want, spoil := range map[string]func(nodes []Node) []Node{
		"node 1001 exists with the hardware type standard-large, not standard-xlarge": func(n []Node) []Node {
			n[1].HardwareType = "standard-xlarge"
			return n
		},
		"1 node of 3 that exist would be replaced; they stay while the cluster is large enough": func(n []Node) []Node {
			n[2].Number = 1003
			return n
		},
	} {
		if got := Check(r, spoil(slices.Clone(good))); !slices.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// sameWords compares sentences whose names may come in another order.
func sameWords(a, b string) bool {
	words := func(s string) []string {
		w := strings.Fields(s)
		slices.Sort(w)
		return w
	}
	return slices.Equal(words(a), words(b))
}
