package console

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/net/html"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
	provisioners "ordain.dev/ordain/server/cluster/provisioner/authority"
	"ordain.dev/ordain/server/servertest"
)

// published is a folder of entities that others published.
const published = "../cluster/catalogue/testdata/coopr-templates"

// The catalogue of the tests. The texts are as somebody with bad intentions would write them.
const (
	labJSON = `{"name": "lab", "providertype": "pool", "provisioner": {"machines": [{"address": "192.0.2.1"},
		{"address": "192.0.2.2"}], "ssh_key_resource": "team"}}`
	cloudJSON = `{"name": "cloud", "providertype": "openstack", "kept": {"by": "hand"}, "provisioner": {"api_user": "u",
		"api_password": "s3cret", "openstack_tenant": "t", "openstack_auth_url": "https://cloud.example.com:5000/v3",
		"ssh_keypair": "k", "ssh_key_resource": "k"}}`
	baseJSON = `{"name": "base", "provisioner": {"actions": {"install": {"type": "shell",
		"fields": {"script": "base.sh"}}}}}`
	webJSON = `{"name": "web", "dependencies": {"install": {"requires": ["base"]}}, "provisioner": {"actions": {
		"install": {"type": "shell", "fields": {"script": "web.sh", "args": "a b"}}}}}`
	dbJSON  = `{"name": "db"}`
	topJSON = `{"name": "top", "compatibility": {"services": ["base", "web", "db"]}, "defaults": {"services": ["base",
		"web", "db"], "provider": "lab"}, "constraints": {"size": {"min": 2, "max": 20}, "layout": {"cantcoexist":
		[["web", "db"]]}, "services": {"db": {"quantities": {"min": "1", "max": "1"}}}}}`
)

// stock is a rich server with a catalogue, and the addresses of its project.
type stock struct {
	*servertest.Rich
	h    http.Handler
	base string // of the project's pages
}

func stocked(t *testing.T) *stock {
	t.Helper()
	r, h := rich(t, func(c *Config) {
		var err error
		c.Provisioners, err = provisioners.New(provisioners.Config{
			Store: c.Store, Root: c.Agents, Logger: c.Logger, Now: c.Now,
		})
		must(t, err)
	})
	s := &stock{r, h, projectURL(r.Project.ID)}
	evil, err := json.Marshal(servertest.Evil)
	must(t, err)
	s.create(t, intent.ProjectID{}, catalogue.Services, baseJSON)
	s.create(t, r.Project.ID, catalogue.Providers, labJSON)
	s.create(t, r.Project.ID, catalogue.Providers, cloudJSON)
	s.create(t, r.Project.ID, catalogue.Services, webJSON)
	s.create(t, r.Project.ID, catalogue.Services, dbJSON)
	s.create(t, r.Project.ID, catalogue.Templates, topJSON)
	s.create(t, r.Project.ID, catalogue.Services, fmt.Sprintf(`{"name": "evil", "label": %[1]s, "description": %[1]s,
		"icon": %[1]s, "dependencies": {"provides": ["evil2"]}, "provisioner": {"actions": {"start": {"type": "shell",
		"fields": {"script": %[1]s}}}}}`, evil))
	s.create(t, r.Project.ID, catalogue.AutomatorTypes, fmt.Sprintf(`{"name": "evilmator", "description": %[1]s,
		"parameters": {"admin": {"fields": {"x": {"type": "text", "label": %[1]s, "tip": %[1]s,
		"default": %[1]s}}}}}`, evil))
	s.create(t, r.Project.ID, catalogue.Services, fmt.Sprintf(`{"name": "evil3", "provisioner": {"actions": {"stop":
		{"type": "evilmator", "fields": {"x": %[1]s}}}}}`, evil))
	s.create(t, r.Project.ID, catalogue.ImageTypes, fmt.Sprintf(`{"name": "evil", "providermap": {"lab": {
		"image": %[1]s, "other": %[1]s}}}`, evil))
	s.create(t, r.Project.ID, catalogue.HardwareTypes, `{"name": "small", "providermap": {"openstack":
		{"flavor": "m1"}}}`)
	s.create(t, r.Project.ID, catalogue.PartialTemplates, fmt.Sprintf(`{"name": "evil", "defaults": {"config":
		{"a": %[1]s}}}`, evil))
	_, err = s.Catalogue.Replace(t.Context(), r.Project.ID, catalogue.Services, "evil", fmt.Appendf(nil,
		`{"name": "evil", "description": "tame", "label": %s}`, evil))
	must(t, err)
	return s
}

