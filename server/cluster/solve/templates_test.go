package solve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// published loads the templates of testdata, which are as their users wrote them.
func published(t testing.TB) *catalogue.Catalogue {
	t.Helper()
	c := &catalogue.Catalogue{
		Providers:     load[catalogue.Provider](t, "providers"),
		HardwareTypes: load[catalogue.HardwareType](t, "hardwaretypes"),
		ImageTypes:    load[catalogue.ImageType](t, "imagetypes"),
		Services:      load[catalogue.Service](t, "services"),
	}
	// Leases may be written in several ways; the solver does not need them.
	c.Templates = map[string]*catalogue.Template{}
	for name, raw := range load[map[string]json.RawMessage](t, "clustertemplates") {
		delete(*raw, "administration")
		text, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		c.Templates[name] = &catalogue.Template{}
		if err := json.Unmarshal(text, c.Templates[name]); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func load[T any](t testing.TB, folder string) map[string]*T {
	t.Helper()
	out := map[string]*T{}
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v := new(T)
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = v
	}
	return out
}

// layout solves a request, and returns a line for each span of nodes that are alike.
func layout(t *testing.T, r Request) ([]Node, string) {
	t.Helper()
	nodes, err := Layout(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := Check(r, nodes); len(wrong) > 0 {
		t.Fatalf("the layout is wrong:\n%s", strings.Join(wrong, "\n"))
	}
	var lines []string
	for i := 0; i < len(nodes); {
		words := func(n Node) string {
			return fmt.Sprintf("%s %s %s", n.HardwareType, n.ImageType, strings.Join(n.Services, " "))
		}
		j := i
		for j+1 < len(nodes) && words(nodes[j+1]) == words(nodes[i]) {
			j++
		}
		lines = append(lines, fmt.Sprintf("%d-%d %s", nodes[i].Number, nodes[j].Number, words(nodes[i])))
		i = j + 1
	}
	return nodes, strings.Join(lines, "\n")
}

func same(t *testing.T, what, got string, want ...string) {
	t.Helper()
	if got != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, strings.Join(want, "\n"))
	}
}

// refused returns the contradiction of a request.
func refused(t *testing.T, r Request) *Contradiction {
	t.Helper()
	nodes, err := Layout(context.Background(), r)
	var c *Contradiction
	if !errors.As(err, &c) {
		t.Fatalf("there is a layout, or another error: %v, %v", nodes, err)
	}
	return c
}

const (
	lampAll = "apache-httpd base mysql-server php php-modules"
	lampWeb = "apache-httpd base php php-modules"
)

// A LAMP cluster grows, gets a proxy, and shrinks; what exists stays as it is.
func TestTheLifeOfALampCluster(t *testing.T) {
	c := published(t)
	r := Request{Template: c.Templates["lamp"], Catalogue: c, Size: 3}
	nodes, text := layout(t, r)
	same(t, "new", text, "1000-1000 standard-medium ubuntu12 "+lampAll, "1001-1002 standard-medium ubuntu12 "+lampWeb)

	r.Existing, r.Size = nodes, 5
	nodes, text = layout(t, r)
	same(t, "grown", text, "1000-1000 standard-medium ubuntu12 "+lampAll, "1001-1004 standard-medium ubuntu12 "+lampWeb)

	r.Existing, r.Services = nodes, append(slices.Clone(r.Template.Defaults.Services), "haproxy", "memcached")
	nodes, text = layout(t, r)
	same(t, "with a proxy and a cache", text,
		"1000-1000 standard-medium ubuntu12 apache-httpd base haproxy memcached mysql-server php php-modules",
		"1001-1004 standard-medium ubuntu12 apache-httpd base memcached php php-modules")

	r.Existing, r.Size, r.Services = nodes, 2, nil
	nodes, text = layout(t, r)
	same(t, "shrunk, without proxy and cache", text,
		"1000-1000 standard-medium ubuntu12 "+lampAll, "1001-1001 standard-medium ubuntu12 "+lampWeb)

	r.Existing, r.Size, r.Next, r.HardwareType = nodes, 3, 1005, "standard-large"
	_, text = layout(t, r)
	same(t, "one larger node, with a number that was never used", text,
		"1000-1000 standard-medium ubuntu12 "+lampAll, "1001-1001 standard-medium ubuntu12 "+lampWeb,
		"1005-1005 standard-large ubuntu12 "+lampWeb)
}

