package lineage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/eval"
	"ordain.dev/ordain/compiler/lineage"
	"ordain.dev/ordain/compiler/syntax"
	"ordain.dev/ordain/compiler/types"
	"ordain.dev/ordain/internal/provenance"
)

const model = `entity Service:
    string name
    int port = 80
    string? owner
    dict d = {}
end
entity Host:
    string name
    string? note = null
    int n
end
index Host(name)
Service.hosts [0:] -- Host.service [1]
Service.all [0:] -- Host
entity Group extends Service:
end
implementation web for Service:
    for n in ["a", "b"]:
        Host(
            name="{{ name }}-{{ n }}",
            service=self,
            n=int("1"),
        )
    end
    self.all = self.hosts
    self.owner = name
end
implementation none for Host:
end
implementation group for Group:
    parts = [Host(name=x, **{"n": 3}, service=self) for x in ["x"]]
    Service(
        name="inner")
end
implement Service using web
implement Group using group
implement Group using parents
implement Host using none

s = Group(name="shop")
s.hosts += Host(name="c", note="by hand", n=2)
`

func trace(t *testing.T) map[string][]provenance.Field {
	t.Helper()
	return traceModel(t, model)
}

// traceModel returns the fields of all instances, by their labels; of those with a path by that.
func traceModel(t *testing.T, model string) map[string][]provenance.Field {
	t.Helper()
	f, err := syntax.Parse(syntax.FileInfo{Path: "main.cf", Namespace: "__config__"}, []byte(model))
	if err != nil {
		t.Fatal(err)
	}
	result := eval.Compile(context.Background(), eval.Input{Files: []*syntax.File{f}})
	if result.Err != nil {
		t.Fatal(result.Err.Trace())
	}
	tracer := lineage.New(result)
	var entry provenance.Entry
	for _, i := range result.Instances {
		for _, a := range i.Entity().Attributes {
			tracer.Attribute(&entry, a.Name, i, a.Name, false)
		}
		id := lineage.Label(i)
		if path, ok := i.Field("path"); ok {
			id = types.Text(path)
		}
		tracer.Add(id, &entry)
	}
	packed, err := tracer.Table().Pack()
	if err != nil {
		t.Fatal(err)
	}
	table, err := provenance.Unpack(packed) // as the server reads it
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]provenance.Field{}
	for id := range table.Resources {
		out[id], _ = table.Explain(id)
	}
	return out
}

func describe(f provenance.Field) string {
	var all []string
	for _, s := range f.Settings {
		text := string(s.Kind)
		if s.Line > 0 {
			text += fmt.Sprintf(" %d", s.Line)
		}
		if s.EndLine > s.Line {
			text += fmt.Sprintf("-%d", s.EndLine)
		}
		if s.Loop.Line > 0 {
			text += fmt.Sprintf(" loop %d", s.Loop.Line)
		}
		if s.Implied {
			text += " implied"
		}
		for _, step := range s.Steps {
			text += fmt.Sprintf(" < %s for %s by %d, made %d", strings.TrimPrefix(step.Implementation, "__config__::"),
				strings.TrimPrefix(step.Instance, "__config__::"), step.Selected.Line, step.Made.Line)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// Who decided each value, and through which implementations and constructors,
// for every way that the language has to give an attribute a value.
func TestChains(t *testing.T) {
	fields := trace(t)
	const inWeb = " < web for Group[name=shop] by 35, made 40"
	const inGroup = " < group for Group[name=shop] by 36, made 40"
	const inInner = " < web for Service[name=inner] by 35, made 32" + inGroup
	for _, want := range [][3]string{
		{"Group[name=shop]", "name", "argument 40"},
		{"Group[name=shop]", "port", "default 3"},
		{"Group[name=shop]", "owner", "assignment 26" + inWeb},
		{"Group[name=shop]", "provides", "unset"},
		{"Service[name=inner]", "name", "argument 33" + inGroup},
		{"Service[name=inner]", "owner", "assignment 26" + inInner},
		{"Host[name=shop-a]", "name", "argument 20 loop 18" + inWeb},
		{"Host[name=inner-b]", "service", "argument 21 loop 18" + inInner},
		{"Host[name=inner-b]", "n", "argument 22 loop 18" + inInner},
		{"Host[name=c]", "name", "argument 41"},
		{"Host[name=c]", "note", "argument 41"},
		{"Host[name=c]", "service", "extension 41 implied"},
		{"Host[name=x]", "n", "argument 31 loop 31" + inGroup},
		{"Host[name=x]", "note", "default 9" + inGroup},
	} {
		f, ok := provenance.Find(fields["__config__::"+want[0]], want[1])
		if got := describe(f); !ok || got != want[2] {
			t.Errorf("%s.%s: %s\nand not %s", want[0], want[1], got, want[2])
		}
	}
	f, _ := provenance.Find(fields["__config__::Group[name=shop]"], "all")
	for _, s := range f.Settings {
		if s.Kind != provenance.Assignment || s.Line != 25 || s.Source != "    self.all = self.hosts" {
			t.Errorf("all: %+v", s)
		}
	}
}
