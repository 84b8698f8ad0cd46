package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// put types into fields of the page by their names, and chooses from selects.
func (b *tab) put(fields map[string]string) {
	b.t.Helper()
	for name, value := range fields {
		b.do(chromedp.SetValue(chromedp.CSS(`.entity [name="`+name+`"]`), value))
	}
}

// part shows a part of a long form.
func (b *tab) part(id string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(`.sections a[href="#` + id + `"]`)))
	b.until(`document.getElementById('` + id + `').checkVisibility()`)
}

func (b *tab) submit(do string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(`.entity button[value="` + do + `"]:not(.hidden)`)))
}

func (b *tab) says(text string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes("` + text + `")`)
}

// Ada makes a provider, two services and a template by form, mends an error that she is shown beside its field, tries
// the template, edits it as JSON, and compares the versions.
func TestAnAdministratorFillsTheCatalogue(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := rich(t)
	b := browse(t, h)
	b.open(projectURL(r.Project.ID))
	b.do(chromedp.Click(chromedp.CSS(`#clusters a[href$="/catalogue"]`)))
	b.until(`location.pathname.endsWith('/catalogue')`)
	b.says("There is no cluster template yet.")

	at := projectURL(r.Project.ID) + "/catalogue"
	b.open(at + "/new/providers")
	b.put(map[string]string{"name": "cellar", "providertype": "openstack"})
	b.submit("refresh")
	b.until(`document.querySelector('[name="field.api_password"]')`)
	b.until(`document.querySelector('[name="name"]').value == 'cellar'`)
	b.part("fields")
	b.put(map[string]string{
		"field.api_user": "ada", "field.api_password": "hunter22", "field.openstack_tenant": "shop",
		"field.openstack_auth_url": "https://cloud.example.com:5000/v3",
	})
	b.submit("save")
	b.says("needs values of")
	b.accessible("a provider that lacks something")
	if eval[string](b, `document.querySelector('[name="field.api_password"]').value`) != "" ||
		strings.Contains(eval[string](b, `document.documentElement.outerHTML`), "hunter22") {
		t.Error("the password was sent back")
	}
	b.says("so type them again: Password")
	b.part("fields")
	b.put(map[string]string{
		"field.api_password": "hunter22", "field.ssh_keypair": "ada", "field.ssh_key_resource": "ada",
	})
	b.submit("save")
	b.says("Saved as a new version.")
	b.part("fields")
	b.until(`document.querySelector('[name="field.api_password"]').placeholder.startsWith('set')`)
	b.accessible("a provider")

	// Whoever changes where the password goes has to know it: the error stands beside the password.
	b.put(map[string]string{"field.openstack_auth_url": "https://evil.example.net/v3"})
	b.submit("save")
	b.until(`document.activeElement && document.querySelector('.wrong [name="field.api_password"]')?.checkVisibility()`)
	b.says("give it again, because the field openstack_auth_url changes")
	typed := eval[string](b, `document.querySelector('[name="field.openstack_auth_url"]').value`)
	if !strings.Contains(typed, "evil") {
		t.Errorf("what was typed did not survive: %q", typed)
	}

	for _, one := range []struct {
		kind, name string
		fields     map[string]string
	}{
		{"hardwaretypes", "small", map[string]string{"row.0.provider": "cellar", "row.0.flavor": "m1.small"}},
		{"imagetypes", "debian", map[string]string{
			"row.0.provider": "openstack", "row.0.image": "debian-13", "row.0.sshuser": "debian",
		}},
	} {
		b.open(at + "/new/" + one.kind)
		b.put(map[string]string{"name": one.name})
		b.part("map")
		b.put(one.fields)
		b.submit("save")
		b.says("Saved as a new version.")
	}
	for _, name := range []string{"web", "db"} {
		b.open(at + "/new/services")
		b.put(map[string]string{"name": name})
		b.part("actions")
		b.put(map[string]string{"action.install.type": "shell"})
		b.submit("refresh")
		b.until(`document.querySelector('[name="action.install.field.script"]')?.checkVisibility()`)
		b.put(map[string]string{"action.install.field.script": name + ".sh"})
		b.submit("save")
		b.says("Saved as a new version.")
	}

	b.open(at + "/new/clustertemplates")
	b.put(map[string]string{"name": "shop", "description": "A shop"})
	b.part("compatibility")
	b.do(chromedp.Click(chromedp.CSS(`[name="compat.services"][value="web"]`)),
		chromedp.Click(chromedp.CSS(`[name="compat.services"][value="db"]`)))
	b.part("defaults")
	b.do(chromedp.Click(chromedp.CSS(`[name="default.services"][value="web"]`)),
		chromedp.Click(chromedp.CSS(`[name="default.services"][value="db"]`)))
	b.put(map[string]string{
		"default.provider": "cellar", "default.hardwaretype": "small", "default.imagetype": "debian",
	})
	b.part("constraints")
	b.put(map[string]string{
		"size.min": "2", "size.max": "many", "cannot": "web, db", "limit.0.service": "db", "limit.0.min": "1",
		"limit.0.max": "1",
	})
	b.submit("save")
	b.until(`document.querySelector('.wrong [name="size.max"]')?.checkVisibility()`)
	b.says("is not a whole number")
	b.says("1 problem")
	b.accessible("a template with an error")
	b.fits("a template with an error")
	b.do(chromedp.Click(chromedp.CSS(`.diagnostic a`)))
	b.until(`document.activeElement.name == 'size.max'`)
	b.put(map[string]string{"size.max": "20", "try-size": "12"})
	b.submit("try")
	b.says("12 nodes of shop")
	b.says("11 ×")
	b.accessible("a template that is tried")
	if _, err := r.Catalogue.Get(t.Context(), r.Project.ID, catalogue.Templates, "shop"); err == nil {
		t.Error("trying saved the template")
	}
	b.submit("save")
	b.says("Saved as a new version.")

	b.do(chromedp.Click(chromedp.CSS(`nav[aria-label="Views"] a[href$="tab=json"]`)))
	b.until(`document.querySelector('#json')`)
	eval[bool](b, `(() => { const j = document.querySelector('#json');
		j.value = j.value.replace('"max": 20', '"max": 30').replace('"A shop"', '"A large shop"'); return true })()`)
	b.submit("save")
	b.says("Saved as a new version.")
	b.do(chromedp.Click(chromedp.CSS(`nav[aria-label="Views"] a[href$="tab=history"]`)))
	b.until(`[...document.querySelectorAll('.d-added')].some(l => l.textContent.includes('A large shop'))`)
	b.until(`[...document.querySelectorAll('.d-removed')].some(l => l.textContent.includes('"max": 20'))`)
	b.accessible("the history of a template")

	b.open(at + "/try?template=shop&size=30")
	b.says("30 nodes of shop")
	b.open(at + "/try?template=shop&size=31")
	b.says("There is no layout")
	b.accessible("a template that cannot be solved")
}

