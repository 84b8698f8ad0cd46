package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/manifest"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// shared stands for what all projects have.
var shared intent.ProjectID

// desk is a service on a database of its own, and somebody who calls it.
type desk struct {
	t     *testing.T
	s     *admin.Service
	store *store.Store
	db    *pgx.Conn
	bus   *bus.Bus
	ctx   context.Context
}

func open(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	url := storetest.URL(t)
	db := must(pgx.Connect(t.Context(), url))(t)
	t.Cleanup(func() { db.Close(context.WithoutCancel(t.Context())) })
	st := must(store.Open(t.Context(), store.Config{URL: url, Logger: storetest.Logger(t)}))(t)
	t.Cleanup(st.Close)
	key := must(secret.OpenKey(filepath.Join(t.TempDir(), "key")))(t)
	events := &bus.Bus{}
	s := must(admin.New(admin.Config{Store: st, Key: key, Bus: events}))(t)
	ctx := access.With(t.Context(), access.Principal{Kind: access.Person, Name: "noor"})
	return &desk{t, s, st, db, events, ctx}
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (d *desk) project(name string) intent.ProjectID {
	d.t.Helper()
	p := intent.Project{ID: uuid.New(), Name: name}
	if err := d.store.CreateProject(d.ctx, p); err != nil {
		d.t.Fatal(err)
	}
	return p.ID
}

func (d *desk) environment(project intent.ProjectID, name string) intent.EnvironmentID {
	d.t.Helper()
	e := intent.Environment{
		ID: uuid.New(), ProjectID: project, Name: name, Source: intent.Source{URL: "file:///repo", Branch: "main"},
	}
	if err := d.store.CreateEnvironment(d.ctx, e, nil); err != nil {
		d.t.Fatal(err)
	}
	return e.ID
}

func (d *desk) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.db.Exec(d.ctx, sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) create(project intent.ProjectID, kind catalogue.Kind, text string) admin.Item {
	d.t.Helper()
	return must(d.s.Create(d.ctx, project, kind, []byte(text)))(d.t)
}

// refused checks the kind of an error, and what it says.
func (d *desk) refused(err error, kind fault.Kind, text string) {
	d.t.Helper()
	if !fault.Is(err, kind) || err == nil || !strings.Contains(err.Error(), text) {
		d.t.Errorf("it says\n  %v\nand not, as %s,\n  %s", err, kind, text)
	}
}

const (
	lab = `{"name": "lab", "providertype": "pool", "provisioner": {"machines": [{"address": "192.0.2.1"}],
		"ssh_key_resource": "team"}}`
	cloud = `{"name": "cloud", "providertype": "openstack", "more": {"kept": [1, 2]}, "provisioner": {"api_user": "u",
		"api_password": "hunter2", "openstack_tenant": "t", "openstack_auth_url": "https://cloud.example.com:5000/v3",
		"ssh_keypair": "k", "ssh_key_resource": "k"}}`
	web = `{"name": "web", "provisioner": {"actions": {"install": {"type": "shell", "fields": {"script": "web.sh"}}}}}`
	top = `{"name": "top", "compatibility": {"services": ["web"]}, "defaults": {"services": ["web"],
		"provider": "lab"}}`
)

// An administrator fills the catalogue of a project, changes it, looks at what was there before, and tidies up.
func TestLifeOfAnEntity(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	events := d.bus.Subscribe(nil)
	defer events.Close()
	first := d.create(acme, catalogue.Services, web)
	if first.Version != 1 || first.Project != acme || first.MadeBy != "noor" || first.Made.IsZero() || first.BuiltIn {
		t.Errorf("%+v", first)
	}
	if e := <-events.Events(); e.Topic != bus.Catalogue || e.ID != acme.String() {
		t.Errorf("the event is %+v", e)
	}
	_, err := d.s.Create(d.ctx, acme, catalogue.Services, []byte(web))
	d.refused(err, fault.Conflict, "there is a service web already; replace it, or choose another name")

	newer := strings.Replace(web, `{"name"`, `{"unknown": true, "description": "newer", "version": 77, "name"`, 1)
	second := must(d.s.Replace(d.ctx, acme, catalogue.Services, "web", []byte(newer)))(t)
	if second.Version != 2 || !bytes.Contains(second.Content, []byte(`"unknown":true,"version":2`)) {
		t.Errorf("%d: %s", second.Version, second.Content)
	}
	_, err = d.s.Replace(d.ctx, acme, catalogue.Services, "other", []byte(web))
	d.refused(err, fault.Invalid, `name: it has to stay "other": others refer to it by its name`)
	_, err = d.s.Replace(d.ctx, acme, catalogue.Templates, "top", []byte(top))
	d.refused(err, fault.NotFound, `there is no cluster template "top"`)
	_, err = d.s.Replace(d.ctx, acme, catalogue.ProviderTypes, "pool", []byte(`{"name": "pool"}`))
	d.refused(err, fault.NotFound, "the provider type pool is built in; create one, which takes its place")

	if old := must(d.s.GetVersion(d.ctx, acme, catalogue.Services, "web", 1))(t); !reflect.DeepEqual(old, first) {
		t.Errorf("version 1 is %+v", old)
	}
	_, err = d.s.GetVersion(d.ctx, acme, catalogue.Services, "web", 3)
	d.refused(err, fault.NotFound, `there is no version 3 of a service "web"`)

	d.refused(d.s.DeleteVersion(d.ctx, acme, catalogue.Services, "web", 2), fault.Conflict,
		"version 2 is the newest one; delete the entity itself, or replace it first")
	if err := d.s.DeleteVersion(d.ctx, acme, catalogue.Services, "web", 1); err != nil {
		t.Fatal(err)
	}
	d.refused(d.s.DeleteVersion(d.ctx, acme, catalogue.Services, "web", 1), fault.NotFound, "there is no version 1")

	if err := d.s.Delete(d.ctx, acme, catalogue.Services, "web"); err != nil {
		t.Fatal(err)
	}
	_, err = d.s.Get(d.ctx, acme, catalogue.Services, "web")
	d.refused(err, fault.NotFound, `there is no service "web"`)
	d.refused(d.s.Delete(d.ctx, acme, catalogue.Services, "web"), fault.NotFound, `there is no service "web"`)
	if again := d.create(acme, catalogue.Services, web); again.Version != 4 {
		t.Errorf("after its deletion it has version %d", again.Version)
	}
	var life []string
	for _, v := range must(d.s.Versions(d.ctx, acme, catalogue.Services, "web"))(t) {
		life = append(life, fmt.Sprintln(v.Version, v.Deleted, v.MadeBy))
	}
	if got := strings.Join(life, ""); got != "4 false noor\n3 true noor\n2 false noor\n" {
		t.Error("the versions are ", got)
	}
}

// All that is wrong is told at once, and nothing is written.
func TestWrongEntitiesAreNotWritten(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	_, err := d.s.Create(d.ctx, acme, catalogue.Templates, []byte(top))
	d.refused(err, fault.Invalid, `the cluster template top is not right: compatibility.services[0]: there is no `+
		`service `+
		`"web"; defaults.services[0]: there is no service "web"; defaults.provider: there is no provider "lab"`)
	if found := catalogue.Problems(err); len(found) != 3 || found[2].Field != "defaults.provider" {
		t.Error(found)
	}
	_, err = d.s.Create(d.ctx, acme, catalogue.Templates, []byte(`{"name": `))
	d.refused(err, fault.Invalid, "the cluster template cannot be read: it is not JSON: unexpected end of JSON "+
		"input (line 1)")
	_, err = d.s.Create(d.ctx, acme, "clusters", []byte(`{}`))
	d.refused(err, fault.NotFound, `the catalogue has no "clusters"`)
	if n := must(d.s.List(d.ctx, acme, catalogue.Templates))(t); len(n) > 0 {
		t.Errorf("%+v", n)
	}
}

func TestProjectsThatDoNotExist(t *testing.T) {
	d := open(t)
	nobody := uuid.New()
	for name, call := range map[string]func() error{
		"List":    func() error { _, err := d.s.List(d.ctx, nobody, catalogue.Services); return err },
		"Get":     func() error { _, err := d.s.Get(d.ctx, nobody, catalogue.Services, "x"); return err },
		"Version": func() error { _, err := d.s.GetVersion(d.ctx, nobody, catalogue.Services, "x", 1); return err },
		"Versions": func() error {
			_, err := d.s.Versions(d.ctx, nobody, catalogue.Services, "x")
			return err
		},
		"Create": func() error { _, err := d.s.Create(d.ctx, nobody, catalogue.Services, []byte(web)); return err },
		"Replace": func() error {
			_, err := d.s.Replace(d.ctx, nobody, catalogue.Services, "web",
				[]byte(web))
			return err
		},
		"Delete": func() error { return d.s.Delete(d.ctx, nobody, catalogue.Services, "x") },
		"DeleteVersion": func() error {
			return d.s.DeleteVersion(d.ctx, nobody, catalogue.Services, "x", 1)
		},
		"Export":  func() error { _, err := d.s.Export(d.ctx, nobody); return err },
		"Try":     func() error { _, err := d.s.Try(d.ctx, nobody, []byte(top)); return err },
		"Pinned":  func() error { _, err := d.s.Pinned(d.ctx, nobody, nil); return err },
		"Secrets": func() error { _, err := d.s.ProviderSecrets(d.ctx, nobody, "x", 0); return err },
		"Import": func() error {
			_, err := d.s.Import(d.ctx, nobody, []admin.Entry{{Kind: catalogue.Services, Text: []byte(web)}}, false)
			return err
		},
		"Catalogue": func() error { _, err := d.s.Catalogue(d.ctx, nobody); return err },
		"Tenant":    func() error { _, err := d.s.Tenant(d.ctx, nobody); return err },
		"SetTenant": func() error { return d.s.SetTenant(d.ctx, nobody, 1, nil, nil) },
	} {
		if err := call(); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "no such project") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The server's administrator shares a service; a project has one of its own in its place, until it deletes it.
func TestAProjectsOwnTakesThePlaceOfWhatIsShared(t *testing.T) {
	d := open(t)
	acme, other := d.project("acme"), d.project("other")
	d.create(shared, catalogue.Services, web)
	_, err := d.s.Replace(d.ctx, acme, catalogue.Services, "web", []byte(web))
	d.refused(err, fault.NotFound, "the project has no service web of its own: it is shared; create one of the project")
	own := d.create(acme, catalogue.Services, strings.Replace(web, "web.sh", "acme.sh", 1))
	if own.Version != 2 || own.Project != acme {
		t.Errorf("%+v", own)
	}
	script := func(project intent.ProjectID) string {
		c := must(d.s.Catalogue(d.ctx, project))(t)
		return string(c.Services["web"].Provisioner.Actions[catalogue.Install].Fields["script"])
	}
	if script(acme) != `"acme.sh"` || script(other) != `"web.sh"` || script(shared) != `"web.sh"` {
		t.Errorf("%s %s %s", script(acme), script(other), script(shared))
	}
	// Numbers of versions stay apart, so that a pin means one version.
	newest := must(d.s.Replace(d.ctx, shared, catalogue.Services, "web", []byte(web)))(t)
	if newest.Version != 3 {
		t.Errorf("the shared one has version %d", newest.Version)
	}
	pinned := must(d.s.Pinned(d.ctx, acme, manifest.Pins{catalogue.Services: {"web": 1}}))(t)
	install := pinned.Services["web"].Provisioner.Actions[catalogue.Install]
	if got := string(install.Fields["script"]); got != `"web.sh"` {
		t.Error("version 1 has ", got)
	}
	_, err = d.s.Pinned(d.ctx, other, manifest.Pins{catalogue.Services: {"web": 2}})
	d.refused(err, fault.NotFound, "there is no version 2 of the service web any more")

	var kinds []string
	for _, kind := range catalogue.Kinds {
		for _, item := range must(d.s.List(d.ctx, acme, kind))(t) {
			kinds = append(kinds, fmt.Sprintln(item.Name, item.BuiltIn, item.Project == acme))
		}
	}
	if got := strings.Join(kinds, ""); got != "aws true false\nopenstack true false\npool true false\n"+
		"ansible true false\npuppet true false\nshell true false\nweb false true\n" {
		t.Error("the project may use ", got)
	}
	if err := d.s.Delete(d.ctx, acme, catalogue.Services, "web"); err != nil {
		t.Fatal(err)
	}
	if script(acme) != `"web.sh"` {
		t.Error("after the deletion it has ", script(acme))
	}
}

// What others use stays: of the same project, of a project that uses what is shared, and of live clusters.
func TestWhatIsUsedCannotBeDeleted(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	env := d.environment(acme, "prod")
	d.create(shared, catalogue.Services, web)
	d.create(acme, catalogue.Providers, lab)
	d.create(acme, catalogue.Templates, top)
	del := func(project intent.ProjectID, kind catalogue.Kind, name string) error {
		return d.s.Delete(d.ctx, project, kind, name)
	}
	d.refused(del(acme, catalogue.Providers, "lab"), fault.Conflict, "others depend on it: the cluster template top "+
		`(defaults.provider: there is no provider "lab"); change or delete these first`)
	d.refused(del(shared, catalogue.Services, "web"), fault.Conflict, "the cluster template top of the project acme "+
		`(compatibility.services[0]: there is no service "web")`)
	_, err := d.s.Create(d.ctx, shared, catalogue.AutomatorTypes, []byte(`{"name": "shell"}`))
	d.refused(err, fault.Conflict, "the service web (provisioner.actions.install.fields.script: the automator "+
		"type shell has "+
		`no field "script"`)

	id := uuid.New()
	d.exec(`INSERT INTO cluster (id, environment, name, state, owner, wanted) VALUES ($1, $2, 'shop', 'active', `+
		`'noor', $3)`,
		id, env, `{"template": "top", "catalogue": {"clustertemplates": {"top": 1}, "services": {"web": 1}}}`)
	d.exec(`INSERT INTO cluster_node (cluster, number, hostname, hardware, image, provider, state)
		VALUES ($1, 1000, 'h', 'small', 'debian', 'lab', 'made')`, id)
	d.refused(del(acme, catalogue.Templates, "top"), fault.Conflict,
		"it is used by clusters: shop (environment prod of acme); delete the clusters first")
	// The cluster is made from version 1, which has to stay; later ones may go.
	for range 2 {
		must(d.s.Replace(d.ctx, acme, catalogue.Templates, "top", []byte(top)))(t)
	}
	d.refused(d.s.DeleteVersion(d.ctx, acme, catalogue.Templates, "top", 1), fault.Conflict, "shop (environment "+
		"prod of acme)")
	if err := d.s.DeleteVersion(d.ctx, acme, catalogue.Templates, "top", 2); err != nil {
		t.Error(err)
	}
	// A shared service that the project hides is not what its cluster is to be made of any more, but its version is.
	must(d.s.Replace(d.ctx, shared, catalogue.Services, "web", []byte(web)))(t)
	d.create(acme, catalogue.Services, web)
	d.refused(d.s.DeleteVersion(d.ctx, shared, catalogue.Services, "web", 1), fault.Conflict, "shop")

	// The template leaves, as far as the release of the cluster file goes: the machines still need their provider.
	d.exec(`UPDATE cluster SET wanted = NULL`)
	if err := del(acme, catalogue.Templates, "top"); err != nil {
		t.Error(err)
	}
	d.refused(del(acme, catalogue.Providers, "lab"), fault.Conflict, "shop (environment prod of acme)")
	d.exec(`UPDATE cluster_node SET state = 'gone'`)
	for _, ref := range []struct {
		project intent.ProjectID
		kind    catalogue.Kind
		name    string
	}{{acme, catalogue.Providers, "lab"}, {acme, catalogue.Services, "web"}, {shared, catalogue.Services, "web"}} {
		if err := del(ref.project, ref.kind, ref.name); err != nil {
			t.Errorf("%s: %s", ref.name, err)
		}
	}
}

// A password is sealed, shown to nobody, kept by its marker, and given to tasks.
func TestSecretsOfProviders(t *testing.T) {
	d := open(t)
	acme, other := d.project("acme"), d.project("other")
	noSecret := func(what string, text []byte) {
		t.Helper()
		if bytes.Contains(text, []byte("hunter")) {
			t.Errorf("%s has the password: %s", what, text)
		}
	}
	password := func(project intent.ProjectID) string {
		t.Helper()
		return string(must(d.s.ProviderSecrets(d.ctx, project, "cloud", 0))(t)["api_password"])
	}
	made := d.create(acme, catalogue.Providers, cloud)
	noSecret("the answer", made.Content)
	if !bytes.Contains(made.Content, []byte(`"api_password":"********","api_user":"u"`)) ||
		!bytes.Contains(made.Content, []byte(`"more":{"kept":[1,2]}`)) {
		t.Errorf("%s", made.Content)
	}
	var row string
	if err := d.db.QueryRow(d.ctx, `SELECT string_agg(e::text, ' ') FROM cluster_entity e`).Scan(&row); err != nil {
		t.Fatal(err)
	}
	noSecret("the table", []byte(row))
	if password(acme) != `"hunter2"` {
		t.Error("the task gets ", password(acme))
	}
	if all := must(d.s.ProviderSecrets(d.ctx, acme, "cloud", 0))(t); len(all) != 1 {
		t.Errorf("secret are %v", all)
	}

	must(d.s.Replace(d.ctx, acme, catalogue.Providers, "cloud", made.Content))(t)
	if password(acme) != `"hunter2"` {
		t.Error("writing the marker sets the password to ", password(acme))
	}
	must(d.s.Replace(d.ctx, acme, catalogue.Providers, "cloud", []byte(strings.Replace(cloud, "hunter2",
		"hunter3", 1))))(t)
	if password(acme) != `"hunter3"` {
		t.Error("the new password is ", password(acme))
	}
	export := must(d.s.Export(d.ctx, acme))(t)
	noSecret("the export", export)
	entries := must(admin.ReadExport(export))(t)
	if got := must(d.s.Import(d.ctx, acme, entries, false))(t); len(got.Unchanged) != 1 || len(got.Replaced) != 0 {
		t.Errorf("importing the export did %+v", got)
	}
	_, err := d.s.Import(d.ctx, other, entries, false)
	d.refused(err, fault.Invalid, "provisioner.api_password: its value is not known here; ******** only keeps one")
	_, err = d.s.Replace(d.ctx, acme, catalogue.Providers, "cloud", []byte(strings.Replace(cloud, "hunter2", "", 1)))
	d.refused(err, fault.Invalid, "needs values of api_password")

	// A field that a new version of the type calls secret is hidden from then on, also where it was written before.
	theirs := string(catalogue.Source(catalogue.ProviderTypes, "openstack"))
	d.create(acme, catalogue.ProviderTypes, strings.Replace(theirs, `"label": "Tenant",`,
		`"label": "Tenant", "sensitive": true,`, 1))
	now := must(d.s.Get(d.ctx, acme, catalogue.Providers, "cloud"))(t)
	if !bytes.Contains(now.Content, []byte(`"openstack_tenant":"********"`)) {
		t.Errorf("%s", now.Content)
	}
	secrets := func() {
		t.Helper()
		all := must(d.s.ProviderSecrets(d.ctx, acme, "cloud", 0))(t)
		if string(all["openstack_tenant"]) != `"t"` || string(all["api_password"]) != `"hunter3"` || len(all) != 2 {
			t.Errorf("secret are %v", all)
		}
	}
	secrets()
	must(d.s.Replace(d.ctx, acme, catalogue.Providers, "cloud", now.Content))(t)
	secrets()
	// So are all versions, with their own type or without any.
	old := must(d.s.GetVersion(d.ctx, acme, catalogue.Providers, "cloud", 1))(t)
	if !bytes.Contains(old.Content, []byte(`"openstack_tenant":"********"`)) {
		t.Errorf("%s", old.Content)
	}
	// What was sealed stays sealed when the type no longer asks for that.
	if err := d.s.Delete(d.ctx, acme, catalogue.ProviderTypes, "openstack"); err != nil {
		t.Fatal(err)
	}
	now = must(d.s.Get(d.ctx, acme, catalogue.Providers, "cloud"))(t)
	must(d.s.Replace(d.ctx, acme, catalogue.Providers, "cloud", now.Content))(t)
	secrets()
}

// Whoever changes where a provider's password is sent has to know it. Other changes keep it by its marker.
func TestSecretsAreNotSentElsewhere(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	made := d.create(acme, catalogue.Providers, cloud)
	replace := func(pairs ...string) error {
		t.Helper()
		text := string(made.Content)
		for i := 0; i+1 < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("there is no %s in %s", pairs[i], text)
			}
			text = strings.Replace(text, pairs[i], pairs[i+1], 1)
		}
		_, err := d.s.Replace(d.ctx, acme, catalogue.Providers, "cloud", []byte(text))
		return err
	}
	const (
		url     = `"https://cloud.example.com:5000/v3"`
		evil    = `"https://evil.example.net/v3"`
		refused = "provisioner.api_password: give it again, because the field "
	)
	d.refused(replace(url, evil), fault.Invalid, refused+"openstack_auth_url changes")
	d.refused(replace(url, url+`,"openstack_endpoint":`+evil), fault.Invalid, refused+"openstack_endpoint changes")
	// A type of the project that leaves the address to users, or calls it secret, does not help.
	theirs := string(catalogue.Source(catalogue.ProviderTypes, "openstack"))
	for _, word := range []string{`"override": true`, `"sensitive": true`} {
		if _, err := d.s.Create(d.ctx, acme, catalogue.ProviderTypes, []byte(strings.Replace(theirs,
			`"label": "Identity endpoint",`, `"label": "Identity endpoint", `+word+",", 1))); err != nil {
			t.Fatal(err)
		}
		d.refused(replace(url, evil), fault.Invalid, refused+"openstack_auth_url changes")
		if err := d.s.Delete(d.ctx, acme, catalogue.ProviderTypes, "openstack"); err != nil {
			t.Fatal(err)
		}
	}
	d.create(acme, catalogue.ProviderTypes, strings.Replace(theirs, `"openstack"`, `"mirror"`, 1))
	d.refused(replace(`"providertype":"openstack"`, `"providertype":"mirror"`), fault.Invalid,
		"provisioner.api_password: give it again, because the type of the provider changes")
	export := string(must(d.s.Export(d.ctx, acme))(t))
	entries := must(admin.ReadExport([]byte(strings.Replace(export, url, evil, 1))))(t)
	_, err := d.s.Import(d.ctx, acme, entries, false)
	d.refused(err, fault.Invalid, refused+"openstack_auth_url changes")

	for _, harmless := range [][]string{
		{`"name":"cloud"`, `"name":"cloud","label":"Our cloud","description":"In the cellar"`},
		{url, url + `,"openstack_network":"a network, which users may choose"`},
		{url, url + `,"openstack_domain":"Default"`}, // as the type says
		{url, evil, `"********"`, `"hunter3"`},
	} {
		if err := replace(harmless...); err != nil {
			t.Errorf("%s: %v", harmless, err)
		}
	}
	now := must(d.s.ProviderSecrets(d.ctx, acme, "cloud", 0))(t)
	if string(now["api_password"]) != `"hunter3"` {
		t.Errorf("%s", now)
	}
}

