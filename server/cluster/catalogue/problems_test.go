package catalogue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// small is a catalogue to judge entities in.
func small(t testing.TB) *catalogue.Catalogue {
	t.Helper()
	var all []catalogue.Entity
	for _, one := range []struct {
		kind catalogue.Kind
		text string
	}{
		{catalogue.Providers, `{"name": "lab", "providertype": "pool",
			"provisioner": {"machines": [{"address": "192.0.2.1"}], "ssh_key_resource": "team"}}`},
		{catalogue.Providers, `{"name": "cloud", "providertype": "openstack", "provisioner": {"api_user": "u",
			"api_password": "********", "openstack_tenant": "t",
				"openstack_auth_url": "https://cloud.example.com:5000/v3",
			"ssh_keypair": "k", "ssh_key_resource": "k"}}`},
		{catalogue.HardwareTypes, `{"name": "large", "providermap": {"openstack": {"flavor": "m1.large", "ram": 8}}}`},
		{catalogue.HardwareTypes, `{"name": "tiny", "providermap": {"aws": {"flavor": "t2.micro"}}}`},
		{catalogue.ImageTypes, `{"name": "debian", "providermap": {"cloud": {"image": "d", "sshuser": "debian"}}}`},
		{catalogue.Services, `{"name": "base"}`},
		{catalogue.Services, `{"name": "db", "dependencies": {"provides": ["sql"],
			"install": {"requires": ["base"]}}}`},
		{catalogue.Services, `{"name": "web", "dependencies": {"runtime": {"requires": ["sql"], "uses": ["cache"]}}}`},
		{catalogue.PartialTemplates, `{"name": "ldap", "immutable": true,
			"defaults": {"config": {"ldap": {"host": "l"}}}}`},
		{catalogue.PartialTemplates, `{"name": "ntp", "defaults": {"services": ["base"], "config": {"ntp": "a",
			"x": 1}},
			"compatibility": {"services": ["base"]}}`},
		{catalogue.Templates, `{"name": "top", "compatibility": {"services": ["base", "db"]},
			"includes": [{"name": "ldap"}],
			"defaults": {"services": ["base"], "provider": "cloud", "hardwaretype": "large",
				"dnsSuffix": "top.example.com",
				"config": {"x": 2, "top": true}},
			"constraints": {"size": {"min": 2, "max": "9"}, "layout": {"cantcoexist": [["base", "db"]]},
				"services": {"db": {"quantities": {"min": "1", "max": "1"}}}},
			"administration": {"leaseduration": {"initial": "2d", "max": "10d", "step": 86400000}},
			"links": [{"label": "UI", "url": "http://%ip.service.db[0]%:80"}]}`},
	} {
		all = append(all, decode(t, one.kind, one.text))
	}
	c := catalogue.New(all...)
	for ref, found := range catalogue.CheckAll(c) {
		t.Fatalf("%s: %s", ref, found)
	}
	return c
}

func decode(t testing.TB, kind catalogue.Kind, text string) catalogue.Entity {
	t.Helper()
	e, err := catalogue.Decode(kind, []byte(text))
	if err != nil {
		t.Fatalf("%s: %s", text, err)
	}
	return e
}