func (s *stock) create(t *testing.T, project intent.ProjectID, kind catalogue.Kind, text string) admin.Item {
	t.Helper()
	item, err := s.Catalogue.Create(t.Context(), project, kind, []byte(text))
	must(t, err)
	return item
}

// content returns the JSON of an entity without its version.
func (s *stock) content(t *testing.T, kind catalogue.Kind, name string) string {
	t.Helper()
	item, err := s.Catalogue.Get(t.Context(), s.Project.ID, kind, name)
	must(t, err)
	text, err := catalogue.Canonical(item.Content)
	must(t, err)
	return string(text)
}

// clusterAdminPaths are the pages of the admin view.
func (s *stock) clusterAdminPaths() map[string]string {
	out := map[string]string{}
	for at, base := range map[string]string{"project": s.base, "shared": ""} {
		for _, k := range kindTitles {
			out[at+"-"+string(k.kind)] = base + "/catalogue/" + string(k.kind)
			out[at+"-new-"+string(k.kind)] = base + "/catalogue/new/" + string(k.kind)
		}
		out[at+"-filter"] = base + "/catalogue/services?name=zzz"
		out[at+"-try"] = base + "/catalogue/try"
		out[at+"-import"] = base + "/catalogue/import"
		out[at+"-resources"] = base + "/plugin-resources"
		out[at+"-provisioners"] = base + "/provisioners"
	}
	for _, tab := range []string{"form", "json", "history"} {
		for kind, name := range map[catalogue.Kind]string{
			catalogue.Templates: "top", catalogue.Services: "evil", catalogue.Providers: "cloud",
			catalogue.ImageTypes: "evil", catalogue.HardwareTypes: "small", catalogue.PartialTemplates: "evil",
			catalogue.AutomatorTypes: "evilmator", catalogue.ProviderTypes: "pool",
		} {
			out[tab+"-"+string(kind)] = s.base + "/catalogue/" + string(kind) + "/" + name + "?tab=" + tab
		}
		out[tab+"-shared"] = s.base + "/catalogue/services/base?tab=" + tab
		out[tab+"-actions"] = s.base + "/catalogue/services/evil3?tab=" + tab
	}
	out["copy"] = s.base + "/catalogue/new/services?from=base"
	out["solved"] = s.base + "/catalogue/try?template=top&size=12"
	out["unsolvable"] = s.base + "/catalogue/try?template=top&size=12&service=web&service=" +
		url.QueryEscape(servertest.Evil)
	out["project-tenant"], out["tenants"] = s.base+"/tenant", "/tenants"
	return out
}

// Every page of the admin view renders completely, escapes what people wrote, and shows no secret.
func TestClusterAdminPagesRender(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	s.work(t)
	for name, path := range s.clusterAdminPaths() {
		w := get(t, s.h, path)
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
			t.Errorf("%s: %d\n%s", name, w.Code, body)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
			t.Errorf("%s: hostile text became markup", name)
		}
		if strings.Contains(body, "s3cret") {
			t.Errorf("%s shows a secret", name)
		}
	}
	for path, want := range map[string]string{
		"/catalogue/services/nobody": "there is no service", "/catalogue/nothing": "the catalogue has no",
		"/catalogue/services/..%2f..": "there is no service",
	} {
		if w := get(t, s.h, s.base+path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	body := get(t, s.h, s.base+"/catalogue/services").Body.String()
	for _, want := range []string{">base</a>", "shared", "own", ">web</a>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the list does not have %q", want)
		}
	}
	if body := get(t, s.h, s.base).Body.String(); !strings.Contains(body, s.base+"/catalogue") {
		t.Error("the page of the project has no link to its catalogue")
	}
}

