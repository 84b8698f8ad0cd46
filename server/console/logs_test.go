package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/testing/tool"
)

// Somebody follows the log. A deployment ends, and its lines appear at the end; those that stood there stay. With a
// filter, only what matches appears.
func TestJourneyFollowingTheLog(t *testing.T) {
	tool.Heavy(t, "works in a browser")
	t.Parallel()
	r, h := liveRich(t)
	b := browse(t, h)
	b.open("/e/" + r.Production.ID.String() + "/logs?type=Dir")
	b.until(`document.getElementById('live').textContent === 'Live'`)
	end := r.Now().Add(time.Second)
	for _, id := range []intent.ResourceID{r.FailedFile, r.HealthyDir} {
		must(t, r.Store.FinishActions(t.Context(), r.Production.ID, []intent.FinishedAction{{
			Action: intent.Action{
				ID: uuid.New(), Environment: r.Production.ID, Kind: intent.ActionDeploy, Resource: id, Version: 7,
				Started: end, Finished: &end, Status: intent.StatusDeployed,
				Messages: []intent.LogLine{{Level: "INFO", Message: "news of " + id.Type, Time: end}},
			},
			State: intent.ResourceState{
				ID: id, Compliance: intent.Compliant, LastRun: intent.RunSuccessful, Blocked: intent.NotBlocked,
			},
		}}))
	}
	moved(r, bus.Resource)
	b.until(`document.querySelector('#log-groups > li:last-child').textContent.includes('news of fs::Directory')`)
	text := eval[string](b, `document.getElementById('log-groups').textContent`)
	if !strings.Contains(text, "End of the deployment") || strings.Contains(text, "news of fs::File") {
		t.Errorf("the log is %s", text)
	}
}

// Somebody sets a parameter and a fact by form, sees them in the lists, and deletes them.
func TestSettingParametersByForm(t *testing.T) {
	t.Parallel()
	r, h := rich(t)
	env := "/e/" + r.Production.ID.String()
	post := func(path string, want int, values url.Values) {
		t.Helper()
		q := httptest.NewRequest("POST", env+path, strings.NewReader(values.Encode()))
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, q); w.Code != want {
			t.Fatalf("%s %v: %d", path, values, w.Code)
		}
	}
	id := r.HealthyDir.String()
	post("/parameters/set", http.StatusSeeOther, url.Values{"name": {"colour"}, "value": {"deep blue"}})
	post("/parameters/set", http.StatusSeeOther,
		url.Values{"fact": {"yes"}, "resource": {id}, "name": {"size"}, "value": {"12 GB"}, "expires": {"yes"}})
	post("/parameters/set", http.StatusBadRequest, url.Values{"fact": {"yes"}, "name": {"size"}})
	post("/parameters/set", http.StatusBadRequest, url.Values{"name": {" "}})
	for path, want := range map[string]string{"/parameters?name=colour": "deep blue", "/facts?name=size": "12 GB"} {
		if body := get(t, h, env+path).Body.String(); !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, path)
		}
	}
	post("/parameters/delete", http.StatusSeeOther, url.Values{"name": {"colour"}})
	post("/parameters/delete", http.StatusSeeOther, url.Values{"name": {"size"}, "resource": {id}})
	if body := get(t, h, env+"/parameters").Body.String(); strings.Contains(body, "deep blue") {
		t.Error("the parameter is still there")
	}
}
