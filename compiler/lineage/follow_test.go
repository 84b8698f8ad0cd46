package lineage_test

import (
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/provenance"
)

const computed = `entity Site:
    string name
    string motd = "welcome"
    bool tls = false
    dict ports = {"http": 80, "https": 443}
    string[] areas = []
end
entity Host:
    string name
    string zone
end
entity File:
    string path
    string content
    string? owner = null
end
Site.hosts [0:] -- Host.site [1]
File.host [1] -- Host
index Host(name)
implementation files for Site:
    domain = "{{ self.name }}.example.org"
    text = f"{self.motd} to {domain}"
    for host in self.hosts:
        File(host=host, path="/{{ host.name }}", content=text, owner=company)
    end
    main = Host[name="h1"]
    File(
        host=main, path=self.tls ? "/tls/{{ domain }}" : "/plain",
        content="port {{ port }}",
    )
    port = self.ports[self.tls ? "https" : "http"]
    extra = {"a": self.motd, "b": domain}
    pick = extra["b"]
    for area in self.areas:
        File(host=main, path=area, content="in {{ self.zone.label }} {{ pick }}")
    end
    if self.tls:
        File(host=main, path="/cert", content=string(self.name) + "!")
    end
    letter = Letter(text=domain)
    File(host=main, path="/letter", content=letter.text)
end
entity Letter:
    string text
end
entity Zone:
    string label
end
Site.zone [1] -- Zone
implement Letter using none
implement Zone using none
implement Site using files
implement Host using none
implement File using none
implementation none for std::Entity:
end

company = "ACME {{ suffix }}"
suffix = "Inc"
zone = Zone(
    label="north",
)
s = Site(
    name="shop",
    motd="hello",
    tls=true,
    zone=zone,
    areas=["/one",
        "/two"],
)
Host(name="h1", zone="z", site=s)
Host(name="h2", zone="z", site=s)
`

// tree writes what a value was computed from, one line for each thing, indented by depth.
func tree(b *strings.Builder, f provenance.Field, depth int) {
	for _, s := range f.Settings {
		text := f.Name + " " + string(s.Kind)
		if s.Condition {
			text = "if " + text
		}
		fmt.Fprintf(b, "%s%s %d", strings.Repeat("  ", depth), text, s.Line)
		if len(s.Steps) > 0 {
			fmt.Fprintf(b, " < made %d", s.Steps[0].Made.Line)
		}
		b.WriteString("\n")
		for _, input := range s.Inputs {
			tree(b, input, depth+1)
		}
	}
}

// A value that was computed leads to the lines that gave what it was computed from,
// through variables, loops, branches, entries of dicts, strings and other instances.
func TestWhatValuesWereComputedFrom(t *testing.T) {
	fields := traceModel(t, computed)
	for _, want := range []struct{ path, attribute, tree string }{
		{"/h2", "path", `path argument 24 < made 63
  host.name argument 72
  host element 23 < made 63
    self.hosts argument 71
    self.hosts argument 72
`},
		{"/h2", "content", `content argument 24 < made 63
  text assignment 22 < made 63
    self.motd argument 65
    domain assignment 21 < made 63
      self.name argument 64
`},
		{"/h2", "owner", `owner argument 24 < made 63
  company assignment 58
    suffix assignment 59
`},
		{"/tls/shop.example.org", "path", `path argument 28 < made 63
  domain assignment 21 < made 63
    self.name argument 64
  if self.tls argument 66
`},
		{"/tls/shop.example.org", "content", `content argument 29 < made 63
  port assignment 31 < made 63
    self.ports[…] member 5
    if self.tls argument 66
`},
		{"/one", "content", `content argument 35 < made 63
  self.zone.label argument 61
  self.zone argument 67
  pick assignment 33 < made 63
    extra["b"] member 32 < made 63
      domain assignment 21 < made 63
        self.name argument 64
`},
		{"/one", "path", `path argument 35 < made 63
  area element 34 < made 63
    self.areas argument 68
`},
		{"/cert", "content", `content argument 38 < made 63
  self.name argument 64
  if self.tls argument 66
`},
		{"/letter", "content", `content argument 41 < made 63
  letter.text argument 40 < made 63
    domain assignment 21 < made 63
      self.name argument 64
  letter assignment 40 < made 63
`},
	} {
		f, _ := provenance.Find(fields[want.path], want.attribute)
		var b strings.Builder
		tree(&b, f, 0)
		if b.String() != want.tree {
			t.Errorf("%s of %s:\n%s\nand not\n%s", want.attribute, want.path, b.String(), want.tree)
		}
	}
}