// work adds a file of a plug-in and provisioners.
func (s *stock) work(t *testing.T) (provisioner uuid.UUID) {
	t.Helper()
	_, err := s.Resources.Upload(t.Context(), intent.ClusterResourceRef{
		Project: s.Project.ID, Kind: "providertypes", Plugin: "pool", Type: "ssh_keys", Name: "team",
	}, strings.NewReader("s3cret"))
	must(t, err)
	for _, name := range []string{servertest.Evil, "cellar"} {
		token := intent.ProvisionerToken{
			ID: uuid.New(), Project: s.Project.ID, Name: name, Made: s.Now(), MadeBy: "noor",
			Expires: s.Now().Add(time.Hour),
		}
		must(t, s.Store.AddProvisionerToken(t.Context(), token, uuid.NewString()))
		provisioner, err = s.Store.JoinProvisioner(t.Context(), token.ID, intent.Provisioner{
			ID: uuid.New(), Project: s.Project.ID, Name: name, Serial: uuid.NewString(),
			Expires: s.Now().Add(24 * time.Hour),
		}, s.Now())
		must(t, err)
		must(t, s.Store.SeeProvisioner(t.Context(), provisioner, servertest.Evil, 8))
	}
	return provisioner
}

// formOf returns what a browser would send for the form of a page.
func formOf(t *testing.T, body string) url.Values {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	must(t, err)
	out := url.Values{}
	var form *html.Node
	attr := func(n *html.Node, name string) (string, bool) {
		for _, a := range n.Attr {
			if a.Key == name {
				return a.Val, true
			}
		}
		return "", false
	}
	var find func(*html.Node)
	find = func(n *html.Node) {
		if class, _ := attr(n, "class"); n.Data == "form" && class == "entity" {
			form = n
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			find(c)
		}
	}
	find(doc)
	if form == nil {
		t.Fatalf("the page has no form:\n%s", body)
	}
	var read func(*html.Node)
	read = func(n *html.Node) {
		name, _ := attr(n, "name")
		value, _ := attr(n, "value")
		kind, _ := attr(n, "type")
		switch {
		case n.Data == "input" && kind == "checkbox":
			if _, checked := attr(n, "checked"); checked {
				out.Add(name, value)
			}
		case n.Data == "input":
			out.Add(name, value)
		case n.Data == "textarea":
			text := ""
			if n.FirstChild != nil {
				text = n.FirstChild.Data
			}
			out.Add(name, strings.ReplaceAll(text, "\n", "\r\n"))
		case n.Data == "select":
			for o := n.FirstChild; o != nil; o = o.NextSibling {
				if _, selected := attr(o, "selected"); selected {
					value, _ := attr(o, "value")
					out.Add(name, value)
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			read(c)
		}
	}
	read(form)
	return out
}

// Of all that others published, the form of an entity has everything: saving it without a change changes nothing.
func TestFormsHaveAllOfAnEntity(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	s := stocked(t)
	folder := map[string][]byte{}
	must(t, fs.WalkDir(os.DirFS(published), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path.Dir(name) != "plugins" {
			folder[name], err = fs.ReadFile(os.DirFS(published), name)
			if path.Dir(name) == "providers" { // those that are published lack their credentials
				own := strings.TrimSuffix(path.Base(name), ".json")
				folder[name] = []byte(strings.Replace(labJSON, `"lab"`, `"`+own+`"`, 1))
			}
		}
		return err
	}))
	for kind, types := range catalogue.Optional() {
		for name, text := range types {
			folder[string(kind)+"/"+name+".json"] = text
		}
	}
	entries, err := admin.ReadFolder(folder)
	must(t, err)
	_, err = s.Catalogue.Import(t.Context(), s.Project.ID, entries, true)
	must(t, err)
	tried := map[catalogue.Kind]int{}
	for _, k := range kindTitles {
		items, err := s.Catalogue.List(t.Context(), s.Project.ID, k.kind)
		must(t, err)
		for _, item := range items {
			if !hasForm(k.kind) || item.BuiltIn || item.Project != s.Project.ID {
				continue
			}
			tried[k.kind]++
			page := s.base + "/catalogue/" + string(k.kind) + "/" + item.Name
			values := formOf(t, get(t, s.h, page).Body.String())
			values.Set("do", "save")
			before := s.content(t, k.kind, item.Name)
			if w := post(s.h, page, values); w.Code != http.StatusSeeOther {
				t.Errorf("%s is refused: %d %s", item.Name, w.Code, alerts(w.Body.String()))
			}
			if after := s.content(t, k.kind, item.Name); after != before {
				t.Errorf("%s was changed by its form, from\n%s\nto\n%s", item.Name, before, after)
			}
		}
	}
	t.Log(tried)
	if tried[catalogue.Services] < 20 || tried[catalogue.Templates] < 3 || tried[catalogue.Providers] < 2 {
		t.Errorf("too few were tried: %v", tried)
	}
}

// alerts returns what a page says is wrong.
func alerts(body string) string {
	_, rest, _ := strings.Cut(body, `role="alert"`)
	text, _, _ := strings.Cut(rest, "</section>")
	return text
}

// What is wrong stands beside its field. What was typed survives, but for secrets, in a form and as JSON.
func TestARefusedEntityKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	page := s.base + "/catalogue/providers/cloud"
	values := formOf(t, get(t, s.h, page).Body.String())
	if values.Get("field.api_password") != "" || values.Get("field.api_user") != "u" {
		t.Errorf("the form has %v", values)
	}
	values.Set("field.openstack_auth_url", "https://evil.example.net")
	w := post(s.h, page, values)
	body := w.Body.String()
	for _, want := range []string{
		`value="https://evil.example.net"`, "because the field openstack_auth_url changes", `aria-invalid="true"`,
	} {
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, want) {
			t.Errorf("%d without %q:\n%s", w.Code, want, alerts(body))
		}
	}
	values.Set("field.api_password", "hunter22")
	values.Set("field.openstack_interface", "nowhere")
	w = post(s.h, page, values)
	if body = w.Body.String(); w.Code != http.StatusUnprocessableEntity || strings.Contains(body, "hunter22") ||
		!strings.Contains(body, "type them again: Password") || !strings.Contains(body, "nowhere (does not exist)") {
		t.Errorf("%d:\n%s", w.Code, alerts(body))
	}
	values.Set("field.openstack_interface", "internal")
	if w = post(s.h, page, values); w.Code != http.StatusSeeOther {
		t.Fatalf("%d: %s", w.Code, alerts(w.Body.String()))
	}
	secrets, err := s.Catalogue.ProviderSecrets(t.Context(), s.Project.ID, "cloud", 0)
	if err != nil || string(secrets["api_password"]) != `"hunter22"` {
		t.Errorf("%s, %v", secrets, err)
	}
	// Left empty, it stays, and what the form does not know, too.
	values = formOf(t, get(t, s.h, page).Body.String())
	values.Set("label", "Cellar")
	if w = post(s.h, page, values); w.Code != http.StatusSeeOther {
		t.Errorf("%d: %s", w.Code, alerts(w.Body.String()))
	}
	if secrets, err = s.Catalogue.ProviderSecrets(t.Context(), s.Project.ID, "cloud", 0); err != nil ||
		string(secrets["api_password"]) != `"hunter22"` {
		t.Errorf("%s, %v", secrets, err)
	}
	if now := s.content(t, catalogue.Providers, "cloud"); !strings.Contains(now, `"kept":{"by":"hand"}`) ||
		!strings.Contains(now, `"label":"Cellar"`) {
		t.Error(now)
	}
	for _, text := range []string{
		strings.Replace(cloudJSON, "openstack", "nowhere", 1), `{"name": "x", "api_password": "s3cret"`,
		cloudJSON + "}",
		strings.Replace(cloudJSON, `"s3cret"`, `["s3cret"]`, 1), `{"api_p\u0061ssword": "s3cret"`,
	} {
		w = post(s.h, page, url.Values{"as": {"json"}, "json": {text}, "version": {"3"}, "do": {"save"}})
		body = w.Body.String()
		if w.Code != http.StatusUnprocessableEntity || strings.Contains(body, "s3cret") ||
			!strings.Contains(body, "ssword") {
			t.Errorf("%d for %s:\n%s", w.Code, text, body)
		}
	}
	// Not a field of the form, but a part of it, in a table.
	page = s.base + "/catalogue/clustertemplates/top"
	values = formOf(t, get(t, s.h, page).Body.String())
	values.Set("size.min", "many")
	values.Set("limit.0.max", "0x")
	values.Set("config", "{")
	w = post(s.h, page, values)
	for _, want := range []string{`value="many"`, `value="0x"`, "it has to be a JSON object", "\n{</textarea>"} {
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d without %q: %s", w.Code, want, alerts(w.Body.String()))
		}
	}
	values.Del("config")
	w = post(s.h, page, values)
	for _, want := range []string{"&#34;many&#34; is not a whole number", "&#34;0x&#34; is not a whole number"} {
		if w.Code != http.StatusUnprocessableEntity || strings.Count(w.Body.String(), want) != 2 {
			t.Errorf("%d without %q twice, in the list and beside the field: %s", w.Code, want, w.Body.String())
		}
	}
}