// People get every problem at once, each with the place where it is and in words that say what to do.
func TestWhatPeopleSeeOfBadInput(t *testing.T) {
	c := small(t)
	for _, test := range []struct {
		name string
		kind catalogue.Kind
		text string
		want []string
	}{
		{"no kind", "clusters", `{}`, []string{`there is no kind "clusters"; the kinds are providertypes, ` +
			`automatortypes, ` +
			`providers, hardwaretypes, imagetypes, services, partialtemplates and clustertemplates`}},
		{"no JSON", catalogue.Services, "{\"name\": \"a\",\n \"x\": }", []string{
			"it is not JSON: invalid character '}' looking for beginning of value (line 2)"}},
		{"no object", catalogue.Services, `["a"]`, []string{`it has to be a JSON object, as {"name": …}`}},
		{"too deep", catalogue.Services, `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}", []string{
			"objects and lists are nested 71 deep, and may be 64"}},
		{"too large", catalogue.Services, strings.Repeat(" ", catalogue.MaxText) + "{}", []string{
			"it has 1048578 bytes, and may have 1048576"}},
		{"too many values", catalogue.Services, `{"a":[` + strings.Repeat("0,", 50_000) + "0]}", []string{
			"it has 50004 values, and may have 50000"}},
		{"no name", catalogue.Services, `{}`, []string{"name: a name is missing"}},
		{"a name that is a path", catalogue.Services, `{"name": "../x"}`, []string{
			"name: a name consists of letters, digits, '.', '_' and '-'"}},
		{"a name of dots", catalogue.Services, `{"name": ".."}`, []string{
			"name: a name consists of letters, digits, '.', '_' and '-'"}},
		{"a zero character", catalogue.Services, `{"name": "a", "more": [{"b": "\u0000"}]}`, []string{
			`more[0].b: the text has a character that cannot be kept, such as \u0000`}},
		{"a number that is a bomb", catalogue.Services, `{"name": "a", "more": 1e130000}`, []string{
			"more: the number is too large or too long"}},
		{"wrong kinds of values", catalogue.Services, `{"name": 7, "dependencies": {"provides": "sql", "install": [],
			"conflicts": ["a", 3, null]}}`, []string{
			"name: it has to be a text, and is a number",
			"dependencies.provides: it has to be a list, as […], and is a text",
			"dependencies.conflicts[1]: it has to be a text, and is a number",
			"dependencies.conflicts[2]: it has to be a text, and is null",
			"dependencies.install: it has to be an object, as {…}, and is a list",
			"name: a name is missing"}},
		{"numbers that are none", catalogue.Templates, `{"name": "a", "constraints": {"size": {"min": "few",
			"max": 2.5},
			"services": {"db": {"quantities": {"min": "1 "}}}}, "administration": {"leaseduration": {"initial": "2w",
			"max": -1, "step": "900000d"}}}`, []string{
			`constraints.size.min: "few" is not a whole number`, `constraints.size.max: "2.5" is not a whole number`,
			`administration.leaseduration.initial: "2w" is not a time: give milliseconds, or a number with s, m, ` +
				`h or d, as "2d"`,
			"administration.leaseduration.max: a time cannot be -1; 0 is without end",
			"administration.leaseduration.step: 900000d is more than 100 years; 0 is without end"}},
		{"a boolean that is none", catalogue.PartialTemplates, `{"name": "a", "immutable": "yes"}`, []string{
			`immutable: "yes" is not true or false`}},

		{"a plug-in type", catalogue.ProviderTypes, `{"name": "x", "parameters": {"admin": {"fields": {
			"a": {"type": "number"}, "b": {"type": "select"}, "c d": {"type": "text"},
			"p": {"type": "password", "default": "pw"}, "q": {"type": "checkbox", "default": "perhaps"}},
			"required": [["a", "z"]]}}, "resourceTypes": {"keys": {"format": "tar", "permissions": "4755"}}}`, []string{
			`parameters.admin.fields.a.type: "number" is no type of field; the types are text, password, select, ` +
				`checkbox, ` +
				`file and json`,
			"parameters.admin.fields.b.options: a select needs options",
			"parameters.admin.fields.c d: a name consists of letters, digits, '.', '_' and '-'",
			"parameters.admin.fields.p.default: a secret has no default: everybody could read it",
			"parameters.admin.fields.q.default: it has to be true or false",
			`parameters.admin.required[0][1]: there is no field "z"`,
			`resourceTypes.keys.format: "tar" is no format: use file or archive`,
			`resourceTypes.keys.permissions: "4755" are no permissions: give them in octal, as 0400`}},
		{"a provider of no type", catalogue.Providers, `{"name": "a", "providertype": "Open-Stack"}`, []string{
			`providertype: there is no provider type "Open-Stack"; did you mean openstack?`}},
		{"a provider without type", catalogue.Providers, `{"name": "a"}`, []string{
			"providertype: the name of a provider type is missing"}},
		{"fields of a provider", catalogue.Providers, `{"name": "a", "providertype": "openstack", "provisioner": {
			"api_user": ["u"], "openstack_interface": "outside", "openstack_ssl_verify_peer": "maybe", "password": "x",
			"empty": ""}}`, []string{
			"provisioner.api_user: it has to be a text, and is a list",
			`provisioner.openstack_interface: "outside" is none of its options public, internal and admin`,
			"provisioner.openstack_ssl_verify_peer: it has to be true or false",
			`provisioner.password: the provider type openstack has no field "password"; its fields are api_password, ` +
				"api_user, openstack_auth_url, openstack_domain, openstack_endpoint, openstack_interface, " +
				"openstack_network, " +
				"openstack_region, openstack_ssl_verify_peer, openstack_tenant, ssh_key_resource, ssh_keypair and " +
				"ssh_user",
			"provisioner: the provider type openstack needs values of api_password, openstack_tenant, " +
				"openstack_auth_url, " +
				"ssh_keypair and ssh_key_resource"}},
		{"what users may give need not be given", catalogue.Providers, `{"name": "a", "providertype": "aws",
			"provisioner": {
			"api_user": "u"}}`, []string{
			"provisioner: the provider type aws needs values of api_password and aws_region"}},
		{"machines of a pool", catalogue.Providers, `{"name": "a", "providertype": "pool", "provisioner": {
			"ssh_key_resource": "k",
				"machines": "[{\"address\": \"h1\", \"port\": 70000}, ` +
			`{\"address\": \"h1\", \"port\": 22}, {\"address\": \"h1\", \"user\": \"-oProxyCommand=x\"}, {}, ` +
			`{\"address\": \"a b\", \"hostkeys\": [\"x\"]}]"}}`,
			[]string{
				"provisioner.machines[0].port: there is no port 70000",
				`provisioner.machines[2].user: "-oProxyCommand=x" is no name of a user`,
				"provisioner.machines[2].address: h1:22 stands in the list twice, at first as number 2",
				"provisioner.machines[3].address: the address of the machine is missing",
				`provisioner.machines[4].address: "a b" is neither an IP address nor the name of a host`,
				`provisioner.machines[4].hostkeys[0]: it has to be a public key, as "ssh-ed25519 AAAA…"`}},
		{"a pool of text", catalogue.Providers, `{"name": "a", "providertype": "pool", "provisioner": {
			"ssh_key_resource": "k", "machines": "h1, h2"}}`, []string{"provisioner.machines: the text is not JSON"}},
		{"an unmapped flavor", catalogue.HardwareTypes, `{"name": "a", "providermap": {"cloud": {"ram": 1}, "pool": {},
			"lab": {}, "b c": {"flavor": "x"}}}`, []string{
			"providermap.b c: a name consists of letters, digits, '.', '_' and '-'",
			"providermap.cloud.flavor: it has to say which flavor of cloud is meant"}},
		{"an unmapped image", catalogue.ImageTypes, `{"name": "a", "providermap": {"cloud": {"sshuser": "x"}}}`,
			[]string{
				"providermap.cloud.image: it has to say which image of cloud is meant"}},

		{"what a service requires", catalogue.Services, `{"name": "a",
			"dependencies": {"install": {"requires": ["bas", "x y"]},
			"runtime": {"requires": ["sql"]}, "conflicts": ["db", "a", "unknown"]}}`, []string{
			"dependencies.install.requires[1]: a name consists of letters, digits, '.', '_' and '-'",
			"dependencies.install.requires[0]: no service is called bas, and none provides it; did you mean base?",
			"dependencies.runtime.requires[0]: the service requires sql, and conflicts with db",
			"dependencies.conflicts[1]: the service conflicts with itself"}},
		{"a circle of services", catalogue.Services, `{"name": "base",
			"dependencies": {"install": {"requires": ["db"]}}}`,
			[]string{"dependencies.install.requires: services require each other in a circle: base requires db, " +
				"which " +
				"requires base"}},
		{"a service that requires itself", catalogue.Services, `{"name": "a",
			"dependencies": {"runtime": {"requires": ["a"]}}}`,
			[]string{"dependencies.runtime.requires: services require each other in a circle: a requires a"}},
		{"actions", catalogue.Services, `{"name": "a", "provisioner": {"actions": {"explode": {"type": "shell"},
			"install": {"type": "shel"}, "start": {"type": "shell", "fields": {"scirpt": "x"}},
			"stop": {"type": "ansible", "fields": {"playbook": "a.yml", "extra_vars": "{"}}}}}`, []string{
			`provisioner.actions.explode: there is no action "explode"; the actions are install, configure, ` +
				`initialize, ` +
				"start, stop and remove",
			`provisioner.actions.install.type: there is no automator type "shel"; did you mean shell?`,
			`provisioner.actions.start.fields.scirpt: the automator type shell has no field "scirpt"; its fields ` +
				`are args ` +
				"and script",
			"provisioner.actions.start.fields: the automator type shell needs values of script",
			"provisioner.actions.stop.fields.extra_vars: the text is not JSON"}},

		{"an empty template", catalogue.Templates, `{"name": "a"}`, []string{
			"defaults.services: a cluster needs a service: neither the template nor what it builds on names one",
			"defaults.provider: a cluster needs a provider: neither the template nor what it builds on names one"}},
		{"names in a template", catalogue.Templates, `{"name": "a", "compatibility": {"services": ["base", "bse"],
			"hardwaretypes": ["lrge"], "imagetypes": ["x"]}, "defaults": {"services": ["base", "db"],
				"provider": "cluod",
			"dnsSuffix": "-a.example.com"}, "constraints": {"services": {"dbb": {"hardwaretypes": ["larg"]}},
			"layout": {"mustcoexist": [["base", "no"]], "cantcoexist": [["base"], []]}}}`, []string{
			`compatibility.hardwaretypes[0]: there is no hardware type "lrge"; did you mean large?`,
			`compatibility.imagetypes[0]: there is no image type "x"`,
			`compatibility.services[1]: there is no service "bse"; did you mean base?`,
			`defaults.provider: there is no provider "cluod"; did you mean cloud?`,
			"defaults.dnsSuffix: the DNS suffix has to be a domain, as dev.example.com",
			`constraints.layout.mustcoexist[0][1]: there is no service "no"`,
			"constraints.layout.cantcoexist[0]: a set of one service forbids it everywhere; name the services " +
				"that may not " +
				"share a node",
			"constraints.layout.cantcoexist[1]: the set is empty",
			`constraints.services.dbb: there is no service "dbb"`,
			`constraints.services.dbb.hardwaretypes[0]: there is no hardware type "larg"; did you mean large?`,
			"defaults.services: db is not among the compatible services"}},
		{"numbers in a template", catalogue.Templates, `{"name": "a", "compatibility": {"services": ["base"]},
			"defaults": {"services": ["base"], "provider": "lab", "hardwaretype": "tiny"},
			"constraints": {"size": {"min": 5, "max": 3}, "services": {"base": {"quantities": {"min": 4,
				"max": 20000}}}},
			"administration": {"leaseduration": {"initial": "3d", "max": "2d", "step": "49h"}}}`, []string{
			"constraints.size: the least number, 5, is above the largest, 3",
			"constraints.services.base.quantities.max: 20000 is out of range: it may be 0 to 10000",
			"constraints.services.base.quantities.min: base needs 4 nodes, and a cluster has 3 at most",
			"administration.leaseduration.initial: clusters would live longer at first than they may at most",
			"administration.leaseduration.step: one step would be longer than clusters may live at most"}},
		{"a type that the provider does not have", catalogue.Templates, `{"name": "a",
			"compatibility": {"services": ["base"],
			"hardwaretypes": ["tiny"]}, "defaults": {"services": ["base"], "provider": "cloud",
				"hardwaretype": "tiny"}}`,
			[]string{"defaults.hardwaretype: the hardware type tiny has no mapping for the provider cloud"}},
		{"no type that the provider has", catalogue.Templates, `{"name": "a", "compatibility": {"services": ["base"],
			"hardwaretypes": ["tiny"]}, "defaults": {"services": ["base"], "provider": "cloud"}}`, []string{
			"defaults.provider: no hardware type that the template allows has a mapping for the provider cloud"}},
		{"links", catalogue.Templates, `{"name": "a", "parent": {"name": "top"}, "links": [{"label": " ",
			"url": "javascript:alert(1)"}]}`, []string{"links[0].label: the link has no label",
			"links[0].url: it has to be an address that begins with http:// or https:// or ssh://"}},
		{"parts that do not fit each other", catalogue.Templates, `{"name": "a", "parent": {"name": "top"},
			"constraints": {"size": {"min": 12}}}`, []string{
			"constraints.size: the least number, 12, is above the largest, 9"}},
		{"a parent that is not there", catalogue.Templates, `{"name": "a", "parent": {"name": "tpo"}}`, []string{
			"parent.name: there is no cluster template tpo, the parent of a"}},
		{"its own parent", catalogue.Templates, `{"name": "a", "parent": {"name": "a"}}`, []string{
			"parent.name: parents go round in a circle: the template a has the parent a"}},
		{"a circle of parents", catalogue.Templates, `{"name": "top", "parent": {"name": "below"}}`, []string{
			"parent.name: parents go round in a circle: the template top has the parent below, which has the " +
				"parent top"}},
		{"an include that is not there", catalogue.Templates, `{"name": "a",
			"includes": [{"name": "ntp"}, {"name": "x"}]}`,
			[]string{"includes[1].name: there is no partial template x, which a includes"}},
		{"a key that may not change", catalogue.Templates, `{"name": "a", "parent": {"name": "top"},
			"defaults": {"config": {"ldap": {"host": "other"}}}}`, []string{
			`defaults.config.ldap: the template a changes "ldap", which the immutable partial template ldap sets`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := c
			if test.name == "a circle of parents" {
				in = c.With(decode(t, catalogue.Templates, `{"name": "below", "parent": {"name": "top"}}`))
			}
			e, err := catalogue.Decode(test.kind, []byte(test.text))
			found := catalogue.Problems(err)
			if err == nil {
				found = catalogue.Check(in, e)
			}
			var got []string
			for _, p := range found {
				got = append(got, p.String())
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("people see\n  %s\nand not\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
		})
	}
}

// A circle that another service can break is none.
func TestCircleWithAWayAround(t *testing.T) {
	c := small(t).With(decode(t, catalogue.Services, `{"name": "other", "dependencies": {"provides": ["sql"]}}`))
	e := decode(t, catalogue.Services, `{"name": "db", "dependencies": {"provides": ["sql"],
		"install": {"requires": ["web"]},
		"runtime": {"requires": ["web"]}}}`)
	if found := catalogue.Check(c, e); len(found) > 0 {
		t.Error(found)
	}
}

// A change is judged by what it does to others, too; what was wrong with them before is not held against it.
func TestWhatAChangeBreaks(t *testing.T) {
	c := small(t).With(decode(t, catalogue.Templates, `{"name": "wrong"}`))
	broken := catalogue.Breaks(c, c.Without(catalogue.Services, "db"))
	if len(broken) != 2 || broken[catalogue.Ref{Kind: catalogue.Services, Name: "web"}] == nil ||
		broken[catalogue.Ref{Kind: catalogue.Templates, Name: "top"}] == nil {
		t.Error("without the service db, broken are ", broken)
	}
	less := decode(t, catalogue.Services, `{"name": "db"}`)
	broken = catalogue.Breaks(c, c.With(less))
	if found := broken[catalogue.Ref{Kind: catalogue.Services, Name: "web"}]; len(broken) != 1 || len(found) != 1 {
		t.Error("when db no longer provides sql, broken are ", broken)
	}
	if broken = catalogue.Breaks(c, c.With(decode(t, catalogue.Templates, `{"name": "top"}`))); len(broken) > 0 {
		t.Error("what is wrong with the change itself is for Check: ", broken)
	}
	if broken = catalogue.Breaks(c, c.Without(catalogue.Templates, "top")); len(broken) > 0 {
		t.Error("nothing depends on the template: ", broken)
	}
}

func TestDurations(t *testing.T) {
	var lease catalogue.Lease
	if err := json.Unmarshal([]byte(`{"initial": "2d", "max": 864000000, "step": "60"}`), &lease); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(lease)
	if want := `{"initial":172800000,"max":864000000,"step":60}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	if json.Unmarshal([]byte(`{"initial": "soon"}`), &lease) == nil {
		t.Error("soon is a time")
	}
}