// Two people edit the same version: the second one is told.
func TestReplacingAVersionThatSomebodySaw(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	d.create(acme, catalogue.Services, web)
	text := []byte(strings.Replace(web, "web.sh", "new.sh", 1))
	if got := must(d.s.ReplaceVersion(d.ctx, acme, catalogue.Services, "web", 1, text))(t); got.Version != 2 {
		t.Errorf("it is version %d", got.Version)
	}
	_, err := d.s.ReplaceVersion(d.ctx, acme, catalogue.Services, "web", 1, []byte(web))
	d.refused(err, fault.Conflict, "the service web has version 2 by now, and you changed version 1")
}

// Who did what is in the audit trail, without secrets.
func TestAuditTrail(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	recorder := &audit.Recorder{Store: d.store, Logger: storetest.Logger(t)}
	record := func(do func(ctx context.Context) error) intent.AuditEntry {
		t.Helper()
		r := httptest.NewRequest("POST", "/", nil).WithContext(d.ctx)
		ctx, trail := recorder.Begin(r, "api", access.ManageRoles)
		recorder.End(ctx, trail, do(ctx))
		page := must(d.store.Audit(d.ctx, intent.ProjectID{}, intent.EnvironmentID{}, intent.ListQuery{Limit: 1}))(t)
		return page.Items[0]
	}
	e := record(func(ctx context.Context) error {
		_, err := d.s.Create(ctx, acme, catalogue.Providers, []byte(cloud))
		return err
	})
	if e.Subject != "the provider cloud" || e.Project != acme || e.Before != nil || e.Actor != "noor" ||
		!bytes.Contains(e.After, []byte("********")) || bytes.Contains(e.After, []byte("hunter2")) {
		t.Errorf("%+v", e)
	}
	e = record(func(ctx context.Context) error { return d.s.Delete(ctx, acme, catalogue.Providers, "cloud") })
	if e.After != nil || !bytes.Contains(e.Before, []byte("https://cloud.example.com")) ||
		bytes.Contains(e.Before, []byte("hunter2")) {
		t.Errorf("%+v", e)
	}
	two := 2
	e = record(func(ctx context.Context) error { return d.s.SetTenant(ctx, acme, 3, &two, nil) })
	if e.Subject != "the limits of clusters" || e.Before != nil ||
		generic(t, e.After) != generic(t, []byte(`{"workers": 3, "clusters": 2, "nodes": null}`)) {
		t.Errorf("%+v: %s", e, e.After)
	}
}