// Two people edit one service: the second one sees what the first one saved, loses nothing, and decides.
func TestTwoPeopleEditOneService(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	page := s.base + "/catalogue/services/web"
	mine := formOf(t, get(t, s.h, page).Body.String())
	theirs := formOf(t, get(t, s.h, page).Body.String())
	theirs.Set("action.install.field.script", "theirs.sh")
	if w := post(s.h, page, theirs); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, alerts(w.Body.String()))
	}
	mine.Set("label", "My label")
	w := post(s.h, page, mine)
	body := w.Body.String()
	for _, want := range []string{
		"saved version 2 while you changed version 1", "<mark>theirs</mark>.sh", `value="My label"`,
		"Save mine over version 2", `name="version" value="2"`,
	} {
		if w.Code != http.StatusConflict || !strings.Contains(body, want) {
			t.Errorf("%d without %q:\n%s", w.Code, want, alerts(body))
		}
	}
	if w = post(s.h, page, formOf(t, body)); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, alerts(w.Body.String()))
	}
	if now := s.content(t, catalogue.Services, "web"); !strings.Contains(now, "My label") {
		t.Error(now)
	}
	body = get(t, s.h, page+"?tab=history&from=1&to=3").Body.String()
	for _, want := range []string{
		"Version 1 to 3", `<span class="d-added">&#43;   &#34;label&#34;: &#34;My label&#34;,`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the history does not have %q:\n%s", want, body)
		}
	}
}

