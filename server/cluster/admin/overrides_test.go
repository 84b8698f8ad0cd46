package admin_test

import (
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/admin"
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