// Without script, all parts of a form stand below each other, and work.
func TestTheCatalogueWithoutScript(t *testing.T) {
	t.Parallel()
	s := stocked(t)
	body := get(t, s.h, s.base+"/catalogue/clustertemplates/top").Body.String()
	if strings.Contains(body, `id="constraints" hidden`) || !strings.Contains(body, `class="card" id="constraints"`) ||
		!strings.Contains(body, `href="#constraints"`) {
		t.Error("a part of the form needs the script")
	}
}

// axe finds no fault in the pages of the admin view, and each fits its screen. With ORDAIN_CONSOLE_SHOTS=dir, the test
// leaves a picture of each in that folder.
func TestClusterAdminPagesAreAccessible(t *testing.T) {
	t.Parallel()
	tool.Long(t, "asks axe about dozens of pages on three screens")
	s := stocked(t)
	s.work(t)
	all := s.clusterAdminPaths()
	b := browse(t, s.h)
	for _, name := range []string{
		"project-clustertemplates", "project-services", "project-filter", "project-try", "project-import",
		"project-resources", "project-provisioners", "shared-provisioners", "project-tenant", "tenants",
		"form-clustertemplates", "form-clustertemplates#compatibility", "form-clustertemplates#defaults",
		"form-clustertemplates#constraints", "form-providers", "form-providers#fields", "form-services",
		"form-actions#actions", "form-imagetypes#map", "json-providers", "history-services",
		"history-clustertemplates", "form-shared", "copy", "solved", "unsolvable",
	} {
		page, part, _ := strings.Cut(name, "#")
		b.look(1280, 900, "light")
		b.open(all[page])
		if part != "" {
			b.part(part)
		}
		b.accessibleOn(name, screens)
	}
}