// Deleting says what uses it. What is shared is not changed in a project, which can have one of its own instead.
func TestDeletingAndCopying(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	page := s.base + "/catalogue/services/web"
	if body := get(t, s.h, page+"?tab=history").Body.String(); !strings.Contains(body, "cluster template top (") {
		t.Error("the page does not say what uses the service")
	}
	w := post(s.h, page+"/delete", url.Values{"confirm": {"web"}})
	const others = "others depend on it: the cluster template top"
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), others) {
		t.Errorf("%d: %s", w.Code, alerts(w.Body.String()))
	}
	if w = post(s.h, page+"/delete", url.Values{"confirm": {"wep"}}); w.Code != http.StatusBadRequest {
		t.Errorf("without its name: %d", w.Code)
	}
	for _, name := range []string{"evil3", "small"} {
		kind := map[string]string{"evil3": "services", "small": "hardwaretypes"}[name]
		at := s.base + "/catalogue/" + kind + "/" + name
		if w = post(s.h, at+"/delete", url.Values{"confirm": {name}}); w.Code != http.StatusSeeOther ||
			get(t, s.h, at).Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	page = s.base + "/catalogue/services/base"
	body := get(t, s.h, page).Body.String()
	if strings.Contains(body, "Save as a new version") || !strings.Contains(body, "takes its place") {
		t.Error("the page of a shared service offers to change it")
	}
	if w = post(s.h, page, formOf(t, body)); w.Code == http.StatusSeeOther {
		t.Error("a project changed what is shared")
	}
	values := formOf(t, get(t, s.h, s.base+"/catalogue/new/services?from=base").Body.String())
	values.Set("label", "Ours")
	if w = post(s.h, s.base+"/catalogue/new/services", values); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, alerts(w.Body.String()))
	}
	now := s.content(t, catalogue.Services, "base")
	if !strings.Contains(now, "Ours") || !strings.Contains(now, "base.sh") {
		t.Error(now)
	}
	values = formOf(t, get(t, s.h, s.base+"/catalogue/new/providers?from=cloud").Body.String())
	w = post(s.h, s.base+"/catalogue/new/providers", values)
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "needs values of api_password") {
		t.Errorf("a copy has the password: %d %s", w.Code, alerts(w.Body.String()))
	}
}