// generic returns JSON in one form.
func generic(t testing.TB, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %s", text, err)
	}
	return string(must(json.Marshal(v))(t))
}

// Somebody brings the published templates of Coopr along. What can work here is imported; the rest is refused with
// the reason; and a second import changes nothing.
func TestImportOfThePublishedTemplates(t *testing.T) {
	d := open(t)
	files := map[string][]byte{}
	root := "../catalogue/testdata/coopr-templates"
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		if strings.HasPrefix(name, "plugins/") {
			return err // they are no files of plug-ins, but of single types
		}
		files["their/"+name] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, names := range catalogue.Optional() {
		for name, text := range names {
			files[string(kind)+"/"+name+".json"] = text
		}
	}
	files["their/providers/rackspace.json"] = []byte(strings.Replace(lab, `"lab"`, `"rackspace"`, 1))
	entries := must(admin.ReadFolder(files))(t)
	_, err = d.s.Import(d.ctx, shared, entries, false)
	d.refused(err, fault.Invalid, `their/providers/google.json providertype: there is no provider type "google"`)
	if export := must(d.s.Export(d.ctx, shared))(t); bytes.Contains(export, []byte("name")) {
		t.Errorf("though it was refused, there is %.200s", export)
	}
	got := must(d.s.Import(d.ctx, shared, entries, true))(t)
	var refused []string
	for _, r := range got.Refused {
		refused = append(refused, r.From)
	}
	slices.Sort(refused)
	want := []string{
		"their/clustertemplates/cdap-singlenode.json", "their/clustertemplates/docker-base.json",
		"their/providers/aws-us-east-1.json", "their/providers/aws-us-west-1.json",
		"their/providers/aws-us-west-2.json",
		"their/providers/digitalocean.json", "their/providers/google.json", "their/providers/joyent.json",
		"their/providers/openstack.json",
	}
	if !slices.Equal(refused, want) || len(got.Created) != len(entries)-len(want) {
		t.Errorf("created %d of %d, refused %s", len(got.Created), len(entries), refused)
	}
	again := must(d.s.Import(d.ctx, shared, entries, true))(t)
	if len(again.Created)+len(again.Replaced) != 0 || len(again.Unchanged) != len(got.Created) {
		t.Errorf("the second import did %d %d %d", len(again.Created), len(again.Replaced), len(again.Unchanged))
	}
	c := must(d.s.Catalogue(d.ctx, d.project("acme")))(t)
	hadoop := must(c.Resolve("hadoop-distributed"))(t)
	if len(hadoop.Defaults.Services) != 8 || hadoop.Constraints.Services["hadoop-hdfs-datanode"].Quantities.Min != 2 {
		t.Errorf("%+v", hadoop)
	}
	// The export of the one is the import of another.
	mine := d.project("mine")
	copied := must(d.s.Import(d.ctx, mine, must(admin.ReadExport(must(d.s.Export(d.ctx, shared))(t)))(t), false))(t)
	if len(copied.Created) != len(got.Created) {
		t.Errorf("copied are %d of %d", len(copied.Created), len(got.Created))
	}
}

