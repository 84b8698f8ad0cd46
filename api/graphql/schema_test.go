package graphql

import (
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type introspected struct {
	Kind, Name string
	Fields     []struct {
		Name string
		Args []introspectedInput
		Type introspectedRef
	}
	InputFields []introspectedInput
	EnumValues  []struct{ Name string }
}

type introspectedInput struct {
	Name         string
	DefaultValue *string
	Type         introspectedRef
}

type introspectedRef struct {
	Kind, Name string
	OfType     *introspectedRef
}

func (r introspectedRef) String() string {
	switch r.Kind {
	case "NON_NULL":
		return r.OfType.String() + "!"
	case "LIST":
		return "[" + r.OfType.String() + "]"
	}
	return r.Name
}

func inputs(all []introspectedInput) map[string]any {
	out := map[string]any{}
	for _, a := range all {
		out[a.Name] = a.Type.String()
		if a.DefaultValue != nil {
			out[a.Name] = a.Type.String() + " = " + *a.DefaultValue
		}
	}
	return out
}

// The schema that is served is that of inmanta-core 20.1.0, but for descriptions. testdata/reference.json is what an
// introspection of the reference has, made shorter: types as they are written in a schema, in alphabetical order.
func TestTheSchemaIsTheReferences(t *testing.T) {
	text, err := New(Config{Logger: slog.New(slog.DiscardHandler)}).Schema()
	if err != nil {
		t.Fatal(err)
	}
	var served struct {
		Schema struct {
			QueryType  struct{ Name string }
			Types      []introspected
			Directives []struct {
				Name string
				Args []introspectedInput
			}
		} `json:"__schema"`
	}
	if err := json.Unmarshal(text, &served); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	directives := map[string]any{}
	for _, d := range served.Schema.Directives {
		names := []any{}
		for _, a := range d.Args {
			names = append(names, a.Name)
		}
		directives[d.Name] = names
	}
	got["(directives)"] = directives
	for _, typ := range served.Schema.Types {
		if strings.HasPrefix(typ.Name, "__") {
			continue
		}
		one := map[string]any{"kind": typ.Kind}
		if len(typ.Fields) > 0 {
			fields := map[string]any{}
			for _, f := range typ.Fields {
				fields[f.Name] = map[string]any{"type": f.Type.String()}
				if len(f.Args) > 0 {
					fields[f.Name].(map[string]any)["args"] = inputs(f.Args)
				}
			}
			one["fields"] = fields
		}
		if len(typ.InputFields) > 0 {
			one["inputFields"] = inputs(typ.InputFields)
		}
		var values []string
		for _, v := range typ.EnumValues {
			values = append(values, v.Name)
		}
		if slices.Sort(values); len(values) > 0 {
			list := []any{}
			for _, v := range values {
				list = append(list, v)
			}
			one["enumValues"] = list
		}
		got[typ.Name] = one
	}
	text, err = os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reference (-), ours (+):\n%s", diff)
	}
}