// A template is tried as it is kept, and as it is being edited. Nothing is made.
func TestTryingATemplate(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	try := s.base + "/catalogue/try"
	for query, want := range map[string][]string{
		"?template=top&size=12":            {"12 nodes of top", "11 ×", "try-1000.local", "base, web"},
		"?template=top&size=99":            {"There is no layout", "99"},
		"?template=top&size=many":          {"the size has to be a number of nodes"},
		"?template=top&size=3&service=web": {"web requires base"},
		"?template=nobody":                 {"There is no layout", "nobody"},
		"?template=top&provider=cloud":     {"cloud"},
	} {
		w := get(t, s.h, try+query)
		for _, text := range want {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s: %d without %q: %s", query, w.Code, text, alerts(w.Body.String()))
			}
		}
	}
	page := s.base + "/catalogue/clustertemplates/top"
	values := formOf(t, get(t, s.h, page).Body.String())
	values.Set("limit.0.max", "3")
	values.Set("limit.0.min", "3")
	values.Set("do", "try")
	values.Set("try-size", "12")
	w := post(s.h, page, values)
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "<strong>9 ×</strong> base, web") ||
		!strings.Contains(body, "<strong>3 ×</strong> base, db") || !strings.Contains(body, `value="3"`) {
		t.Errorf("%d: %s", w.Code, body)
	}
	item, err := s.Catalogue.Get(t.Context(), s.Project.ID, catalogue.Templates, "top")
	if err != nil || item.Version != 1 {
		t.Errorf("trying saved version %d, %v", item.Version, err)
	}
	clusters, err := s.Store.AllClusters(t.Context())
	if err != nil || len(clusters) != 0 {
		t.Errorf("trying made %v, %v", clusters, err)
	}
}