func TestImportsThatAreNone(t *testing.T) {
	d := open(t)
	for want, text := range map[string]string{
		`an export is a JSON object with a list for each kind`: `[]`,
		`the catalogue has no "clusters"`:                      `{"clusters": []}`,
		`there is nothing to import`:                           `{"services": []}`,
	} {
		_, err := admin.ReadExport([]byte(text))
		d.refused(err, fault.Invalid, want)
	}
	_, err := admin.ReadExport(make([]byte, admin.MaxImport+1))
	d.refused(err, fault.Invalid, "and may have 33554432")
	_, err = admin.ReadFolder(map[string][]byte{"README.md": nil, "services": nil, "x/y.json": nil})
	d.refused(err, fault.Invalid, "there is nothing to import; name folders as the kinds are")
	_, err = admin.ReadFolder(map[string][]byte{"plugins/a.json": []byte(`{}`)})
	d.refused(err, fault.Invalid, `the plug-in plugins/a.json cannot be read: it lists neither`)
	entries := must(admin.ReadFolder(map[string][]byte{
		"plugins/providers/p/a.json": []byte(`{"providertypes": ["a"], "a": {"name": "a"}}`),
		"x/services/s/1.json":        []byte(`{"name": "s"}`), "x/services/s/2.json": []byte(`{"name": "s"}`),
	}))(t)
	_, err = d.s.Import(d.ctx, shared, entries, false)
	d.refused(err, fault.Invalid, "nothing was imported: x/services/s/2.json name: the service s is in the import "+
		"twice, "+
		"at first in x/services/s/1.json")
	got := must(d.s.Import(d.ctx, shared, entries, true))(t)
	if len(got.Created) != 2 || got.Created[0].String() != "the provider type a" || len(got.Refused) != 1 {
		t.Errorf("%+v", got)
	}
}

