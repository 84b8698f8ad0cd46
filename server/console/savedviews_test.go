package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A filter is saved under a name, is a link from then on, is replaced by saving again, and can be deleted. What is no
// filter is not kept, and a view is that of its environment.
func TestSavedViews(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	save := func(name, filter string, want int) {
		t.Helper()
		w := post(h, env+"/views", url.Values{"name": {name}, "filter": {filter}})
		if w.Code != want {
			t.Errorf("saving %q answers %d: %s", name, w.Code, w.Body)
		}
	}
	page := func(rest string) string { t.Helper(); return get(t, h, env+"/resources"+rest).Body.String() }
	link := `<a href="` + env + `/resources?status=failed"`
	save("Broken <b>", "status=failed&back=//evil", http.StatusSeeOther)
	if body := page(""); !strings.Contains(body, link+">Broken &lt;b&gt;</a>") ||
		strings.Contains(body, "evil") {
		t.Errorf("the view is no link to its filter")
	}
	if body := page("?status=failed"); !strings.Contains(body, link+` aria-current="true">Broken`) {
		t.Error("the view that is shown is not marked")
	}
	save("Broken <b>", "status=skipped", http.StatusSeeOther)
	if body := page(""); strings.Contains(body, link+">Broken") || strings.Count(body, "Broken &lt;b&gt;") != 1 {
		t.Error("saving again does not replace the view")
	}
	save("", "status=failed", http.StatusBadRequest)
	save("nothing", "", http.StatusBadRequest)
	save(strings.Repeat("x", 61), "status=failed", http.StatusBadRequest)
	if body := get(t, h, "/e/"+r.Staging.ID.String()+"/resources").Body.String(); strings.Contains(body, "Broken") {
		t.Error("another environment has the view")
	}
	if w := post(h, env+"/views/delete", url.Values{"name": {"Broken <b>"}}); w.Code != http.StatusSeeOther {
		t.Error(w.Code)
	}
	if strings.Contains(page(""), "Broken") {
		t.Error("the view is still there")
	}
}