// multi sends files with a form. Names of files are sent as they are.
func multi(
	t *testing.T, h http.Handler, path string, fields map[string]string, files ...string,
) *httptest.ResponseRecorder {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, value := range fields {
		must(t, form.WriteField(name, value))
	}
	for i := 0; i+2 < len(files); i += 3 {
		header := textproto.MIMEHeader{}
		header.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename=%q`, files[i], files[i+1]))
		part, err := form.CreatePart(header)
		must(t, err)
		_, err = io.WriteString(part, files[i+2])
		must(t, err)
	}
	must(t, form.Close())
	r := httptest.NewRequest("POST", path, &b)
	r.Header.Set("Content-Type", form.FormDataContentType())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A catalogue goes out as JSON, and comes in as JSON, as a folder, as a zip file, and as single files.
func TestImportAndExport(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	at := s.base + "/catalogue"
	zipped := func(files map[string]string) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, text := range files {
			f, err := z.Create(name)
			must(t, err)
			_, err = io.WriteString(f, text)
			must(t, err)
		}
		must(t, z.Close())
		return b.String()
	}
	export := get(t, s.h, at+"/export").Body.String()
	if strings.Contains(export, "s3cret") || !strings.Contains(export, `"name": "cloud"`) {
		t.Error(export)
	}
	service := func(name string) string {
		text, err := json.Marshal(map[string]string{"name": name})
		must(t, err)
		return string(text)
	}
	for _, one := range []struct {
		fields map[string]string
		files  []string
		code   int
		says   string
	}{
		{nil, []string{"files", "catalogue.json", export}, 200, "0 made, 0 changed, 11 as before"},
		{nil, []string{"folder", "mine/services/a.json", service("a"), "folder", "mine/README.md", "?"}, 200, "1 made"},
		{nil, []string{"files", "mine.zip", zipped(map[string]string{"x/services/b.json": service("b")})}, 200,
			"1 made"},
		{map[string]string{"kind": "services"}, []string{"files", "c.json", service("c"), "files", "d.json",
			service("d")}, 200, "2 made"},
		{nil, []string{"files", "c.json", service("c")}, 422, "c.json cannot be read"},
		{nil, []string{"files", "", ""}, 422, "no file was chosen"},
		{nil, []string{"files", "x.zip", "PK"}, 422, "the zip file cannot be read"},
		{nil, []string{"files", "x.zip", zipped(map[string]string{"services/b.json": strings.Repeat(" ", 33<<20)})},
			422, "the files have more than 32 MiB"},
		{nil, []string{"folder", "services/e.json", service("e"), "folder", "services/f.json", service("f/f")}, 422,
			"Nothing was imported"},
		{map[string]string{"partly": "yes"}, []string{"folder", "services/e.json", service("e"), "folder",
			"services/f.json", service("f/f")}, 200, "1 made"},
		{nil, []string{"files", "../../services/g.json", service(servertest.Evil)}, 422, "a name consists of letters"},
	} {
		w := multi(t, s.h, at+"/import", one.fields, one.files...)
		if w.Code != one.code || !strings.Contains(w.Body.String(), one.says) ||
			strings.Contains(w.Body.String(), "<img") {
			_, main, _ := strings.Cut(w.Body.String(), "<main")
			t.Errorf("%s: %d without %q:\n%s", path.Join(one.files[0], one.files[1]), w.Code, one.says, main)
		}
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.content(t, catalogue.Services, name)
	}
}

// A key is uploaded, staged, synced, recalled and deleted.
func TestPluginResources(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	at := s.base + "/plugin-resources"
	fields := map[string]string{"type": "providertypes/pool/ssh_keys", "name": "team"}
	if w := multi(t, s.h, at+"/upload", fields, "file", "id_ed25519", "s3cret"); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	for _, step := range []struct{ do, want string }{
		{"stage", "staged"}, {"", "active"}, {"recall", "recalled"}, {"", "inactive"},
		{"delete", "There is no file yet"},
	} {
		path, values := at+"/sync", url.Values{}
		if step.do != "" {
			path = at + "/change"
			values = url.Values{"type": {fields["type"]}, "name": {"team"}, "version": {"1"}, "do": {step.do}}
		}
		w := post(s.h, path, values)
		if w.Code != http.StatusSeeOther {
			t.Fatal(step.do, w.Code, w.Body)
		}
		body := get(t, s.h, w.Header().Get("Location")).Body.String()
		if !strings.Contains(body, "<span>"+step.want+"</span>") && !strings.Contains(body, step.want+".") ||
			strings.Contains(body, "s3cret") {
			t.Errorf("after %q:\n%s", step.do, body)
		}
	}
	outside := map[string]string{"type": fields["type"], "name": "../x"}
	for want, w := range map[string]*httptest.ResponseRecorder{
		"no file was chosen":  multi(t, s.h, at+"/upload", fields, "file", "", ""),
		"names no resource":   multi(t, s.h, at+"/upload", outside, "file", "x", "x"),
		"choose the plug-in":  multi(t, s.h, at+"/upload", map[string]string{"name": "x"}, "file", "x", "x"),
		"form has no file":    post(s.h, at+"/upload", nil),
		"the form names no v": post(s.h, at+"/change", url.Values{"type": {fields["type"]}}),
	} {
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d without %q: %s", w.Code, want, w.Body)
		}
	}
}

// A provisioner is revoked by its own project, and by no other one.
func TestRevokingAProvisioner(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	id := s.work(t)
	other := intent.Project{ID: uuid.New(), Name: "other"}
	must(t, s.Store.CreateProject(t.Context(), other))
	values := url.Values{"id": {id.String()}}
	for _, h := range []http.Handler{s.h, newConsole(t, s.Server)} { // with the authority of provisioners, and without
		for _, project := range []uuid.UUID{other.ID, uuid.New()} {
			if w := post(h, projectURL(project)+"/provisioners/revoke", values); w.Code != http.StatusNotFound {
				t.Errorf("another project: %d", w.Code)
			}
		}
	}
	body := get(t, s.h, s.base+"/provisioners").Body.String()
	if !strings.Contains(body, "cellar") || !strings.Contains(body, "Nothing to do for clusters") {
		t.Error(body)
	}
	if w := post(s.h, s.base+"/provisioners/revoke", values); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	if body = get(t, s.h, "/provisioners").Body.String(); !strings.Contains(body, "<span>revoked</span>") {
		t.Error(body)
	}
	if p, err := s.Store.Provisioner(t.Context(), id); err != nil || p.Revoked == nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// Somebody who may only look sees all of the catalogue, and nothing that changes it.
func TestAViewerOfTheCatalogue(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	s.work(t)
	who := &caller{access.Principal{Kind: access.Person, Name: "vic", Bindings: []access.Binding{{
		Role: access.Viewer, Scope: access.Scope{Project: s.Project.ID},
	}}}}
	h := newConsole(t, s.Server, func(c *Config) { c.Auth = who })
	for name, path := range s.clusterAdminPaths() {
		w := get(t, h, path)
		change := strings.Contains(path, "/new/") || strings.HasSuffix(path, "/import")
		if ours := strings.HasPrefix(path, s.base); !ours || change {
			if w.Code != http.StatusForbidden {
				t.Errorf("%s: %d", name, w.Code)
			}
			continue
		}
		body := w.Body.String()
		_, body, _ = strings.Cut(body, "<main")
		for _, button := range []string{
			"Save as", ">Delete<", ">Stage", ">Revoke", ">Upload<", "Sync now", ">New ", "takes its place", ">Save",
			"join token",
		} {
			if w.Code != http.StatusOK || strings.Contains(body, button) {
				t.Errorf("%s: %d with %q", name, w.Code, button)
			}
		}
	}
}

// A join token is shown once, and can be revoked until it is used.
func TestLettingAProvisionerJoin(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	at := s.base + "/provisioners"
	w := post(s.h, at+"/token", url.Values{"name": {"attic"}, "hours": {"2"}})
	_, rest, _ := strings.Cut(w.Body.String(), `id="token" class="mono" readonly value="`)
	token, _, _ := strings.Cut(rest, `"`)
	if w.Code != http.StatusOK || !strings.HasPrefix(token, "ordain-provisioner.") {
		t.Fatal(w.Code, w.Body)
	}
	body := get(t, s.h, at).Body.String()
	if strings.Contains(body, token) || !strings.Contains(body, "<td>attic</td><td>waiting</td>") {
		t.Error(body)
	}
	tokens, err := s.Store.ProvisionerTokens(t.Context(), s.Project.ID)
	must(t, err)
	if w = post(s.h, at+"/token/revoke", url.Values{"id": {tokens[0].ID.String()}}); w.Code != http.StatusSeeOther {
		t.Error(w.Code, w.Body)
	}
	if body = get(t, s.h, at).Body.String(); !strings.Contains(body, "<td>attic</td><td>revoked</td>") {
		t.Error(body)
	}
	for _, hours := range []string{"", "0", "1000"} {
		w = post(s.h, at+"/token", url.Values{"name": {"attic"}, "hours": {hours}})
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s hours: %d", hours, w.Code)
		}
	}
}

// Administrators of the server set what projects may use; an empty field is no limit.
func TestLimitsOfProjects(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	set := func(workers, clusters, nodes string) *httptest.ResponseRecorder {
		return post(s.h, s.base+"/tenant", url.Values{"workers": {workers}, "clusters": {clusters}, "nodes": {nodes}})
	}
	if w := set("7", "3", ""); w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	got, err := s.Catalogue.Tenant(t.Context(), s.Project.ID)
	if err != nil || got.Workers != 7 || *got.MaxClusters != 3 || got.MaxNodes != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if body := get(t, s.h, "/tenants").Body.String(); !strings.Contains(body, `name="clusters" value="3"`) {
		t.Error(body)
	}
	for want, w := range map[string]*httptest.ResponseRecorder{
		"is not a whole number": set("7", "many", ""), "number of workers is missing": set("", "", ""),
		"it may be 0 to": set("-1", "", ""),
	} {
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d without %q", w.Code, want)
		}
	}
}
