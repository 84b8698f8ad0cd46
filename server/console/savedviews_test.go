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
	// The resources of a version and comparisons have views of their own, which fit any version; a name is taken once.
	form := url.Values{
		"name": {"Files"}, "list": {"version"}, "filter": {"type=fs%3A%3AFile&x=evil"}, "back": {env + "/versions/7"},
	}
	if w := post(h, env+"/views", form); w.Header().Get("Location") != env+"/versions/7?done=saved" &&
		w.Header().Get("Location") != env+"/versions/7" {
		t.Errorf("saving leads to %q, %d", w.Header().Get("Location"), w.Code)
	}
	form.Set("list", "compare")
	if w := post(h, env+"/views", form); w.Code != http.StatusConflict {
		t.Errorf("a name of another list is taken: %d", w.Code)
	}
	form.Set("name", "File changes")
	form.Set("filter", "type=fs%3A%3AFile&kind=modified&from=1")
	if w := post(h, env+"/views", form); w.Code != http.StatusSeeOther {
		t.Error(w.Code)
	}
	other := get(t, h, env+"/versions/6?type=fs%3A%3AFile").Body.String()
	contains(t, other, `<a href="`+env+`/versions/6?type=fs%3A%3AFile" aria-current="true">Files</a>`,
		"Delete the view Files")
	compared := get(t, h, env+"/compare?from=5&to=7").Body.String()
	contains(t, compared, `<a href="`+env+`/compare?from=5&amp;to=7&amp;kind=modified&amp;type=fs%3A%3AFile">`+
		`File changes</a>`)
	for _, body := range []string{other, compared, page("")} {
		if strings.Contains(body, "evil") ||
			strings.Contains(body, ">Files<") && strings.Contains(body, "File changes") {
			t.Error("a list has the views of another one")
		}
	}
	if w := post(h, env+"/views/delete", url.Values{"name": {"Broken <b>"}}); w.Code != http.StatusSeeOther {
		t.Error(w.Code)
	}
	if strings.Contains(page(""), "Broken") {
		t.Error("the view is still there")
	}
}