// The node that is taken away is the youngest one that nothing depends on, even if a younger one exists.
func TestShrinkingSparesTheNodeThatMatters(t *testing.T) {
	c := published(t)
	r := Request{Template: c.Templates["hadoop-distributed"], Catalogue: c, Size: 5}
	nodes, text := layout(t, r)
	const (
		master = "base hadoop-hdfs-namenode hadoop-yarn-resourcemanager hbase-master zookeeper-server"
		worker = "base hadoop-hdfs-datanode hadoop-yarn-nodemanager hbase-regionserver"
	)
	same(t, "new", text, "1000-1000 standard-large ubuntu12 "+master, "1001-1004 standard-large ubuntu12 "+worker)

	nodes[0].Services, nodes[4].Services = nodes[4].Services, nodes[0].Services // the master is the youngest
	r.Existing, r.Size = nodes, 3
	_, text = layout(t, r)
	same(t, "shrunk", text, "1000-1001 standard-large ubuntu12 "+worker, "1004-1004 standard-large ubuntu12 "+master)
}

// A provider is found by its name or by its type, and only what is mapped for it is used.
func TestOnlyHardwareOfTheProviderIsUsed(t *testing.T) {
	c := published(t)
	other := *c.Providers["joyent"]
	other.Name = "ours"
	c.Providers["ours"] = &other
	r := Request{Template: c.Templates["lamp"], Catalogue: c, Size: 1, Provider: "ours"}
	_, text := layout(t, r)
	same(t, "by type", text, "1000-1000 standard-medium ubuntu12 "+lampAll)

	other.ProviderType = "unheard-of"
	same(t, "unmapped", refused(t, r).Error(),
		"no hardware type that the template lamp allows is mapped for the provider ours")
}

func TestContradictionsSpeakPlainly(t *testing.T) {
	c := published(t)
	lamp := func(change func(*catalogue.Template, *Request)) Request {
		template := *c.Templates["lamp"]
		services := map[string]catalogue.ServiceConstraint{}
		for name, s := range template.Constraints.Services {
			services[name] = s
		}
		template.Constraints.Services = services
		template.Constraints.Layout.MustCoexist = slices.Clone(template.Constraints.Layout.MustCoexist)
		r := Request{Template: &template, Catalogue: c, Size: 3}
		change(&template, &r)
		return r
	}
	for name, test := range map[string]struct {
		request Request
		want    []string
		hint    string
	}{
		"bound to a single one": {
			lamp(func(t *catalogue.Template, _ *Request) {
				three := &catalogue.Range{Min: 3}
				t.Constraints.Services["apache-httpd"] = catalogue.ServiceConstraint{Quantities: three}
				t.Constraints.Layout.MustCoexist = append(t.Constraints.Layout.MustCoexist,
					[]string{"apache-httpd", "mysql-server"})
			}),
			[]string{
				"apache-httpd and mysql-server have to be on the same nodes",
				"mysql-server may be on 1 node at most",
				"apache-httpd has to be on 3 nodes at least",
			},
			"Let the template have apache-httpd on fewer nodes, let the template have mysql-server on more nodes or " +
				"let the template have apache-httpd and mysql-server on different nodes.",
		},
		"too small": {
			Request{Template: c.Templates["hadoop-distributed"], Catalogue: c, Size: 2},
			[]string{"hadoop-distributed has 3 nodes at least", "the cluster is to have 2 nodes"},
			"There is a layout with 3 nodes.",
		},
		"nothing provides it": {
			lamp(func(_ *catalogue.Template, r *Request) { r.Services = []string{"base", "php-modules"} }),
			[]string{"php-modules requires php, and no service of the cluster is or provides php"},
			"Add php.",
		},
		"not of the template": {
			lamp(func(_ *catalogue.Template, r *Request) { r.Services = []string{"base", "zookeeper-server"} }),
			[]string{"the template lamp does not allow the service zookeeper-server"},
			"Leave out zookeeper-server, or add it to the compatible services of the template.",
		},
		"existing nodes": {
			lamp(func(t *catalogue.Template, r *Request) {
				for i := range 3 {
					r.Existing = append(r.Existing, Node{
						1000 + i, strings.Fields(lampAll), "standard-medium", "ubuntu12",
					})
				}
			}),
			[]string{"nodes 1000 to 1002 have mysql-server already", "mysql-server may be on 1 node at most",
				"the cluster is to have 3 nodes"},
			"There is a layout with 1 node.",
		},
		"hardware that the provider lacks": {
			lamp(func(t *catalogue.Template, r *Request) {
				t.Constraints.Services["mysql-server"] = catalogue.ServiceConstraint{HardwareTypes: []string{"huge"}}
			}),
			[]string{
				"the hardware types for lamp and rackspace are standard-2xlarge, standard-large, standard-medium, " +
					"standard-small and standard-xlarge",
				"mysql-server needs the hardware type huge",
				"mysql-server has to be on 1 node at least",
			},
			"Leave out mysql-server, allow mysql-server other hardware types or map more hardware types for " +
				"rackspace and allow them in the template.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := refused(t, test.request)
			same(t, "reasons", got.Error(), test.want...)
			same(t, "hint", got.Hint, test.hint)
		})
	}
}