// A template is tried before it is kept: what it becomes, or all that is wrong with it.
func TestTryingATemplate(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	d.create(acme, catalogue.Services, web)
	d.create(acme, catalogue.Providers, lab)
	d.create(acme, catalogue.Templates, top)
	got := must(d.s.Try(d.ctx, acme, []byte(`{"name": "mine", "parent": {"name": "top"},
		"constraints": {"size": {"max": "7"}}}`)))(t)
	if got.Defaults.Provider != "lab" || got.Constraints.Size.Max != 7 || got.Name != "mine" {
		t.Errorf("%+v", got)
	}
	_, err := d.s.Try(d.ctx, acme, []byte(`{"name": "top", "parent": {"name": "top"}, "defaults": {"imagetype": "x"}}`))
	d.refused(err, fault.Invalid, `the template is not right: defaults.imagetype: there is no image type "x"; `+
		`parent.name: `+
		"parents go round in a circle: the template top has the parent top")
	if n := must(d.s.List(d.ctx, acme, catalogue.Templates))(t); len(n) != 1 {
		t.Errorf("%+v", n)
	}
}

// Administrators who write at the same time do not undo each other's checks: a template never loses its provider.
func TestWritersAtTheSameTime(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	d.create(acme, catalogue.Services, web)
	for round := range 10 {
		if round == 0 || fault.Is(func() error {
			_, err := d.s.Get(d.ctx, acme, catalogue.Providers,
				"lab")
			return err
		}(),
			fault.NotFound) {
			d.create(acme, catalogue.Providers, lab)
		}
		done := make(chan error, 2)
		go func() { done <- d.s.Delete(d.ctx, acme, catalogue.Providers, "lab") }()
		go func() {
			_, err := d.s.Create(d.ctx, acme, catalogue.Templates, []byte(top))
			done <- err
		}()
		first, second := <-done, <-done
		if (first == nil) == (second == nil) {
			t.Fatalf("round %d: %v, %v", round, first, second)
		}
		for ref, found := range catalogue.CheckAll(must(d.s.Catalogue(d.ctx, acme))(t)) {
			t.Fatalf("round %d: %s: %s", round, ref, found)
		}
		if err := d.s.Delete(d.ctx, acme, catalogue.Templates, "top"); err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
	}
	// Many may create at once, and all succeed.
	const writers = 6
	done := make(chan error, writers)
	for i := range writers {
		go func() {
			_, err := d.s.Create(d.ctx, acme, catalogue.Services, []byte(fmt.Sprintf(`{"name": "s%d"}`, i)))
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A catalogue in memory is read again after every write, even if the clock of the database was set back.
func TestClockThatWasSetBack(t *testing.T) {
	d := open(t)
	acme := d.project("acme")
	d.create(acme, catalogue.Services, web)
	d.exec(`UPDATE cluster_entity SET made = made + interval '1 hour'`)
	must(d.s.Catalogue(d.ctx, acme))(t)
	must(d.s.Replace(d.ctx, acme, catalogue.Services, "web", []byte(`{"name": "web", "label": "new"}`)))(t)
	if c := must(d.s.Catalogue(d.ctx, acme))(t); c.Services["web"].Label != "new" {
		t.Errorf("%+v", c.Services["web"])
	}
}

// The limits of a project are set, and cannot go below what it uses.
func TestTenants(t *testing.T) {
	d := open(t)
	acme, other := d.project("acme"), d.project("other")
	env := d.environment(acme, "prod")
	n := func(n int) *int { return &n }
	for i, state := range []string{"active", "active", "terminated"} {
		id := uuid.New()
		d.exec(`INSERT INTO cluster (id, environment, name, state, owner, ended) VALUES ($1, $2, $3, $4, 'noor',
			CASE WHEN $4 = 'terminated' THEN now() END)`, id, env, fmt.Sprint("c", i), state)
		for number, state := range []string{"made", "planned", "gone"} {
			d.exec(`INSERT INTO cluster_node (cluster, number, hostname, hardware, image, provider, state)
				VALUES ($1, $2, 'h', 'small', 'debian', 'lab', $3)`, id, number, state)
		}
	}
	d.refused(d.s.SetTenant(d.ctx, acme, 2, n(1), nil), fault.Conflict,
		"acme has 2 clusters, which is more than 1; delete clusters first")
	d.refused(d.s.SetTenant(d.ctx, acme, 2, nil, n(3)), fault.Conflict,
		"the clusters of acme have 4 nodes, which is more than 3; make clusters smaller first")
	d.refused(d.s.SetTenant(d.ctx, acme, 1001, nil, nil), fault.Invalid, "the number of workers cannot be 1001")
	d.refused(d.s.SetTenant(d.ctx, acme, 1, n(-1), nil), fault.Invalid, "the number of clusters cannot be -1")
	if err := d.s.SetTenant(d.ctx, acme, 2, n(2), n(4)); err != nil {
		t.Fatal(err)
	}
	all := must(d.s.Tenants(d.ctx))(t)
	want := []store.ClusterTenant{
		{Project: acme, Name: "acme", Set: true, Workers: 2, MaxClusters: n(2), MaxNodes: n(4), Clusters: 2, Nodes: 4},
		{Project: other, Name: "other", Workers: store.DefaultWorkers},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v", all)
	}
	if one := must(d.s.Tenant(d.ctx, acme))(t); !reflect.DeepEqual(one, want[0]) {
		t.Errorf("%+v", one)
	}
}
