package catalogue_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// A template stands on its parent, which includes an immutable part, and includes a part itself.
func TestResolveMergesWhatATemplateBuildsOn(t *testing.T) {
	c := small(t).With(decode(t, catalogue.Templates, `{"name": "mine", "version": 4, "parent": {"name": "top"},
		"includes": [{"name": "ntp"}], "description": "My own",
		"compatibility": {"services": ["web"], "hardwaretypes": ["large"]},
		"defaults": {"services": ["db"], "imagetype": "debian", "dnsSuffix": " ", "config": {"ntp": {"b": 1},
			"ldap": { "host" : "l" }}},
		"constraints": {"size": {"max": 5}, "layout": {"cantcoexist": [["db", "base"], ["db", "web"]],
			"mustcoexist": [["web", "base"]]}, "services": {"db": {"hardwaretypes": ["large"]}}},
		"administration": {"leaseduration": {"max": 0}},
		"links": [{"label": "UI", "url": "https://x/"}, {"label": "Docs", "url": "https://y/"}]}`))
	got, err := c.Resolve("mine")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"mine","description":"My own","version":4,
		"compatibility":{"hardwaretypes":["large"],"services":["base","db","web"]},
		"defaults":{"services":["base","db"],"provider":"cloud","hardwaretype":"large","imagetype":"debian",
			"dnsSuffix":"top.example.com","config":{"ldap":{"host":"l"},"ntp":{"b":1},"top":true,"x":1}},
		"constraints":{"size":{"min":2,"max":5},"layout":{"mustcoexist":[["web","base"]],
			"cantcoexist":[["base","db"],["db","web"]]},"services":{"db":{"hardwaretypes":["large"]}}},
		"administration":{"leaseduration":{"initial":172800000,"max":0,"step":86400000}},
		"links":[{"label":"UI","url":"https://x/"},{"label":"Docs","url":"https://y/"}]}`
	if !reflect.DeepEqual(generic(t, text), generic(t, []byte(want))) {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if found := catalogue.Check(c, got); len(found) > 0 {
		t.Error("what is resolved is not right: ", found)
	}
	// The catalogue is as it was.
	if top := c.Templates["top"]; len(top.Compatibility.Services) != 2 || len(top.Links) != 1 ||
		top.Links[0].URL != "http://%ip.service.db[0]%:80" || len(top.Defaults.Config) != 2 ||
		c.Templates["mine"].Parent == nil {
		t.Errorf("merging changed the parent: %+v", top)
	}
}

// What a part says about the configuration holds whatever the order, unless something later says otherwise; and a key
// of an immutable part is in the result as the part has it, or there is an error.
func TestImmutableKeysHold(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 45))
		var all []catalogue.Entity
		key := func() string { return fmt.Sprintf("k%d", r.IntN(4)) }
		immutable := map[string]map[string]json.RawMessage{}
		var includes []catalogue.Reference
		for i := range 3 {
			p := &catalogue.Partial{Head: catalogue.Head{Name: fmt.Sprintf("p%d", i)}, Immutable: r.IntN(2) == 0}
			p.Defaults.Config = map[string]json.RawMessage{key(): json.RawMessage(fmt.Sprint(i))}
			if p.Immutable {
				immutable[p.Name] = p.Defaults.Config
			}
			all = append(all, p)
			includes = append(includes, catalogue.Reference{Name: p.Name})
		}
		parent := &catalogue.Template{Head: catalogue.Head{Name: "parent"}, Includes: includes[:1]}
		child := &catalogue.Template{
			Head: catalogue.Head{Name: "child"}, Parent: &catalogue.Reference{Name: "parent"},
			Includes: includes[r.IntN(2):],
		}
		last := key()
		child.Defaults.Config = map[string]json.RawMessage{last: json.RawMessage("9")}
		c := catalogue.New(append(all, parent, child)...)
		got, err := c.Resolve("child")
		if err != nil {
			continue
		}
		if string(got.Defaults.Config[last]) != "9" {
			t.Fatalf("seed %d: the template's own key is %s", seed, got.Defaults.Config[last])
		}
		for name, config := range immutable {
			if !slices.Contains(child.Includes, catalogue.Reference{Name: name}) && name != "p0" {
				continue
			}
			for k, v := range config {
				if string(got.Defaults.Config[k]) != string(v) {
					t.Fatalf("seed %d: %s of the immutable part %s is %s", seed, k, name, got.Defaults.Config[k])
				}
			}
		}
	}
}

func TestTooManyParents(t *testing.T) {
	var all []catalogue.Entity
	for i := range 30 {
		all = append(all, &catalogue.Template{
			Head: catalogue.Head{Name: fmt.Sprint(i)}, Parent: &catalogue.Reference{Name: fmt.Sprint(i + 1)},
		})
	}
	_, err := catalogue.New(all...).Resolve("0")
	if want := "parent.name: the template 0 has more than 20 parents above it"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if _, err = catalogue.New().Resolve("0"); err == nil || err.Error() != `there is no cluster template "0"` {
		t.Errorf("%v", err)
	}
}

// A user is asked for the user's fields, for what may be overridden, and for what the administrator left open.
func TestFieldsThatUsersGive(t *testing.T) {
	c := small(t).With(
		decode(t, catalogue.Providers, `{"name": "amazon", "providertype": "aws", "provisioner": {"api_user": "u",
			"api_password": "********", "aws_region": "eu-central-1", "security_groups": "web"}}`),
		decode(t, catalogue.Providers, `{"name": "closed", "providertype": "x", "provisioner": {"a": "1"}}`),
		decode(t, catalogue.ProviderTypes, `{"name": "x", "parameters": {"admin": {"fields": {"a": {"type": "text"},
			"b": {"type": "password", "override": true}, "c": {"type": "text"}}, "required": [["c"], ["a", "b"]]},
				"user": {"fields": {"u": {"type": "text"},
			"v": {"type": "text"}}, "required": [["u"], ["v", "b"]]}}}`))
	fields, required, err := c.UserFields("top", "amazon")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := fields["api_user"]; ok || string(fields["security_groups"].Default) != `"web"` {
		t.Errorf("%+v", fields)
	}
	want := [][]string{{"ssh_keypair", "ssh_key_resource"},
		{"ssh_keypair", "ssh_key_resource", "security_group_ids", "subnet_id"}}
	if !reflect.DeepEqual(required, want) {
		t.Errorf("required are %v", required)
	}
	fields, required, err = c.UserFields("top", "closed")
	if want := [][]string{{"b", "u"}, {"b", "v"}}; err != nil || len(fields) != 3 || !reflect.DeepEqual(required,
		want) {
		t.Errorf("%v, required are %v, %v", fields, required, err)
	}
	fields, required, err = c.UserFields("top", "") // the template's, which is an OpenStack
	if err != nil || len(fields) == 0 || required != nil {
		t.Errorf("%v %v %v", fields, required, err)
	}
	for want, args := range map[string][2]string{
		`there is no cluster template "no"`: {"no", ""}, `provider: there is no provider "no"`: {"top", "no"},
	} {
		if _, _, err := c.UserFields(args[0], args[1]); err == nil || err.Error() != want {
			t.Errorf("%v: %v", args, err)
		}
	}
}
