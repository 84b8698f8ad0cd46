package catalogue_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// What plug-ins of Coopr ship is one file with all their types.
func TestPluginFile(t *testing.T) {
	types, err := catalogue.SplitPlugin([]byte(`{"name": "fog", "providertypes": ["aws", "joyent"],
		"automatortypes": [],
		"aws": {"name": "aws", "parameters": {}}, "joyent": {"name": "joyent"}}`))
	if err != nil || len(types[catalogue.ProviderTypes]) != 2 || len(types) != 1 {
		t.Fatal(types, err)
	}
	if e := decode(t, catalogue.ProviderTypes, string(types[catalogue.ProviderTypes]["joyent"])); e == nil {
		t.Error("no type")
	}
	for want, text := range map[string]string{
		"aws: the plug-in lists the type aws, and does not describe it": `{"providertypes": ["aws"]}`,
		`it lists neither "providertypes" nor "automatortypes"`:         `{"name": "x"}`,
	} {
		if _, err := catalogue.SplitPlugin([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The plug-in types that come with the program are right, and can do what the published ones can.
func TestPluginTypesOfTheProgram(t *testing.T) {
	c := catalogue.New()
	if len(c.ProviderTypes) != 3 || len(c.AutomatorTypes) != 3 {
		t.Errorf("built in are %d and %d types", len(c.ProviderTypes), len(c.AutomatorTypes))
	}
	for kind, names := range catalogue.Optional() {
		for name, text := range names {
			e := decode(t, kind, string(text))
			if catalogue.HeadOf(e).Name != name {
				t.Errorf("%s is called %s", name, catalogue.HeadOf(e).Name)
			}
			c = c.With(e)
		}
	}
	for ref, found := range catalogue.CheckAll(c) {
		t.Errorf("%s: %s", ref, found)
	}
	for _, name := range []string{"aws", "openstack"} {
		text, err := os.ReadFile("testdata/coopr-templates/plugins/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		theirs, ours := decode(t, catalogue.ProviderTypes, string(text)).(*catalogue.PluginType), c.ProviderTypes[name]
		for field, f := range theirs.Parameters.Admin.Fields {
			if mine, ok := ours.Parameters.Admin.Fields[field]; !ok || mine.Secret() != f.Secret() ||
				mine.Override != f.Override {
				t.Errorf("%s: the field %s is %+v, and was %+v", name, field, mine, f)
			}
		}
		if !reflect.DeepEqual(theirs.Parameters.Admin.Required, ours.Parameters.Admin.Required) {
			t.Errorf("%s requires %v", name, ours.Parameters.Admin.Required)
		}
	}
	if catalogue.Source(catalogue.ProviderTypes, "pool") == nil || catalogue.Source(catalogue.ProviderTypes,
		"../x") != nil {
		t.Error("the source of a type")
	}
}

// The marker of a secret takes its place, and nothing else of the text changes.
func TestMarkersInAProvider(t *testing.T) {
	text := []byte(`{"provisioner": {"b": 1, "api_password": "pw", "api_user": "u"}, "name": "a",
		"providertype": "openstack",
		"unknown": [1.50, {"z": null, "a": "é<"}]}`)
	p := decode(t, catalogue.Providers, string(text)).(*catalogue.Provider)
	secret := catalogue.SecretFields(catalogue.New().ProviderTypes["openstack"], p)
	if !reflect.DeepEqual(secret, []string{"api_password"}) {
		t.Errorf("secret are %v", secret)
	}
	if all := catalogue.SecretFields(nil, p); len(all) != 3 {
		t.Errorf("without a type, secret are %v", all)
	}
	got, err := catalogue.WithValues(text, map[string]json.RawMessage{"api_password": json.RawMessage(`"********"`)})
	want := `{"name":"a","providertype":"openstack","provisioner":{"api_password":"********","api_user":"u","b":1},` +
		`"unknown":[1.50,{"a":"é<","z":null}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err = catalogue.WithVersion(got, 7); err != nil || !bytes.Contains(got, []byte(`"version":7`)) {
		t.Errorf("%s, %v", got, err)
	}
	if got, err = catalogue.Canonical(got); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// Whatever somebody sends: it is read without harm, or refused; what is kept of it is read as the same, and what was
// read can be judged.
func FuzzDecode(f *testing.F) {
	for kind, files := range published(f) {
		for name, text := range files {
			if name < "c" || kind == catalogue.Templates {
				f.Add(string(kind), text)
			}
		}
	}
	f.Add("services", []byte(`{"name":"a","version":"3","x":1e99,"dependencies":{"provides":["\ud800"]}}`))
	f.Add("providers", []byte(`{"name":"a","providertype":"pool","provisioner":{"machines":"[{\"address\":\"a\"}]"}}`))
	f.Add("clustertemplates",
		[]byte(`{"name":"a","parent":{"name":"a"},"includes":[{}],"constraints":{"size":{"min":"9"}}}`))
	c := small(f)
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		e, err := catalogue.Decode(catalogue.Kind(kind), text)
		if err != nil {
			if len(catalogue.Problems(err)) == 0 {
				t.Fatal("an error without a problem")
			}
			return
		}
		kept, err := catalogue.Canonical(text)
		if err != nil {
			t.Fatal("it can be read, and not kept: ", err)
		}
		withVersion, err := catalogue.WithVersion(kept, catalogue.HeadOf(e).Version)
		if err != nil {
			t.Fatal(err)
		}
		same, err := catalogue.Decode(catalogue.Kind(kind), withVersion)
		if err != nil || !reflect.DeepEqual(same, e) {
			t.Fatalf("%s: kept as\n%s\nand read as\n%+v\nnot as\n%+v (%v)", text, kept, same, e, err)
		}
		catalogue.Check(c, e)
		if template, ok := e.(*catalogue.Template); ok {
			if resolved, err := c.ResolveTemplate(template); err == nil && (resolved.Parent != nil ||
				resolved.Includes != nil) {
				t.Fatal("a resolved template builds on others")
			}
		}
	})
}
