package macro

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func world() World {
	node := func(number int, host, ip string, services ...string) Node {
		return Node{Number: number, Hostname: host, Services: services,
			Addresses: map[string]string{"bind_v4": "10.0.0." + ip, "access_v4": "192.0.2." + ip}}
	}
	return World{Self: 1001, Owner: "anna", Nodes: map[int]Node{
		1000: node(1000, "a.local", "1", "zookeeper", "myapp-2.0"),
		1001: node(1001, "b.local", "2", "zookeeper", "web"),
		1002: node(1002, "c.local", "3", "web"),
	}}
}

func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		"%host.self%":                                      "b.local",
		"%ip.self%":                                        "10.0.0.2",
		"%ip.access_v4.self%":                              "192.0.2.2",
		"hdfs://%host.service.zookeeper%/x":                "hdfs://a.local,b.local/x",
		"%ip.access_v4.service.web%":                       "192.0.2.2,192.0.2.3",
		"%host.service.web[1]%":                            "c.local",
		"%host.service.myapp-2.0%":                         "a.local",
		"%num.service.web%/%num.service.no%":               "2/0",
		"%instance.self.service.zookeeper%":                "2",
		"%cluster.owner%":                                  "anna",
		"%join(ip.service.zookeeper,' ')%":                 "10.0.0.1 10.0.0.2",
		"%join(map(host.service.zookeeper,'$:2181'),',')%": "a.local:2181,b.local:2181",
		"a load of 50% and 60% is no macro":                "a load of 50% and 60% is no macro",
		"%host.service.nobody%":                            "",
	} {
		if got, err := Expand(text, world()); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", text, got, err, want)
		}
	}
}

func TestWrongMacrosAreExplained(t *testing.T) {
	for text, want := range map[string]string{
		"%host.service.web[7]%":         "there are 2 nodes with the service web",
		"%instance.self.service.myapp%": "node 1001 does not have the service myapp",
		"%host.selff%":                  "is no macro",
		"%join(host.service.web)%":      "is no macro",
		"%cluster.name%":                "is no macro",
	} {
		if _, err := Expand(text, world()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s fails with %v, want %q", text, err, want)
		}
	}
	w := world()
	w.Nodes[1001] = Node{Number: 1001, Hostname: "b.local"}
	if _, err := Expand("%ip.self%", w); err == nil ||
		!strings.Contains(err.Error(), "b.local has no address bind_v4 yet") {
		t.Errorf("a node without an address: %v", err)
	}
}

func TestExpandJSON(t *testing.T) {
	in := json.RawMessage(`{"%host.self%":["%ip.self%",{"n":12345678901234567890,"p":"100%"}]}`)
	got, err := ExpandJSON(in, world())
	if want := `{"b.local":["10.0.0.2",{"n":12345678901234567890,"p":"100%"}]}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func TestServices(t *testing.T) {
	got := Services(
		`{"a":"%join(map(host.service.zookeeper-server,'$:2181'),',')%","b":"%ip.self%","c":"%num.service.web%"}`,
	)
	if want := []string{"web", "zookeeper-server"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("%join(map(host.service.zookeeper,'$:2181'),',')% %ip.self% 100%")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = Expand(text, world()) // it must not panic
	})
}
