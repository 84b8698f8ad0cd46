package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ordain.dev/ordain/server/cluster/catalogue"
)

func example() *Manifest {
	end := time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)
	return &Manifest{
		Name: "shop", Owner: "anna", Template: "lamp", Size: 2, Provider: "lab", Services: []string{"web", "db"},
		Stopped: []string{"db"}, Restarts: map[string]int{"web": 2}, Expires: &end, DNSSuffix: "lab.example",
		Config: map[string]any{"web": map[string]any{"port": 8080, "tls": true, "names": []any{"a", "b"}}},
		Catalogue: Pins{
			catalogue.Templates: {"lamp": 3}, catalogue.Services: {"web": 1, "db": 2},
		},
		Nodes: []Node{
			{
				Number:       1001,
				Hostname:     "shop-1001.lab.example",
				HardwareType: "small",
				ImageType:    "debian",
				Services:     []string{"web"},
			},
			{Number: 1000, Hostname: "shop-1000.lab.example", HardwareType: "small", ImageType: "debian",
				Services: []string{"web", "db"}},
		},
	}
}

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	m := example()
	text, err := Write(m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read("shop", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if d := cmp.Diff(m, again); d != "" {
		t.Errorf("what was read differs:\n%s", d)
	}
	if m.Next != 1002 || m.Nodes[0].Number != 1000 {
		t.Errorf("the next node is %d, the first %d", m.Next, m.Nodes[0].Number)
	}
	second, _ := Write(again)
	if string(second) != string(text) {
		t.Errorf("written again, it differs:\n%s\n%s", text, second)
	}
	if d := cmp.Diff(m.Size, m.Clone().Size); d != "" {
		t.Error(d)
	}
}

func TestBadFilesAreExplained(t *testing.T) {
	const good = "cluster: shop\nowner: anna\ntemplate: lamp\nsize: 1\nservices: [web]\n"
	for text, want := range map[string]string{
		"":                                    "the file is empty",
		"- a\n":                               "cannot unmarshal",
		"cluster: [":                          "line 1",
		good + "sise: 3\n":                    "line 6: field sise is not known here",
		strings.Replace(good, "1", "0", 1):    "size is 0, and may be 1 to 10000",
		strings.Replace(good, "1", "abc", 1):  "line 4",
		strings.Replace(good, "shop", "x", 1): `cluster is "x", and the file is named shop.yaml`,
		strings.Replace(good, "template: lamp\n", "", 1):                              "template is missing",
		good + "stopped: [db]\n":                                                      `stopped has "db"`,
		good + "nodes:\n- {number: 5, hostname: a}\n":                                 "a node has the number 5",
		good + "nodes:\n- {number: 1000, hostname: a}\n- {number: 1000, hostname: b}": "two nodes have the number 1000",
		good + "nodes:\n- {number: 1000, hostname: 'a b'}\n":                          `"a b" cannot be the host name`,
		good + "config: &a {x: 1}\nfields: *a\n":                                      "line 7: aliases",
		good + "config: " + strings.Repeat("[", 60) + strings.Repeat("]", 60):         "nested more than",
		good + "#" + strings.Repeat("x", MaxFile):                                     "bytes, and may have",
	} {
		_, err := Read("shop", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: the error is %v, want %q", text, err, want)
		}
	}
	if _, err := Read("../x", []byte(good)); err == nil {
		t.Error("a name with a path is accepted")
	}
}

func TestHostname(t *testing.T) {
	for name, want := range map[string]string{
		"hadoop_Dev.1":           "hadoop-dev-1-1000.local",
		"99problems":             "problems-1000.local",
		"1":                      "node-1000.local",
		strings.Repeat("a", 100): strings.Repeat("a", 58) + "-1000.local",
	} {
		if got := Hostname(name, 1000, ""); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, _ := Write(example())
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Read("shop", text)
		if err != nil {
			return
		}
		out, err := Write(m)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := Read("shop", out); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
	})
}
