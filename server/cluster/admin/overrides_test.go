package admin_test

import (
	"testing"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// Somebody who may change a project's catalogue defines the type aws anew, so that users may choose the endpoint, to
// which the secret key would be sent. The field stays the administrator's.
func TestATypeOfAProjectGivesUsersNoMore(t *testing.T) {
	d := open(t)
	project := intent.Project{ID: intent.ProjectID{1}, Name: "shop"}
	if err := d.store.CreateProject(d.ctx, project); err != nil {
		t.Fatal(err)
	}
	entries, err := admin.ReadFolder(map[string][]byte{
		"providertypes/aws.json": []byte(`{"name":"aws","parameters":{
			"admin":{"fields":{"api_user":{"type":"text"},"api_password":{"type":"password"},
				"endpoint":{"type":"text","override":true},"availability_zone":{"type":"text","override":true}}},
			"user":{"fields":{"aws_region":{"type":"text"},"colour":{"type":"text"}}}}}`),
		"providers/cloud.json": []byte(
			`{"name":"cloud","providertype":"aws","provisioner":{"api_user":"u","api_password":"p"}}`,
		),
		"services/base.json":   []byte(`{"name":"base","provisioner":{"actions":{}}}`),
		"hardwaretypes/s.json": []byte(`{"name":"s","providermap":{"cloud":{"flavor":"s"}}}`),
		"imagetypes/d.json":    []byte(`{"name":"d","providermap":{"cloud":{"image":"d"}}}`),
		"clustertemplates/t.json": []byte(`{"name":"t","defaults":{"services":["base"],"provider":"cloud"},
			"compatibility":{"services":["base"]}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.s.Import(d.ctx, project.ID, entries, false); err != nil {
		t.Fatal(err)
	}
	all, err := d.s.Catalogue(d.ctx, project.ID)
	if err != nil {
		t.Fatal(err)
	}
	fields, _, err := all.UserFields("t", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"endpoint": false, "aws_region": false, "availability_zone": true, "colour": true,
	} {
		if _, asked := fields[name]; asked != want {
			t.Errorf("users are asked for %s: %t, want %t", name, asked, want)
		}
	}
}

// A project makes a namesake of a shared provider, with an address of its own, and deletes it again. A cluster that
// pins that version does not get the secrets of the shared one, which would be sent to that address.
func TestSecretsAreNotForADeletedNamesake(t *testing.T) {
	d := open(t)
	project := intent.Project{ID: intent.ProjectID{1}, Name: "shop"}
	if err := d.store.CreateProject(d.ctx, project); err != nil {
		t.Fatal(err)
	}
	provider := func(owner intent.ProjectID, endpoint, password string) {
		entries, err := admin.ReadFolder(map[string][]byte{"providers/prod.json": []byte(
			`{"name":"prod","providertype":"aws","provisioner":{"api_user":"u","api_password":"` + password + `",
			"ssh_keypair":"k","ssh_key_resource":"k","aws_region":"r","security_groups":"g",
			"endpoint":"` + endpoint + `"}}`,
		)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.s.Import(d.ctx, owner, entries, false); err != nil {
			t.Fatal(err)
		}
	}
	provider(intent.ProjectID{}, "https://cloud.example.org", "the-shared-password")
	provider(project.ID, "https://evil.example.org", "anything")
	all, err := d.s.Catalogue(d.ctx, project.ID)
	if err != nil {
		t.Fatal(err)
	}
	version := all.Providers["prod"].Version
	if err := d.s.Delete(d.ctx, project.ID, catalogue.Providers, "prod"); err != nil {
		t.Fatal(err)
	}
	if got, err := d.s.ProviderSecrets(d.ctx, project.ID, "prod", version); !fault.Is(err, fault.Invalid) {
		t.Errorf("the secrets are %s, with the error %v", got["api_password"], err)
	}
	if _, err := d.s.ProviderSecrets(d.ctx, project.ID, "prod", 0); err != nil {
		t.Errorf("the shared provider cannot be used any more: %v", err)
	}
}
