package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ordain.dev/ordain/api/apitest"
	"ordain.dev/ordain/internal/intent"
)

// The page of a dry run keeps apart what is known and what is not, says why,
// lists what is no longer managed, and cuts what is long with a way to all of it.
func TestTheDryRunPageSaysWhatIsNotKnown(t *testing.T) {
	r := apitest.NewRich(present)
	env := "/e/" + r.Production.ID.String() + "/dryruns/" + r.DryRunID.String()
	long := strings.Repeat("0123456789", 1000)
	r.Do(func() {
		for i := range r.Production.Dries[0].Diffs {
			if d := &r.Production.Dries[0].Diffs[i]; d.Kind == intent.DiffModified {
				d.Attributes = map[string]intent.AttributeChange{
					"content": {Current: long + "was", Desired: long + "will"},
				}
			}
		}
	})
	h := newConsole(t, r)
	page := get(t, h, env).Body.String()
	for _, want := range []string{
		"It would change 3 resources on 3 agents. Of 2 resources it is not known.", "incomplete", "unknown: not reached", "unknown: the handler failed",
		"no route to web09", "no such folder", "would be created first", "No longer managed", "/srv/www/left.html", "See all of it",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, long) {
		t.Error("a long value is not cut")
	}
	whole := get(t, h, env+"/value?attribute=content&id="+url.QueryEscape(r.FailedFile.String()))
	if text := whole.Body.String(); !strings.Contains(text, long+"was") || !strings.Contains(text, long+"will") ||
		!strings.HasPrefix(whole.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("%v %.200s", whole.Header(), text)
	}
	if w := get(t, h, env+"/value?attribute=nothing&id=x"); w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
}

// One of a commit is compiled, may be cancelled, and then says so.
func TestTheDryRunPageOfACommit(t *testing.T) {
	r := apitest.NewRich(present)
	h := newConsole(t, r)
	env := "/e/" + r.Production.ID.String()
	place := post(h, env+"/dryruns", url.Values{"commit": {"feature<x>"}}).Header().Get("Location")
	page := get(t, h, place).Body.String()
	if !strings.Contains(page, "Dry run of commit feature&lt;x&gt;") ||
		!strings.Contains(page, "Its commit is being compiled.") ||
		!strings.Contains(page, "Cancel") {
		t.Error(page)
	}
	if w := post(h, place+"/cancel", nil); w.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if page := get(t, h, place).Body.String(); !strings.Contains(page, "cancelled") ||
		strings.Contains(page, "/cancel") {
		t.Error(page)
	}
	if page := get(t, h, env+"/versions").Body.String(); !strings.Contains(page, "commit feature&lt;x&gt;") {
		t.Error("the list of versions does not have it")
	}
}
