package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ordain.dev/ordain/server/servertest"
)

// What matches a filter is chosen as a whole or one by one; the page asks with numbers before anything happens, and
// then exactly that is done.
func TestBulkActions(t *testing.T) {
	t.Parallel()
	r := servertest.NewRich(t)
	r.Start(t)
	h := newConsole(t, r.Server)
	env := "/e/" + r.Production.ID.String()
	filter := url.Values{"is-type": {"fs::Directory"}, "is-agent": {"web01"}}.Encode()
	body := get(t, h, env+"/resources?"+filter).Body.String()
	for _, want := range []string{"All 21 that match", `aria-current="true"><span>web01</span>`, "Not as intended"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	nothing := get(t, h, env+"/resources?"+filter+"&do=repair").Body.String()
	if !strings.Contains(nothing, "Nothing to do") {
		t.Error("the page asks although nothing is chosen")
	}
	body = get(t, h, env+"/resources?"+filter+"&do=repair&all=yes").Body.String()
	if !strings.Contains(body, "Verify and repair 21 resources on 1 agent?") {
		t.Errorf("the page does not ask with numbers")
	}
	chosen := url.Values{"all": {"yes"}, "is-type": {"fs::Directory"}, "is-agent": {"web01"}}
	for name, form := range map[string]url.Values{
		"repair": chosen, "pause": chosen, "deploy": {"id": {r.FailedFile.String()}}, "unpark": {"all": {"yes"}},
	} {
		if w := post(h, env+"/resources/"+name, form); w.Code != http.StatusSeeOther {
			t.Errorf("%s answers %d: %s", name, w.Code, w.Body)
		}
	}
	w := post(h, env+"/resources/dryrun", chosen)
	if at := w.Header().Get("Location"); !strings.Contains(at, "/dryruns/") {
		t.Errorf("a dry run leads to %q, %d", at, w.Code)
	} else if page := get(t, h, at).Body.String(); !strings.Contains(page, "what a filter chose") {
		t.Error("the page of the dry run does not say what it is limited to")
	}
	if w := post(h, env+"/resources/repair", url.Values{}); w.Code != http.StatusBadRequest {
		t.Errorf("nothing chosen answers %d", w.Code)
	}
	told := strings.Join(r.Told(), "\n")
	for _, want := range []string{
		"deploy full=true [] [fs::Directory[web01,", "pause web01=true", "unpark [",
		"deploy full=false [] [" + r.FailedFile.String() + "]",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the deployer was not told %q:\n%s", want, told)
		}
	}
}
